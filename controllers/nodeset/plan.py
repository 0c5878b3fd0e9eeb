"""Decides what to do for one set, from one look at it. Pure: no clock, no network, no memory; the same look gives the same plan.

The laws of docs/design.md section 5 live here, in `drains` and in `rolls`. A plan that touches a node or takes a pod away says
`needs_fresh_reading`: it may only be carried out when the reading it was made from was asked for after the present round began.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from controllers.nodeset.plans.drains import plan_drains
from controllers.nodeset.plans.rolls import Ghosts, find_ghosts, find_outdated, find_unbound, ordinals, plan_roll, unavailable
from controllers.nodeset.plans.wanted import wanted
from controllers.nodeset.structs import NodeSet
from controllers.nodeset.workers import NodeJob, Observed, Worker, in_order
from slurm.reasons import DELETE, SCALE_IN, UPDATE

JOBS_SOON_S = 5.0
"""Seconds until the next look while a deadline is over, and the list of jobs is older than that."""


@dataclass(frozen=True)
class Plan:
    """What to do now, in ordinals. Everything that is not named stays as it is."""

    wanted: frozenset[int] = frozenset()
    create: tuple[int, ...] = ()
    claim: tuple[int, ...] = ()
    """Pods that wait for a volume claim that somebody has deleted: it is made again."""
    disks_ending: tuple[int, ...] = ()
    """Missing pods that are not made yet, as their old volume claim is still being deleted."""
    delete: tuple[int, ...] = ()
    """Pods that may go: a reading says that no job can be on them."""
    delete_unbound: tuple[int, ...] = ()
    """Pods without a machine that are not wanted, or of an older template. Each may go as long as it has not changed since this look."""
    drain: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    """Slurm nodes to drain, by reason."""
    undrain: tuple[int, ...] = ()
    resume: tuple[int, ...] = ()
    """Nodes that Slurm has given up, and that may be tried again."""
    release: tuple[int, ...] = ()
    """Nodes that power down and have no pod any more: Slurm need not wait for SuspendTimeout before it wakes them."""
    drained_at: dict[int, float] = field(default_factory=dict[int, float])
    """When each node with a drain of ours was drained, those to be drained now included: the record that the status keeps."""
    requeue: tuple[str, ...] = ()
    """Jobs, by number, that have had their time."""
    cancel: tuple[int, ...] = ()
    """Nodes whose jobs have had their time."""
    late_in_s: float = inf
    """Seconds until the next node is past the drain deadline, or until a list of jobs may be there that is younger than one."""
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
    ghost_batch: int = 0
    """How many of them go at once; 0 where there are none."""
    left_alone: tuple[int, ...] = ()
    """Of the workers that a roll has to reach, those that somebody else has drained, or whose machine is cordoned."""
    waking: tuple[int, ...] = ()
    """Workers that are to go once they are up: a job waits for them, and a drain would end it."""
    needs_jobs: bool = False
    """Workers have to go: the jobs on them decide which goes first, and which jobs are past the deadline."""
    unavailable: int = 0
    done: bool = False
    """The set is being deleted and has no pod left: the finalizer may go."""
    forgets_drains: bool = False
    """A drain of ours that the record has is no longer there."""

    @property
    def writes_to_slurm(self) -> bool:
        """True when something in it is a request to Slurm."""
        return bool(self.drain or self.undrain or self.resume or self.release or self.requeue or self.cancel)

    @property
    def needs_fresh_reading(self) -> bool:
        """True when something in it could hurt a job if the reading behind it were old."""
        return bool(self.delete) or self.writes_to_slurm or self.forgets_drains


def plan(nodeset: NodeSet, observed: Observed) -> Plan:
    """The next step for a set. While Slurm is silent (`observed.nodes` is None) only pods that are missing are made."""
    target = wanted(nodeset, observed)
    missing = plan_creation(nodeset, observed, target)
    deleting = nodeset.metadata.deletion_timestamp is not None
    done = deleting and not observed.pods and not observed.on_their_way
    claim = () if deleting else tuple(sorted(observed.claims_missing & target))
    disks_ending = tuple(sorted((observed.claims_ending & target) - observed.pods.keys()))
    if observed.nodes is None:
        away, drained_at = len(unavailable(observed, target)), dict(observed.drained_at)
        return Plan(
            wanted=target, create=missing, claim=claim, disks_ending=disks_ending, drained_at=drained_at, unavailable=away, done=done
        )
    outdated = [] if deleting else find_outdated(nodeset, observed, target)
    unbound = find_unbound(nodeset.spec.update_strategy, observed, target, outdated)
    condemned, ghosts = _condemn(nodeset, observed, target, [one for one in outdated if one not in unbound])
    drains = plan_drains(nodeset, observed, target, {one.ordinal: reason for one, reason in condemned.items()})
    left = {one: _time_left_s(nodeset, one, drains.drained_at.get(one.ordinal), observed.now) for one in condemned}
    late = {one.ordinal: _staying(one) for one in condemned if left[one] <= 0 and observed.jobs_read_at >= observed.now + left[one]}
    waits_for_jobs = any(left[one] <= 0 and one.ordinal not in late for one in condemned)
    action = nodeset.spec.drain.action
    movable = _requeued(late.values()) if action == "Requeue" and observed.can_requeue else ()
    unmovable = {ordinal: tuple(job for job in jobs if job.number not in movable) for ordinal, jobs in late.items()}
    return Plan(
        wanted=target,
        create=missing,
        claim=claim,
        disks_ending=disks_ending,
        delete=ordinals(one for one in _may_be_deleted(nodeset, observed, condemned) if one not in unbound)[
            : nodeset.spec.max_pods_in_flight
        ],
        delete_unbound=ordinals(unbound)[: nodeset.spec.max_pods_in_flight],
        drain=drains.drain,
        undrain=drains.undrain,
        resume=drains.resume,
        release=drains.release,
        drained_at=drains.drained_at,
        requeue=tuple(number for number in movable if _is_unasked(observed, observed.requeued_at.get(number))),
        cancel=tuple(
            one for one, jobs in late.items() if jobs and action == "Cancel" and _is_unasked(observed, observed.cancelled_at.get(one))
        ),
        late_in_s=min((*(seconds for seconds in left.values() if seconds > 0), JOBS_SOON_S if waits_for_jobs else inf)),
        unmovable={ordinal: jobs for ordinal, jobs in sorted(unmovable.items()) if jobs} if action == "Requeue" else {},
        retire=plan_retirement(nodeset, observed, target),
        mark_busy=ordinals(one for one in observed.workers() if one.pod is not None and not one.pod.marked_busy and not _is_free(one)),
        mark_free=ordinals(_to_free(observed, frozenset((*ghosts.evict_now, *ghosts.evict_later)))),
        updating=ordinals(outdated),
        ghosts=ghosts.evict_now,
        ghosts_left=ghosts.evict_later,
        ghost_batch=ghosts.batch_size,
        left_alone=ordinals(one for one in outdated if one.has_foreign_drain or one.has_cordon_drain),
        waking=ordinals(one for one in (*condemned, *outdated) if one.is_waking and one not in unbound),
        needs_jobs=bool(condemned),
        unavailable=len(unavailable(observed, target)),
        done=done,
        forgets_drains=bool(observed.drained_at.keys() - drains.drained_at.keys()),
    )


def plan_creation(nodeset: NodeSet, observed: Observed, target: frozenset[int]) -> tuple[int, ...]:
    """Ordinals to make pods for, those that a job waits for first, no more on their way at once than the set allows.

    A pod that has had its time to come up does not count as on its way: five hundred lost machines must not keep all others from starting.
    """
    young = observed.now - nodeset.spec.resume_timeout_seconds
    starting = sum(not pod.ready and not pod.terminating and pod.created_at > young for pod in observed.pods.values())
    held_back = {ordinal for ordinal in observed.held_back if _is_given_up(observed.worker(ordinal))} | observed.pods_held_back
    blocked = held_back | observed.claims_ending | observed.taken.keys()
    missing = target - observed.pods.keys() - observed.on_their_way - blocked
    order = sorted(missing, key=lambda ordinal: (not observed.worker(ordinal).is_waking, ordinal))
    return tuple(order[: max(0, nodeset.spec.max_pods_in_flight - len(observed.on_their_way) - starting)])


def _is_given_up(worker: Worker) -> bool:
    """True unless Slurm has the node in service again, as when somebody has resumed it: the pause after a failure ends with that."""
    return worker.node is None or "DOWN" in worker.node.state.flags


def plan_retirement(nodeset: NodeSet, observed: Observed, target: frozenset[int]) -> tuple[int, ...]:
    """Ordinals that the set has shrunk past, once it has shrunk. A node that only sleeps is not one: Slurm may wake it at any time.

    While the whole set is being deleted nothing is scaled in: `whenDeleted` alone says what becomes of the claims then.
    """
    if nodeset.spec.volume_claim_retention.when_scaled != "Delete" or nodeset.metadata.deletion_timestamp is not None:
        return ()
    if not nodeset.spec.is_elastic and len(observed.pods) > (nodeset.spec.replicas or 0):
        return ()  # it still shrinks: an ordinal that loses its pod now counts as scaled in, and may be wanted again
    kept = target | observed.pods.keys() | observed.on_their_way | set(range(nodeset.spec.max or 0))
    return tuple(sorted(observed.with_claims - kept))


def _condemn(nodeset: NodeSet, observed: Observed, target: frozenset[int], outdated: list[Worker]) -> tuple[dict[Worker, str], Ghosts]:
    """The workers that go, and why; and the ghosts, some of which have to wait."""
    deleting = nodeset.metadata.deletion_timestamp is not None
    surplus = [worker for worker in observed.workers() if worker.pod is not None and worker.ordinal not in target]
    rolled = plan_roll(nodeset.spec.update_strategy, observed, target, outdated)
    ghosts = Ghosts() if deleting else find_ghosts(nodeset, observed, target, outdated)
    stale = [observed.worker(ordinal) for ordinal in (*ghosts.evict_now, *ghosts.idle)]
    reasons = {**dict.fromkeys(surplus, DELETE if deleting else SCALE_IN), **dict.fromkeys([*stale, *rolled], UPDATE)}
    return {one: reason for one, reason in reasons.items() if one.ordinal not in ghosts.evict_later}, ghosts


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


def _to_free(observed: Observed, ghosts: frozenset[int]) -> Iterable[Worker]:
    """Workers that may be evicted from now on. A ghost may have had a job before Slurm lost its state, so its mark stays."""
    marked = (one for one in observed.workers() if one.pod is not None and one.pod.marked_busy)
    known = (one for one in marked if _is_free(one) and one.ordinal not in ghosts)
    return (one for one in known if one.pod is not None and not (one.is_powered_down and one.pod.may_have_jobs))


def _is_free(worker: Worker) -> bool:
    return worker.node is not None and worker.is_idle


def _time_left_s(nodeset: NodeSet, worker: Worker, drained_at: float | None, now: float) -> float:
    """Seconds that the jobs of a drained worker still have, by our own clock; infinite without a deadline, or without jobs."""
    deadline = nodeset.spec.drain.deadline_seconds
    if deadline is None or drained_at is None or not worker.has_our_drain or worker.may_go:
        return inf
    return drained_at + deadline - now


def _staying(worker: Worker) -> list[NodeJob]:
    """Jobs that nobody has asked to leave yet: one that is ending is not asked again."""
    return [] if worker.node is None else [job for job in worker.node.jobs if not job.is_ending]


def _is_unasked(observed: Observed, asked_at: float | None) -> bool:
    """True unless Slurm was asked since the list of jobs was read: the list cannot show yet what became of that."""
    return asked_at is None or asked_at < observed.jobs_read_at


def _requeued(late: Iterable[list[NodeJob]]) -> tuple[str, ...]:
    return tuple(in_order(job.number for jobs in late for job in jobs if job.can_requeue))
