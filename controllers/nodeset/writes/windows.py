"""Reserves nodes for announced maintenance, and releases them. Thin."""

import structlog

from controllers.nodeset.plans.windows import Windows
from controllers.nodeset.rounds import Round
from slurm.maintenance import ANNOUNCED

log = structlog.get_logger()
_COMMENT = "maintenance of the machine was announced"


async def change_windows(round_: Round, windows: Windows) -> None:
    """Sends a request for each node; a request that Slurm refuses holds up no other. What comes too late is for the next round."""
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
