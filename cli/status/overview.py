"""What people want to know of a live cluster, from what Kubernetes and Slurm said: sets, nodes that are out of service and why, the queue,
checks, backups, programs. Pure; times are seconds since 1970.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from names import labels
from names.conditions import FILES_LIVE
from slurm.listed import Node, count_tasks, read_node
from slurm.states import category, is_busy
from slurm.times import read_time

_CHECK, _BACKUP = "health-check", "backup"
_RESULTS = ("passed", "failed", "unknown", "skipped")


class AnswerError(ValueError):
    """An answer is not what the programs of this release give."""


@dataclass(frozen=True)
class SetRow:
    """A node set: its controller's words, and its nodes as Slurm counts them."""

    name: str
    wanted: int
    ready: int
    phase: str
    why: str
    counts: Mapping[str, int]
    """Nodes by `slurm.states.category`; empty while Slurm is silent."""


@dataclass(frozen=True)
class Away:
    """A node that is out of service."""

    name: str
    state: str
    is_busy: bool
    """A job may still run there."""
    reason: str
    by: str
    since: int | None
    machine: str
    causes: tuple[str, ...] = ()
    """Names of all causes, the most urgent first, as the node's SlurmNode has them: `check/disk`. Slurm's reason is one cause's."""


@dataclass(frozen=True)
class QueueRow:
    """The jobs of a partition."""

    partition: str
    running: int
    waiting: int
    oldest: int | None
    """When the job that waits longest was submitted."""
    why: tuple[tuple[str, int], ...]
    """Slurm's reasons of those that wait, the most frequent first."""


@dataclass(frozen=True)
class CheckRow:
    """A health check: what its CronJob says, and the last results on nodes."""

    name: str
    is_suspended: bool
    has_schedule: bool
    """False for a check that runs beside jobs alone."""
    last_run: float | None
    results: Mapping[str, int]
    oldest: float | None
    """The oldest of these results."""


@dataclass(frozen=True)
class ProgramRow:
    """A Deployment or StatefulSet of the cluster's."""

    name: str
    ready: int
    wanted: int


@dataclass(frozen=True)
class Overview:
    """Everything, where it is known. What Slurm did not tell is None."""

    sets: tuple[SetRow, ...]
    programs: tuple[ProgramRow, ...]
    checks: tuple[CheckRow, ...]
    backup: float | None
    """When the last backup ended well; None for none yet."""
    has_backups: bool
    files: str
    """How far Slurm's files are, in the words of slurmctld's pod."""
    away: tuple[Away, ...] | None = None
    cpus: tuple[int, int] | None = None
    gpus: tuple[int, int] | None = None
    queue: tuple[QueueRow, ...] | None = None


@dataclass(frozen=True)
class Objects:
    """What the API server has in the cluster's namespace."""

    node_sets: Sequence[Mapping[str, Any]]
    programs: Sequence[Mapping[str, Any]]
    cron_jobs: Sequence[Mapping[str, Any]]
    pods: Sequence[Mapping[str, Any]]
    slurm_nodes: Sequence[Mapping[str, Any]] = ()


def read_nodes(answer: object) -> tuple[Node, ...]:
    """programs/running_jobs' answer to GET /nodes/. Raises AnswerError."""
    try:
        return tuple(read_node(each) for each in answer["nodes"])  # type: ignore[index]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AnswerError(f"no list of nodes: {type(error).__name__}: {error}") from error


def read_queue(answer: object) -> tuple[QueueRow, ...]:
    """programs/running_jobs' answer to GET /queue/, by partition. A job that waits for several counts in each. Raises AnswerError."""
    try:
        return tuple(_queue(answer["jobs"]))  # type: ignore[index]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AnswerError(f"no list of jobs: {type(error).__name__}: {error}") from error


def build(objects: Objects, nodes: Sequence[Node] | None, queue: tuple[QueueRow, ...] | None) -> Overview:
    """The overview; `nodes` and `queue` are None while Slurm is silent."""
    counts: dict[str, Counter[str]] = {}
    for node in nodes or ():
        counts.setdefault(node.node_set, Counter())[category(node.state)] += 1
    machines = {each["metadata"]["name"]: str(each.get("spec", {}).get("nodeName", "")) for each in objects.pods}
    causes = {each["metadata"]["name"]: each.get("status", {}).get("causes", ()) for each in objects.slurm_nodes}
    backups = [each for each in objects.cron_jobs if _component(each) == _BACKUP]
    sets = tuple(_set(each, counts.get(each["metadata"]["name"], {})) for each in sorted(objects.node_sets, key=_name))
    return Overview(
        sets=sets,
        programs=tuple(_program(each) for each in sorted(objects.programs, key=_name)),
        checks=_checks(objects, nodes or ()),
        backup=max((at for each in backups if (at := read_time(each.get("status", {}).get("lastSuccessfulTime")))), default=None),
        has_backups=bool(backups),
        files=_files(objects.pods),
        away=None if nodes is None else tuple(_away(node, machines, causes) for node in nodes if node.is_away),
        cpus=None if nodes is None else _sum(node.cpus for node in nodes),
        gpus=None if nodes is None else _sum(node.gpus for node in nodes),
        queue=queue,
    )


def as_json(overview: Overview) -> dict[str, Any]:
    """The overview for programs."""
    return json.loads(json.dumps(overview, default=vars))


def _queue(jobs: Iterable[Mapping[str, str]]) -> Iterable[QueueRow]:
    running, waiting = Counter[str](), Counter[str]()
    oldest: dict[str, int] = {}
    why: dict[str, Counter[str]] = {}
    for job in jobs:
        for partition in job["Partition"].split(","):
            if job["State"] != "PENDING":
                running[partition] += 1
                continue
            count = count_tasks(job["JobArrayID"])
            waiting[partition] += count
            why.setdefault(partition, Counter())[job["Reason"]] += count
            if job["SubmitTime"].isdecimal():
                oldest[partition] = min(int(job["SubmitTime"]), oldest.get(partition, int(job["SubmitTime"])))
    for name in sorted(running | waiting):
        ranked = sorted(why.get(name, Counter[str]()).items(), key=lambda each: (-each[1], each[0]))
        yield QueueRow(name, running[name], waiting[name], oldest.get(name), tuple(ranked))


def _set(found: Mapping[str, Any], counts: Mapping[str, int]) -> SetRow:
    status = found.get("status", {})
    return SetRow(
        name=_name(found),
        wanted=int(status.get("wanted", 0)),
        ready=int(status.get("ready", 0)),
        phase=str(status.get("phase") or "Unseen"),
        why=str(status.get("why") or "its controller has not seen it yet"),
        counts=dict(counts),
    )


def _away(node: Node, machines: Mapping[str, str], causes: Mapping[str, Sequence[Mapping[str, Any]]]) -> Away:
    names = tuple(str(cause["name"]) for cause in causes.get(node.name, ()))
    return Away(node.name, str(node.state), is_busy(node.state), node.reason, node.by, node.since, machines.get(node.name, ""), names)


def _checks(objects: Objects, nodes: Sequence[Node]) -> tuple[CheckRow, ...]:
    """A row for each check that a CronJob runs, or that node sets name: those run beside jobs."""
    cron_jobs = {_name(each).partition("-check-")[2]: each for each in objects.cron_jobs if _component(each) == _CHECK}
    named = {name for each in objects.node_sets for name in each.get("spec", {}).get("healthChecks") or ()}
    return tuple(_check(name, cron_jobs.get(name, {}), nodes) for name in sorted({*cron_jobs, *named}))


def _check(name: str, cron_job: Mapping[str, Any], nodes: Sequence[Node]) -> CheckRow:
    found = [node.checks[name] for node in nodes if node.checks and name in node.checks]
    results = Counter(result if result in _RESULTS else "unknown" for result, _ in found)
    return CheckRow(
        name=name,
        is_suspended=bool(cron_job.get("spec", {}).get("suspend")),
        has_schedule=bool(cron_job),
        last_run=read_time(cron_job.get("status", {}).get("lastScheduleTime")),
        results=dict(results),
        oldest=min((at for _, at in found if at is not None), default=None),
    )


def _program(found: Mapping[str, Any]) -> ProgramRow:
    return ProgramRow(_name(found), int(found.get("status", {}).get("readyReplicas", 0)), int(found["spec"].get("replicas", 1)))


def _files(pods: Sequence[Mapping[str, Any]]) -> str:
    said = [each for pod in pods for each in pod.get("status", {}).get("conditions", ()) if each.get("type") == FILES_LIVE]
    return str(said[0].get("message") or said[0].get("reason")) if said else ""


def _sum(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    listed = [*pairs]
    return sum(used for used, _ in listed), sum(there for _, there in listed)


def _name(found: Mapping[str, Any]) -> str:
    return str(found["metadata"]["name"])


def _component(found: Mapping[str, Any]) -> str:
    return str(found["metadata"].get("labels", {}).get(labels.COMPONENT, ""))
