"""What is done about nodes that stay faulty: step by step, within caps, and never where a job may be. Pure; part of `plan`.

A node goes Suspect, Draining, a step, Verifying, and then back into service, to the next step, or to GivenUp (docs/explain/decisions/0007).
A step is taken only once the status records it.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from controllers.nodeset.inherited import find_inherited
from controllers.nodeset.observed import Observed, Repair, Repairs, RepairState, Step, TakenStep
from controllers.nodeset.plans import kill_drains
from controllers.nodeset.plans.causes import find_faults
from controllers.nodeset.plans.second_looks import find_confirming, merged
from controllers.nodeset.plans.steps import MACHINE_STEPS, WAITING, MachineStep, is_free, is_held, is_to_be_recreated, machine_step
from controllers.nodeset.plans.verification import CHECK_CAUSE, find_checks, find_outstanding, is_peoples, last_step
from controllers.nodeset.structs import NodeSet, RemedyPolicy
from controllers.nodeset.workers import Machine, Worker
from slurm.causes import Wish
from slurm.check_results import Request

DAY_S = 86_400.0
MACHINE_CAUSES = ("machine-not-ready",)
"""Causes that a new pod on the same machine would have, too."""
_OPEN: tuple[RepairState, ...] = ("Suspect", "Draining", "RecreatePod", "RebootMachine", "ReplaceMachine", "Verifying")
_TOO_LITTLE: Mapping[Wish, tuple[Step, ...]] = {"reboot": ("RecreatePod",), "replace": ("RecreatePod", "RebootMachine")}
"""Steps that do not help against a cause that asks for more."""


@dataclass(frozen=True)
class Remedies:
    """What becomes of the repairs of a set, in ordinals."""

    repairs: Repairs = field(default_factory=Repairs)
    """What the status says after this round."""
    held: tuple[int, ...] = ()
    """Nodes that are to be drained, or to stay so, for a step."""
    recreate: tuple[int, ...] = ()
    """Of these, workers whose pods go once no job can be on them."""
    machines: tuple[MachineStep, ...] = ()
    """Machines to reboot or to replace now."""
    failing: int = 0
    """Nodes that fail at the moment, those that are given up left out."""
    most_failing: int = 0
    """Nodes that may fail within one window before the cause counts as systemic."""
    capped: Mapping[Step, tuple[int, ...]] = field(default_factory=dict[Step, tuple[int, ...]])
    """Nodes whose next step has to wait, as there were as many such steps today as there may be."""
    outstanding: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    """Checks that have to pass after the last step, by the nodes that wait for them."""
    checks: Mapping[str, Mapping[int, Request]] = field(default_factory=dict[str, Mapping[int, Request]])
    """Checks to start now, and what they are to prove on which nodes."""
    draining_since: Mapping[int, float] = field(default_factory=dict[int, float])
    """Nodes whose repair waits for their last job, and since when, in seconds since 1970: as the status has it already."""
    next_s: float = inf
    """Seconds until a repair may go on."""
    has_changed: bool = False
    """The status is to be written; what follows comes with the next round."""

    @property
    def is_systemic(self) -> bool:
        """True while nothing is repaired, as too many nodes fail at once."""
        return self.repairs.systemic_since is not None


def plan_remedies(nodeset: NodeSet, observed: Observed, wanted: frozenset[int]) -> Remedies:
    """The next states of all repairs, and what may be done now. While Slurm is silent, or the set is being deleted, nothing changes."""
    known = observed.repairs
    if observed.nodes is None or nodeset.metadata.deletion_timestamp is not None:
        return Remedies(known)
    policy = nodeset.spec.remedies
    if policy is None:
        # What was asked of a machine comes all the same: its node is held until then.
        known = Repairs({ordinal: repair for ordinal, repair in known.nodes.items() if repair.asked_at is not None})
        if not known.nodes:
            return Remedies(has_changed=bool(observed.repairs.nodes) or observed.repairs.systemic_since is not None)
        policy = RemedyPolicy(steps=(), causes=())
    now = float(int(observed.now))
    workers = {worker.ordinal: worker for worker in observed.workers() if worker.ordinal not in observed.pods_taken}
    workers |= {ordinal: observed.worker(ordinal) for ordinal in known.nodes}
    faults = {ordinal: find_faults(nodeset, observed, worker, policy.causes) for ordinal, worker in workers.items()}

    seen: dict[int, Repair] = {}
    for ordinal, worker in workers.items():
        view = _View(policy, observed, worker, faults[ordinal], now, nodeset.spec.resume_timeout_seconds)
        before = known.nodes.get(ordinal)
        if before is None and (not faults[ordinal] or ordinal not in wanted or worker.is_off):
            continue
        if (repair := _observed_state(view, before, ordinal in wanted)) is not None:
            seen[ordinal] = repair

    most = max(1, len(wanted) * policy.systemic_percent // 100)
    failing = {ordinal: repair.began for ordinal, repair in seen.items() if repair.state in _OPEN and faults[ordinal]}
    failing = {ordinal: began for ordinal, began in failing.items() if not is_peoples(observed, workers[ordinal])}
    failing |= {ordinal: at for ordinal, worker in workers.items() if ordinal not in seen and (at := _spared_since(worker, policy))}
    systemic_since = _systemic_since(known.systemic_since, failing.values(), most, policy.window_seconds, now)

    moved: dict[int, Repair] = {}
    for ordinal, repair in seen.items():
        is_mended = kill_drains.is_mended(nodeset, observed, workers[ordinal])
        view = _View(policy, observed, workers[ordinal], faults[ordinal], now, nodeset.spec.resume_timeout_seconds, is_mended)
        moved[ordinal] = _decided_state(view, repair, systemic_since is not None)
    capped = _begin_steps(policy, observed, workers, faults, moved, most, now) if systemic_since is None else {}

    lacking = {
        ordinal: find_outstanding(policy, repair, workers[ordinal], observed.identity_of(workers[ordinal]))
        for ordinal, repair in moved.items()
    }
    outstanding = {ordinal: checks for ordinal, checks in lacking.items() if checks}
    repairs = Repairs(moved, systemic_since)
    stored = {ordinal: repair for ordinal, repair in moved.items() if known.nodes.get(ordinal) == repair}
    looked_for = {
        ordinal: [*faults[ordinal], *(f"{CHECK_CAUSE}{name}" for name in find_inherited(observed, workers[ordinal]))] for ordinal in stored
    }
    due = {
        ordinal: repair for ordinal, repair in stored.items() if repair.state == "Suspect" and now - repair.since >= wait_s(policy, repair)
    }
    confirming = find_confirming(nodeset, observed, due if systemic_since is None else {}, faults)
    may_act = [ordinal for ordinal in stored if systemic_since is None and not is_peoples(observed, workers[ordinal])]
    machines = [step for ordinal in may_act if (step := machine_step(observed, workers[ordinal], stored[ordinal], faults[ordinal]))]
    return Remedies(
        repairs,
        held=tuple(
            ordinal
            for ordinal, repair in moved.items()
            if is_held(workers[ordinal], repair, faults[ordinal], ordinal in outstanding, systemic_since is not None)
        ),
        recreate=tuple(ordinal for ordinal in may_act if is_to_be_recreated(observed, workers[ordinal], stored[ordinal])),
        machines=tuple(machines),
        failing=len(failing),
        most_failing=most,
        capped=capped,
        outstanding={ordinal: checks for ordinal, checks in outstanding.items() if moved[ordinal].state in WAITING},
        checks=merged(find_checks(nodeset, observed, stored, looked_for, outstanding), {policy.confirmed_by or "": confirming}),
        draining_since={ordinal: repair.since for ordinal, repair in stored.items() if repair.state == "Draining"},
        next_s=min((_due_s(policy, repair, now) for repair in moved.values()), default=inf),
        has_changed=repairs != observed.repairs,
    )


def without(remedies: Remedies, leaving: Container[int]) -> Remedies:
    """Without the machines of workers that leave for another reason: these go first."""
    return replace(remedies, machines=tuple(step for step in remedies.machines if step.ordinal not in leaving))


def with_asked(repairs: Repairs, asked: Mapping[int, float]) -> Repairs:
    """The repairs, with the time of the machine steps that were accepted in this round."""
    nodes = {
        ordinal: replace(repair, asked_at=float(int(asked[ordinal]))) if ordinal in asked else repair
        for ordinal, repair in repairs.nodes.items()
    }
    return replace(repairs, nodes=nodes)


def wait_s(policy: RemedyPolicy, repair: Repair) -> float:
    """Seconds that a fault has to last before the next step: twice as long after each step of the last day."""
    return policy.wait_seconds * 2.0 ** min(len(repair.steps), 10)


def next_step(policy: RemedyPolicy, repair: Repair, machine: Machine | None, faults: Mapping[str, Wish]) -> Step | None:
    """The first step that was not taken in this repair, nor on this machine, and does what every fault asks for; None if there is none.

    A machine with other workers is neither rebooted nor replaced.
    """
    identity = machine.identity if machine is not None else ""
    tried = {taken.step for taken in repair.steps if taken.at >= repair.began or not identity or taken.machine == identity}
    if faults and all(fault in MACHINE_CAUSES for fault in faults):
        tried.add("RecreatePod")
    tried.update(step for wish in faults.values() for step in _TOO_LITTLE.get(wish, ()))
    if machine is not None and machine.workers > 1:
        tried.update(MACHINE_STEPS)
    return next((step for step in policy.steps if step not in tried), None)


@dataclass(frozen=True)
class _View:
    """One node, with what decides about it."""

    policy: RemedyPolicy
    observed: Observed
    worker: Worker
    faults: Mapping[str, Wish]
    now: float
    start_s: int
    """Seconds that a pod has to come up."""
    is_mended: bool = False
    """Slurm's own drain is about to be lifted: it is no fault any more."""

    @property
    def machine(self) -> Machine | None:
        return self.observed.machine_of(self.worker)

    @property
    def identity(self) -> str:
        return self.observed.identity_of(self.worker)

    @property
    def is_well(self) -> bool:
        """True when the node answers, and nothing is known against it, nor waits for a look at its machine."""
        return not self.faults and not self.is_unseen and self.worker.is_registered

    @property
    def is_unseen(self) -> bool:
        """True when a check has found a fault on another machine, and has not looked at this one."""
        return any(failure.kind in self.policy.causes for failure in find_inherited(self.observed, self.worker).values())

    def is_verified(self, repair: Repair) -> bool:
        """True when every check that has to pass after the repair's last step has passed, and where no step was taken."""
        return not find_outstanding(self.policy, repair, self.worker, self.identity)


def _observed_state(view: _View, repair: Repair | None, is_wanted: bool) -> Repair | None:
    """The state after what has happened by itself: faults that came and ended, pods and machines that were replaced."""
    now, worker = view.now, view.worker
    if repair is None:
        return Repair("Suspect", now, began=now)
    state, pod = repair.state, worker.pod
    if state in MACHINE_STEPS:
        asked_at = inf if repair.asked_at is None else repair.asked_at
        if _is_done(view, repair) or now - asked_at >= view.policy.machine_timeout_seconds:
            return _to(repair, "Verifying", now)
        if repair.asked_at is not None:
            return repair
        if is_wanted and now - repair.since < view.policy.machine_timeout_seconds:
            return repair  # the answer may be lost: a machine that is well by now may still go down
    if not is_wanted:
        return _recovered(repair, now)  # it leaves, or sleeps; what checks found counts again once it is up
    if state == "RecreatePod":
        if pod is not None and pod.uid != repair.pod:
            return _to(repair, "Verifying", now)
        if pod is not None and pod.terminating and now - repair.since >= max(view.start_s, view.policy.wait_seconds):
            return _to(repair, "Verifying", now)  # its kubelet does not end it: another step is due
        return _recovered(repair, now) if view.is_well else repair
    if state == "InService":
        recent = tuple(step for step in repair.steps if step.at > now - DAY_S)
        if view.faults:
            return Repair("Suspect", now, began=now, steps=recent)
        return replace(repair, steps=recent) if recent else None
    if view.is_well:
        if view.is_verified(repair):
            return _recovered(repair, now)
        # No step is due without a fault, and a machine that was not asked for yet is not touched.
        return _to(repair, "Verifying", now) if state in ("Draining", *MACHINE_STEPS) else repair
    if state in ("Suspect", "Draining") and not view.faults and view.is_unseen:
        return _to(repair, "Verifying", now) if last_step(repair) else _recovered(repair, now)
    if state == "Draining" and worker.is_registered and not worker.is_draining:
        return replace(repair, since=now)  # jobs that come before the next drain have their whole time
    if state == "GivenUp" and (repair.machine and view.identity and view.identity != repair.machine):
        return Repair("Suspect", now, began=now, steps=repair.steps)  # somebody has replaced the machine
    return repair


def _decided_state(view: _View, repair: Repair, is_systemic: bool) -> Repair:
    """The state after what is decided for this node alone. Beginning a step is decided for all of them together."""
    now, policy = view.now, view.policy
    may_act = not is_systemic and not is_peoples(view.observed, view.worker)
    following = next_step(policy, repair, view.machine, view.faults)
    if repair.state == "Draining" and not may_act:
        return _to(repair, "Suspect", now)
    if repair.state not in ("Suspect", "Verifying", "GivenUp") or not may_act:
        return repair
    if repair.state == "GivenUp":
        return _to(repair, "Suspect", now) if following and view.faults else repair  # the policy has a step more now
    if now - repair.since < wait_s(policy, repair) or not _is_confirmed(view, repair):
        return repair
    if following is None:
        return replace(_to(repair, "GivenUp", now), machine=view.identity or repair.machine)
    return _to(repair, "Draining", now)


def _is_confirmed(view: _View, repair: Repair) -> bool:
    """True if a look that is younger than the last step has seen the fault.

    A check that could not tell confirms nothing, however long that lasts: the machine may be well.
    """
    inherited, node = find_inherited(view.observed, view.worker), view.worker.node
    failed_at = {name: at for name, at in node.failed_at.items() if name not in inherited} if node is not None else {}
    is_overdue = view.now - repair.since >= view.policy.machine_timeout_seconds
    if repair.state == "Verifying" and not view.worker.is_registered and is_overdue:
        return True  # it has not come back, so no check can look
    if not view.is_verified(repair) and any(failed_at.get(name, 0) > repair.since for name in view.policy.verified_by):
        return True
    faults = [fault for fault in view.faults if not (view.is_mended and fault == kill_drains.CAUSE)]
    if not faults:
        return False
    if repair.state == "Suspect":
        return view.policy.confirmed_by is None or f"{CHECK_CAUSE}{view.policy.confirmed_by}" in faults
    checks = [fault.removeprefix(CHECK_CAUSE) for fault in faults if fault.startswith(CHECK_CAUSE)]
    return len(checks) < len(faults) or any(failed_at.get(check, 0) > repair.since for check in checks)


def _begin_steps(
    policy: RemedyPolicy,
    observed: Observed,
    workers: Mapping[int, Worker],
    faults: Mapping[int, Mapping[str, Wish]],
    moved: dict[int, Repair],
    most: int,
    now: float,
) -> dict[Step, tuple[int, ...]]:
    """Records the steps of drained nodes that no job can be on, the longest drained first. Returns those that wait because of the caps."""
    taken = Counter(step.step for repair in moved.values() for step in repair.steps if step.at > now - DAY_S)
    under_way = sum(repair.state in ("RecreatePod", *MACHINE_STEPS) for repair in moved.values())
    capped: dict[Step, list[int]] = {}
    for ordinal in sorted(moved, key=lambda ordinal: (moved[ordinal].since, ordinal)):
        repair, worker = moved[ordinal], workers[ordinal]
        if repair.state != "Draining":
            continue
        machine, identity = observed.machine_of(worker), observed.identity_of(worker)
        step = next_step(policy, repair, machine, faults[ordinal])
        may_begin = worker.pod is not None and is_free(observed, worker) and (step == "RecreatePod" or machine is not None)
        if step is None or worker.pod is None or not may_begin or under_way >= most:
            continue
        if taken[step] >= policy.max_per_day:
            capped.setdefault(step, []).append(ordinal)
            continue
        begun = TakenStep(step, now, identity)
        taken[step] += 1
        under_way += 1
        moved[ordinal] = replace(
            _to(repair, step, now),
            pod=worker.pod.uid,
            machine=identity,
            boot=machine.boot if machine is not None else "",
            steps=(*repair.steps, begun),
        )
    return {step: tuple(ordinals) for step, ordinals in capped.items()}


def _systemic_since(since: float | None, began: Iterable[float], most: int, window_s: int, now: float) -> float | None:
    """Since when the cause is systemic. It begins with too many new faults in one window, and ends when half as many are left at all."""
    times = list(began)
    if since is not None:
        return since if len(times) > most // 2 else None
    return now if sum(at > now - window_s for at in times) > most else None


def _spared_since(worker: Worker, policy: RemedyPolicy) -> float:
    """When a check found a fault on a node that it does not drain, as checks hold as many nodes as they may; 0 for all other nodes."""
    failures = (worker.node.failures if worker.node is not None else None) or {}
    spared = [name for name, failure in failures.items() if not failure.drains and failure.wish != "none" and failure.kind in policy.causes]
    return max(((worker.node.failed_at.get(name, 0) if worker.node is not None else 0) for name in spared), default=0)


def _is_done(view: _View, repair: Repair) -> bool:
    """True when the machine is another one, or, after a reboot, has booted since."""
    machine = view.observed.machine_of(view.worker)
    if machine is None:
        return False
    has_booted = repair.state == "RebootMachine" and bool(machine.boot) and machine.boot != repair.boot
    return machine.identity != repair.machine or (has_booted and machine.answers)


def _recovered(repair: Repair, now: float) -> Repair | None:
    """Back in service. The steps of the last day are kept: the next fault of this machine takes others."""
    return Repair("InService", now, began=repair.began, machine=repair.machine, steps=repair.steps) if repair.steps else None


def _to(repair: Repair, state: RepairState, now: float) -> Repair:
    return replace(repair, state=state, since=now, asked_at=None)


def _due_s(policy: RemedyPolicy, repair: Repair, now: float) -> float:
    """Seconds until a wait of this repair is over; infinite without such a wait."""
    waits = {"Suspect": wait_s(policy, repair), "Verifying": wait_s(policy, repair)}
    due = repair.since + waits.get(repair.state, inf) - now
    return due if due > 0 else inf
