"""Which jobs on draining nodes are past the drain deadline, and what Slurm is asked to do with them. Pure; part of `plan`."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from controllers.nodeset.observed import Observed
from controllers.nodeset.structs import NodeSetObject
from controllers.nodeset.workers import NodeJob, Worker, in_order

JOBS_SOON_S = 5.0
"""Seconds until the next look while a deadline is over, and the list of jobs is older than that."""


@dataclass(frozen=True)
class Deadlines:
    """What becomes of the jobs on nodes that drain."""

    requeue: tuple[str, ...] = ()
    """Jobs past the deadline, by number."""
    cancel: tuple[int, ...] = ()
    """Ordinals of nodes whose jobs are past the deadline."""
    unmovable: Mapping[int, tuple[NodeJob, ...]] = field(default_factory=dict[int, tuple[NodeJob, ...]])
    """By ordinal, jobs past the deadline that cannot be requeued: they run on, as no job is lost."""
    next_s: float = inf
    """Seconds until the next node is past the deadline, or until a list of jobs may be there that is younger than a deadline."""
    needs_jobs: bool = False
    """Workers are leaving: the jobs on them decide which goes first, and which jobs are past the deadline."""

    @property
    def writes_to_slurm(self) -> bool:
        """True when Slurm is asked for something."""
        return bool(self.requeue or self.cancel)


def plan_deadlines(
    nodeset: NodeSetObject,
    observed: Observed,
    leaving: Collection[int],
    drained_at: Mapping[int, float],
    repaired_since: Mapping[int, float],
) -> Deadlines:
    """What Slurm is asked of jobs past the deadline. `drained_at` says when each node of `leaving` was drained, where it was;
    `repaired_since` since when its repair waits for the jobs there. That counts where a check has drained it."""
    action = nodeset.spec.drain.action
    left_s: dict[int, float] = {}
    for ordinal in leaving:
        worker = observed.worker(ordinal)
        since = (repaired_since if worker.has_check_drain else drained_at).get(ordinal)
        left_s[ordinal] = _time_left_s(nodeset, worker, since, observed.now)
    over = [ordinal for ordinal, seconds in left_s.items() if seconds <= 0]
    listed = [ordinal for ordinal in over if observed.jobs.read_at >= observed.now + left_s[ordinal]]
    late = {ordinal: _staying(observed.worker(ordinal)) for ordinal in listed}
    movable = _requeued(late.values()) if action == "Requeue" and observed.jobs.can_requeue else ()
    requeued = frozenset(movable)
    unmovable = {ordinal: tuple(job for job in late[ordinal] if job.number not in requeued) for ordinal in sorted(late)}
    return Deadlines(
        requeue=tuple(number for number in movable if _is_unasked(observed, observed.jobs.requeued_at.get(number))),
        cancel=tuple(
            ordinal
            for ordinal, jobs in late.items()
            if jobs and action == "Cancel" and _is_unasked(observed, observed.jobs.cancelled_at.get(ordinal))
        ),
        unmovable={ordinal: jobs for ordinal, jobs in unmovable.items() if jobs} if action == "Requeue" else {},
        next_s=min([JOBS_SOON_S if len(listed) < len(over) else inf, *(seconds for seconds in left_s.values() if seconds > 0)]),
        needs_jobs=bool(leaving),
    )


def _time_left_s(nodeset: NodeSetObject, worker: Worker, since: float | None, now: float) -> float:
    """Seconds that the jobs of a drained worker still have, by our own clock; infinite without a deadline, or without jobs."""
    deadline = nodeset.spec.drain.deadline_seconds
    if deadline is None or since is None or not (worker.is_drained_to_leave or worker.has_check_drain) or worker.may_go:
        return inf
    return since + deadline - now


def _staying(worker: Worker) -> list[NodeJob]:
    """Jobs that nobody has asked to leave yet: a job that is ending is not asked again."""
    return [] if worker.node is None else [job for job in worker.node.jobs if not job.is_ending]


def _is_unasked(observed: Observed, asked_at: float | None) -> bool:
    """True unless Slurm was asked since the list of jobs was read: the list cannot show yet what became of that."""
    return asked_at is None or asked_at < observed.jobs.read_at


def _requeued(late: Iterable[list[NodeJob]]) -> tuple[str, ...]:
    return tuple(in_order(job.number for jobs in late for job in jobs if job.can_requeue))
