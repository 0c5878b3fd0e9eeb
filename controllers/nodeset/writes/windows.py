"""Reserves nodes for announced maintenance, and releases them. Thin."""

import structlog

from controllers.nodeset.plans.windows import Windows, find_orphans
from controllers.nodeset.rounds import Round, World
from controllers.slurm.client import SlurmError
from controllers.slurm.snapshot import Snapshot
from slurm.maintenance import ANNOUNCED

log = structlog.get_logger()
_COMMENT = "maintenance of the machine was announced"


async def change_windows(round_: Round, windows: Windows) -> None:
    """Sends a request for each node; a request that Slurm refuses holds up no other. Late requests wait for the next round."""
    slurm, nodeset = round_.world.slurm_writer, round_.key[1]
    for name in round_.names(windows.release):
        if await round_.attempt("end of a reservation", slurm.release(f"{ANNOUNCED}{name}", round_.asked_at)):
            log.info("announced maintenance is over, or not yet", nodeset=nodeset, node=name)
        if round_.came_too_late:
            return
    for ordinal, begin in windows.reserve.items():
        [name] = round_.names([ordinal])
        if await round_.attempt("reservation", slurm.reserve(f"{ANNOUNCED}{name}", name, begin, _COMMENT, round_.asked_at)):
            log.info("maintenance is announced", nodeset=nodeset, node=name, begin=begin)
        if round_.came_too_late:
            return


async def release_orphans(world: World) -> None:
    """Releases reservations of nodes whose set is gone. A request that fails is tried again with the next call."""
    snapshot = world.poller.snapshot
    if snapshot is None or not world.nodesets.synced.is_set() or not _orphans(world, snapshot):
        return
    try:
        snapshot = await world.poller.fresh()
        for name in _orphans(world, snapshot):
            await world.slurm_writer.release(name, snapshot.asked_at)
            log.info("released: announced for a node of a set that is gone", reservation=name)
    except SlurmError as error:
        log.warning("failed", what="end of a reservation of a set that is gone", error=str(error))


def _orphans(world: World, snapshot: Snapshot) -> tuple[str, ...]:
    """A set counts even if the controller cannot read it."""
    sets = {name for _, name in (*world.nodesets.store.keys(), *world.nodesets.unread)}
    return find_orphans((reservation.name for reservation in snapshot.last_reservations or ()), sets)
