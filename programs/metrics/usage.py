"""Counts GPU and processor time of ended jobs by account and result, from sacct, or from squeue without accounting. Pure.

Each run of a job counts once. A job's end may reach slurmdbd late, so readings overlap. Jobs that ended before this process began do not
count.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from slurm.ended import STATES
from slurm.scontrol import AnswerError
from slurm.tres import count_tres

from .jobs import Ended, account_name
from .text import Bounded, Family, Values

FIELDS = ("JobIDRaw", "Account", "State", "ElapsedRaw", "AllocTRES", "Start", "End")
_RESULTS = {
    "COMPLETED": "completed",
    "NODE_FAIL": "node_fail",
    "BOOT_FAIL": "node_fail",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "CANCELLED": "cancelled",
    "REVOKED": "cancelled",
    "OUT_OF_MEMORY": "out_of_memory",
    "PREEMPTED": "preempted",
    "REQUEUED": "requeued",
}
"""All others have failed."""


def command(since: float) -> tuple[str, ...]:
    """Lists runs that ended since then. --state needs --endtime, else it matches states at the start. --duplicates adds requeued runs."""
    return (
        *("sacct", "--allusers", "--allocations", "--duplicates", "--noheader", "--parsable2"),
        *(f"--starttime=uts{int(since)}", "--endtime=now", f"--state={','.join(STATES)}", f"--format={','.join(FIELDS)}"),
    )


def read_ended(text: str) -> Iterator[Ended]:
    """Reads sacct's lines, with times in seconds since 1970. A job that never had nodes has no times. Raises AnswerError."""
    for line in text.splitlines():
        values = line.split("|")
        if len(values) != len(FIELDS):
            raise AnswerError(f"sacct's answer has a line that has not {len(FIELDS)} fields: {line[:80]!r}")
        number, account, state, elapsed, tres, start, end = values
        if elapsed.isdecimal() and start.isdecimal() and end.isdecimal():
            cpus, gpus = count_tres(tres, "cpu"), count_tres(tres, "gres/gpu")
            yield Ended((number, int(start), int(end)), account_name(account), state.partition(" ")[0], int(elapsed), cpus, gpus)


class Usage:
    """The counters of one process."""

    def __init__(self, began: float, most_accounts: int) -> None:
        self._began = began
        self._account = Bounded(most_accounts)
        self._counted: set[tuple[str, int, int]] = set()
        self._gpu_s: Counter[Values] = Counter()
        self._cpu_s: Counter[Values] = Counter()

    def add(self, ended: Iterable[Ended], since: float) -> None:
        """Adds the runs that ended since then and are not counted yet."""
        self._counted = {key for key in self._counted if key[2] >= since}
        for run in ended:
            if run.end < max(since, self._began) or run.key in self._counted:
                continue
            self._counted.add(run.key)
            values = self._account(run.account), _RESULTS.get(run.state, "failed")
            self._cpu_s[values] += run.cpus * run.seconds
            self._gpu_s[values] += run.gpus * run.seconds

    def families(self) -> list[Family]:
        labels = ("account", "result")
        return [
            Family("slipway_job_gpu_seconds_total", "GPU time of jobs that have ended.", labels, dict(self._gpu_s), "counter"),
            Family("slipway_job_cpu_seconds_total", "Processor time of jobs that have ended.", labels, dict(self._cpu_s), "counter"),
        ]
