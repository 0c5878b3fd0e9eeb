"""Jobs that have ended, and how to ask sacct for them: for the collector of metrics and for notifications. Pure.

slurmctld hands ends to slurmdbd late, so each reading looks back a while and skips known ends; after an outage to its beginning (Gap).
"""

from slurm.records import record

LOOK_BACK_S = 300
LATE_S = 900
"""Seconds after slurmdbd's return in which readings still look for jobs that ended while it was away.

slurmctld tries again every few seconds, and hands over thousands of them in a minute.
"""
FORGET_S = 86_400
"""Seconds after which readings no longer look for an ended job."""
STATES = ("BF", "CA", "CD", "DL", "F", "NF", "OOM", "PR", "RQ", "RV", "TO")
"""Of runs that are over, in sacct's short words. Without `--endtime`, `--state` asks for the states at the start."""
ENDED = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
        *("RECONFIG_FAIL", "REVOKED", "TIMEOUT"),
    }
)
"""The same in full, and those of jobs that never ran."""
LONGEST_PAUSE_S = 60.0
_PAUSES = 50
"""A reading may take 2 % of the time, and no more: a large cluster is read less often."""


@record
class Gap:
    """An outage of readings of ended jobs. slurmctld hands over what ended during it once slurmdbd is back, little by little."""

    since: float
    """Ends from here on may come late. In seconds since 1970, as the next."""
    over: float | None = None
    """When there was an answer again."""


def gap_after_failure(gap: Gap | None, since: float, now: float) -> Gap:
    """After a reading that failed; the last one that did not was at `since`."""
    return Gap(max(min(since, now) if gap is None else gap.since, now - FORGET_S))


def gap_after_answer(gap: Gap | None, now: float) -> Gap | None:
    """After a reading; None once nothing comes late any more."""
    if gap is None or (gap.over is not None and now - gap.over > LATE_S):
        return None
    return Gap(gap.since, now if gap.over is None else min(gap.over, now))


def back_to(since: float, gap: Gap | None, now: float) -> float:
    """From when on ends are looked for, where the last reading was at `since`."""
    return (since if gap is None else min(since, max(gap.since, now - FORGET_S))) - LOOK_BACK_S


def pause_s(took_s: float, interval_s: float) -> float:
    """Seconds until the next reading of Slurm, after one that took so long, well or not."""
    return min(max(interval_s, _PAUSES * took_s), max(interval_s, LONGEST_PAUSE_S))
