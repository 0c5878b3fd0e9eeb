"""Metrics of waiting and running jobs, from one squeue: by partition, reason and account, never by user. Pure.

`--states=all` also lists jobs that ended within MinJobAge, so a job that starts and ends between two readings is seen.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from slurm.ended import ENDED
from slurm.scontrol import AnswerError
from slurm.tres import count_tres

from .text import OTHER, Family, Histogram, Values, largest

FIELDS = (
    *("JobArrayID", "State", "Partition", "Account", "NumCPUs", "NumNodes", "EligibleTime", "StartTime", "EndTime"),
    *("tres-alloc", "tres-per-job", "tres-per-node", "Reason"),
)
_BETWEEN = "\x1f"
COMMAND = (
    *("squeue", "--noheader", "--all", "--local", "--states=all"),
    f"--Format={','.join(f'{field}:0{_BETWEEN}' for field in FIELDS)}",
)
"""Run it with SLURM_TIME_FORMAT=%s, for times in seconds since 1970, and SLURM_BITSTR_LEN=0, for complete arrays."""
_STATES = frozenset(
    {
        *("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "EXPEDITING", "POWER_UP_NODE", "REQUEUED", "REQUEUE_FED"),
        *("REQUEUE_HOLD", "RESIZING", "RESV_DEL_HOLD", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "UPDATE_DB"),
    }
)
_HAS_NODES = frozenset({"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT"})
_REASON = re.compile(r"[A-Za-z]\w*", re.ASCII)
_OWN_WISH = ("BeginTime", "Dependency", "JobArrayTaskLimit", "JobHeld", "DependencyNeverSatisfied")
"""Prefixes of reasons for which a job would not start on an empty cluster either: its user or an administrator holds it."""
_OWN_LIMIT = ("Assoc", "QOS", "MaxCpu", "MaxGRES", "MaxMem", "MaxNode")
"""Prefixes of reasons of a job that waits for a limit of its user, account or QOS, not for resources."""
_MOST_REASONS = 50
WAIT_BOUNDS = (1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600)


class Job(NamedTuple):
    """One line of squeue: a job, a task of an array, or all waiting tasks of an array."""

    number: str
    state: str
    partition: str
    account: str
    cpus: int
    gpus: int
    eligible: int | None
    start: int | None
    end: int | None
    reason: str
    tasks: int = 1


@dataclass(frozen=True, slots=True)
class Ended:
    """One run of a job that ended."""

    key: tuple[str, int, int]
    """The job's number, start and end: a requeued job has several runs."""
    account: str
    state: str
    seconds: int
    cpus: int
    gpus: int

    @property
    def end(self) -> int:
        return self.key[2]


def read_jobs(text: str) -> Iterator[Job]:
    """Reads squeue's lines. Raises AnswerError for a line without all fields."""
    for line in text.split("\n"):  # splitlines also ends a line at rarer characters, which a reason may have
        if not line:
            continue
        values = [value.strip() for value in line.split(_BETWEEN)]
        if len(values) != len(FIELDS) + 1:
            raise AnswerError(f"squeue's answer has a line that has not {len(FIELDS)} fields: {line[:80]!r}")
        yield _job(dict(zip(FIELDS, values, strict=False)))


def job_metrics(jobs: Iterable[Job], now: float, most_accounts: int) -> list[Family]:
    """All gauges of jobs that have not ended. `now` is in seconds since 1970."""
    by_state: Counter[Values] = Counter()
    reasons: Counter[Values] = Counter()
    waits: dict[Values, float] = {}
    account_jobs: Counter[Values] = Counter()
    cpus: Counter[str] = Counter()
    gpus: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for job in jobs:
        if job.state in ENDED:
            continue
        state = job.state.lower() if job.state in _STATES else OTHER
        by_state[job.partition, state] += job.tasks
        account_jobs[job.account, state] += job.tasks
        sizes[job.account] += 1
        if job.state == "PENDING":
            reasons[job.partition, job.reason] += job.tasks
            waited = waits.get((job.partition,), 0.0)
            waits[(job.partition,)] = max(waited, waited_s(job, now))
        elif job.state in _HAS_NODES:
            cpus[job.account] += job.cpus
            gpus[job.account] += job.gpus
            sizes[job.account] += job.cpus
    shown = largest(sizes, most_accounts)
    known = largest(_by(reasons, 1), _MOST_REASONS)
    account = ("account",)
    return [
        Family("slipway_jobs", "Jobs by state; each task of an array counts.", ("partition", "state"), by_state),
        Family(
            "slipway_pending_jobs",
            "Jobs that wait, by Slurm's reason.",
            ("partition", "reason"),
            _merged(reasons, lambda values: (values[0], values[1] if values[1] in known else OTHER)),
        ),
        Family(
            "slipway_queue_wait_seconds",
            "How long the job has waited that waits longest for room: neither held, nor dependent, nor at a limit of its own.",
            ("partition",),
            waits,
        ),
        Family(
            "slipway_account_jobs",
            "Jobs by account.",
            ("account", "state"),
            _merged(account_jobs, lambda values: (values[0] if values[0] in shown else OTHER, values[1])),
        ),
        Family("slipway_account_cpus", "Processors that an account's jobs have.", account, _by_account(cpus, shown)),
        Family("slipway_account_gpus", "GPUs that an account's jobs have.", account, _by_account(gpus, shown)),
    ]


def waited_s(job: Job, now: float) -> float:
    """Seconds that a job has waited for resources; 0 if it waits for something else."""
    if job.eligible is None or job.eligible > now or job.reason.startswith((*_OWN_WISH, *_OWN_LIMIT)):
        return 0.0
    return now - job.eligible


def ended_runs(jobs: Iterable[Job]) -> Iterator[Ended]:
    """Runs of ended jobs that squeue still lists. A job that never started has none."""
    for job in jobs:
        if job.state in ENDED and has_started(job) and job.start is not None and job.end is not None:
            yield Ended((job.number, job.start, job.end), job.account, job.state, job.end - job.start, job.cpus, job.gpus)


def has_started(job: Job) -> bool:
    """True for a job that has, or had, nodes. If a waiting job is cancelled, Slurm sets its start and end to that time."""
    if job.start is None or (job.state not in ENDED and job.state not in _HAS_NODES):
        return False
    return not (job.state == "CANCELLED" and job.start == job.end)


class Waits:
    """Wait times of jobs that started since this process began. Each start counts once."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._seen: dict[str, int] = {}
        self._histogram = Histogram(
            "slipway_job_wait_seconds", "Time from when a job could have started until it did.", ("partition",), WAIT_BOUNDS
        )

    def add(self, jobs: Iterable[Job]) -> None:
        """Adds one reading. Forgets jobs that are no longer listed."""
        seen: dict[str, int] = {}
        for job in jobs:
            if not has_started(job) or job.start is None or job.eligible is None or job.start < self._began:
                continue
            seen[job.number] = job.start
            if self._seen.get(job.number) != job.start:
                self._histogram.observe((job.partition,), max(0, job.start - job.eligible))
        self._seen = seen

    def render(self) -> str:
        return self._histogram.render()


def account_name(text: str) -> str:
    """`none` for a job without an account."""
    return text if text and text != "(null)" else "none"


def _job(values: Mapping[str, str]) -> Job:
    reason = _REASON.match(values["Reason"])
    nodes, alloc = _number(values["NumNodes"]) or 1, values["tres-alloc"]
    return Job(
        number=values["JobArrayID"],
        state=values["State"],
        # A job that waits for one of several partitions counts in the first.
        partition=values["Partition"].partition(",")[0],
        account=account_name(values["Account"]),
        cpus=count_tres(alloc, "cpu") or _number(values["NumCPUs"]) or 0,
        gpus=count_tres(alloc, "gres/gpu") or _asked(values["tres-per-job"]) or nodes * _asked(values["tres-per-node"]),
        eligible=_number(values["EligibleTime"]),
        start=_number(values["StartTime"]),
        end=_number(values["EndTime"]),
        # Details may follow a reason, as in "ReqNodeNotAvail, UnavailableNodes:gpu-1".
        reason=reason[0] if reason and values["Reason"][reason.end() :][:1] in ("", ",") else OTHER,
        tasks=_tasks(values["JobArrayID"]),
    )


def _asked(text: str) -> int:
    """GPUs that a job asks for: `gres/gpu:2`, `gres/gpu:h100:2`, `gpu`."""
    total = 0
    for part in text.split(","):
        kind, *more = part.removeprefix("gres/").removeprefix("gres:").split(":")
        if kind == "gpu":
            total += int(more[-1]) if more and more[-1].isdecimal() else 1
    return total


def _tasks(number: str) -> int:
    """Tasks in one line of squeue: `12_[4-9%2]` are six waiting tasks."""
    listed = number.partition("_[")[2].removesuffix("]").partition("%")[0]
    total = 0
    for part in listed.split(",") if listed and "..." not in listed else ():
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        total += (int(last or first) - int(first)) // int(step or 1) + 1
    return total or 1


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _by(counts: Mapping[Values, int], at: int) -> Counter[str]:
    totals: Counter[str] = Counter()
    for values, count in counts.items():
        totals[values[at]] += count
    return totals


def _merged(counts: Mapping[Values, int], rename: Callable[[Values], Values]) -> Counter[Values]:
    totals: Counter[Values] = Counter()
    for values, count in counts.items():
        totals[rename(values)] += count
    return totals


def _by_account(counts: Mapping[str, int], shown: frozenset[str]) -> Counter[Values]:
    return _merged({(name,): count for name, count in counts.items()}, lambda values: values if values[0] in shown else (OTHER,))
