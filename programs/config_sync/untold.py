"""Jobs that slurmctld gave nodes without telling any node, and what becomes of them (docs/explain/slurm-facts.md). Pure.

Unknown is busy. A job is left alone while its nodes' prologs may still run, or while a node does not answer or knows a step of it. After
the prologs, a node that has heard of the job has at least the extern step.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

from slurm.hostlists import HostlistError, expand
from slurm.job_marks import read_marks, write_marks
from slurm.squeue import ReadingError, format_option, leader_of, read_rows
from slurm.states import NodeState, is_registered

_FIELDS = ("JobID", "JobArrayID", "HetJobID", "State", "Reason", "StartTime", "BatchFlag", "Requeue", "NodeList", "admin_comment")
_WHY = "slurmctld restarted just as the job started, as it also does to read changed files, and told no node of the job"
AGAIN = f"started again by Slipway: {_WHY}"
ENDED = f"ended by Slipway: {_WHY}. It has run nothing: please start it again"


@dataclass(frozen=True)
class Job:
    """A job as slurmctld has it."""

    number: str
    """Its own number, as sstat has it. One task of each array has the array's own number, which means all its tasks elsewhere."""
    id: str
    """As scontrol and scancel take this job and no other: 12, or 12_3."""
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

    @property
    def run(self) -> tuple[str, int | None]:
        """Identifies this start of the job, and no later one."""
        return self.number, self.started


def command(end: str) -> tuple[str, ...]:
    """Lists jobs that have not ended, with SLURM_TIME_FORMAT=%s; `end` is what ends a field."""
    return ("squeue", "--noheader", "--all", "--local", format_option(_FIELDS, end))


def read_jobs(text: str, end: str) -> tuple[Job, ...]:
    """The jobs in what `command` prints. Raises ReadingError."""
    jobs: list[Job] = []
    for row in read_rows(text, _FIELDS, end):
        try:
            nodes = frozenset(expand(row["NodeList"]))
        except HostlistError as error:
            raise ReadingError(str(error)) from None
        jobs.append(
            Job(
                number=row["JobID"],
                id=row["JobArrayID"],
                is_running=row["State"] == "RUNNING",
                reason=row["Reason"],
                started=int(row["StartTime"]) if row["StartTime"].isdecimal() else None,
                nodes=nodes,
                is_batch=row["BatchFlag"] == "1",
                may_requeue=row["Requeue"] == "1",
                is_part=leader_of(row) is not None,
                admin_comment=row["admin_comment"],
            )
        )
    return tuple(jobs)


def find_waiting(jobs: Iterable[Job], boot: int) -> tuple[Job, ...]:
    """Jobs that wait for the prologs of their nodes, and started before slurmctld's process did, at `boot` seconds since 1970."""
    return tuple(job for job in jobs if job.is_running and job.reason == "Prolog" and job.started is not None and job.started <= boot)


def all_nodes_answer(job: Job, nodes: Mapping[str, NodeState]) -> bool:
    """True if each of the job's nodes exists and answers."""
    return all(name in nodes and is_registered(nodes[name]) for name in job.nodes)


def is_lost(job: Job, known: Container[str]) -> bool:
    """True for a job of which no node knows a step; `known` are the numbers of jobs with one. Parts of heterogeneous jobs are not judged
    alone."""
    return not job.is_part and job.number not in known


def find_lent(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Jobs that a killed run has lent the right to be requeued."""
    return tuple(job for job in jobs if job.may_requeue and read_marks(job.admin_comment).lent_requeue)


def needs_right(job: Job) -> bool:
    """True if a job has no right of its own to be requeued."""
    return not job.may_requeue or read_marks(job.admin_comment).lent_requeue


def lending(comment: str) -> str:
    """The AdminComment of a job that is lent the right to be requeued."""
    return write_marks(replace(read_marks(comment), lent_requeue=True))


def noted(comment: str, text: str = "") -> str:
    """The AdminComment with `text` after what others have written, and without a lent right."""
    marks = read_marks(comment)
    parts = [marks.text, *([text] if text not in marks.text else [])]
    return write_marks(replace(marks, text="; ".join(filter(None, parts)), lent_requeue=False))
