"""What a changed workload means for its pods, in words, and which Slurm nodes leave or roll. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from changes.disks import resizes
from changes.settled import settled
from changes.steps import Step
from names import labels

RECORD = (labels.COMPONENT, "deployed")
"""Label of the guard's record: Secrets that are created after all other objects, and deleted first."""
_WORKLOADS = ("StatefulSet", "Deployment", "DaemonSet")
CONFIGURATION = "slurm.conf"
_ON_DELETE = "running pods, and their jobs, go on as they are; each gets the change when it is next deleted"

Why = Literal["removed", "scaled in", "rolled", "resized"]


@dataclass(frozen=True)
class DrainPolicy:
    """What a node set does with the jobs on a node that has to leave."""

    action: Literal["Wait", "Requeue", "Cancel"] = "Wait"
    deadline_s: int | None = None

    def __str__(self) -> str:
        if self.action == "Wait" or self.deadline_s is None:
            return "they end first"
        verb = {"Requeue": "requeued", "Cancel": "cancelled"}[self.action]
        return f"after {self.deadline_s} s they are {verb}"

    @property
    def ends_jobs(self) -> bool:
        """True if jobs may not get the time that they asked for."""
        return self.action != "Wait" and self.deadline_s is not None


@dataclass(frozen=True)
class NodesTouched:
    """Slurm nodes that a change takes out of service, for good or for a while."""

    node_set: str
    why: Why
    nodes: frozenset[str]
    most: int | None = None
    """How many of the nodes, if the controller chooses; None for all."""
    policy: DrainPolicy = DrainPolicy()


def consequences(steps: Sequence[Step]) -> list[str]:
    """For each workload that changes: whether its pods, and so its jobs, continue. For files changed in place: that no pod restarts."""
    lines: list[str] = []
    updated = [step for step in steps if step.op == "update"]
    files = [step for step in updated if step.kind in ("ConfigMap", "Secret") and not _is_for_controllers(step) and not settled([step])]
    for step in files:
        if has_slurms_files(step):
            lines.append(f"{step.name}: slurmctld reads the new files within seconds, and hands them on; no pod restarts for it")
    in_place = [step.name for step in files if not has_slurms_files(step)]
    if in_place:
        lines.append(f"{', '.join(in_place)}: running pods get the new files in place within about a minute; none restarts for it")
    lines += [f"{resize}: the disk grows while it is in use, where its StorageClass lets disks grow" for resize in resizes(steps)]
    for step in steps:
        effect = _effect_on_nodes if step.is_node_set else _effect_on_machines if step.is_node_group else _effect
        if (step.kind in _WORKLOADS or step.is_node_set or step.is_node_group) and (effect_text := effect(step)):
            lines.append(f"{step.kind} {step.name}: {effect_text}")
    return lines


def nodes_touched(steps: Sequence[Step]) -> list[NodesTouched]:
    """The nodes that NodeSets lose or roll, without those that only leave slurm.conf."""
    return [touched for step in steps if step.is_node_set for touched in _touched(step)]


def drain_policies(steps: Sequence[Step]) -> dict[str, DrainPolicy]:
    """What each node set does, after the change, with the jobs on nodes that have to leave."""
    return {step.name: _policy(step.new.get("spec") or step.spec) for step in steps if step.is_node_set}


def _touched(step: Step) -> list[NodesTouched]:
    if step.op in ("create", "same"):
        return []
    names = frozenset(f"{step.name}-{ordinal}" for ordinal in range(_node_count(step.spec)))
    policy = _policy(step.new.get("spec") or step.spec)
    if step.op in ("delete", "replace"):
        return [NodesTouched(step.name, "removed", names, policy=policy)]
    touched: list[NodesTouched] = []
    for field in ("replicas", "max"):
        for old, new in step.numbers(field):
            if new < old:
                touched.append(NodesTouched(step.name, "scaled in", names, old - new, policy))
    strategy = {**step.spec.get("updateStrategy", {}), **step.new.get("spec", {}).get("updateStrategy", {})}
    if _rolls(step) and strategy.get("type") != "OnDelete":
        touched.append(NodesTouched(step.name, "rolled", names, policy=policy))
    return touched


def _node_count(spec: Mapping[str, Any]) -> int:
    """The number of nodes that slurm.conf lists for a set. Source: controllers/nodeset/structs.py."""
    largest = spec.get("max") if spec.get("max") is not None else spec.get("replicas")
    ordinals = spec.get("ordinals")
    return int(ordinals if ordinals is not None else largest or 0)


def _policy(spec: Mapping[str, Any]) -> DrainPolicy:
    drain: Mapping[str, Any] = spec.get("drain") or {}
    return DrainPolicy(drain.get("action", "Wait"), drain.get("deadlineSeconds"))


def _rolls(step: Step) -> bool:
    return step.touches("spec", "template") or step.touches("spec", "volumeClaimTemplates")


def has_slurms_files(step: Step) -> bool:
    """True for the ConfigMap with slurm.conf and its peers."""
    return CONFIGURATION in (step.new.get("data") or step.old.get("data") or {})


def _is_for_controllers(step: Step) -> bool:
    """True for an object that a controller reads and no pod mounts: a list of node sets (it has a finalizer), and the guard's record."""
    return bool(step.new.get("metadata", {}).get("finalizers")) or is_record(step.new)


def is_record(manifest: Mapping[str, Any]) -> bool:
    """True for a Secret of the guard's record."""
    label, value = RECORD
    labels: Mapping[str, str] = manifest.get("metadata", {}).get("labels") or {}
    return manifest.get("kind", "Secret") == "Secret" and labels.get(label) == value


def _effect_on_nodes(step: Step) -> str:
    """What happens to the Slurm nodes of a NodeSet: its controller drains each before its pod ends."""
    if step.op in ("delete", "replace"):
        again = "; then the set is made again" if step.op == "replace" else ""
        return f"goes: all its nodes are drained, and each pod ends when no job is left on it{again}"
    if step.op != "update":
        return ""
    effects: list[str] = []
    for field, unit in (("replicas", "nodes"), ("max", "nodes at most"), ("min", "nodes at least")):
        for old, new in step.numbers(field):
            fate = "; those that go are drained first" if new < old and field != "min" else "; those there stay"
            effects.append(f"{old} to {new} {unit}{fate}")
    if _rolls(step):
        effects.append(_roll({**step.spec.get("updateStrategy", {}), **step.new.get("spec", {}).get("updateStrategy", {})}))
    return "; ".join(effects) or "no pod restarts"


def _effect_on_machines(step: Step) -> str:
    """What happens to the machines of a node group. Source: EKS' user guide, "Update a managed node group": pods are evicted first."""
    if step.op == "delete":
        return "the group and its machines are deleted, after the node sets on them"
    if step.op == "replace":
        return "EKS creates a new group, then deletes this one with its machines and the jobs on them: drain its node sets first"
    if step.op == "update" and step.touches("launchTemplate"):
        return "EKS replaces the machines, and first evicts their pods, which workers do not allow: drain its node sets first"
    return ""


def _roll(strategy: Mapping[str, Any]) -> str:
    if strategy.get("type") == "OnDelete":
        return _ON_DELETE
    when = f" while reservation {strategy.get('reservation')} is active" if strategy.get("type") == "Maintenance" else ""
    return f"its nodes are drained and their pods replaced, at most {strategy.get('maxUnavailable', 1)} at a time{when}; jobs end first"


def _effect(step: Step) -> str:
    is_worker = labels.NODESET in step.spec.get("template", {}).get("metadata", {}).get("labels", {})
    jobs = "; jobs on them are waited for as long as the pods' grace period allows" if is_worker else ""
    if step.op == "delete":
        return f"is removed and its {step.spec.get('replicas', 1)} pods end{jobs}"
    if step.op == "replace":
        return f"cannot change in place: it is deleted and made again, and its pods end{jobs}"
    if step.op != "update":
        return ""
    effects = [f"{old} to {new} pods{jobs if new < old else '; those there stay'}" for old, new in step.numbers("replicas")]
    if step.touches("spec", "template"):
        strategy = step.spec.get("updateStrategy", step.spec.get("strategy", {})).get("type", "RollingUpdate")
        if strategy == "OnDelete":
            effects.append(_ON_DELETE)
        else:
            effects.append("its pods are replaced " + ("all at once" if strategy == "Recreate" else "one after the other") + jobs)
    return "; ".join(effects) or "no pod restarts"
