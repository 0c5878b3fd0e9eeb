"""Which Slurm nodes are drained, for which reason, and when a drain of ours is lifted. Pure; part of `plan`.

Slurm keeps one drain and one reason for each node. The controller drains the nodes of workers that go, nodes that the set does not serve,
and nodes on cordoned machines; a pod's stop hook drains, too. It lifts each of these once its cause is gone, and no drain of others.
A node that others have drained or set DOWN keeps their reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.nodeset.structs import NodeSet
from controllers.nodeset.workers import Observed, Worker
from slurm.reasons import CORDON, DELETE, NODESET, SCALE_IN, cordon, written
from slurm.states import is_released_by_resume, may_be_drained


@dataclass(frozen=True)
class Drains:
    """What becomes of the drains of a set, in ordinals."""

    drain: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Nodes to drain, by reason."""
    undrain: tuple[int, ...] = ()
    resume: tuple[int, ...] = ()
    """Nodes that Slurm has given up, and that may be tried again."""
    release: tuple[int, ...] = ()
    """Nodes that power down and have no pod any more."""
    drained_at: dict[int, float] = field(default_factory=dict[int, float])
    """When each node was drained that has a drain of ours, or is about to have one."""


def plan_drains(nodeset: NodeSet, observed: Observed, target: frozenset[int], condemned: Mapping[int, str]) -> Drains:
    """What to drain, lift and resume. `condemned` gives the reason of each worker that goes."""
    drain: dict[str, list[int]] = {}
    undrain: list[int] = []
    resume: list[int] = []
    release: list[int] = []
    drained_at: dict[int, float] = {}
    for one in observed.workers():
        if one.node is None or one.ordinal in observed.pods_taken:
            continue
        reason = _cause(nodeset, observed, one, target, condemned)
        if reason and one.has_foreign_drain:
            if _needs_their_drain(one, reason):
                drain.setdefault(one.node.reason, []).append(one.ordinal)  # without a record: it is theirs, and they lift it
        elif reason and _is_to_be_drained(one, reason):
            drain.setdefault(reason, []).append(one.ordinal)
            drained_at[one.ordinal] = observed.now  # the record may still be that of an earlier drain
        elif one.has_own_drain:  # that of a stop hook, too: its reason may be lost in the same way
            drained_at[one.ordinal] = observed.drained_at.get(one.ordinal, observed.now)
        if reason:
            continue
        if _may_be_resumed(nodeset, observed, one):
            resume.append(one.ordinal)
        elif _may_be_lifted(nodeset, observed, one, target):
            undrain.append(one.ordinal)
        elif _may_be_released(nodeset, observed, one):
            release.append(one.ordinal)
    by_reason = {each: tuple(drain[each]) for each in sorted(drain)}
    return Drains(by_reason, tuple(undrain), tuple(resume), tuple(release), drained_at)


def is_served(nodeset: NodeSet, ordinal: int, target: frozenset[int]) -> bool:
    """True for an ordinal whose pod the set makes when Slurm wants its node: one of an elastic set's, or a wanted one of a fixed set's."""
    if nodeset.metadata.deletion_timestamp is not None:
        return False
    spec = nodeset.spec
    return ordinal < min(spec.max, spec.bound) if spec.max is not None else ordinal in target


def _cause(nodeset: NodeSet, observed: Observed, worker: Worker, target: frozenset[int], condemned: Mapping[int, str]) -> str:
    """Why the node should have a drain of ours; empty when it should have none."""
    if not is_served(nodeset, worker.ordinal, target) or (worker.pod is None and worker.ordinal in observed.taken):
        if worker.ordinal in observed.on_their_way:
            return ""
        if worker.pod is None or worker.ordinal in condemned:
            # A job that Slurm gave it would wait for a pod that nobody makes.
            return DELETE if nodeset.metadata.deletion_timestamp is not None else SCALE_IN
        return ""
    pod = worker.pod
    if pod is None or pod.terminating or worker.is_off:
        return ""  # a node that is off takes no job, and may be woken once its pod is gone
    if worker.ordinal in condemned:
        return condemned[worker.ordinal]
    machine = observed.machine_of(worker)
    return cordon(pod.machine or "", machine.words) if machine is not None and machine.is_cordoned else ""


def _is_to_be_drained(worker: Worker, reason: str) -> bool:
    """True for a node that may still take jobs, and for one whose drain of ours now has another cause.

    A node that a job waits for has to come up first: a drain would end that job. A node in a state that is not known here is left alone.
    """
    node, pod = worker.node, worker.pod
    if node is None or worker.is_waking or not node.state.is_known or (pod is not None and pod.terminating):
        return False
    if not worker.is_draining:
        return may_be_drained(node.state)
    if reason.startswith(CORDON):
        return written(node.reason) != reason and (worker.has_our_drain or worker.has_cordon_drain)
    return worker.has_cordon_drain or worker.has_lost_reason


def _needs_their_drain(worker: Worker, reason: str) -> bool:
    """True for a worker that goes, and whose node somebody else has down: should its slurmd register, the node would take jobs.

    The drain gets the reason that is there, so the node stays theirs. On a node that stays, DOWN is all that it takes to keep jobs away.
    """
    goes = worker.pod is not None and not worker.pod.terminating and reason.startswith(NODESET)
    return goes and not worker.is_draining and not worker.may_go and worker.node is not None and may_be_drained(worker.node.state)


def _may_be_lifted(nodeset: NodeSet, observed: Observed, worker: Worker, target: frozenset[int]) -> bool:
    """True for a drain of ours whose cause is gone: the pod was replaced or is wanted again, or Slurm may wake the elastic node again."""
    pod = worker.pod
    if not worker.has_own_drain:
        return False
    if pod is None:
        # slurmctld's sidecar drains nodes that are off before it removes them, and may end before it does. And a pod that stopped has
        # drained its node, which Slurm may have powered down since.
        return nodeset.spec.is_elastic and worker.is_off and worker.ordinal not in observed.on_their_way and not worker.is_given_up
    if worker.ordinal not in target or not pod.ready or pod.terminating:
        return False
    machine = observed.machine_of(worker)
    if pod.machine is not None and (machine is None or machine.is_cordoned):
        return False  # a cordoned machine whose Kubernetes node was deleted is not back: its pod ends, and the next one is elsewhere
    # A pod that seems to run may have been asked to stop a moment ago, and its hook may just have drained the node.
    return not worker.has_stop_drain or worker.ordinal in observed.stopping_settled


def _may_be_resumed(nodeset: NodeSet, observed: Observed, worker: Worker) -> bool:
    """True for a node that is DOWN and powered down, which Slurm never wakes by itself.

    While its old pod exists, its machine may only be cut off.
    """
    if not nodeset.spec.is_elastic or not worker.is_given_up:
        return False
    return worker.pod is None and worker.ordinal not in observed.on_their_way | observed.held_back


def _may_be_released(nodeset: NodeSet, observed: Observed, worker: Worker) -> bool:
    """True for a node of an elastic set that Slurm powers down and whose pod is gone.

    Slurm wakes no node before SuspendTimeout is over, because its slurmd may still be there. A pod that is gone proves that it is not.
    RESUME ends the wait (measured on 26.05: POWERING_DOWN becomes POWERED_DOWN, and slurmctld looks at its queue). It lifts a drain, too,
    so a node that is drained or down keeps its wait.
    """
    if not nodeset.spec.is_elastic or worker.pod is not None or worker.ordinal in observed.on_their_way or worker.node is None:
        return False
    return is_released_by_resume(worker.node.state)
