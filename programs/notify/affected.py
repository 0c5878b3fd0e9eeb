"""Users whose running jobs are on nodes that newly went out of service, where a job's comment asks for news (`notify:NAME`). Pure.

Only drains are told: Slurm ends the jobs of a node that is down, and their end is news of its own. A drain is told once, whatever becomes
of its reason: a node that was told of is told again when it was back in service meanwhile.
"""

from collections.abc import Iterable, Mapping

from slurm.maintenance import Job

from .nodes import Changes, Fault, Known
from .plan import MOST, Affected, News, is_chosen
from .runs import asked
from .settings import Receiver

EVENT = "jobDrain"


def newly_drained(known: Known, changes: Changes) -> dict[str, Fault]:
    """The nodes that were drained under jobs since `known`, the state before these changes."""
    return {name: fault for name, fault in changes.out.items() if fault.state == "draining" and name not in known.told}


def plan_affected(receiver: Receiver, drained: Mapping[str, Fault], silent: frozenset[str], jobs: Iterable[Job]) -> list[News]:
    """What a receiver is told of the jobs on these nodes: one message a user, and one that counts the users beyond `MOST`."""
    jobs_by_user: dict[str, list[Job]] = {}
    for job in jobs:
        is_asked = receiver.wants_jobs and receiver.name in asked(job.comment)
        if is_asked and is_chosen(receiver, job.account, job.user, job.partition) and not job.nodes.isdisjoint(drained):
            jobs_by_user.setdefault(job.user, []).append(job)
    news = [News(EVENT, affected=_of_user(user, jobs_by_user[user], drained, silent)) for user in sorted(jobs_by_user)]
    return news if len(news) <= MOST else [*news[:MOST], News(EVENT, more_users=len(news) - MOST)]


def _of_user(user: str, jobs: Iterable[Job], drained: Mapping[str, Fault], silent: frozenset[str]) -> Affected:
    nodes = frozenset[str]().union(*(job.nodes for job in jobs))
    faults = {name: fault for name, fault in drained.items() if name in nodes}
    return Affected(user, tuple(job.id for job in jobs), faults, not silent.isdisjoint(faults))
