"""Writes a plan's part in Slurm: drains and their record, lifts, resumes, the end of jobs past their deadline. Thin."""

import msgspec
import structlog

from controllers.nodeset.plan import Plan
from controllers.nodeset.records import build_records
from controllers.nodeset.rounds import Round
from controllers.nodeset.structs import NODESETS_WRITTEN
from controllers.runtime.errors import ApiError

log = structlog.get_logger()


async def record_drains(this: Round, decided: Plan) -> None:
    """Before Slurm is asked for a drain, the status says that it is ours, and since when: this process may end right after."""
    known = this.drains()
    new = {ordinal: at for ordinal, at in decided.drained_at.items() if known.get(ordinal) != at}
    asked_for = {ordinal for ordinals in decided.drain.values() for ordinal in ordinals}
    if new.keys() & asked_for:
        records = build_records(this.key[1], {**known, **new})
        try:
            await this.world.writer.patch_status(NODESETS_WRITTEN, this.key, {"drains": msgspec.to_builtins(records)})
        except ApiError as error:
            this.fail("record of drains", error)
            return
        this.memory.drained_at = this.nodeset.metadata.uid, {**known, **new}
    this.recorded = frozenset(asked_for)


async def change_slurm(this: Round, decided: Plan) -> None:
    """Sends each request of the plan; one that Slurm refuses holds up no other."""
    name, asked_at, slurm = this.nodeset.metadata.name, this.asked_at, this.world.slurm_writer
    for reason, ordinals in decided.drain.items():
        nodes = [ordinal for ordinal in ordinals if ordinal in this.recorded or ordinal not in decided.drained_at]
        if not nodes:
            continue  # their record was refused, or they were found since; one of an earlier drain would give their jobs no time
        log.info("draining", nodeset=name, nodes=this.text(nodes), reason=reason)
        await this.attempt("drain", slurm.update_nodes(this.names(nodes), "DRAIN", asked_at, reason))
    if decided.undrain:
        log.info("lifting our drain", nodeset=name, nodes=this.text(decided.undrain))
        await this.attempt("undrain", slurm.update_nodes(this.names(decided.undrain), "UNDRAIN", asked_at))
    if decided.resume:
        log.info("trying again", nodeset=name, nodes=this.text(decided.resume))
        await this.attempt("resume", slurm.update_nodes(this.names(decided.resume), "RESUME", asked_at))
    if decided.release:
        log.info("gone, so Slurm may wake them again", nodeset=name, nodes=this.text(decided.release))
        await this.attempt("end of a power-down", slurm.release_nodes(this.names(decided.release), asked_at))
    if decided.requeue:
        log.warning("requeueing jobs past the drain deadline", nodeset=name, jobs=decided.requeue)
        if await this.attempt("requeue", slurm.requeue_jobs(decided.requeue, asked_at)):
            this.memory.requeued |= dict.fromkeys(decided.requeue, this.world.clock.wall())
    if decided.cancel:
        log.warning("cancelling jobs past the drain deadline", nodeset=name, nodes=this.text(decided.cancel))
        if await this.attempt("cancel", slurm.cancel_jobs(this.names(decided.cancel), asked_at)):
            this.memory.cancelled |= dict.fromkeys(decided.cancel, this.world.clock.wall())
