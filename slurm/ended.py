"""What has ended, as sacct is asked for it: by the collector of metrics, and by the program that tells people. Pure.

slurmctld hands a job's end to slurmdbd a moment later. So each reading looks back a while, and knows the ends from there that it has had.
"""

LOOK_BACK_S = 300
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


def pause_s(took_s: float, interval_s: float) -> float:
    """Seconds until the next reading of Slurm, after one that took so long, well or not."""
    return min(max(interval_s, _PAUSES * took_s), max(interval_s, LONGEST_PAUSE_S))
