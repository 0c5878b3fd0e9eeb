"""Decides what to do for one set, from one look at it. Pure: no clock, no network, no memory; the same look gives the same plan.

The laws of docs/design.md section 5 live here. A plan that touches a node or takes a pod away says `needs_fresh_reading`: it may only be
carried out when the reading it was made from was asked for after the present round began.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from controllers.nodeset.pods import revision
from controllers.nodeset.structs import NodeSet, UpdateStrategy
from controllers.nodeset.wanted import scale_in_order, wanted
from controllers.nodeset.workers import DELETE, SCALE_IN, UPDATE, NodeJob, Observed, Worker, in_order
from controllers.slurm.states import is_powered_down

GHOST_S = 60.0
"""A pod that has been there for so long, in seconds, should have registered."""
GHOST_PAUSE_S = 30.0
"""Seconds between one lot of ghosts and the next."""


@dataclass(frozen=True)
class Plan:
    """What to do now, in ordinals. Everything that is not named stays as it is."""

    wanted: frozenset[int] = frozenset()
    create: tuple[int, ...] = ()
    claim: tuple[int, ...] = ()
    """Pods that wait for a volume claim that somebody has deleted: it is made again."""
    disk_going: tuple[int, ...] = ()
    """Missing pods that are not made yet, as their old volume claim is still being deleted."""
    delete: tuple[int, ...] = ()
    """Pods that may go: a reading says that no job can be on them."""
    drain: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Slurm nodes to drain, by reason."""
    undrain: tuple[int, ...] = ()
    resume: tuple[int, ...] = ()
    """Nodes that failed to come up, are powered down now, and may be tried again."""
    requeue: tuple[str, ...] = ()
    """Jobs, by number, that have had their time."""
    cancel: tuple[int, ...] = ()
    """Nodes whose jobs have had their time."""
    late_in_s: float = inf
    """Seconds until the next node is past the drain deadline."""
    unmovable: dict[int, tuple[NodeJob, ...]] = field(default_factory=dict[int, tuple[NodeJob, ...]])
    """By node, jobs that have had their time and that cannot be requeued: they run on, as no job is lost."""
    retire: tuple[int, ...] = ()
    """Ordinals that were scaled in and whose claims go, where the set says so."""
    mark_busy: tuple[int, ...] = ()
    mark_free: tuple[int, ...] = ()
    updating: tuple[int, ...] = ()
    """Workers made from an older template that a roll has still to reach."""
    ghosts: tuple[int, ...] = ()
    """Of the pods that go, those that run although Slurm has their nodes off."""
    ghosts_left: tuple[int, ...] = ()
    """More of these, which go later."""
    ghost_lot: int = 0
    """How many of them go at once; 0 where there are none."""
    left_alone: tuple[int, ...] = ()
    """Of these, those that somebody else has drained."""
    needs_jobs: bool = False
    """Workers are to go, or on their way out: the jobs on them say who goes first, and who has had its time."""
    unavailable: int = 0
    done: bool = False
    """The set is being deleted and has no pod left: the finalizer may go."""

    @property
    def needs_fresh_reading(self) -> bool:
        """True when something in it could hurt a job if the reading behind it were old."""
        return bool(self.delete or self.drain or self.undrain or self.resume or self.requeue or self.cancel)


def plan(nodeset: NodeSet, observed: Observed) -> Plan:
    """The next step for a set. While Slurm is silent (`observed.nodes` is None) only pods that are missing are made."""
    target = wanted(nodeset, observed)
    missing = plan_creation(nodeset, observed, target)
    deleting = nodeset.metadata.deletion_timestamp is not None
    done = deleting and not observed.pods and not observed.on_their_way
    claim = () if deleting else tuple(sorted(observed.claims_missing & target))
    disk_going = tuple(sorted((observed.claims_going & target) - observed.pods.keys()))
    if observed.nodes is None:
        away = len(unavailable(observed, target))
        return Plan(wanted=target, create=missing, claim=claim, disk_going=disk_going, unavailable=away, done=done)
    surplus = [worker for worker in observed.workers() if worker.pod is not None and worker.ordinal not in target]
    outdated = [] if deleting else _outdated(nodeset, observed, target)
    rolled = plan_roll(nodeset.spec.update_strategy, observed, target, outdated)
    ghosts, leftovers = ((), ()) if deleting else _ghosts(nodeset, observed)
    lot = min(observed.ghost_lot or lot_of(len(ghosts)), nodeset.spec.max_pods_in_flight)
    going = ghosts[:lot] if observed.ghosts_due else ()
    later = frozenset(ghosts[len(going) :])
    outworn = [observed.worker(ordinal) for ordinal in (*going, *leftovers)]
    reasons = {**dict.fromkeys(surplus, DELETE if deleting else SCALE_IN), **dict.fromkeys([*outworn, *rolled], UPDATE)}
    condemned = {one: reason for one, reason in reasons.items() if one.ordinal not in later}
    failed = _failed_to_resume(nodeset, observed)
    drained = {
        reason: _ordinals(one for one in condemned if condemned[one] == reason and _wants_drain(one))
        for reason in sorted(set(condemned.values()))
    }
    left = {one: _time_left_s(nodeset, one, observed.now) for one in condemned}
    late = {one.ordinal: _staying(one) for one in condemned if left[one] <= 0}
    action = nodeset.spec.drain.action
    requeued = _requeued(late.values()) if action == "Requeue" and observed.can_requeue else ()
    unmovable = {ordinal: tuple(job for job in jobs if job.number not in requeued) for ordinal, jobs in late.items()}
    return Plan(
        wanted=target,
        create=missing,
        claim=claim,
        disk_going=disk_going,
        delete=_ordinals(_may_be_deleted(nodeset, observed, condemned))[: nodeset.spec.max_pods_in_flight],
        drain={reason: ordinals for reason, ordinals in drained.items() if ordinals},
        undrain=_ordinals(one for one in observed.workers() if one not in condemned and _may_be_lifted(nodeset, one, target)),
        resume=_ordinals(one for one in failed if _may_be_tried_again(one, observed)),
        requeue=requeued,
        cancel=tuple(ordinal for ordinal, jobs in late.items() if jobs) if action == "Cancel" else (),
        late_in_s=min((seconds for seconds in left.values() if seconds > 0), default=inf),
        unmovable={ordinal: jobs for ordinal, jobs in sorted(unmovable.items()) if jobs} if action == "Requeue" else {},
        retire=plan_retirement(nodeset, observed, target),
        mark_busy=_ordinals(one for one in observed.workers() if one.pod is not None and not one.pod.marked_busy and not _is_free(one)),
        mark_free=_ordinals(_to_free(observed, frozenset(ghosts))),
        updating=_ordinals(outdated),
        ghosts=going,
        ghosts_left=tuple(sorted(later)),
        ghost_lot=lot if ghosts else 0,
        left_alone=_ordinals(one for one in outdated if one.has_foreign_drain),
        needs_jobs=bool(condemned),
        unavailable=len(unavailable(observed, target)),
        done=done,
    )


def plan_creation(nodeset: NodeSet, observed: Observed, target: frozenset[int]) -> tuple[int, ...]:
    """Ordinals to make pods for, those that a job waits for first, no more on their way at once than the set allows."""
    on_their_way = len(observed.on_their_way) + sum(not pod.ready and not pod.terminating for pod in observed.pods.values())
    missing = target - observed.pods.keys() - observed.on_their_way - observed.held_back - observed.claims_going
    order = sorted(missing, key=lambda ordinal: (not observed.worker(ordinal).is_waking, ordinal))
    return tuple(order[: max(0, nodeset.spec.max_pods_in_flight - on_their_way)])


def plan_retirement(nodeset: NodeSet, observed: Observed, target: frozenset[int]) -> tuple[int, ...]:
    """Ordinals that the set has shrunk past, once it has shrunk. A node that only sleeps is not one: Slurm may wake it at any time.

    While the whole set is being deleted nothing is scaled in: `whenDeleted` alone says what becomes of the claims then.
    """
    if nodeset.spec.volume_claim_retention.when_scaled != "Delete" or nodeset.metadata.deletion_timestamp is not None:
        return ()
    if not nodeset.spec.is_elastic and len(observed.pods) > (nodeset.spec.replicas or 0):
        return ()  # it still shrinks: who loses a pod now, for whatever reason, counts as one that goes, and may be wanted again
    kept = target | observed.pods.keys() | observed.on_their_way | set(range(nodeset.spec.max or 0))
    return tuple(sorted(observed.with_claims - kept))


def unavailable(observed: Observed, target: frozenset[int]) -> frozenset[int]:
    """Wanted ordinals that take no jobs because of us or of Kubernetes: missing, not ready or registered, terminating, condemned.

    A node that others drained is not in it: it would hold up a roll for as long as a repair takes.
    """
    return frozenset(ordinal for ordinal in target if _is_unavailable(observed.worker(ordinal)))


def plan_roll(strategy: UpdateStrategy, observed: Observed, target: frozenset[int], outdated: list[Worker]) -> list[Worker]:
    """Which outdated workers go now: those on their way out already, then as many more as the budget allows, least harm first."""
    if strategy.type == "OnDelete" or (strategy.type == "Maintenance" and not observed.window_open):
        return []
    under_way = [one for one in outdated if one.has_our_drain]
    ours = [one for one in outdated if not one.has_our_drain and not one.has_foreign_drain]
    away = unavailable(observed, target)
    budget = budget_of(strategy, len(target))
    # A worker that Slurm has off costs nothing. One that is away in Kubernetes' eyes may still run jobs: no more than the budget.
    off = [one for one in ours if one.is_off]
    lost = scale_in_order(one for one in ours if one.ordinal in away and not one.is_off)[: max(0, budget - len(under_way))]
    able = scale_in_order(one for one in ours if one.ordinal not in away and not one.is_off)[: max(0, budget - len(away))]
    return [*under_way, *off, *lost, *able]


def budget_of(strategy: UpdateStrategy, size: int) -> int:
    """Workers that a roll may have away at once: at least one, whatever the percentage says."""
    said = strategy.max_unavailable
    return said if isinstance(said, int) else max(1, size * int(said.rstrip("%")) // 100)


def _outdated(nodeset: NodeSet, observed: Observed, target: frozenset[int]) -> list[Worker]:
    current = revision(nodeset.spec)
    return [
        one
        for one in observed.workers()
        if one.pod is not None and one.ordinal in target and not one.pod.terminating and one.pod.revision != current
    ]


def lot_of(ghosts: int) -> int:
    """Ghosts that go at once, for as many as are found at first: one in twenty. There is a lot every GHOST_PAUSE_S.

    Many at once mean that slurmctld has lost its state: jobs may still run there that it knows nothing of. So all of them take ten minutes,
    in which a person who reads the set's status can stop slurmctld and give it its state back; while it is silent no pod goes.
    """
    return -(-ghosts // 20)


def _ghosts(nodeset: NodeSet, observed: Observed) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Pods of an elastic set whose nodes Slurm has off. They have to go: only a new slurmd registers from there.

    First those that were busy when last heard of, as after slurmctld lost its state: a few at a time. Then those that may go as they are
    found: idle since, such as the leftovers of a time without a controller, and those that came up after Slurm had given them up.
    """
    if not nodeset.spec.is_elastic:
        return (), ()
    settled = observed.now - GHOST_S
    found = [one for one in observed.workers() if _is_ghost(one, settled)]
    paced = {one.ordinal for one in found if one.pod is not None and one.pod.marked_busy and not one.has_failed_to_resume}
    return tuple(sorted(paced)), _ordinals(one for one in found if one.ordinal not in paced)


def _is_ghost(worker: Worker, settled: float) -> bool:
    pod, node = worker.pod, worker.node
    if pod is None or pod.terminating or pod.finished or pod.created_at >= settled:
        return False
    # One that is not ready at this moment may have jobs all the same, as when its machine cannot be reached.
    may_have_run = pod.ready or (pod.marked_busy and pod.machine is not None)
    # While it powers down Slurm notes a registration for later.
    return may_have_run and node is not None and is_powered_down(node.state)


def _is_unavailable(worker: Worker) -> bool:
    pod = worker.pod
    if pod is None or pod.terminating or not pod.ready or worker.has_our_drain:
        return True
    # Made anew and not heard by slurmctld yet: Slurm gives it no job, although its pod is ready.
    return worker.node is not None and not worker.is_registered and not worker.has_foreign_drain


def _wants_drain(worker: Worker) -> bool:
    """A condemned node that may still take jobs. One that others drained keeps their reason; one that is off takes none."""
    node = worker.node
    return (
        node is not None and not worker.is_off and "DRAIN" not in node.state.flags and worker.pod is not None and not worker.pod.terminating
    )


def _may_be_deleted(nodeset: NodeSet, observed: Observed, condemned: dict[Worker, str]) -> Iterable[Worker]:
    for one in observed.workers():
        pod = one.pod
        if pod is None or pod.terminating:
            continue
        # No power-down comes first: it would clear our drain (measured on 26.05), and Slurm could wake a node that is to go.
        if pod.finished or (one in condemned and (one.may_go or _is_struck_off(nodeset, one))):
            yield one


def _is_struck_off(nodeset: NodeSet, worker: Worker) -> bool:
    """Slurm answers, and has no such node any more, nor should it: it may have read the files without it as its last job ended.

    Slurm has ended all jobs there by then, and the pod's stop hook looks for steps that run.
    """
    return worker.node is None and (nodeset.metadata.deletion_timestamp is not None or worker.ordinal >= nodeset.spec.bound)


def _may_be_lifted(nodeset: NodeSet, worker: Worker, target: frozenset[int]) -> bool:
    """Our own drain, once its cause is gone: the worker was made anew, or is wanted again; or Slurm may wake an elastic one again."""
    pod = worker.pod
    if not worker.has_our_drain:
        return False
    if pod is None:
        # slurmctld's sidecar drains nodes that are off before it takes them away, and may end in between.
        most = min(nodeset.spec.max or 0, nodeset.spec.bound)
        return worker.is_off and worker.ordinal < most and nodeset.metadata.deletion_timestamp is None
    return worker.ordinal in target and pod.ready and not pod.terminating


def _to_free(observed: Observed, ghosts: frozenset[int]) -> Iterable[Worker]:
    """Who may be evicted from now on. A ghost may have had a job before Slurm lost its state: its mark stays what it was."""
    marked = (one for one in observed.workers() if one.pod is not None and one.pod.marked_busy)
    return (one for one in marked if _is_free(one) and one.ordinal not in ghosts)


def _is_free(worker: Worker) -> bool:
    return worker.node is not None and worker.is_idle


def _time_left_s(nodeset: NodeSet, worker: Worker, now: float) -> float:
    """Seconds that the jobs of a drained worker still have; infinite without a deadline, or without jobs."""
    deadline, node = nodeset.spec.drain.deadline_seconds, worker.node
    if deadline is None or node is None or node.reason_at is None or not worker.has_our_drain or worker.may_go:
        return inf
    return node.reason_at + deadline - now


def _staying(worker: Worker) -> list[NodeJob]:
    """Jobs that nobody has asked to leave yet: one that is ending is not asked again."""
    return [] if worker.node is None else [job for job in worker.node.jobs if not job.is_ending]


def _requeued(late: Iterable[list[NodeJob]]) -> tuple[str, ...]:
    return tuple(in_order(job.number for jobs in late for job in jobs if job.can_requeue))


def _failed_to_resume(nodeset: NodeSet, observed: Observed) -> list[Worker]:
    if not nodeset.spec.is_elastic:
        return []
    return [one for one in observed.workers() if one.has_failed_to_resume]


def _may_be_tried_again(worker: Worker, observed: Observed) -> bool:
    gone = worker.pod is None and worker.ordinal not in observed.on_their_way
    return gone and worker.ordinal not in observed.held_back and worker.node is not None and is_powered_down(worker.node.state)


def _ordinals(workers: Iterable[Worker]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(one.ordinal for one in workers))
