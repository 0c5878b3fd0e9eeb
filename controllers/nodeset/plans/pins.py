"""Where the pods of a pinned set belong: on the machine on which each has run, as long as that machine can take it. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from controllers.nodeset.pods import without_nulls
from controllers.nodeset.structs import NodeSetSpec
from controllers.nodeset.workers import WorkerPod
from controllers.runtime.structs import KubeNode, Taint

TRIES = 3
"""Refusals in a row after which a worker is no longer bound to its machine."""
_PASSING = "node.kubernetes.io/"
"""Taints of Kubernetes' own come and go: a machine that is cordoned, or does not answer, keeps its workers."""

Machines = Callable[[str], KubeNode | None]


def plan_pins(
    spec: NodeSetSpec, recorded: Mapping[int, str], pods: Mapping[int, WorkerPod], machines: Machines, refusals: Callable[[int], int]
) -> dict[int, str]:
    """The machine of each ordinal of a pinned set: where its pod has run, else what was recorded and still fits."""
    if spec.placement != "Pinned":
        return {}
    template: dict[str, Any] = without_nulls(spec.template.spec)
    fitting = {
        ordinal: name
        for ordinal, name in recorded.items()
        if ordinal < spec.node_count and refusals(ordinal) < TRIES and (machine := machines(name)) is not None and fits(template, machine)
    }
    now = {
        ordinal: pod.machine
        for ordinal, pod in pods.items()
        if pod.machine is not None and not pod.terminating and not pod.finished and (pod.ready or pod.has_run)
    }
    return {**fitting, **now}


def fits(template: Mapping[str, Any], machine: KubeNode) -> bool:
    """True when the machine's labels and lasting taints let pods of that spec onto it. Whether it has room is the scheduler's affair."""
    labels = machine.metadata.labels
    if any(labels.get(key) != value for key, value in template.get("nodeSelector", {}).items()):
        return False
    required = template.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = required.get("nodeSelectorTerms")
    if terms and not any(all(_matches(labels, expression) for expression in term.get("matchExpressions", [])) for term in terms):
        return False
    tolerations = template.get("tolerations", [])
    taints = [taint for taint in machine.spec.taints if taint.effect in ("NoSchedule", "NoExecute")]
    lasting = [taint for taint in taints if not taint.key.startswith(_PASSING)]
    return all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in lasting)


def _matches(labels: Mapping[str, str], expression: Mapping[str, Any]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values", [])
    matches_by_operator = {"In": value in values, "NotIn": value not in values, "Exists": value is not None, "DoesNotExist": value is None}
    return matches_by_operator.get(expression["operator"], True)


def _tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    if toleration.get("effect") not in (None, "", taint.effect):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint.key)
    return (toleration.get("key"), toleration.get("value", "")) == (taint.key, taint.value)
