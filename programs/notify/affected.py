"""Finds users whose running jobs are on newly drained nodes and ask for news in their comment (`notify:NAME`). Pure.

Nodes that are down are left out: Slurm ends their jobs, which is news of its own. A drain is reported once, even if its reason changes; the
next one is reported once the node was back in service.
"""

from collections.abc import Iterable, Mapping

from slurm.maintenance import Job

from .nodes import Changes, Fault, Known
from .plan import MOST, Affected, News, is_chosen
from .runs import asked
from .settings import Receiver

EVENT = "jobDrain"


def newly_drained(known: Known, changes: Changes) -> dict[str, Fault]:
    """Nodes that were drained under jobs since `known`, the state before these changes."""
    return {name: fault for name, fault in changes.out.items() if fault.state == "draining" and name not in known.told}


def plan_affected(receiver: Receiver, drained: Mapping[str, Fault], silent: frozenset[str], jobs: Iterable[Job]) -> list[News]:
    """A receiver's news of jobs on these nodes: one message per user, and one that counts the users beyond `MOST`."""
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
