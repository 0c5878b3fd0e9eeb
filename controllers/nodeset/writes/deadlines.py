"""Requeues or cancels jobs past the drain deadline, and remembers which Slurm was asked for. Thin."""

import structlog

from controllers.nodeset.plans.deadlines import Deadlines
from controllers.nodeset.rounds import Round

log = structlog.get_logger()


async def end_jobs(round_: Round, deadlines: Deadlines) -> None:
    """Sends a request of each kind; a request that Slurm refuses holds up no other."""
    name, asked_at, slurm = round_.nodeset.metadata.name, round_.asked_at, round_.world.slurm_writer
    if deadlines.requeue:
        log.warning("requeueing jobs past the drain deadline", nodeset=name, jobs=deadlines.requeue)
        if await round_.attempt("requeue", slurm.requeue_jobs(deadlines.requeue, asked_at)):
            round_.memory.requeued |= dict.fromkeys(deadlines.requeue, round_.world.clock.wall())
    if deadlines.cancel:
        log.warning("cancelling jobs past the drain deadline", nodeset=name, nodes=round_.text(deadlines.cancel))
        if await round_.attempt("cancel", slurm.cancel_jobs(round_.names(deadlines.cancel), asked_at)):
            round_.memory.cancelled |= dict.fromkeys(deadlines.cancel, round_.world.clock.wall())
