"""Which health checks are started before a node takes its first job on a machine. Pure; part of `plan`.

The worker drains its node before slurmd starts. The drain stays until every check has passed on that machine: unknown keeps the node out.
"""

from controllers.nodeset.observed import Observed
from controllers.nodeset.plans.verification import LOOK_AGAIN_S, is_peoples, may_be_looked_at
from controllers.nodeset.workers import Worker
from slurm.check_results import Request

LATE_S = 900
"""A condition of the set reports nodes that have waited for their checks for longer, in seconds."""


def waits_for_checks(observed: Observed, worker: Worker) -> bool:
    """True for a node that is to be drained until checks have passed. A failure that drains it tells people more."""
    return worker.ordinal in observed.unchecked and not (worker.fault and worker.is_draining)


def find_late(observed: Observed) -> dict[int, tuple[str, ...]]:
    """The checks that are missing on nodes that have waited for long."""
    old = (ordinal for ordinal in observed.unchecked if observed.now - observed.pods[ordinal].created_at > LATE_S)
    return {ordinal: observed.unchecked[ordinal] for ordinal in old if observed.worker(ordinal).is_registered}


def plan_admission(observed: Observed) -> dict[str, dict[int, Request]]:
    """The checks to start now, one after another on each node, and the machines that they are for.

    A failed check runs again by its schedule. It is started here again after a while if it has not drained the node.
    """
    checks: dict[str, dict[int, Request]] = {}
    for ordinal, missing in observed.unchecked.items():
        worker, identity = observed.worker(ordinal), observed.identity_of(observed.worker(ordinal))
        node, name = worker.node, missing[0]
        if not identity or node is None or not waits_for_checks(observed, worker) or is_peoples(observed, worker):
            continue
        has_failed = node.failed_at.get(name, 0) > observed.now - LOOK_AGAIN_S
        if not has_failed and may_be_looked_at(worker, ordinal in observed.looked_at):
            checks.setdefault(name, {})[ordinal] = Request(identity)
    return checks
