"""Whom to warn, and whom to requeue, for windows of maintenance. Pure.

A warning is noted in the job's record before it is sent: killed in between, a job may miss it, and is never warned twice. A job is requeued
only if an earlier reading shows that it was warned of the same window. So a window that was not announced, such as one that starts at once,
requeues nothing. A requeue is asked for again until the job is gone from its nodes.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from slurm.hostlists import fold
from slurm.job_marks import with_warning
from slurm.maintenance import Job, Policy, Window, is_requeued, joined, meets


@dataclass(frozen=True)
class Actions:
    """What to do, in this order."""

    requeue: tuple[str, ...] = ()
    """Jobs."""
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Jobs by the AdminComment that they get."""
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    """What `scontrol notify` says, by job. The same jobs get the policy's signal."""


def are_near(windows: Iterable[Window], now: float, policy: Policy) -> bool:
    """True when jobs have to be read: a window is within the lead time, or has begun."""
    return any(now < window.end and now >= window.start - policy.warn_before_s for window in windows)


def plan_maintenance(jobs: Iterable[Job], windows: Iterable[Window], now: float, policy: Policy) -> Actions:
    """One round. `now` is the time of the reading, in seconds since 1970."""
    near = sorted((each for each in joined(windows) if are_near([each], now, policy)), key=lambda each: (each.start, each.name))
    requeue: list[str] = []
    notes: dict[str, tuple[str, ...]] = {}
    words: dict[str, str] = {}
    for job in jobs:
        met = [window for window in near if meets(job, window)]
        warned = job.marks.warned
        if is_requeued(job, policy) and any(window.mark in warned and now >= window.start - policy.requeue_before_s for window in met):
            requeue.append(job.id)
            continue
        if news := [window for window in met if window.mark not in warned and now < window.start]:
            comment = with_warning(job.admin_comment, (window.mark for window in news), {window.mark for window in met})
            notes[comment] = (*notes.get(comment, ()), job.id)
            words[job.id] = warning(job, news[0], policy)
    return Actions(tuple(requeue), notes, words)


def warning(job: Job, window: Window, policy: Policy) -> str:
    """What the job's user reads, on one line."""
    about = f"Maintenance {window.name} of {fold(job.nodes & window.nodes)} starts at {_time(window.start)}."
    if is_requeued(job, policy):
        return f"{about} This job is requeued at {_time(window.start - policy.requeue_before_s)} and starts again on other nodes or later."
    return f"{about} This job may still run then, and is not requeued by itself. Save its work."


def _time(at: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))
