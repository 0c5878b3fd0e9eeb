"""Summarizes a live cluster from the answers of Kubernetes and Slurm: sets, nodes out of service and why, the queue, checks, backups,
programs. Pure; times are seconds since 1970.
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
    """An answer does not have the format of this release."""


@dataclass(frozen=True)
class SetRow:
    """A node set: its controller's status, and its nodes as Slurm counts them."""

    name: str
    wanted: int
    ready: int
    phase: str
    why: str
    counts: Mapping[str, int]
    """Nodes by `slurm.states.category`; empty while Slurm does not answer."""


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
    """Names of all causes in the node's SlurmNode, the most urgent first: `check/disk`. Slurm's reason is that of one cause."""


@dataclass(frozen=True)
class QueueRow:
    """The jobs of a partition."""

    partition: str
    running: int
    waiting: int
    oldest: int | None
    """Submission time of the job that waits longest."""
    why: tuple[tuple[str, int], ...]
    """Slurm's reasons of the waiting jobs, the most frequent first."""


@dataclass(frozen=True)
class CheckRow:
    """A health check: its CronJob's state, and the last results on nodes."""

    name: str
    is_suspended: bool
    has_schedule: bool
    """False for a check that only runs beside jobs."""
    last_run: float | None
    results: Mapping[str, int]
    oldest: float | None
    """The oldest of these results."""


@dataclass(frozen=True)
class ProgramRow:
    """A Deployment or StatefulSet of the cluster."""

    name: str
    ready: int
    wanted: int


@dataclass(frozen=True)
class Overview:
    """The whole summary. What Slurm did not answer is None."""

    sets: tuple[SetRow, ...]
    programs: tuple[ProgramRow, ...]
    checks: tuple[CheckRow, ...]
    backup: float | None
    """End of the last successful backup; None if there is none."""
    has_backups: bool
    files: str
    """The progress of Slurm's files, from the condition of slurmctld's pod."""
    away: tuple[Away, ...] | None = None
    cpus: tuple[int, int] | None = None
    gpus: tuple[int, int] | None = None
    queue: tuple[QueueRow, ...] | None = None


@dataclass(frozen=True)
class Objects:
    """The objects in the cluster's namespace."""

    node_sets: Sequence[Mapping[str, Any]]
    programs: Sequence[Mapping[str, Any]]
    cron_jobs: Sequence[Mapping[str, Any]]
    pods: Sequence[Mapping[str, Any]]
    slurm_nodes: Sequence[Mapping[str, Any]] = ()


def read_nodes(answer: object) -> tuple[Node, ...]:
    """Parses programs/running_jobs' answer to GET /nodes/. Raises AnswerError."""
    try:
        return tuple(read_node(node) for node in answer["nodes"])  # type: ignore[index]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AnswerError(f"no list of nodes: {type(error).__name__}: {error}") from error


def read_queue(answer: object) -> tuple[QueueRow, ...]:
    """Parses programs/running_jobs' answer to GET /queue/. A job of several partitions counts in each. Raises AnswerError."""
    try:
        return tuple(_queue(answer["jobs"]))  # type: ignore[index]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AnswerError(f"no list of jobs: {type(error).__name__}: {error}") from error


def build(objects: Objects, nodes: Sequence[Node] | None, queue: tuple[QueueRow, ...] | None) -> Overview:
    """The overview; `nodes` and `queue` are None while Slurm does not answer."""
    counts: dict[str, Counter[str]] = {}
    for node in nodes or ():
        counts.setdefault(node.node_set, Counter())[category(node.state)] += 1
    machines = {item["metadata"]["name"]: str(item.get("spec", {}).get("nodeName", "")) for item in objects.pods}
    causes = {item["metadata"]["name"]: item.get("status", {}).get("causes", ()) for item in objects.slurm_nodes}
    backups = [item for item in objects.cron_jobs if _component(item) == _BACKUP]
    sets = tuple(_set(item, counts.get(item["metadata"]["name"], {})) for item in sorted(objects.node_sets, key=_name))
    return Overview(
        sets=sets,
        programs=tuple(_program(item) for item in sorted(objects.programs, key=_name)),
        checks=_checks(objects, nodes or ()),
        backup=max((at for item in backups if (at := read_time(item.get("status", {}).get("lastSuccessfulTime")))), default=None),
        has_backups=bool(backups),
        files=_files(objects.pods),
        away=None if nodes is None else tuple(_away(node, machines, causes) for node in nodes if node.is_away),
        cpus=None if nodes is None else _sum(node.cpus for node in nodes),
        gpus=None if nodes is None else _sum(node.gpus for node in nodes),
        queue=queue,
    )


def as_json(overview: Overview) -> dict[str, Any]:
    """The overview as JSON."""
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
        ranked = sorted(why.get(name, Counter[str]()).items(), key=lambda entry: (-entry[1], entry[0]))
        yield QueueRow(name, running[name], waiting[name], oldest.get(name), tuple(ranked))


def _set(node_set: Mapping[str, Any], counts: Mapping[str, int]) -> SetRow:
    status = node_set.get("status", {})
    return SetRow(
        name=_name(node_set),
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
    """A row for each check that a CronJob runs, or that node sets run beside jobs."""
    cron_jobs = {_name(item).partition("-check-")[2]: item for item in objects.cron_jobs if _component(item) == _CHECK}
    named = {name for item in objects.node_sets for name in item.get("spec", {}).get("healthChecks") or ()}
    return tuple(_check(name, cron_jobs.get(name, {}), nodes) for name in sorted({*cron_jobs, *named}))


def _check(name: str, cron_job: Mapping[str, Any], nodes: Sequence[Node]) -> CheckRow:
    node_results = [node.checks[name] for node in nodes if node.checks and name in node.checks]
    results = Counter(result if result in _RESULTS else "unknown" for result, _ in node_results)
    return CheckRow(
        name=name,
        is_suspended=bool(cron_job.get("spec", {}).get("suspend")),
        has_schedule=bool(cron_job),
        last_run=read_time(cron_job.get("status", {}).get("lastScheduleTime")),
        results=dict(results),
        oldest=min((at for _, at in node_results if at is not None), default=None),
    )


def _program(workload: Mapping[str, Any]) -> ProgramRow:
    return ProgramRow(_name(workload), int(workload.get("status", {}).get("readyReplicas", 0)), int(workload["spec"].get("replicas", 1)))


def _files(pods: Sequence[Mapping[str, Any]]) -> str:
    conditions = (condition for pod in pods for condition in pod.get("status", {}).get("conditions", ()))
    live = next((condition for condition in conditions if condition.get("type") == FILES_LIVE), None)
    return str(live.get("message") or live.get("reason")) if live else ""


def _sum(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    listed = [*pairs]
    return sum(used for used, _ in listed), sum(total for _, total in listed)


def _name(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"]["name"])


def _component(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"].get("labels", {}).get(labels.COMPONENT, ""))
