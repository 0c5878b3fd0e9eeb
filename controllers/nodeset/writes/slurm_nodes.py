"""Writes the objects that say how each Slurm node is, and why it is out of service. Thin."""

import asyncio
from collections.abc import Mapping

from controllers.nodeset import pods as build
from controllers.nodeset.events import build_told
from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import Plan
from controllers.nodeset.plans.slurm_nodes import plan_slurm_nodes
from controllers.nodeset.rounds import SWEEP_S, Round
from controllers.nodeset.structs import SLURM_NODES, SlurmNode
from controllers.runtime.errors import ApiError
from controllers.runtime.structs import EVENTS
from controllers.runtime.writer import Deletion
from names import labels
from slurm.causes import Cause


async def write_slurm_nodes(round_: Round, observed: Observed, plan: Plan, causes: Mapping[int, tuple[Cause, ...]]) -> None:
    """Writes what changed, within the limit of a round. Nothing while Slurm is silent, or before the objects are known."""
    world, memory, nodeset = round_.world, round_.memory, round_.nodeset
    if observed.nodes is None or plan.is_finished or not world.slurm_nodes.synced.is_set():
        return
    now = world.clock.now()
    memory.slurm_nodes = {ordinal: entry for ordinal, entry in memory.slurm_nodes.items() if now - entry[0] < SWEEP_S}
    lately = {ordinal: status for ordinal, (_, status) in memory.slurm_nodes.items()}
    objects, is_sweep = _objects(round_), now - memory.swept_at >= SWEEP_S
    planned = await asyncio.to_thread(plan_slurm_nodes, nodeset, observed, causes, objects, lately, is_sweep)

    known = {**{ordinal: item.status for ordinal, item in objects.items()}, **lately}
    events = build_told(nodeset, planned.apply, known, world.identity)
    round_.fail_any("event", await world.writer.create_many(EVENTS, events))
    manifests = [build.build_slurm_node(nodeset, ordinal, status) for ordinal, status in planned.apply.items()]
    written = await world.writer.apply_many(SLURM_NODES, manifests)
    for (ordinal, status), result in zip(planned.apply.items(), written, strict=True):
        if not isinstance(result, ApiError):
            memory.slurm_nodes[ordinal] = now, status
    deletions = [Deletion(objects[ordinal].metadata.key, objects[ordinal].metadata.uid) for ordinal in planned.delete]
    deleted = await world.writer.delete_many(SLURM_NODES, deletions)
    for ordinal in planned.delete:
        memory.slurm_nodes.pop(ordinal, None)

    has_failed = round_.fail_any("object of a Slurm node", [*written, *deleted])
    round_.has_more_objects = planned.is_cut and not has_failed
    if is_sweep and not planned.is_cut and not has_failed:
        memory.swept_at = now


def _objects(round_: Round) -> dict[int, SlurmNode]:
    """The objects of the set, by ordinal. An object that cannot be read counts as empty, and is written again."""
    space, name = round_.key
    informer = round_.world.slurm_nodes
    items_by_name = {item.metadata.name: item for item in informer.by_index("nodeset", round_.key)}
    for unread in informer.unread.values():
        if unread.metadata.namespace == space and unread.metadata.labels.get(labels.NODESET) == name:
            items_by_name[unread.metadata.name] = SlurmNode(unread.metadata)
    return {ordinal: item for item in items_by_name.values() if (ordinal := build.ordinal_of(name, item.metadata.name)) is not None}
