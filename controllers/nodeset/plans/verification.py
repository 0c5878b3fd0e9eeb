"""Which checks decide whether a step of a repair has helped, and which of them are started now. Pure; a part of `remedies`.

First come the checks that had failed and run as jobs, then those of `verifiedBy`, one after another. A pass counts only for the step and
the machine that it was asked for.
"""

from collections.abc import Iterable, Mapping

from controllers.nodeset.observed import Observed, Repair, TakenStep
from controllers.nodeset.plans.causes import rfc3339
from controllers.nodeset.structs import NodeSet, RemedyPolicy
from controllers.nodeset.workers import Worker
from slurm.check_results import Request
from slurm.reasons import awaits_checks, is_check

CHECK_CAUSE = "check/"
LOOK_AGAIN_S = 600
"""Seconds after a failed check until a node that was given up, or waits for its first job, is checked again."""


def last_step(repair: Repair) -> TakenStep | None:
    """The last step of this repair; None where none was taken yet."""
    return repair.steps[-1] if repair.steps and repair.steps[-1].at >= repair.began else None


def find_outstanding(policy: RemedyPolicy, repair: Repair, worker: Worker, identity: str) -> tuple[str, ...]:
    """The checks of `verifiedBy` that have not passed since the repair's last step, on the machine of that identity."""
    step = last_step(repair)
    if step is None:
        return ()
    passed_for: Mapping[str, Request] = worker.node.passed_for if worker.node is not None else {}
    wanted = Request(identity, rfc3339(step.at))
    return tuple(name for name in policy.verified_by if not identity or passed_for.get(name) != wanted)


def find_checks(
    nodeset: NodeSet,
    observed: Observed,
    stored: Mapping[int, Repair],
    faults: Mapping[int, Iterable[str]],
    outstanding: Mapping[int, tuple[str, ...]],
) -> dict[str, dict[int, Request]]:
    """The checks to start, and what they are to prove on which nodes. `stored` are the repairs as the status has them already."""
    checks: dict[str, dict[int, Request]] = {}
    for ordinal, repair in stored.items():
        worker, step, identity = observed.worker(ordinal), last_step(repair), observed.identity_of(observed.worker(ordinal))
        if step is None or not identity or is_peoples(observed, worker) or not may_be_looked_at(worker, ordinal in observed.looked_at):
            continue
        name = next_check(nodeset, repair, worker, faults[ordinal], outstanding.get(ordinal, ()), observed.now)
        if name is not None:
            checks.setdefault(name, {})[ordinal] = Request(identity, rfc3339(step.at))
    return checks


def next_check(
    nodeset: NodeSet, repair: Repair, worker: Worker, faults: Iterable[str], outstanding: tuple[str, ...], now: float
) -> str | None:
    """The check to start on a node whose last step is done; None for none.

    A check that has failed since then is not started again, as the next step is due. On a node that was given up it is, after a while: its
    own schedule skips nodes that the controller has drained.
    """
    node, is_given_up = worker.node, repair.state == "GivenUp"
    if node is None or last_step(repair) is None or repair.state not in ("Suspect", "Verifying", "GivenUp"):
        return None
    failing = [fault.removeprefix(CHECK_CAUSE) for fault in faults if fault.startswith(CHECK_CAUSE)]
    failing = [name for name in failing if name in nodeset.spec.check_jobs]
    since = now - LOOK_AGAIN_S if is_given_up else repair.since
    return next((name for name in failing or outstanding[:1] if node.failed_at.get(name, 0) <= since), None)


def is_unanswered(
    policy: RemedyPolicy, observed: Observed, repair: Repair, worker: Worker, faults: Iterable[str], outstanding: tuple[str, ...]
) -> bool:
    """True for a node if no check has answered for `machineTimeoutS` whether the last step has helped.

    That is reported, but no reason for the next step: the node stays drained, and is looked at as soon as a check can.
    """
    is_late = repair.state == "Verifying" and observed.now - repair.since >= policy.machine_timeout_seconds
    if not is_late or worker.node is None or not worker.is_registered or is_peoples(observed, worker):
        return False
    checks = [*(fault.removeprefix(CHECK_CAUSE) for fault in faults), *outstanding]
    other_faults = [fault for fault in faults if not fault.startswith(CHECK_CAUSE)]
    return bool(checks) and not other_faults and all(worker.node.failed_at.get(name, 0) <= repair.since for name in checks)


def may_be_looked_at(worker: Worker, is_looked_at: bool) -> bool:
    """True for a node that answers, and is drained for what a check may end; also where a check looks at it, or was killed there."""
    node = worker.node
    if node is None or not worker.is_registered:
        return False
    return is_looked_at or (worker.may_go and (is_check(node.reason) or awaits_checks(node.reason)))


def is_peoples(observed: Observed, worker: Worker) -> bool:
    """True for a node that people decide about: others have drained it or set it down, or its machine is cordoned or about to be taken.

    Also true if the pod's machine has no Kubernetes node any more: a cordon would be unknown.
    """
    machine = observed.machine_of(worker)
    is_unknown = machine is None and worker.pod is not None and worker.pod.machine is not None
    is_requested = worker.pod is not None and bool(worker.pod.drain_requested)
    is_taken = worker.is_kept_out or is_requested or (machine is not None and (machine.is_cordoned or bool(machine.announced)))
    return is_unknown or is_taken or (worker.has_foreign_drain and not worker.has_check_drain and not worker.has_kill_drain)
