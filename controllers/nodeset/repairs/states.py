"""The states of a repair: Suspect, Draining, a step, Verifying, and then InService, the next step, or GivenUp. Pure.

docs/explain/decisions/0007 has the reasons. Beginning a step is decided for all nodes together: `steps`.
"""

from dataclasses import replace
from math import inf

from controllers.nodeset.observed import Repair
from controllers.nodeset.plans.causes import CHECK_CAUSE, KILL_FAILED_CAUSE
from controllers.nodeset.repairs.steps import DAY_S, MACHINE_STEPS, next_step, to_state, wait_s
from controllers.nodeset.repairs.views import View, last_step


def observed_state(view: View, repair: Repair | None, is_wanted: bool) -> Repair | None:
    """The state after what has happened by itself: faults that came and ended, pods and machines that were replaced."""
    now, worker = view.now, view.worker
    if repair is None:
        return Repair("Suspect", now, began=now)
    state, pod = repair.state, worker.pod
    if state in MACHINE_STEPS:
        asked_at = inf if repair.asked_at is None else repair.asked_at
        if _is_done(view, repair) or now - asked_at >= view.policy.machine_timeout_seconds:
            return to_state(repair, "Verifying", now)
        if repair.asked_at is not None:
            return repair
        if is_wanted and now - repair.since < view.policy.machine_timeout_seconds:
            return repair  # the answer may be lost: a machine that is well by now may still go down
    if not is_wanted:
        return _recovered(repair, now)  # it leaves, or sleeps; what checks found counts again once it is up
    if state == "RecreatePod":
        if pod is not None and pod.uid != repair.pod:
            return to_state(repair, "Verifying", now)
        longest_s = max(view.nodeset.spec.resume_timeout_seconds, view.policy.wait_seconds)
        if pod is not None and pod.terminating and now - repair.since >= longest_s:
            return to_state(repair, "Verifying", now)  # its kubelet does not end it: another step is due
        return _recovered(repair, now) if view.is_well else repair
    if state == "InService":
        recent = tuple(step for step in repair.steps if step.at > now - DAY_S)
        if view.faults:
            return Repair("Suspect", now, began=now, steps=recent)
        return replace(repair, steps=recent) if recent else None
    if view.is_well:
        if not view.outstanding(repair):
            return _recovered(repair, now)
        # No step is due without a fault, and a machine that was not asked for yet is not touched.
        return to_state(repair, "Verifying", now) if state in ("Draining", *MACHINE_STEPS) else repair
    if state in ("Suspect", "Draining") and not view.faults and view.is_unseen:
        return to_state(repair, "Verifying", now) if last_step(repair) else _recovered(repair, now)
    if state == "Draining" and worker.is_registered and not worker.is_draining:
        return replace(repair, since=now)  # jobs that come before the next drain have their whole time
    if state == "GivenUp" and (repair.machine and view.identity and view.identity != repair.machine):
        return Repair("Suspect", now, began=now, steps=repair.steps)  # somebody has replaced the machine
    return repair


def decided_state(view: View, repair: Repair, is_systemic: bool) -> Repair:
    """The state after what is decided for this node alone."""
    now, policy = view.now, view.policy
    may_act = not is_systemic and not view.is_peoples
    if repair.state == "Draining" and not may_act:
        return to_state(repair, "Suspect", now)
    if repair.state not in ("Suspect", "Verifying", "GivenUp") or not may_act:
        return repair
    following = next_step(policy, repair, view.machine, view.faults)
    if repair.state == "GivenUp":
        return to_state(repair, "Suspect", now) if following and view.faults else repair  # the policy has a step more now
    if now - repair.since < wait_s(policy, repair) or not _is_confirmed(view, repair):
        return repair
    if following is None:
        return replace(to_state(repair, "GivenUp", now), machine=view.identity or repair.machine)
    return to_state(repair, "Draining", now)


def due_s(view: View, repair: Repair) -> float:
    """Seconds until a wait of this repair is over; infinite without such a wait."""
    due = repair.since + wait_s(view.policy, repair) - view.now if repair.state in ("Suspect", "Verifying") else inf
    return due if due > 0 else inf


def _is_confirmed(view: View, repair: Repair) -> bool:
    """True if a look that is younger than the last step has seen the fault.

    A check that could not tell confirms nothing, however long that lasts: the machine may be well.
    """
    node = view.worker.node
    failed_at = {name: at for name, at in node.failed_at.items() if name not in view.inherited} if node is not None else {}
    is_overdue = view.now - repair.since >= view.policy.machine_timeout_seconds
    if repair.state == "Verifying" and not view.worker.is_registered and is_overdue:
        return True  # it has not come back, so no check can look
    if view.outstanding(repair) and any(failed_at.get(name, 0) > repair.since for name in view.policy.verified_by):
        return True
    faults = [fault for fault in view.faults if not (view.is_mended and fault == KILL_FAILED_CAUSE)]
    if not faults:
        return False
    if repair.state == "Suspect":
        return view.policy.confirmed_by is None or f"{CHECK_CAUSE}{view.policy.confirmed_by}" in faults
    checks = [fault.removeprefix(CHECK_CAUSE) for fault in faults if fault.startswith(CHECK_CAUSE)]
    return len(checks) < len(faults) or any(failed_at.get(check, 0) > repair.since for check in checks)


def _is_done(view: View, repair: Repair) -> bool:
    """True when the machine is another one, or, after a reboot, has booted since."""
    machine = view.machine
    if machine is None:
        return False
    has_booted = repair.state == "RebootMachine" and bool(machine.boot) and machine.boot != repair.boot
    return machine.identity != repair.machine or (has_booted and machine.answers)


def _recovered(repair: Repair, now: float) -> Repair | None:
    """Back in service. The steps of the last day are kept: the next fault of this machine takes others."""
    return Repair("InService", now, began=repair.began, machine=repair.machine, steps=repair.steps) if repair.steps else None
