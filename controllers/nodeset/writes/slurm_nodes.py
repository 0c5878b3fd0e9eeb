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
    """Writes what changed, as far as one round may. Nothing while Slurm is silent, and nothing before the objects are known."""
    world, memory, nodeset = round_.world, round_.memory, round_.nodeset
    if observed.nodes is None or plan.is_finished or not world.slurm_nodes.synced.is_set():
        return
    now = world.clock.now()
    memory.slurm_nodes = {ordinal: each for ordinal, each in memory.slurm_nodes.items() if now - each[0] < SWEEP_S}
    lately = {ordinal: status for ordinal, (_, status) in memory.slurm_nodes.items()}
    objects, is_sweep = _objects(round_), now - memory.swept_at >= SWEEP_S
    made = await asyncio.to_thread(plan_slurm_nodes, nodeset, observed, causes, objects, lately, is_sweep)

    known = {**{ordinal: each.status for ordinal, each in objects.items()}, **lately}
    events = build_told(nodeset, made.apply, known, world.identity)
    round_.fail_any("event", await world.writer.create_many(EVENTS, events))
    manifests = [build.build_slurm_node(nodeset, ordinal, status) for ordinal, status in made.apply.items()]
    written = await world.writer.apply_many(SLURM_NODES, manifests)
    for (ordinal, status), result in zip(made.apply.items(), written, strict=True):
        if not isinstance(result, ApiError):
            memory.slurm_nodes[ordinal] = now, status
    deletions = [Deletion(objects[ordinal].metadata.key, objects[ordinal].metadata.uid) for ordinal in made.delete]
    deleted = await world.writer.delete_many(SLURM_NODES, deletions)
    for ordinal in made.delete:
        memory.slurm_nodes.pop(ordinal, None)

    has_failed = round_.fail_any("object of a Slurm node", [*written, *deleted])
    round_.has_more_objects = made.is_cut and not has_failed
    if is_sweep and not made.is_cut and not has_failed:
        memory.swept_at = now


def _objects(round_: Round) -> dict[int, SlurmNode]:
    """The objects of the set, by ordinal. An object that cannot be read says nothing, and is written anew."""
    space, name = round_.key
    informer = round_.world.slurm_nodes
    found = {each.metadata.name: each for each in informer.by_index("nodeset", round_.key)}
    for unread in informer.unread.values():
        if unread.metadata.namespace == space and unread.metadata.labels.get(labels.NODESET) == name:
            found[unread.metadata.name] = SlurmNode(unread.metadata)
    return {ordinal: each for each in found.values() if (ordinal := build.ordinal_of(name, each.metadata.name)) is not None}
