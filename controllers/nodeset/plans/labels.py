"""Which pods are labelled busy, and which free: a busy pod cannot be evicted. Pure; part of `plan`."""

from dataclasses import dataclass

from controllers.nodeset.observed import Observed
from controllers.nodeset.plans.ghosts import Ghosts
from controllers.nodeset.workers import ordinals_of


@dataclass(frozen=True)
class Labels:
    """Pods whose label changes, in ordinals."""

    busy: tuple[int, ...] = ()
    free: tuple[int, ...] = ()


def plan_labels(observed: Observed, ghosts: Ghosts) -> Labels:
    """Unknown is busy. A ghost may have had a job before Slurm lost its state, so its label stays."""
    workers = [(worker, worker.pod) for worker in observed.workers() if worker.pod is not None]
    busy = (worker for worker, pod in workers if not pod.marked_busy and not worker.is_idle)
    unseen = {*ghosts.evict_now, *ghosts.evict_later}
    idle = ((worker, pod) for worker, pod in workers if pod.marked_busy and worker.is_idle and worker.ordinal not in unseen)
    return Labels(ordinals_of(busy), ordinals_of(worker for worker, pod in idle if not (worker.is_powered_down and pod.may_have_jobs)))
