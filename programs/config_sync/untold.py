"""Jobs that slurmctld gave nodes and then told no node of, and what becomes of them. Pure.

What slurmctld starts between the word to read its files and its new process may be lost on the way: the new process has the job as RUNNING
with the reason Prolog, and waits for a prolog that no node was asked for. It waits for ever, and so does the job's srun (measured on
26.05.5). Such a job has run nothing: a batch job can start once more without harm, also one with --no-requeue. srun and salloc cannot be
requeued: theirs end, with words.

Unknown is busy: a job is left alone until its nodes' prologs must be over, all its nodes answer, and none of them knows a step of it that
may do a user's work.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from slurm.hostlists import HostlistError, expand
from slurm.job_marks import read_marks, write_marks
from slurm.states import NodeState, is_registered

SLACK_S = 30.0
"""Seconds beyond the prologs' own time until a prolog must have been heard of: slurmctld's MessageTimeout by default."""
_FIELDS = ("JobID", "HetJobID", "State", "Reason", "StartTime", "BatchFlag", "Requeue", "NodeList", "admin_comment")
_BETWEEN = "\x1f"
COMMAND = (
    *("squeue", "--noheader", "--all", "--local"),
    f"--Format={','.join(f'{field}:0{_BETWEEN}' for field in _FIELDS)}",
)
"""Lists jobs, in the states that --states adds; with SLURM_TIME_FORMAT=%s."""
RUNNING = "RUNNING"
ALL = "RUNNING,COMPLETING,PENDING"
WHY = "slurmctld took over changed files in the moment the job started, and no node was told of it"
AGAIN = f"started again by Slipway: {WHY}"
ENDED = f"ended by Slipway: {WHY}. It has run nothing: please start it again"


class ReadingError(ValueError):
    """The text is no answer of Slurm's that is known here."""


@dataclass(frozen=True)
class Job:
    """A job as slurmctld has it."""

    id: str
    """Its number, also of a task of an array."""
    is_running: bool
    reason: str
    started: int | None
    """Seconds since 1970."""
    nodes: frozenset[str]
    is_batch: bool
    may_requeue: bool
    is_part: bool = False
    """It is one of a heterogeneous job's."""
    admin_comment: str = ""


@dataclass(frozen=True)
class Plan:
    """What is to be done, by jobs."""

    requeue: tuple[Job, ...] = ()
    end: tuple[Job, ...] = ()
    give_back: tuple[Job, ...] = ()
    """They may be requeued only because an earlier round lent them that."""
    left: tuple[Job, ...] = ()
    """Nodes know of a part of them, or they are parts of heterogeneous jobs: an administrator has to look."""
    later: tuple[Job, ...] = ()
    """Their nodes do not answer now."""


def read_jobs(text: str) -> tuple[Job, ...]:
    """The jobs in what COMMAND prints. Raises ReadingError."""
    jobs: list[Job] = []
    for line in text.splitlines():
        values = [value.strip() for value in line.split(_BETWEEN)]
        if len(values) != len(_FIELDS) + 1:
            raise ReadingError(f"squeue's line has not {len(_FIELDS)} fields: {line[:120]!r}")
        row = dict(zip(_FIELDS, values, strict=False))
        try:
            nodes = frozenset(expand(row["NodeList"]))
        except HostlistError as error:
            raise ReadingError(str(error)) from None
        jobs.append(
            Job(
                id=row["JobID"],
                is_running=row["State"] == "RUNNING",
                reason=row["Reason"],
                started=int(row["StartTime"]) if row["StartTime"].isdecimal() else None,
                nodes=nodes,
                is_batch=row["BatchFlag"] == "1",
                may_requeue=row["Requeue"] == "1",
                is_part=row["HetJobID"].isdecimal() and row["HetJobID"] != "0",
                admin_comment=row["admin_comment"],
            )
        )
    return tuple(jobs)


def find_waiting(jobs: Iterable[Job], boot: int) -> tuple[Job, ...]:
    """Jobs that wait for the prologs of their nodes since before slurmctld's process started, at `boot` seconds since 1970."""
    return tuple(job for job in jobs if job.is_running and job.reason == "Prolog" and job.started is not None and job.started <= boot)


def plan_untold(jobs: Sequence[Job], waiting: Sequence[Job], steps: Iterable[str], nodes: Mapping[str, NodeState]) -> Plan:
    """What becomes of jobs that wait although their nodes' prologs must be over. `steps` are those that nodes know of, as `12.extern`."""
    working = {job for job, _, step in (each.partition(".") for each in steps) if not re.match(r"extern\b", step)}
    left = [job for job in waiting if job.is_part or job.id in working]
    later = [job for job in waiting if job not in left and not all(name in nodes and is_registered(nodes[name]) for name in job.nodes)]
    sure = [job for job in waiting if job not in left and job not in later]
    return Plan(
        requeue=tuple(job for job in sure if job.is_batch),
        end=tuple(job for job in sure if not job.is_batch),
        give_back=tuple(job for job in jobs if job.may_requeue and is_lent(job) and job not in waiting),
        left=tuple(left),
        later=tuple(later),
    )


def is_lent(job: Job) -> bool:
    """True where a job may be requeued, or is to be, by a right that is not its own."""
    return not job.may_requeue or read_marks(job.admin_comment).lent_requeue


def lending(job: Job) -> str:
    """The AdminComment with which a job is lent the right to be requeued."""
    return write_marks(replace(read_marks(job.admin_comment), text=AGAIN, lent_requeue=True))


def noted(job: Job, text: str = AGAIN) -> str:
    """The AdminComment that tells what became of a job; a right to be requeued that it was lent is no longer noted."""
    return write_marks(replace(read_marks(job.admin_comment), text=text, lent_requeue=False))
