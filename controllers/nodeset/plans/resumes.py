"""Which nodes that are off Slurm may use again: those it has given up, and those that power down without a pod. Pure; part of `plan`."""

from collections.abc import Set
from dataclasses import dataclass

from controllers.nodeset.observed import Observed
from controllers.nodeset.structs import NodeSetObject
from controllers.nodeset.workers import Worker
from slurm.states import is_released_by_resume


@dataclass(frozen=True)
class Resumes:
    """Nodes to give back to Slurm, in ordinals. Only an elastic set has some."""

    resume: tuple[int, ...] = ()
    """Nodes that Slurm has given up, and that may be tried again."""
    release: tuple[int, ...] = ()
    """Nodes that power down and have no pod any more: Slurm need not wait for SuspendTimeout before it wakes them."""

    @property
    def writes_to_slurm(self) -> bool:
        """True when Slurm is asked for something."""
        return bool(self.resume or self.release)


def plan_resumes(nodeset: NodeSetObject, observed: Observed, drained: Set[int]) -> Resumes:
    """What to resume and to release. A node in `drained` should be drained, or is about to be, and is left alone: RESUME lifts a drain."""
    if not nodeset.spec.is_elastic:
        return Resumes()
    left_alone = observed.on_their_way | observed.pods_taken | drained
    podless = [worker for worker in observed.workers() if worker.pod is None and worker.ordinal not in left_alone]
    resume = [worker.ordinal for worker in podless if worker.is_given_up and worker.ordinal not in observed.pauses.nodes]
    return Resumes(tuple(resume), tuple(worker.ordinal for worker in podless if _may_be_released(worker)))


def _may_be_released(worker: Worker) -> bool:
    """True for a node that Slurm powers down and whose pod is gone.

    Slurm wakes no node before SuspendTimeout is over, because its slurmd may still be there. A pod that is gone proves that it is not.
    RESUME ends the wait (measured on 26.05: POWERING_DOWN becomes POWERED_DOWN, and slurmctld looks at its queue). It lifts a drain, too,
    so a node that is drained or down keeps its wait.
    """
    return worker.node is not None and is_released_by_resume(worker.node.state)
