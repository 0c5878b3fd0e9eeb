"""The steps of a repair: which comes next, which begin now within the caps, and what a step that the status has may do. Pure.

Nothing is done where a job may be, or while a check looks at the node.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from controllers.nodeset.observed import Repair, RepairState, Step, TakenStep
from controllers.nodeset.repairs.views import View
from controllers.nodeset.structs import RemedyPolicy
from controllers.nodeset.workers import Machine
from slurm.causes import Wish

DAY_S = 86_400.0
MACHINE_STEPS: tuple[Step, ...] = ("RebootMachine", "ReplaceMachine")
WAITING: tuple[RepairState, ...] = ("Suspect", "Verifying", "GivenUp")
"""States in which no step is under way: checks may look."""
_MACHINE_CAUSES = ("machine-not-ready",)
"""Causes that a new pod on the same machine would have, too."""
_TOO_LITTLE: Mapping[Wish, tuple[Step, ...]] = {"reboot": ("RecreatePod",), "replace": ("RecreatePod", "RebootMachine")}
"""Steps that do not help against a cause that asks for more."""
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


def wait_s(policy: RemedyPolicy, repair: Repair) -> float:
    """Seconds that a fault has to last before the next step: twice as long after each step of the last day."""
    return policy.wait_seconds * 2.0 ** min(len(repair.steps), 10)


def next_step(policy: RemedyPolicy, repair: Repair, machine: Machine | None, faults: Mapping[str, Wish]) -> Step | None:
    """The first step that does what every fault asks for, and was not taken in this repair or on this machine. None if there is none.

    A machine with other workers is neither rebooted nor replaced.
    """
    identity = machine.identity if machine is not None else ""
    tried = {taken.step for taken in repair.steps if taken.at >= repair.began or not identity or taken.machine == identity}
    if faults and all(fault in _MACHINE_CAUSES for fault in faults):
        tried.add("RecreatePod")
    tried.update(step for wish in faults.values() for step in _TOO_LITTLE.get(wish, ()))
    if machine is not None and machine.workers > 1:
        tried.update(MACHINE_STEPS)
    return next((step for step in policy.steps if step not in tried), None)


def to_state(repair: Repair, state: RepairState, now: float) -> Repair:
    """The repair, in another state since now."""
    return replace(repair, state=state, since=now, asked_at=None)


def begin_steps(
    policy: RemedyPolicy, views: Mapping[int, View], repairs: dict[int, Repair], most: int, now: float
) -> dict[Step, tuple[int, ...]]:
    """Records the steps of drained nodes that no job can be on, the longest drained first. Returns those that wait because of the caps."""
    taken = Counter(step.step for repair in repairs.values() for step in repair.steps if step.at > now - DAY_S)
    under_way = sum(repair.state in ("RecreatePod", *MACHINE_STEPS) for repair in repairs.values())
    capped: dict[Step, list[int]] = {}
    for ordinal in sorted(repairs, key=lambda ordinal: (repairs[ordinal].since, ordinal)):
        repair, view = repairs[ordinal], views[ordinal]
        if repair.state != "Draining":
            continue
        pod, machine, step = view.worker.pod, view.machine, next_step(policy, repair, view.machine, view.faults)
        may_begin = view.is_free and (step == "RecreatePod" or machine is not None)
        if step is None or pod is None or not may_begin or under_way >= most:
            continue
        if taken[step] >= policy.max_per_day:
            capped.setdefault(step, []).append(ordinal)
            continue
        taken[step] += 1
        under_way += 1
        repairs[ordinal] = replace(
            to_state(repair, step, now),
            pod=pod.uid,
            machine=view.identity,
            boot=machine.boot if machine is not None else "",
            steps=(*repair.steps, TakenStep(step, now, view.identity)),
        )
    return {step: tuple(ordinals) for step, ordinals in capped.items()}


def machine_step(view: View, repair: Repair) -> MachineStep | None:
    """The step to ask for now: recorded, not accepted yet, the same machine still, and no job can be there."""
    if repair.state not in MACHINE_STEPS or repair.asked_at is not None or not view.is_free:
        return None
    machine, pod = view.machine, view.worker.pod
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
    return MachineStep(view.worker.ordinal, repair.state, repair.since, pod.machine, tuple(view.faults))


def is_held(view: View, repair: Repair, is_systemic: bool) -> bool:
    """True for a node that the repair drains: for a step, and until checks confirm that the step has helped.

    It is drained as well if the step has not helped, or no step would, while a fault lasts that drains no node by itself.
    """
    may_hold = view.worker.is_draining or not is_systemic
    if may_hold and repair.state in WAITING and view.outstanding(repair):
        return True
    if may_hold and repair.state in ("Verifying", "GivenUp"):
        return any(wish != "none" and name.startswith(_UNDRAINED) for name, wish in view.faults.items())
    return repair.state in ("Draining", "RecreatePod", *MACHINE_STEPS)


def is_to_be_recreated(view: View, repair: Repair) -> bool:
    """True for a worker whose pod is replaced now: it is still the pod that the step began with."""
    pod = view.worker.pod
    return repair.state == "RecreatePod" and pod is not None and pod.uid == repair.pod and view.is_free
