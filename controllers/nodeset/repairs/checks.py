"""Which health checks the controller starts, on which nodes, and what a pass is to prove there. Pure.

A check is started after a step of a repair, to confirm a fault, and before jobs come to a machine. It is also started where it had
failed on another machine. A check that gives no answer is started again.
"""

from collections.abc import Iterable, Iterator, Mapping

from controllers.nodeset.inherited import find_inherited
from controllers.nodeset.observed import Observed, Repair
from controllers.nodeset.plans.causes import CHECK_CAUSE, rfc3339
from controllers.nodeset.repairs.views import View, is_peoples, last_step
from controllers.nodeset.structs import NodeSetObject
from controllers.nodeset.workers import Worker
from slurm.check_results import Request
from slurm.reasons import awaits_checks, is_check

LOOK_AGAIN_S = 600
"""Seconds after a failed check until a node that was given up, or waits for its checks before jobs, is checked again."""
LATE_S = 900
"""A condition of the set reports nodes that have waited longer for their checks before jobs, in seconds."""

Asked = tuple[int, str, Request]
"""An ordinal, the check to start on its node, and what a pass is to prove."""


def by_check(asked: Iterable[Asked]) -> dict[str, dict[int, Request]]:
    """The nodes of each check. Of several checks for one node, the first is started."""
    checks, named = dict[str, dict[int, Request]](), set[int]()
    for ordinal, name, request in asked:
        if ordinal not in named:
            named.add(ordinal)
            checks.setdefault(name, {})[ordinal] = request
    return checks


def after_steps(views: Mapping[int, View], stored: Mapping[int, Repair]) -> Iterator[Asked]:
    """The checks that decide whether a step has helped. `stored` are the repairs as the status has them already.

    First come the checks that had failed and run as jobs, then those of `verifiedBy`, one after another.
    """
    for ordinal, repair in stored.items():
        view, step = views[ordinal], last_step(repair)
        if step is not None and view.identity and _may_look(view.observed, view.worker) and (name := _next_check(view, repair)) is not None:
            yield ordinal, name, Request(view.identity, rfc3339(step.at))


def _next_check(view: View, repair: Repair) -> str | None:
    """The check to start on a node whose last step is done; None for none.

    A check that has failed since then is not started again, as the next step is due. On a node that was given up it is, after a while: its
    own schedule skips nodes that the controller has drained.
    """
    node, is_given_up = view.worker.node, repair.state == "GivenUp"
    if node is None or repair.state not in ("Suspect", "Verifying", "GivenUp"):
        return None
    failing = [*(fault.removeprefix(CHECK_CAUSE) for fault in view.faults if fault.startswith(CHECK_CAUSE)), *view.inherited]
    failing = [name for name in failing if name in view.nodeset.spec.check_jobs]
    since = view.observed.now - LOOK_AGAIN_S if is_given_up else repair.since
    return next((name for name in failing or view.outstanding(repair)[:1] if node.failed_at.get(name, 0) <= since), None)


def confirming(views: Mapping[int, View], suspects: Mapping[int, Repair]) -> Iterator[Asked]:
    """The check of `confirmedBy`. `suspects` are nodes whose faults have lasted for long enough.

    Once the check has answered, its next look is that of its schedule.
    """
    for ordinal, repair in suspects.items():
        view, worker, node = views[ordinal], views[ordinal].worker, views[ordinal].worker.node
        name, request = view.policy.confirmed_by, Request(view.identity, rfc3339(repair.since))
        if name is None or name not in view.nodeset.spec.check_jobs or not view.identity:
            continue
        is_open = bool(view.faults) and f"{CHECK_CAUSE}{name}" not in view.faults
        is_idle = worker.is_registered and worker.is_idle and not worker.is_draining and not view.is_peoples
        # It has answered once it has passed for this request, or failed since, on a node that it may not drain.
        has_answered = node is not None and (node.passed_for.get(name) == request or node.failed_at.get(name, 0) > repair.since)
        if is_open and (is_idle or _may_look(view.observed, worker)) and not has_answered:
            yield ordinal, name, request


def before_jobs(observed: Observed) -> Iterator[Asked]:
    """The checks before jobs, one after another on each node.

    A failed check runs again by its schedule. It is started here again after a while if it has not drained the node.
    """
    for ordinal, missing in observed.checks_before_jobs.items():
        worker, identity = observed.worker(ordinal), observed.identity_of(observed.worker(ordinal))
        node, name = worker.node, missing[0]
        if not identity or node is None or not waits_before_jobs(observed, worker):
            continue
        has_failed = node.failed_at.get(name, 0) > observed.now - LOOK_AGAIN_S
        if not has_failed and _may_look(observed, worker):
            yield ordinal, name, Request(identity)


def of_other_machines(nodeset: NodeSetObject, observed: Observed) -> Iterator[Asked]:
    """The checks of nodes that are drained for what these had found on another machine, one after another."""
    for worker in observed.workers():
        identity, inherited = observed.identity_of(worker), find_inherited(observed, worker)
        name = next((name for name in nodeset.spec.check_jobs if name in inherited), None)
        if name is not None and identity and _may_look(observed, worker):
            yield worker.ordinal, name, Request(identity)


def waits_before_jobs(observed: Observed, worker: Worker) -> bool:
    """True for a node that is to be drained until its checks before jobs have passed. A failure that drains it tells people more."""
    return worker.ordinal in observed.checks_before_jobs and not (worker.fault and worker.is_draining)


def find_late(observed: Observed) -> dict[int, tuple[str, ...]]:
    """The checks before jobs that are missing on nodes that have waited for long."""
    old = (ordinal for ordinal in observed.checks_before_jobs if observed.now - observed.pods[ordinal].created_at > LATE_S)
    return {ordinal: observed.checks_before_jobs[ordinal] for ordinal in old if observed.worker(ordinal).is_registered}


def is_unanswered(view: View, repair: Repair, outstanding: tuple[str, ...]) -> bool:
    """True for a node if no check has answered for `machineTimeoutS` whether the last step has helped.

    That is reported, but no reason for the next step: the node stays drained, and is looked at as soon as a check can.
    """
    node, faults = view.worker.node, view.faults
    is_late = repair.state == "Verifying" and view.observed.now - repair.since >= view.policy.machine_timeout_seconds
    if not is_late or node is None or not view.worker.is_registered or view.is_peoples:
        return False
    checks = [*(fault.removeprefix(CHECK_CAUSE) for fault in faults), *outstanding]
    other_faults = [fault for fault in faults if not fault.startswith(CHECK_CAUSE)]
    return bool(checks) and not other_faults and all(node.failed_at.get(name, 0) <= repair.since for name in checks)


def _may_look(observed: Observed, worker: Worker) -> bool:
    """True for a node that answers, and is drained for a cause that a check may end. Also where a check looks at it, or was killed there.

    False for a node that people decide about.
    """
    node, is_looked_at = worker.node, worker.ordinal in observed.looked_at
    if node is None or not worker.is_registered or is_peoples(observed, worker):
        return False
    return is_looked_at or (worker.may_go and (is_check(node.reason) or awaits_checks(node.reason)))
