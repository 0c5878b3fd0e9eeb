"""Windows of maintenance and the jobs that they meet: read from Slurm's own commands, and what becomes of each job. Pure.

A window is a reservation with the flag MAINT, or one whose name begins with a prefix of the config. A job meets it when it runs on a node
of it and may still run when it starts. programs/maintenance acts by this, and `slipway maintenance` shows it beforehand.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from slurm import reasons
from slurm.hostlists import HostlistError, expand
from slurm.job_marks import Marks, read_marks, window_mark
from slurm.squeue import ReadingError, format_option, leader_of, read_rows

RESERVATION_COMMAND = ("scontrol", "show", "reservation", "--oneliner")
"""Its JSON leaves the comment out. Times are to be seconds since 1970, here and below: SLURM_TIME_FORMAT=%s."""
_STATES = "RUNNING,SUSPENDED,CONFIGURING,STOPPED,SIGNALING,STAGE_OUT,RESIZING"
_FIELDS = (
    *("JobID", "JobArrayID", "HetJobID", "State", "NodeList", "EndTime", "UserName", "Account", "Partition"),
    *("BatchFlag", "Requeue", "Reservation", "Comment", "admin_comment"),
)
_RESERVATION = re.compile(r"ReservationName=(\S+) StartTime=(\d+) EndTime=(\d+) .*? Nodes=(\S+) .*? Flags=(\S*) .*?(?: Comment=(.*))?$")
_NONE = "No reservations in the system"
ANNOUNCED = "slipway-event-"
"""Begins the names of the NodeSet controller's reservations, before a node's name: for announced maintenance of the node's machine."""

Requeue = Literal["Declared", "Allowed", "Never"]
Fate = Literal["ends before", "requeued", "runs on"]


@dataclass(frozen=True)
class Policy:
    """The part of the config's `maintenance` that decisions need."""

    warn_before_s: int = 3600
    requeue_before_s: int = 60
    signal: str = "URG"
    """Empty: no signal."""
    requeue: Requeue = "Declared"
    """Which batch jobs are requeued: those that declared it, every job that Slurm may requeue (Requeue=1), or none."""
    comment_word: str = "requeue-for-maintenance"
    """The word in a job's --comment that declares it."""
    reservation_prefix: str = ""
    """Reservations whose names begin so are windows, too; empty: only those with the flag MAINT."""


@dataclass(frozen=True)
class Window:
    """A reservation for maintenance. Times are seconds since 1970."""

    name: str
    start: int
    end: int
    nodes: frozenset[str]

    @property
    def mark(self) -> str:
        return window_mark(self.name, self.start)


@dataclass(frozen=True)
class Job:
    """A job that has nodes. The parts of a heterogeneous job are one job: Slurm requeues them together."""

    id: str
    """As scontrol and scancel take it: 12, 12_3, and the leader's number of a heterogeneous job."""
    nodes: frozenset[str]
    ends_at: int | None
    """The latest that its time limit allows; None without a limit, and for a job that is suspended."""
    user: str = ""
    account: str = ""
    partition: str = ""
    is_batch: bool = True
    may_requeue: bool = True
    """Slurm's Requeue=1: the cluster's default, unless the job said otherwise."""
    reservation: str = ""
    comment: str = ""
    admin_comment: str = ""

    @property
    def marks(self) -> Marks:
        return read_marks(self.admin_comment)


def write_policy(policy: Policy) -> str:
    """The argument of programs/maintenance; components/control_plane.py sets it."""
    return json.dumps(vars(policy), sort_keys=True)


def read_policy(text: str) -> Policy:
    """Reads what `write_policy` wrote. Raises ReadingError."""
    try:
        return Policy(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise ReadingError(f"no policy of maintenance: {error}") from None


def read_windows(text: str, prefix: str = "") -> tuple[Window, ...]:
    """The windows in what RESERVATION_COMMAND prints; those of health checks are none. Raises ReadingError."""
    if not text.strip() or text.strip() == _NONE:
        return ()
    windows: list[Window] = []
    for line in text.splitlines():
        if not line.startswith("ReservationName="):
            continue  # the second line of somebody's comment
        found = _RESERVATION.match(line)
        if found is None:
            raise ReadingError(f"scontrol's reservation is not what 26.05 gives: {line[:120]!r}")
        name, start, end, nodes, flags, comment = found.groups()
        is_window = "MAINT" in flags.split(",") or (prefix and name.startswith(prefix))
        if is_window and nodes != "(null)" and not reasons.is_check(comment or ""):
            windows.append(Window(name, int(start), int(end), _names(nodes)))
    return tuple(windows)


def joined(windows: Iterable[Window]) -> tuple[Window, ...]:
    """The windows, those for announced maintenance that begin together as one: a job on many such nodes is warned of it once."""
    found: dict[tuple[str, int], Window] = {}
    for window in windows:
        name = ANNOUNCED.rstrip("-") if window.name.startswith(ANNOUNCED) else window.name
        before = found.get((name, window.start))
        end, nodes = (max(before.end, window.end), before.nodes | window.nodes) if before is not None else (window.end, window.nodes)
        found[name, window.start] = Window(name, window.start, end, nodes)
    return tuple(found.values())


def job_command(end: str) -> tuple[str, ...]:
    """The command that lists the jobs that have nodes; `end` is what ends a field. Times as of RESERVATION_COMMAND."""
    return ("squeue", "--noheader", "--all", "--local", f"--states={_STATES}", format_option(_FIELDS, end))


def read_job_rows(text: str, end: str) -> list[dict[str, str]]:
    """The fields of the jobs in what `job_command` prints, as they may travel. Raises ReadingError."""
    return list(read_rows(text, _FIELDS, end))


def jobs_of(rows: Iterable[Mapping[str, str]]) -> tuple[Job, ...]:
    """The jobs. Raises ReadingError for rows of another release."""
    parts: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        if missing := [field for field in _FIELDS if field not in row]:
            raise ReadingError(f"a job has no {', '.join(missing)}")
        parts.setdefault(leader_of(row) or row["JobArrayID"], []).append(row)
    return tuple(_job(number, found) for number, found in parts.items() if any(row["NodeList"] for row in found))


def meets(job: Job, window: Window) -> bool:
    """True when the job is on a node of the window and may still run when it starts."""
    is_inside = bool(job.reservation) and job.reservation == window.name  # Slurm let it in: it is part of the maintenance
    return bool(job.nodes & window.nodes) and not is_inside and (job.ends_at is None or job.ends_at > window.start)


def is_requeued(job: Job, policy: Policy) -> bool:
    """True when the job is to be requeued where it meets a window. Slurm requeues batch jobs alone, and none with --no-requeue."""
    if not (job.is_batch and job.may_requeue) or policy.requeue == "Never":
        return False
    word = policy.comment_word
    said = bool(word) and word in re.split(r"[\s,;]+", job.comment)
    return policy.requeue == "Allowed" or job.marks.asked_for_requeue or said


def fate(job: Job, window: Window, policy: Policy) -> Fate:
    """What becomes of a job on a node of the window."""
    if not meets(job, window):
        return "ends before"
    return "requeued" if is_requeued(job, policy) else "runs on"


def _job(number: str, rows: Sequence[Mapping[str, str]]) -> Job:
    leader = next((row for row in rows if row["JobID"] == number), rows[0])
    ends = [int(row["EndTime"]) if row["EndTime"].isdecimal() and row["State"] != "SUSPENDED" else None for row in rows]
    known = [end for end in ends if end is not None]
    return Job(
        id=number,
        nodes=frozenset[str]().union(*(_names(row["NodeList"]) for row in rows)),
        ends_at=max(known) if len(known) == len(ends) else None,
        user=leader["UserName"],
        account="" if leader["Account"] == "(null)" else leader["Account"],
        partition=leader["Partition"],
        is_batch=any(row["BatchFlag"] == "1" for row in rows),
        may_requeue=all(row["Requeue"] == "1" for row in rows),
        reservation="" if leader["Reservation"] == "(null)" else leader["Reservation"],
        comment="" if leader["Comment"] == "(null)" else leader["Comment"],
        admin_comment=leader["admin_comment"],
    )


def _names(hostlist: str) -> frozenset[str]:
    try:
        return frozenset(expand(hostlist))
    except HostlistError as error:
        raise ReadingError(str(error)) from None


def met(jobs: Iterable[Job], window: Window) -> list[Job]:
    """The jobs that meet a window."""
    return [job for job in jobs if meets(job, window)]
