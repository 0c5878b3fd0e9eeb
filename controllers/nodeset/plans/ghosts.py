"""Which pods run although Slurm has their nodes off: ghosts, as after slurmctld has lost its state. Pure; part of `plan`."""

from dataclasses import dataclass

from controllers.nodeset.observed import Observed
from controllers.nodeset.structs import NodeSetObject
from controllers.nodeset.workers import Worker, ordinals_of

GHOST_S = 60.0
"""A pod that has been there for so long, in seconds, should have registered."""
GHOST_PAUSE_S = 30.0
"""Seconds between one batch of ghosts and the next."""


@dataclass(frozen=True)
class Ghosts:
    """Pods that run although Slurm has their nodes off, in ordinals."""

    evict_now: tuple[int, ...] = ()
    """Of the pods that were busy when last heard of, those to delete now."""
    evict_later: tuple[int, ...] = ()
    """The other pods that were busy."""
    idle: tuple[int, ...] = ()
    """Pods without a job when last heard of, which are deleted at once."""
    batch_size: int = 0
    """How many of the busy pods are deleted at a time; 0 where there are none."""


def find_ghosts(nodeset: NodeSetObject, observed: Observed, wanted: frozenset[int], outdated: list[Worker]) -> Ghosts:
    """The ghosts of a set; of those that may have jobs, a few at a time. A set that is being deleted has none: all its pods go.

    Ghosts of an elastic set have to go: only a new slurmd registers from there. In a fixed set slurmd restarts by itself. There, only
    workers that go in any case are considered: those of an older template, and the surplus.
    """
    if nodeset.metadata.deletion_timestamp is not None:
        return Ghosts()
    elastic = nodeset.spec.is_elastic
    replaced = {worker.ordinal for worker in outdated} if nodeset.spec.update_strategy.type != "OnDelete" else set[int]()
    ghosts = [worker for worker in observed.workers() if _is_ghost(worker, observed.now - GHOST_S if elastic else float("inf"))]
    if not elastic:
        ghosts = [worker for worker in ghosts if worker.ordinal in replaced or worker.ordinal not in wanted]
    busy = [worker for worker in ghosts if worker.pod is not None and worker.pod.marked_busy and not worker.has_failed_to_resume]
    paced = ordinals_of(busy)
    idle = tuple(sorted({worker.ordinal for worker in ghosts}.difference(paced))) if elastic else ()
    size = min(observed.ghosts.batch_size or batch_size(len(paced)), nodeset.spec.max_pods_in_flight)
    evict_now = paced[:size] if observed.ghosts.is_due else ()
    return Ghosts(evict_now, paced[len(evict_now) :], idle, size if paced else 0)


def batch_size(ghosts: int) -> int:
    """How many of these ghosts go at once: one in twenty. There is a batch every GHOST_PAUSE_S.

    Many at once mean that slurmctld has lost its state: jobs may still run there that it knows nothing of. So all of them take ten minutes.
    A person who reads the set's status has that time to stop slurmctld and restore its state. While it is silent, no pod goes.
    """
    return -(-ghosts // 20)


def _is_ghost(worker: Worker, settled: float) -> bool:
    pod = worker.pod
    if pod is None or pod.terminating or pod.finished or pod.created_at >= settled:
        return False
    # While it powers down Slurm notes a registration for later.
    return pod.may_have_jobs and worker.is_powered_down
