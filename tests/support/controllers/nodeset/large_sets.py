"""Sets of thousands of nodes in the states that take most of a round to decide about: for tests of growth, and for the benchmark.

A round without its requests is `see`, `plan_nodeset` and `tell`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec.structs import replace as replaced

from controllers.nodeset.observe import Surroundings, observe
from controllers.nodeset.observed import Observed, Repair, Repairs
from controllers.nodeset.plan import Plan
from controllers.nodeset.plans.pins import plan_pins
from controllers.nodeset.plans.slurm_nodes import plan_slurm_nodes
from controllers.nodeset.pods import node_name, revision, selector
from controllers.nodeset.reconcile import find_causes
from controllers.nodeset.status import build_status
from controllers.nodeset.structs import (
    ClaimMeta,
    ClaimRetention,
    ClaimTemplate,
    Drain,
    MachineCauseRule,
    NodeSetObject,
    NodeSetSpec,
    PodTemplate,
    RemedyPolicy,
    Topology,
    UpdateStrategy,
)
from controllers.runtime.structs import (
    Begun,
    Condition,
    ContainerState,
    ContainerStatus,
    KubeNode,
    KubeNodeInfo,
    KubeNodeSpec,
    KubeNodeStatus,
    NodeCondition,
    ObjectMeta,
    PartialObject,
    Pod,
    PodSpec,
    PodStatus,
)
from controllers.slurm.snapshot import Snapshot
from controllers.slurm.structs import Job, Node, Number
from names import annotations, labels
from slurm.check_results import FAILED, PASSED, CheckResult, Driver, Failure, with_result
from slurm.reasons import BEFORE_JOBS, CHECK, REMEDY, SCALE_IN, UPDATE

NOW = 1_800_000_000.0
_MADE = "2026-12-01T00:00:00Z"
_OLD = "an older revision"
_IDLE, _BUSY, _OFF = ("IDLE", "CLOUD"), ("ALLOCATED", "CLOUD"), ("IDLE", "CLOUD", "POWERED_DOWN")
_WAKING, _DRAINING = ("MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"), ("ALLOCATED", "CLOUD", "DRAIN")
_DRAINED, _DOWN = ("IDLE", "CLOUD", "DRAIN"), ("DOWN", "CLOUD", "NOT_RESPONDING")


@dataclass(frozen=True)
class LargeSet:
    """What there is of a set. The ordinals of its pods and nodes are those below `size`."""

    nodeset: NodeSetObject
    pods: tuple[Pod, ...]
    snapshot: Snapshot
    machines: Mapping[str, KubeNode]
    surroundings: Surroundings = field(default_factory=Surroundings)


def see(large: LargeSet) -> Observed:
    """What a round observes."""
    return observe(large.nodeset, large.pods, large.snapshot, NOW, replace(large.surroundings, machines=large.machines.get))


def tell(large: LargeSet, observed: Observed, plan: Plan) -> None:
    """What a round finds out for people, and for the records that it keeps."""
    causes = find_causes(large.nodeset, observed, plan)
    plan_slurm_nodes(large.nodeset, observed, causes, {}, {}, is_sweep=True)
    build_status(large.nodeset, observed, plan, None, _MADE)
    pins = {ordinal: pod.machine for ordinal, pod in observed.pods.items() if pod.machine is not None}
    plan_pins(large.nodeset.spec, pins, observed.pods, large.machines.get, lambda _: 0)


def _nodeset(size: int, *, deleted: bool = False, **spec: Any) -> NodeSetObject:
    template = PodTemplate({"containers": [{"name": "slurmd", "image": "a"}]})
    whole = NodeSetSpec("dev", template, ordinals=None if "max" in spec else size)
    meta = ObjectMeta(name="gpu", namespace="slurm", uid="u", deletion_timestamp=_MADE if deleted else None)
    return NodeSetObject(meta, replaced(whole, **spec))


def _pod(nodeset: NodeSetObject, ordinal: int, present: str, is_bound: bool, is_busy: bool) -> Pod:
    held = {**selector(nodeset), labels.REVISION: present, labels.BUSY: "true" if is_busy else "false"}
    about = {annotations.CHECKS_BEFORE_JOBS: "true"} if nodeset.spec.checks_before_jobs else {}
    name = node_name("gpu", ordinal)
    meta = ObjectMeta(name=name, namespace="slurm", uid=name, creation_timestamp=_MADE, labels=held, annotations=about)
    if not is_bound:
        return Pod(meta)
    slurmd = ContainerStatus("slurmd", ready=True, state=ContainerState(running=Begun()))
    status = PodStatus("Running", conditions=(Condition("Ready", "True"),), container_statuses=(slurmd,))
    return Pod(meta, PodSpec(_machine_name(ordinal)), status)


def _machine_name(ordinal: int) -> str:
    return f"machine-{ordinal}"


def _machine(ordinal: int, is_cordoned: bool = False, is_broken: bool = False) -> KubeNode:
    name = _machine_name(ordinal)
    broken = (NodeCondition("KernelDeadlock", "True", "it", "hangs", _MADE),) if is_broken else ()
    labels = {"spine": f"s{ordinal // 256}", "leaf": f"l{ordinal // 16}"}
    status = KubeNodeStatus(conditions=(NodeCondition("Ready", "True"), *broken), node_info=KubeNodeInfo(f"boot of {name}"))
    meta = ObjectMeta(name=name, uid=f"uid of {name}", labels=labels, creation_timestamp=_MADE)
    return KubeNode(meta, KubeNodeSpec(unschedulable=is_cordoned), status)


def _make(
    nodeset: NodeSetObject,
    size: int,
    words: tuple[str, ...] = _IDLE,
    reason: str = "",
    *,
    has_pods: bool = True,
    is_old: bool = False,
    is_bound: bool = True,
    is_busy: bool = False,
    is_cordoned: bool = False,
    is_broken: bool = False,
    extra: Callable[[int], str] = lambda _: "",
    jobs: Iterable[Job] = (),
    surroundings: Surroundings | None = None,
) -> LargeSet:
    present = _OLD if is_old else revision(nodeset.spec)
    pods = tuple(_pod(nodeset, ordinal, present, is_bound, is_busy) for ordinal in range(size)) if has_pods else ()
    nodes = {(name := node_name("gpu", ordinal)): Node(name, words=words, reason=reason, extra=extra(ordinal)) for ordinal in range(size)}
    machines = {_machine_name(ordinal): _machine(ordinal, is_cordoned, is_broken) for ordinal in range(size)}
    return LargeSet(nodeset, pods, Snapshot(nodes, tuple(jobs), (), 0.0), machines, surroundings or Surroundings())


def _failing(ordinal: int, machine: str = "") -> str:
    """What a check has found on each node, in words of its own."""
    failure = Failure(_MADE, f"fault {ordinal}", machine=machine, seen=_MADE if machine else "")
    return with_result("", "gpu", CheckResult(FAILED, _MADE, failure)) or ""


def _driver(ordinal: int) -> str:
    driver = Driver("570.1" if ordinal % 3 else "550.2", 10)
    return with_result("", "gpu", CheckResult(PASSED, _MADE, driver=driver)) or ""


def _jobs(size: int) -> list[Job]:
    """Jobs of eight nodes."""
    return [Job(1 + at, ("RUNNING",), f"gpu-[{at}-{at + 7}]", Number(True, False, NOW + at % 977)) for at in range(0, size, 8)]


def _claims(nodeset: NodeSetObject, size: int) -> tuple[PartialObject, ...]:
    names = (f"disk-gpu-{ordinal}" for ordinal in range(size))
    return tuple(PartialObject(ObjectMeta(name=name, namespace="slurm", uid=name, labels=selector(nodeset))) for name in names)


def _with_disks(size: int, replicas: int, has_pods: bool) -> LargeSet:
    claim = ClaimTemplate(ClaimMeta("disk"), {})
    nodeset = _nodeset(
        size, replicas=replicas, volume_claim_templates=(claim,), volume_claim_retention=ClaimRetention(when_scaled="Delete")
    )
    return _make(nodeset, size, has_pods=has_pods, surroundings=Surroundings(claims=_claims(nodeset, size)))


_RULES = (MachineCauseRule("KernelDeadlock", kind="node", wish="reboot"),)
_POLICY = RemedyPolicy(
    ("RecreatePod", "RebootMachine"),
    verified_by=("gpu",),
    systemic_percent=100,
    max_per_day=100_000,
    machines="Webhook",
    webhook="http://a",
)
_CHECKED: dict[str, Any] = {"health_checks": ("gpu",), "check_jobs": ("gpu",)}


def _repaired_set(size: int) -> NodeSetObject:
    return _nodeset(size, replicas=size, remedies=_POLICY, machine_causes=_RULES, **_CHECKED)


def _repaired(size: int, state: Any, words: tuple[str, ...], reason: str) -> LargeSet:
    repairs = {ordinal: Repair(state, NOW - 900 - ordinal % 7, NOW - 2_000, pod=f"old {ordinal}") for ordinal in range(size)}
    return _make(_repaired_set(size), size, words, reason, is_broken=True, surroundings=Surroundings(repairs=Repairs(repairs)))


def _with_drain_requests(large: LargeSet) -> LargeSet:
    """Each with words of its own."""
    asked = ({**pod.metadata.annotations, annotations.DRAIN_REQUESTED: f"fan {number}"} for number, pod in enumerate(large.pods))
    changed = zip(large.pods, asked, strict=True)
    return replace(large, pods=tuple(replaced(pod, metadata=replaced(pod.metadata, annotations=each)) for pod, each in changed))


def _on_one_machine(large: LargeSet, size: int) -> LargeSet:
    name = _machine_name(0)
    pods = tuple(replaced(pod, spec=PodSpec(name)) for pod in large.pods)
    machines = {name: _machine(0, is_cordoned=True, is_broken=True)}
    return replace(large, pods=pods, machines=machines, surroundings=Surroundings(workers_on={name: size}))


CASES: Mapping[str, Callable[[int], LargeSet]] = {
    "at rest": lambda size: _make(_nodeset(size, replicas=size), size),
    "to 0": lambda size: _make(_nodeset(size, replicas=0), size),
    "to 0, busy": lambda size: _make(_nodeset(size, replicas=0), size, _BUSY, jobs=_jobs(size)),
    "to 0, draining": lambda size: _make(
        _nodeset(size, replicas=0),
        size,
        _DRAINING,
        SCALE_IN,
        jobs=_jobs(size),
        surroundings=Surroundings(drained_at=dict.fromkeys(range(size), NOW)),
    ),
    "to half": lambda size: _make(_nodeset(size, replicas=size // 2), size),
    "deleted": lambda size: _make(_nodeset(size, replicas=size, deleted=True), size),
    "rolled": lambda size: _make(_nodeset(size, replicas=size), size, is_old=True),
    "rolled, none bound": lambda size: _make(_nodeset(size, replicas=size), size, is_old=True, is_bound=False),
    "rolled, drained": lambda size: _make(_nodeset(size, replicas=size), size, _DRAINED, UPDATE, is_old=True),
    "rolled, all down": lambda size: _make(_nodeset(size, replicas=size), size, _DOWN, "Not responding", is_old=True),
    "resized": lambda size: _make(_nodeset(size, replicas=size), size, surroundings=Surroundings(held=frozenset(range(size)))),
    "woken": lambda size: _make(_nodeset(size, min=0, max=size), size, _WAKING, has_pods=False),
    "put to sleep": lambda size: _make(_nodeset(size, min=0, max=size), size, _OFF),
    "cordoned": lambda size: _make(_nodeset(size, replicas=size), size, is_cordoned=True),
    "drained by others": lambda size: _make(_nodeset(size, replicas=size), size, _DRAINED, "fan is loud"),
    "failing checks": lambda size: _make(_nodeset(size, replicas=size, **_CHECKED), size, _DRAINED, f"{CHECK}gpu: fault", extra=_failing),
    "two drivers": lambda size: _make(_nodeset(size, replicas=size, **_CHECKED), size, extra=_driver),
    "second looks": lambda size: _make(
        _nodeset(size, replicas=size, **_CHECKED), size, _DRAINED, f"{CHECK}gpu: fault", extra=lambda at: _failing(at, f"other-{at}/boot")
    ),
    "checked first": lambda size: _make(
        _nodeset(size, replicas=size, checks_before_jobs=("gpu",), **_CHECKED), size, _DRAINED, BEFORE_JOBS
    ),
    "broken machines": lambda size: _make(
        _nodeset(size, replicas=size, remedies=_POLICY, machine_causes=_RULES, **_CHECKED), size, is_broken=True
    ),
    "repairs begin": lambda size: _repaired(size, "Draining", _DRAINED, REMEDY),
    "repairs are verified": lambda size: _repaired(size, "Verifying", _DRAINED, REMEDY),
    "disks scaled in": lambda size: _with_disks(size, 0, has_pods=False),
    "disks": lambda size: _with_disks(size, size, has_pods=True),
    "pinned": lambda size: _make(_nodeset(size, replicas=size, placement="Pinned"), size),
    "maintenance": lambda size: _make(
        _nodeset(size, replicas=size, update_strategy=UpdateStrategy("Maintenance", "10%", "window")), size, is_old=True
    ),
    "late jobs": lambda size: _make(
        _nodeset(size, replicas=0, drain=Drain("Requeue", 60)),
        size,
        _DRAINING,
        SCALE_IN,
        jobs=_jobs(size),
        surroundings=Surroundings(drained_at=dict.fromkeys(range(size), NOW - 900)),
    ),
    "drains requested": lambda size: _with_drain_requests(_make(_nodeset(size, replicas=size), size)),
    "settling": lambda size: _make(
        _nodeset(size, replicas=size, update_strategy=UpdateStrategy(max_unavailable="10%", min_ready_seconds=60)),
        size,
        is_old=True,
        surroundings=Surroundings(registered_since=dict.fromkeys(range(size), NOW - 1)),
    ),
    "on one machine": lambda size: _on_one_machine(
        _make(_nodeset(size, replicas=size, remedies=_POLICY, machine_causes=_RULES, **_CHECKED), size), size
    ),
    "ghosts": lambda size: _make(_nodeset(size, min=0, max=size), size, _OFF, is_busy=True),
    "in blocks": lambda size: _make(
        _nodeset(size, replicas=size, topologies=(Topology("nvlink", ("leaf",), size),)),
        size,
        surroundings=Surroundings(blocks={"nvlink": {f"l{at}": at for at in range(size // 16)}}),
    ),
    "in a tree": lambda size: _make(_nodeset(size, replicas=size, topologies=(Topology("fabric", ("spine", "leaf")),)), size),
}
"""By what happens to the set: how it looks with so many nodes."""
