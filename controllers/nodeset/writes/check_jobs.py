"""Starts health checks on nodes that wait for them: one Job for all nodes of a check. Thin."""

from collections.abc import Mapping

import structlog

from controllers.nodeset.check_jobs import CRON_JOBS, JOBS, build_job, choose, cron_job_name
from controllers.nodeset.rounds import Round
from controllers.runtime.errors import ApiError, Conflict
from slurm.check_results import Request

_AGAIN_S = 5.0
"""Between two tries to make a Job: the one before it may be under way, or not removed yet."""

log = structlog.get_logger()


async def start_checks(round_: Round, checks: Mapping[str, Mapping[int, Request]]) -> None:
    """Makes the Job of each check, unless it has one."""
    now, due = round_.world.clock.now(), round_.memory.checks_due
    for check in [name for name in due if name not in checks]:
        del due[check]
    for check, requests in checks.items():
        if due.get(check, now) <= now:
            due[check] = now + _AGAIN_S
            await _start(round_, check, choose(requests, now))


async def _start(round_: Round, check: str, requests: Mapping[int, Request]) -> None:
    (space, name), cluster, writer = round_.key, round_.nodeset.spec.cluster, round_.world.writer
    requests_by_node = dict(zip(round_.names(requests), requests.values(), strict=True))
    try:
        cron_job = await writer.read(CRON_JOBS, (space, cron_job_name(cluster, check)))
        await writer.create(JOBS, build_job(cron_job, cluster, check, requests_by_node))
    except Conflict:
        return  # it looks at these nodes already, or at others first
    except ApiError as error:
        round_.fail(f"start of the health check {check}", error)
        return
    log.info("started a health check", nodeset=name, check=check, nodes=round_.text(requests))
