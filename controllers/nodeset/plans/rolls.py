"""Which workers of a changed template are replaced now, and how far a roll has come. Pure; part of `plan`."""

from dataclasses import dataclass
from math import inf

from controllers.nodeset.observed import Observed
from controllers.nodeset.plans.wanted import scale_in_order
from controllers.nodeset.pods import revision
from controllers.nodeset.structs import NodeSetObject, UpdateStrategy
from controllers.nodeset.workers import Worker, ordinals_of


@dataclass(frozen=True)
class Roll:
    """How far the present template has come, in ordinals."""

    outdated: tuple[int, ...] = ()
    """Workers made from an older template."""
    left_alone: tuple[int, ...] = ()
    """Outdated or resized workers that somebody else has drained, or whose machine is cordoned."""
    resized: tuple[int, ...] = ()
    """Workers of the present template whose Slurm node gets another size: drained as by a roll, while their pods stay."""
    waking: tuple[int, ...] = ()
    """Of all these, workers that are replaced once they are up: a job waits for them, and a drain would end it."""
    unavailable: int = 0
    """Wanted workers that take no jobs because of us or of Kubernetes."""
    settling: tuple[int, ...] = ()
    """Of these, workers that are registered, and have not been for long enough."""
    settles_s: float = inf
    """Seconds until the first of these counts as available; infinite where nobody waits for that."""


def describe_roll(
    strategy: UpdateStrategy,
    observed: Observed,
    wanted: frozenset[int],
    outdated: list[Worker],
    unbound: frozenset[int],
    resized: list[Worker],
) -> Roll:
    """What the status says of a roll. Workers in `unbound` are replaced at once, whatever waits for them."""
    touched, away = [*outdated, *resized], unavailable(strategy, observed, wanted)
    settle_s = {ordinal: left for ordinal in away if (left := _settles_s(strategy, observed, observed.worker(ordinal))) > 0}
    return Roll(
        outdated=ordinals_of(outdated),
        left_alone=ordinals_of(worker for worker in touched if worker.has_foreign_drain or worker.is_kept_out),
        resized=ordinals_of(resized),
        waking=ordinals_of(worker for worker in touched if worker.is_waking and worker.ordinal not in unbound),
        unavailable=len(away),
        settling=tuple(sorted(settle_s)),
        settles_s=min(settle_s.values(), default=inf) if touched else inf,
    )


def find_outdated(nodeset: NodeSetObject, observed: Observed, wanted: frozenset[int]) -> list[Worker]:
    """Wanted workers whose pods are made from an older template."""
    current = revision(nodeset.spec)
    workers = ((worker, worker.pod) for worker in observed.workers() if worker.pod is not None and worker.ordinal in wanted)
    return [worker for worker, pod in workers if not pod.terminating and pod.revision != current]


def find_resized(observed: Observed, wanted: frozenset[int], outdated: list[Worker]) -> list[Worker]:
    """Wanted workers of the present template whose Slurm node gets another size as soon as no job can be on it.

    Slurm aborts the jobs of a node that gets other CPUs or GPUs; so slurmctld's sidecar waits for a drain (programs/config_sync/sizes.py).
    """
    resized = (observed.held & wanted & observed.pods.keys()).difference(worker.ordinal for worker in outdated)
    return [observed.worker(ordinal) for ordinal in sorted(resized) if not observed.pods[ordinal].terminating]


def plan_roll(strategy: UpdateStrategy, observed: Observed, wanted: frozenset[int], outdated: list[Worker]) -> list[Worker]:
    """Which outdated and resized workers go now: those that a roll drains already, then as many more as the budget allows.

    The least harm comes first. A worker without a job that is up neither for Kubernetes nor for Slurm costs nothing: it needs neither
    budget nor window. A worker that a job waits for stays until it is up; a worker that others have drained stays until they lift that.
    """
    if strategy.type == "OnDelete":
        return []
    ours = [worker for worker in outdated if not (worker.has_foreign_drain or worker.is_kept_out or worker.is_waking)]
    broken = [worker for worker in ours if worker.is_unhealthy and not worker.is_drained_to_leave]
    if strategy.type == "Maintenance":
        ours = [worker for worker in ours if worker.ordinal in observed.window or (worker.is_unhealthy and worker.is_drained_to_leave)]
    under_way = [worker for worker in ours if worker.is_drained_to_leave]
    candidates = [worker for worker in ours if not worker.is_drained_to_leave and not worker.is_unhealthy]
    away = unavailable(strategy, observed, wanted)
    budget = budget_of(strategy, len(wanted))
    # A worker that Slurm has off costs nothing. A worker that is away in Kubernetes' eyes may still run jobs: no more than the budget.
    off = [worker for worker in candidates if worker.is_off]
    lost = [worker for worker in candidates if worker.ordinal in away and not worker.is_off]
    able = [worker for worker in candidates if worker.ordinal not in away and not worker.is_off]
    # A worker that Slurm hears still takes jobs, for example when only the kubelet is silent: all others that are away count beside it.
    heard = [worker for worker in lost if worker.answers_slurm]
    beside = {*away, *(worker.ordinal for worker in under_way)}.difference(worker.ordinal for worker in heard)
    heard_now = scale_in_order(heard)[: max(0, budget - len(beside))]
    lost_now = scale_in_order(worker for worker in lost if not worker.answers_slurm)[: max(0, budget - len(under_way))]
    able_now = scale_in_order(able)[: max(0, budget - len(away))]
    return [*under_way, *broken, *off, *lost_now, *heard_now, *able_now]


def unavailable(strategy: UpdateStrategy, observed: Observed, wanted: frozenset[int]) -> frozenset[int]:
    """Wanted ordinals that take no jobs because of us or of Kubernetes, and those that have been registered for less than the set asks for.

    The former are missing, not ready or registered, terminating, leaving, or waiting for the checks that come before jobs.
    Nodes that others drained, that are repaired, or whose machine is cordoned are left out. They would hold up a roll for as long as a
    repair takes.
    """
    return frozenset(ordinal for ordinal in wanted if _is_unavailable(strategy, observed, observed.worker(ordinal)))


def budget_of(strategy: UpdateStrategy, wanted: int) -> int:
    """How many of the `wanted` workers a roll may have away at once: at least one, whatever the percentage."""
    setting = strategy.max_unavailable
    return setting if isinstance(setting, int) else max(1, wanted * int(setting.rstrip("%")) // 100)


def _is_unavailable(strategy: UpdateStrategy, observed: Observed, worker: Worker) -> bool:
    pod = worker.pod
    waits_before_jobs = worker.ordinal in observed.checks_before_jobs and (worker.is_draining or worker.ordinal in observed.looked_at)
    if worker.has_foreign_drain or worker.is_kept_out or worker.has_remedy_drain:
        return False
    if pod is None or pod.terminating or not pod.ready or worker.is_drained_to_leave or worker.has_stop_drain or waits_before_jobs:
        return True
    # Recreated and not heard by slurmctld yet: Slurm gives it no job, although its pod is ready.
    return worker.node is not None and (not worker.is_registered or _settles_s(strategy, observed, worker) > 0)


def _settles_s(strategy: UpdateStrategy, observed: Observed, worker: Worker) -> float:
    """Seconds until a registered worker has been so for long enough; 0 for one that is not registered."""
    if strategy.min_ready_seconds == 0 or not worker.is_registered:
        return 0.0
    return observed.registered_since.get(worker.ordinal, observed.now) + strategy.min_ready_seconds - observed.now
