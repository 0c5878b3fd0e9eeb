"""Writes what keeps jobs from eviction: the disruption budget, and the label of each pod that says busy or free. Thin."""

from collections.abc import Iterable

from controllers.nodeset import pods as build
from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import Plan
from controllers.nodeset.rounds import SWEEP_S, Round
from controllers.runtime.errors import ApiError
from controllers.runtime.structs import BUDGETS, PODS
from controllers.runtime.writer import Patch
from names import labels


async def protect(round_: Round, observed: Observed, plan: Plan) -> None:
    """Before anything else: what may run a job must not be evicted."""
    unknown = observed.nodes is None
    uid, now = round_.nodeset.metadata.uid, round_.world.clock.now()
    # Applied again at each sweep: whoever has deleted or changed it leaves the jobs unprotected no longer than that.
    applied_uid, was_unknown, applied_at = round_.memory.budget
    is_applied = (applied_uid, was_unknown) == (uid, unknown) and now - applied_at < SWEEP_S
    if not is_applied and not plan.is_finished:
        try:
            await round_.world.writer.apply(BUDGETS, build.build_disruption_budget(round_.nodeset, unknown))
            round_.memory.budget = uid, unknown, now
        except ApiError as error:
            round_.fail("disruption budget", error)
    await _label(round_, plan.labels.busy, "true")


async def mark_free(round_: Round, plan: Plan) -> None:
    """Pods without a job may be evicted."""
    await _label(round_, plan.labels.free, "false")


async def _label(round_: Round, ordinals: Iterable[int], busy: str) -> None:
    change = {"metadata": {"labels": {labels.BUSY: busy}}}
    patches = [Patch(round_.pod_key(ordinal), change) for ordinal in ordinals]
    still = None if busy == "true" else round_.is_fresh_for_deletion
    round_.fail_any("label of a pod", await round_.world.writer.patch_many(PODS, patches, still=still))
