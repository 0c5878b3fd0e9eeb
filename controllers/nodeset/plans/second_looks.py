"""Which health checks look at nodes at once, instead of at the next run of their schedule. Pure; part of `plan`.

They look again at failures that were seen on another machine, and confirm faults that last. A check that gives no answer is started again.
"""

from collections.abc import Collection, Iterable, Mapping

from controllers.nodeset.inherited import find_inherited
from controllers.nodeset.observed import Observed, Repair
from controllers.nodeset.plans.causes import rfc3339
from controllers.nodeset.plans.verification import CHECK_CAUSE, is_peoples, may_be_looked_at
from controllers.nodeset.structs import NodeSet
from controllers.nodeset.workers import Worker
from slurm.check_results import Request


def plan_second_looks(nodeset: NodeSet, observed: Observed) -> dict[str, dict[int, Request]]:
    """The checks to start on nodes that are drained for what they had found on another machine, one after another."""
    checks: dict[str, dict[int, Request]] = {}
    for worker in observed.workers():
        identity, inherited = observed.identity_of(worker), find_inherited(observed, worker)
        name = next((name for name in nodeset.spec.check_jobs if name in inherited), None)
        if name is not None and identity and _may_look(observed, worker):
            checks.setdefault(name, {})[worker.ordinal] = Request(identity)
    return checks


def find_confirming(
    nodeset: NodeSet, observed: Observed, suspects: Mapping[int, Repair], faults: Mapping[int, Collection[str]]
) -> dict[int, Request]:
    """The nodes that the check of `confirmedBy` is to look at now. `suspects` are those whose faults have lasted for long enough.

    Once the check has answered, its next look is that of its schedule.
    """
    policy = nodeset.spec.remedies
    if policy is None or policy.confirmed_by is None or policy.confirmed_by not in nodeset.spec.check_jobs:
        return {}
    name, asked = policy.confirmed_by, dict[int, Request]()
    for ordinal, repair in suspects.items():
        worker = observed.worker(ordinal)
        request = Request(observed.identity_of(worker), rfc3339(repair.since))
        is_open = bool(faults[ordinal]) and f"{CHECK_CAUSE}{name}" not in faults[ordinal]
        is_idle = worker.is_registered and worker.is_idle and not worker.is_draining and not is_peoples(observed, worker)
        may_look = bool(request.machine) and (is_idle or _may_look(observed, worker))
        if is_open and may_look and not _has_answered(worker, name, request, repair):
            asked[ordinal] = request
    return asked


def merged(*kinds: Mapping[str, Mapping[int, Request]]) -> dict[str, dict[int, Request]]:
    """All of these checks. If several kinds name a node, the first of them counts."""
    checks: dict[str, dict[int, Request]] = {}
    named = set[int]()
    for kind in kinds:
        for name, requests in kind.items():
            if wanted := {ordinal: request for ordinal, request in requests.items() if ordinal not in named}:
                checks[name] = {**checks.get(name, {}), **wanted}
        named |= _ordinals(kind.values())
    return checks


def _ordinals(requests: Iterable[Mapping[int, Request]]) -> set[int]:
    return {ordinal for requests_of_check in requests for ordinal in requests_of_check}


def _may_look(observed: Observed, worker: Worker) -> bool:
    return may_be_looked_at(worker, worker.ordinal in observed.looked_at) and not is_peoples(observed, worker)


def _has_answered(worker: Worker, name: str, request: Request, repair: Repair) -> bool:
    """True once the check has passed for this request, or failed since, on a node that it may not drain."""
    node = worker.node
    return node is not None and (node.passed_for.get(name) == request or node.failed_at.get(name, 0) > repair.since)
