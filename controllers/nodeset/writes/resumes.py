"""Gives nodes that are off back to Slurm. Thin."""

import structlog

from controllers.nodeset.plans.resumes import Resumes
from controllers.nodeset.rounds import Round

log = structlog.get_logger()


async def resume_nodes(round_: Round, resumes: Resumes) -> None:
    """Sends a request of each kind; a request that Slurm refuses holds up no other."""
    name, asked_at, slurm = round_.nodeset.metadata.name, round_.asked_at, round_.world.slurm_writer
    if resumes.resume:
        log.info("trying again", nodeset=name, nodes=round_.text(resumes.resume))
        await round_.attempt("resume", slurm.update_nodes(round_.names(resumes.resume), "RESUME", asked_at))
    if resumes.release:
        log.info("gone, so Slurm may wake them again", nodeset=name, nodes=round_.text(resumes.release))
        await round_.attempt("end of a power-down", slurm.release_nodes(round_.names(resumes.release), asked_at))
