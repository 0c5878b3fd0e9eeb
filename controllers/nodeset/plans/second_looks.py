"""Which health checks look at nodes at once, instead of at the next run of their schedule. Pure; part of `plan`.

A failure that was seen on another machine needs a look at the present one. Checks beside jobs look by themselves. A check that gives no
answer is started again: unknown ends no failure.
"""

from collections.abc import Iterable, Mapping

from controllers.nodeset.inherited import find_inherited
from controllers.nodeset.observed import Observed
from controllers.nodeset.plans.verification import is_peoples, may_be_looked_at
from controllers.nodeset.structs import NodeSet
from controllers.nodeset.workers import Worker
from slurm.check_results import Request


def plan_second_looks(nodeset: NodeSet, observed: Observed) -> dict[str, dict[int, Request]]:
    """The checks to start on nodes that are drained for what they had found on another machine, one after another."""
    checks: dict[str, dict[int, Request]] = {}
    for worker in observed.workers():
        identity, inherited = observed.identity_of(worker), find_inherited(observed, worker)
        name = next((name for name in nodeset.spec.check_jobs if name in inherited and inherited[name].drains), None)
        if name is not None and identity and _may_look(observed, worker):
            checks.setdefault(name, {})[worker.ordinal] = Request(identity)
    return checks


def merged(*kinds: Mapping[str, Mapping[int, Request]]) -> dict[str, dict[int, Request]]:
    """All of these checks; of a node that several kinds name, those of the first of them."""
    checks: dict[str, dict[int, Request]] = {}
    named = set[int]()
    for kind in kinds:
        for name, requests in kind.items():
            if wanted := {ordinal: each for ordinal, each in requests.items() if ordinal not in named}:
                checks[name] = {**checks.get(name, {}), **wanted}
        named |= _ordinals(kind.values())
    return checks


def _ordinals(requests: Iterable[Mapping[int, Request]]) -> set[int]:
    return {ordinal for each in requests for ordinal in each}


def _may_look(observed: Observed, worker: Worker) -> bool:
    return may_be_looked_at(worker, worker.ordinal in observed.looked_at) and not is_peoples(observed, worker)
