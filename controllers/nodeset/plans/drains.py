"""Which Slurm nodes are drained, for which reason, and when a drain of ours is lifted. Pure; part of `plan`.

A node has one drain and one reason in Slurm, but may have several causes: its drain is lifted once none is left
(docs/explain/architecture.md, "Health").
A node that others have drained or set DOWN keeps their reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.nodeset.observed import Observed
from controllers.nodeset.repairs import RepairPlan
from controllers.nodeset.structs import NodeSetObject
from controllers.nodeset.workers import Worker, WorkerPod
from slurm.reasons import (
    BEFORE_JOBS,
    DELETE,
    NODESET,
    REMEDY,
    REQUESTED,
    SCALE_IN,
    awaits_checks,
    cordon,
    is_of_machine,
    maintenance,
    requested,
    written,
)
from slurm.states import may_be_drained


@dataclass(frozen=True)
class Drains:
    """What becomes of the drains of a set, in ordinals."""

    drain: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Slurm nodes to drain, by reason."""
    undrain: tuple[int, ...] = ()
    drained_at: Mapping[int, float] = field(default_factory=dict[int, float])
    """When each node with a drain of ours was drained, those to be drained now included: the record that the status keeps."""
    forgets_records: bool = False
    """A drain of ours that the status records is no longer there."""

    @property
    def writes_to_slurm(self) -> bool:
        """True when Slurm is asked for something."""
        return bool(self.drain or self.undrain)


def find_drain_reasons(
    nodeset: NodeSetObject, observed: Observed, wanted: frozenset[int], leaving: Mapping[int, str], repairs: RepairPlan
) -> dict[int, str]:
    """Which nodes should have a drain of ours, and why, by ordinal. `leaving` gives the reason of each worker that leaves."""
    causes = {
        worker.ordinal: _drain_reason(nodeset, observed, worker, wanted, leaving, worker.ordinal in repairs.before_jobs)
        for worker in observed.workers()
        if worker.node is not None
    }
    return {ordinal: reason for ordinal, reason in causes.items() if reason and ordinal not in observed.pods_taken}


def plan_drains(
    nodeset: NodeSetObject, observed: Observed, wanted: frozenset[int], causes: Mapping[int, str], repairs: RepairPlan
) -> Drains:
    """What to drain and what to lift.

    A node whose pod belongs to somebody else is left alone. A node under a running check is left alone too, unless its worker leaves. While
    many nodes fail together, no node is drained for failures of checks.
    """
    drain: dict[str, list[int]] = {}
    undrain: list[int] = []
    drained_at: dict[int, float] = {}
    for worker in observed.workers():
        if worker.node is None or worker.ordinal in observed.pods_taken:
            continue
        reason, fault = causes.get(worker.ordinal, ""), worker.fault
        if worker.ordinal in observed.looked_at and not reason.startswith(NODESET):
            if worker.may_lift_drain:
                drained_at[worker.ordinal] = observed.drained_at.get(worker.ordinal, observed.now)
        elif worker.has_check_drain and (fault or worker.node.failures is None):
            if fault and _has_other_reason(worker, fault):
                drain.setdefault(fault, []).append(worker.ordinal)
        elif reason == REMEDY and worker.ordinal in repairs.mended:
            drain.setdefault(reason, []).append(worker.ordinal)  # Slurm's own drain is answered, and checks have to pass yet
            drained_at[worker.ordinal] = observed.now
        elif reason and worker.has_foreign_drain and not worker.has_check_drain:
            if _needs_their_drain(worker, reason):
                drain.setdefault(worker.node.reason, []).append(worker.ordinal)  # without a record: it is theirs, and they lift it
        elif reason and _is_to_be_drained(worker, reason):
            drain.setdefault(reason, []).append(worker.ordinal)
            drained_at[worker.ordinal] = observed.now  # the record may still be that of an earlier drain
        elif not reason and _may_be_lifted(nodeset, observed, worker, wanted, worker.ordinal in repairs.mended):
            if fault:
                drain.setdefault(fault, []).append(worker.ordinal)  # without a record: no worker leaves for that
            else:
                undrain.append(worker.ordinal)
                if worker.may_lift_drain:  # a check's drain has no record
                    drained_at[worker.ordinal] = observed.drained_at.get(worker.ordinal, observed.now)
        elif worker.may_lift_drain:  # that of a stop hook, too: its reason may be lost in the same way
            drained_at[worker.ordinal] = observed.drained_at.get(worker.ordinal, observed.now)
        elif fault and not reason and not repairs.is_systemic and _is_open(worker):
            drain.setdefault(fault, []).append(worker.ordinal)
    by_reason = {reason: tuple(drain[reason]) for reason in sorted(drain)}
    return Drains(by_reason, tuple(undrain), drained_at, bool(observed.drained_at.keys() - drained_at.keys()))


def is_served(nodeset: NodeSetObject, ordinal: int, wanted: frozenset[int]) -> bool:
    """True for an ordinal that gets a pod when Slurm wants its node: below `max` in an elastic set, wanted in a fixed set."""
    if nodeset.metadata.deletion_timestamp is not None:
        return False
    spec = nodeset.spec
    return ordinal < min(spec.max, spec.node_count) if spec.max is not None else ordinal in wanted


def _drain_reason(
    nodeset: NodeSetObject, observed: Observed, worker: Worker, wanted: frozenset[int], leaving: Mapping[int, str], waits_before_jobs: bool
) -> str:
    """Why the node should have a drain of ours, the first reason that applies; empty when it should have none."""
    if not is_served(nodeset, worker.ordinal, wanted) or (worker.pod is None and worker.ordinal in observed.taken):
        if worker.ordinal in observed.on_their_way:
            return ""
        if worker.pod is None or worker.ordinal in leaving:
            # A job that Slurm gave it would wait for a pod that nobody makes.
            return DELETE if nodeset.metadata.deletion_timestamp is not None else SCALE_IN
        return ""
    pod = worker.pod
    if pod is None or pod.terminating:
        return ""
    if worker.is_off:
        # A node that is off takes no job, so it is not drained for the time until its pod is gone. A drained node stays drained until then.
        # A node that is woken keeps its pod, and a node that waits for checks may register at any moment.
        reason_of_others = _for_others(observed, pod) if worker.is_draining else ""
        return reason_of_others or (BEFORE_JOBS if worker.is_draining and waits_before_jobs else "")
    if worker.ordinal in leaving:
        return leaving[worker.ordinal]
    is_known = pod.machine is not None and pod.machine in observed.machines
    return _for_others(observed, pod) or (BEFORE_JOBS if waits_before_jobs and is_known else "")


def _for_others(observed: Observed, pod: WorkerPod) -> str:
    """The reason that others give: the machine is cordoned or about to be taken, or an annotation of the pod requests a drain."""
    machine = observed.machines.get(pod.machine) if pod.machine is not None else None
    if machine is not None and pod.machine is not None and machine.is_cordoned:
        return cordon(pod.machine, machine.words)
    if machine is not None and pod.machine is not None and machine.announced:
        return maintenance(pod.machine, machine.announced)
    return requested(pod.drain_requested) if pod.drain_requested else ""


def _is_open(worker: Worker) -> bool:
    """True for a node that takes jobs, or will once it is up, although a check says that it fails: others have lifted the drain."""
    node, pod = worker.node, worker.pod
    if node is None or worker.has_foreign_drain or (pod is not None and pod.terminating):
        return False
    return may_be_drained(node.state)


def _is_to_be_drained(worker: Worker, reason: str) -> bool:
    """True for a node that may still take jobs, and for a drained node whose drain needs another cause.

    The latter has a drain of ours, or of a check that passes again.

    A node that a job waits for has to come up first: a drain would end that job. A node in a state that is not known here is left alone.
    """
    node, pod = worker.node, worker.pod
    if node is None or worker.is_waking or not node.state.is_known or (pod is not None and pod.terminating):
        return False
    if not worker.is_draining:
        return may_be_drained(node.state)
    if is_of_machine(reason) or reason.startswith(REQUESTED):
        return written(node.reason) != reason and (worker.is_drained_to_leave or worker.is_kept_out or worker.has_check_drain)
    if awaits_checks(reason) and (worker.is_drained_to_leave or worker.has_before_jobs_drain):
        return written(node.reason) != reason  # checks look only at nodes that wait for them
    return worker.is_kept_out or worker.has_lost_reason or worker.has_check_drain


def _has_other_reason(worker: Worker, fault: str) -> bool:
    """True for a node that is drained for another failure than the most urgent one of now."""
    return worker.node is not None and worker.node.state.is_known and not worker.is_waking and written(worker.node.reason) != fault


def _needs_their_drain(worker: Worker, reason: str) -> bool:
    """True for a worker that leaves, and whose node somebody else has down: should its slurmd register, the node would take jobs.

    The drain gets the reason that is there, so the node stays theirs. On a node that stays, DOWN is all that it takes to keep jobs away.
    """
    leaves = worker.pod is not None and not worker.pod.terminating and reason.startswith(NODESET)
    return leaves and not worker.is_draining and not worker.may_go and worker.node is not None and may_be_drained(worker.node.state)


def _may_be_lifted(nodeset: NodeSetObject, observed: Observed, worker: Worker, wanted: frozenset[int], is_mended: bool) -> bool:
    """True for a drain whose cause is gone.

    The pod was replaced or is wanted again, Slurm may wake the elastic node again, or no check fails.
    """
    pod = worker.pod
    if not worker.may_lift_drain and not worker.has_check_drain and not is_mended:
        return False
    if pod is None:
        # slurmctld's sidecar drains nodes that are off before it removes them, and may end before it does. And a pod that stopped has
        # drained its node, which Slurm may have powered down since.
        return nodeset.spec.is_elastic and worker.is_off and worker.ordinal not in observed.on_their_way and not worker.is_given_up
    if worker.ordinal not in wanted or not pod.ready or pod.terminating or worker.has_gpu_drain:
        return False
    machine = observed.machine_of(worker)
    if pod.machine is not None and (machine is None or machine.is_cordoned):
        return False  # a cordoned machine whose Kubernetes node was deleted is not back: its pod ends, and the next pod is elsewhere
    # A pod that seems to run may have been asked to stop a moment ago, and its hook may just have drained the node.
    return not worker.has_stop_drain or worker.ordinal in observed.stopping_settled
