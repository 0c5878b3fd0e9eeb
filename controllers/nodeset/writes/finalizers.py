"""Adds the set's finalizer, and removes it when the set has no pod any more. Thin."""

from typing import Any

import structlog

from controllers.nodeset.observed import Observed
from controllers.nodeset.rounds import Round
from controllers.nodeset.structs import NODESETS_WRITTEN, NodeSetObject
from controllers.nodeset.writes.disks import delete_claims
from controllers.runtime.errors import Conflict, NotFound
from names import finalizers

log = structlog.get_logger()


async def add_finalizer(round_: Round) -> None:
    """Deleting the set waits for its nodes from now on. Raises ApiError."""
    wanted = [*round_.nodeset.metadata.finalizers, finalizers.DRAIN]
    await round_.world.writer.patch(NODESETS_WRITTEN, round_.key, _change(round_.nodeset, wanted))


async def finish(round_: Round, observed: Observed) -> None:
    """The set has no pod any more: deletes its claims if its retention is `Delete`, then the finalizer."""
    nodeset, world = round_.nodeset, round_.world
    if nodeset.spec.volume_claim_retention.when_deleted == "Delete":
        await delete_claims(round_, observed.claims.owned)
        if round_.errors:
            return
    left = [finalizer for finalizer in nodeset.metadata.finalizers if finalizer != finalizers.DRAIN]
    try:
        await world.writer.patch(NODESETS_WRITTEN, round_.key, _change(nodeset, left))
    except NotFound:
        pass
    except Conflict:
        return  # news of it, such as the status that was just written, is on its way, and brings the next round
    log.info("set is gone", nodeset=nodeset.metadata.name)


def _change(nodeset: NodeSetObject, wanted: list[str]) -> dict[str, Any]:
    """A patch that is refused where somebody else has changed the set meanwhile."""
    return {"metadata": {"finalizers": wanted or None, "resourceVersion": nodeset.metadata.resource_version}}
