"""Which workers of a changed template go now, and which pods Slurm has lost sight of. Pure; part of `plan`."""

from collections.abc import Iterable
from dataclasses import dataclass

from controllers.nodeset.plans.wanted import scale_in_order
from controllers.nodeset.pods import revision
from controllers.nodeset.structs import NodeSet, UpdateStrategy
from controllers.nodeset.workers import Observed, Worker

GHOST_S = 60.0
"""A pod that has been there for so long, in seconds, should have registered."""
GHOST_PAUSE_S = 30.0
"""Seconds between one batch of ghosts and the next."""


@dataclass(frozen=True)
class Ghosts:
    """Pods that run although Slurm has their nodes off."""

    evict_now: tuple[int, ...] = ()
    """Of the pods that were busy when last heard of, those to delete now."""
    evict_later: tuple[int, ...] = ()
    """The other pods that were busy."""
    idle: tuple[int, ...] = ()
    """Pods without a job when last heard of, which are deleted at once."""
    batch_size: int = 0
    """How many of the busy ones are deleted at a time; 0 where there are none."""


def find_outdated(nodeset: NodeSet, observed: Observed, target: frozenset[int]) -> list[Worker]:
    """Wanted workers whose pods are made from an older template."""
    current = revision(nodeset.spec)
    workers = (one for one in observed.workers() if one.pod is not None and one.ordinal in target)
    return [one for one in workers if one.pod is not None and not one.pod.terminating and one.pod.revision != current]


def find_unbound(strategy: UpdateStrategy, observed: Observed, target: frozenset[int], outdated: list[Worker]) -> list[Worker]:
    """Workers whose pods have no machine, and are of an older template or not wanted: they go at once.

    Such a pod has never run anything, so neither its node's state nor the budget nor the window matters. A job that waits for it gets a pod
    of the new template, instead of waiting until ResumeTimeout for one that may fit no machine. With OnDelete people replace pods.
    """
    replaced = [] if strategy.type == "OnDelete" else outdated
    found = [one for one in observed.workers() if one.ordinal not in target or one in replaced]
    return [one for one in found if one.pod is not None and one.pod.is_unbound]


def plan_roll(strategy: UpdateStrategy, observed: Observed, target: frozenset[int], outdated: list[Worker]) -> list[Worker]:
    """Which outdated workers go now: those on their way out already, then as many more as the budget allows, least harm first.

    One that neither Kubernetes nor Slurm has up, and that has no job, costs nothing: it goes first, and needs neither budget nor window.
    One that a job waits for stays until it is up, and one that others have drained until they lift that.
    """
    if strategy.type == "OnDelete":
        return []
    ours = [one for one in outdated if not one.has_foreign_drain and not one.has_cordon_drain and not one.is_waking]
    broken = [one for one in ours if one.is_unhealthy and not one.has_our_drain]
    if strategy.type == "Maintenance":
        ours = [one for one in ours if one.ordinal in observed.window or (one.is_unhealthy and one.has_our_drain)]
    under_way = [one for one in ours if one.has_our_drain]
    others = [one for one in ours if not one.has_our_drain and one not in broken]
    away = unavailable(observed, target)
    budget = budget_of(strategy, len(target))
    # A worker that Slurm has off costs nothing. One that is away in Kubernetes' eyes may still run jobs: no more than the budget.
    off = [one for one in others if one.is_off]
    lost = scale_in_order(one for one in others if one.ordinal in away and not one.is_off)[: max(0, budget - len(under_way))]
    able = scale_in_order(one for one in others if one.ordinal not in away and not one.is_off)[: max(0, budget - len(away))]
    return [*under_way, *broken, *off, *lost, *able]


def unavailable(observed: Observed, target: frozenset[int]) -> frozenset[int]:
    """Wanted ordinals that take no jobs because of us or of Kubernetes: missing, not ready or registered, terminating, condemned.

    A node that others drained, or whose machine is cordoned, is not in it: it would hold up a roll for as long as a repair takes.
    """
    return frozenset(ordinal for ordinal in target if _is_unavailable(observed.worker(ordinal)))


def budget_of(strategy: UpdateStrategy, size: int) -> int:
    """Workers that a roll may have away at once: at least one, whatever the percentage says."""
    setting = strategy.max_unavailable
    return setting if isinstance(setting, int) else max(1, size * int(setting.rstrip("%")) // 100)


def batch_size(ghosts: int) -> int:
    """Ghosts that go at once, for as many as are found at first: one in twenty. There is a batch every GHOST_PAUSE_S.

    Many at once mean that slurmctld has lost its state: jobs may still run there that it knows nothing of. So all of them take ten minutes,
    in which a person who reads the set's status can stop slurmctld and give it its state back; while it is silent no pod goes.
    """
    return -(-ghosts // 20)


def find_ghosts(nodeset: NodeSet, observed: Observed, target: frozenset[int], outdated: list[Worker]) -> Ghosts:
    """The ghosts of a set, a few at a time those that may have jobs.

    Those of an elastic set have to go: only a new slurmd registers from there. In a fixed set slurmd restarts by itself, and only
    workers that go in any case are considered: those of an older template, and the surplus.
    """
    elastic = nodeset.spec.is_elastic
    leaving = {one.ordinal for one in outdated} if nodeset.spec.update_strategy.type != "OnDelete" else set[int]()
    found = [one for one in observed.workers() if _is_ghost(one, observed.now - GHOST_S if elastic else float("inf"))]
    if not elastic:
        found = [one for one in found if one.ordinal in leaving or one.ordinal not in target]
    paced = tuple(one.ordinal for one in found if one.pod is not None and one.pod.marked_busy and not one.has_failed_to_resume)
    idle = tuple(one.ordinal for one in found if one.ordinal not in paced) if elastic else ()
    size = min(observed.ghost_batch or batch_size(len(paced)), nodeset.spec.max_pods_in_flight)
    evict_now = paced[:size] if observed.ghosts_due else ()
    return Ghosts(evict_now, paced[len(evict_now) :], idle, size if paced else 0)


def _is_ghost(worker: Worker, settled: float) -> bool:
    pod = worker.pod
    if pod is None or pod.terminating or pod.finished or pod.created_at >= settled:
        return False
    # While it powers down Slurm notes a registration for later.
    return pod.may_have_jobs and worker.is_powered_down


def _is_unavailable(worker: Worker) -> bool:
    pod = worker.pod
    if worker.has_foreign_drain or worker.has_cordon_drain:
        return False
    if pod is None or pod.terminating or not pod.ready or worker.has_our_drain or worker.has_stop_drain:
        return True
    # Recreated and not heard by slurmctld yet: Slurm gives it no job, although its pod is ready.
    return worker.node is not None and not worker.is_registered


def ordinals(workers: Iterable[Worker]) -> tuple[int, ...]:
    """Each ordinal once, in the order of the workers."""
    return tuple(dict.fromkeys(one.ordinal for one in workers))
