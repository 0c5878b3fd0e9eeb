"""Reserves nodes for announced maintenance, and releases them. Thin."""

import structlog

from controllers.nodeset.plans.windows import Windows
from controllers.nodeset.rounds import Round
from slurm.maintenance import ANNOUNCED

log = structlog.get_logger()
_COMMENT = "maintenance of the machine was announced"


async def change_windows(round_: Round, windows: Windows) -> None:
    """Sends a request for each node; a request that Slurm refuses holds up no other."""
    slurm, nodeset = round_.world.slurm_writer, round_.key[1]
    for name in round_.names(windows.release):
        log.info("announced maintenance is over, put off or called off", nodeset=nodeset, node=name)
        await round_.attempt("end of a reservation", slurm.release(f"{ANNOUNCED}{name}", round_.asked_at))
    for ordinal, begin in windows.reserve.items():
        [name] = round_.names([ordinal])
        log.info("maintenance is announced", nodeset=nodeset, node=name, begin=begin)
        await round_.attempt("reservation", slurm.reserve(f"{ANNOUNCED}{name}", name, begin, _COMMENT, round_.asked_at))
