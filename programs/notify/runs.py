"""Reads ended runs from sacct, with the variables that slurmctld gives to MailProg, so that programs/mail can describe them. Pure.

A random word separates sacct's fields, as a job's name or comment may have any byte and must not forge rows.
"""

import re
from collections.abc import Mapping

from slurm.ended import ENDED, STATES
from slurm.listed import count_tasks
from slurm.records import record
from slurm.scontrol import AnswerError

FIELDS = (
    *("JobID", "JobName", "User", "Account", "Partition", "State", "ExitCode", "Start", "End", "Elapsed", "Planned", "Restarts"),
    *("NodeList", "WorkDir", "StdOut", "StdErr", "Comment"),
)
REQUEUED = "REQUEUED"
QUIET = frozenset({"COMPLETED", "CANCELLED", "REVOKED", REQUEUED})
"""States of runs that did not fail."""
_ASKS = "notify:"
"""Prefix of the word in a job's comment that names a receiver."""


@record
class Run:
    """One ended run. A requeued job has several. Tasks of an array that were cancelled while waiting are one run."""

    number: str
    """The job's number as users know it: `17`, `15_2`, `15_[3-9]`, `17+1`."""
    state: str
    start: str
    end: int
    partition: str
    account: str
    user: str
    asked: frozenset[str]
    """Receivers that the job's comment names."""
    job: Mapping[str, str]
    """The variables that MailProg would get."""

    @property
    def key(self) -> "tuple[str, str, int]":
        """Identifies this run."""
        return self.number, self.start, self.end

    @property
    def array(self) -> str:
        """The number of the array; empty for a single job."""
        head, line, _ = self.number.partition("_")
        return head if line else ""

    @property
    def tasks(self) -> int:
        """The number of tasks in this run."""
        return count_tasks(self.number)


def command(since: float, until: float, between: str) -> tuple[str, ...]:
    """Lists runs that ended in this time; --duplicates adds requeued runs. Run it with SLURM_TIME_FORMAT=%s, for times in seconds."""
    return (
        *("sacct", "--allusers", "--allocations", "--duplicates", "--noheader", "--parsable", f"--delimiter={between}"),
        *(f"--starttime=uts{int(since)}", f"--endtime=uts{int(until)}", f"--state={','.join(STATES)}", f"--format={','.join(FIELDS)}"),
    )


LIVE_COMMAND = ("squeue", "--noheader", "--all", "--local", "--states=all", "--format=%F %T")


def read_runs(text: str, between: str, cluster: str) -> list[Run]:
    """Reads sacct's rows. Raises AnswerError for a text with other content."""
    *values, trailing = text.split(between)
    if trailing.strip() or len(values) % len(FIELDS):
        raise AnswerError(f"sacct's answer has {len(values)} values and {trailing[:80]!r}, which are not rows of {len(FIELDS)} fields")
    rows = (dict(zip(FIELDS, values[at : at + len(FIELDS)], strict=True)) for at in range(0, len(values), len(FIELDS)))
    # The newline after a row is part of the next row's first field.
    return [_run({**row, "JobID": row["JobID"].strip()}, cluster) for row in rows if row["End"].isdecimal()]


def _run(row: Mapping[str, str], cluster: str) -> Run:
    state = row["State"].partition(" ")[0]  # CANCELLED by 10001
    array, _, task = row["JobID"].partition("_")
    job = {
        "SLURM_JOB_ID": row["JobID"],
        **({"SLURM_ARRAY_JOB_ID": array, "SLURM_ARRAY_TASK_ID": task} if task else {}),
        "SLURM_JOB_NAME": row["JobName"],
        "SLURM_JOB_USER": row["User"],
        "SLURM_JOB_ACCOUNT": row["Account"],
        "SLURM_JOB_PARTITION": row["Partition"],
        "SLURM_JOB_STATE": state,
        "SLURM_JOB_MAIL_TYPE": "Requeued" if state == REQUEUED else "Ended" if state in QUIET else "Failed",
        "SLURM_JOB_EXIT_CODE2": row["ExitCode"],
        "SLURM_JOB_NODELIST": "" if row["NodeList"] == "None assigned" else row["NodeList"],
        "SLURM_JOB_QUEUED_TIME": row["Planned"],
        "SLURM_JOB_RUN_TIME": row["Elapsed"],
        "SLURM_JOB_RESTART_COUNT": row["Restarts"],
        "SLURM_JOB_WORK_DIR": row["WorkDir"],
        "SLURM_JOB_STDOUT": row["StdOut"],
        "SLURM_JOB_STDERR": row["StdErr"],
        "SLURM_CLUSTER_NAME": cluster,
    }
    return Run(
        row["JobID"], state, row["Start"], int(row["End"]), row["Partition"], row["Account"], row["User"], asked(row["Comment"]), job
    )


def asked(comment: str) -> frozenset[str]:
    """Receivers that a job's comment names."""
    words = re.split(r"[\s,;]+", comment)
    return frozenset(word.removeprefix(_ASKS) for word in words if word.startswith(_ASKS))


def live_arrays(text: str) -> frozenset[str]:
    """Arrays with a task that waits or runs, from squeue's lines of array and state."""
    rows = (line.split() for line in text.splitlines())
    return frozenset(row[0] for row in rows if len(row) == 2 and row[1] not in ENDED)
