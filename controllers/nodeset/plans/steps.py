"""What the repairs that a set's status has may do now: hold a node drained, replace its pod, reboot or replace its machine.

Pure; a part of `remedies`. Nothing is done where a job may be, or while a check looks at the node.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controllers.nodeset.observed import Observed, Repair, RepairState, Step
from controllers.nodeset.workers import Worker
from slurm.causes import Wish

MACHINE_STEPS: tuple[Step, ...] = ("RebootMachine", "ReplaceMachine")
WAITING: tuple[RepairState, ...] = ("Suspect", "Verifying", "GivenUp")
"""States in which no step is under way: checks may look."""
_UNDRAINED = ("condition/", "taint/")
"""Causes that drain no node by themselves: the repair does."""


@dataclass(frozen=True)
class MachineStep:
    """A machine to reboot or to replace now."""

    ordinal: int
    step: Step
    at: float
    """When the step was recorded: with node and step it names the request, which may be sent more than once."""
    machine: str
    """Name of the Kubernetes node."""
    causes: tuple[str, ...]


def machine_step(observed: Observed, worker: Worker, repair: Repair, faults: Iterable[str]) -> MachineStep | None:
    """The step to ask for now: recorded, not accepted yet, the same machine still, and no job can be there."""
    if repair.state not in MACHINE_STEPS or repair.asked_at is not None or not is_free(observed, worker):
        return None
    machine, pod = observed.machine_of(worker), worker.pod
    if (
        machine is None
        or pod is None
        or pod.machine is None
        or pod.terminating
        or pod.finished
        or machine.identity != repair.machine
        or machine.workers > 1
    ):
        return None
    return MachineStep(worker.ordinal, repair.state, repair.since, pod.machine, tuple(faults))


def is_held(worker: Worker, repair: Repair, faults: Mapping[str, Wish], is_unverified: bool, is_systemic: bool) -> bool:
    """True for a node that is to have a drain: for a step, until checks say that it has helped, or because it has not helped, or none
    would, and nobody else drains it."""
    if is_unverified and repair.state in WAITING and (worker.is_draining or not is_systemic):
        return True
    if repair.state in ("Verifying", "GivenUp") and (worker.is_draining or not is_systemic):
        return any(wish != "none" and name.startswith(_UNDRAINED) for name, wish in faults.items())
    return repair.state in ("Draining", "RecreatePod", *MACHINE_STEPS)


def is_to_be_recreated(observed: Observed, worker: Worker, repair: Repair) -> bool:
    is_same = worker.pod is not None and worker.pod.uid == repair.pod
    return repair.state == "RecreatePod" and is_same and is_free(observed, worker)


def is_free(observed: Observed, worker: Worker) -> bool:
    """True when a reading says that no job can be there, and no check looks at the node."""
    return worker.may_go and not worker.is_off and worker.ordinal not in observed.looked_at
