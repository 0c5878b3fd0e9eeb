"""Drains nodes in Slurm and lifts drains, after the set's status has recorded each new drain. Thin."""

import msgspec
import structlog

from controllers.nodeset.plans.drains import Drains
from controllers.nodeset.records import build_records
from controllers.nodeset.rounds import Round
from controllers.nodeset.structs import NODESETS_WRITTEN
from controllers.runtime.errors import ApiError

log = structlog.get_logger()


async def record_drains(round_: Round, drains: Drains) -> None:
    """Before Slurm is asked for a drain, the status says that it is ours, and since when: this process may end right after."""
    known = round_.drains()
    new = {ordinal: at for ordinal, at in drains.drained_at.items() if known.get(ordinal) != at}
    asked_for = {ordinal for ordinals in drains.drain.values() for ordinal in ordinals}
    if new.keys() & asked_for:
        records = build_records(round_.key[1], {**known, **new})
        try:
            await round_.world.writer.patch_status(NODESETS_WRITTEN, round_.key, {"drains": msgspec.to_builtins(records)})
        except ApiError as error:
            round_.fail("record of drains", error)
            return
        round_.memory.drained_at = round_.nodeset.metadata.uid, {**known, **new}
    round_.recorded = frozenset(asked_for)


async def change_drains(round_: Round, drains: Drains) -> None:
    """Sends a request for each reason, and another that lifts drains; a request that Slurm refuses holds up no other."""
    name, asked_at, slurm = round_.nodeset.metadata.name, round_.asked_at, round_.world.slurm_writer
    for reason, ordinals in drains.drain.items():
        nodes = [ordinal for ordinal in ordinals if ordinal in round_.recorded or ordinal not in drains.drained_at]
        if not nodes:
            continue  # their record was refused, or they were found since; that of an earlier drain would give their jobs no time
        log.info("draining", nodeset=name, nodes=round_.text(nodes), reason=reason)
        await round_.attempt("drain", slurm.update_nodes(round_.names(nodes), "DRAIN", asked_at, reason))
    if drains.undrain:
        log.info("lifting our drain", nodeset=name, nodes=round_.text(drains.undrain))
        await round_.attempt("undrain", slurm.update_nodes(round_.names(drains.undrain), "UNDRAIN", asked_at))
