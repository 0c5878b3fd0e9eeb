"""What the page shows, from what Slurm and Kubernetes said last. Pure; times are seconds since 1970.

Everything is bounded: 5,000 nodes and 200 jobs, each text by its length. Texts are handed on as they are, as JSON: the page puts them into
the document as text and never as markup.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from controllers.nodeset.structs import NodeSet, SlurmNode
from controllers.page.history import Point
from slurm.listed import Node, count_tasks, read_node, read_seconds
from slurm.states import category
from slurm.times import read_time
from slurm.tres import count_gpus

MOST_NODES = 5000
MOST_JOBS = 200
"""Rows of the queue, and of one user's jobs."""
_MOST_REASONS = 8
_MOST_CAUSES = 10
_SHORT, _LONG = 80, 300
_UNLIMITED = ("", "N/A", "NONE", "(null)")
_STATES = {
    "Draining": "draining",
    "Drained": "drained",
    "Down": "down",
    "PoweringUp": "powering_up",
    "PoweringDown": "powering_down",
    "PoweredDown": "powered_down",
}
"""A SlurmNode's state as a node's, where Slurm has said nothing yet. `Up` is left out: whether it is idle is unknown."""
T = TypeVar("T")


@dataclass(frozen=True)
class Reading(Generic[T]):
    """What was read last, when, and why it was not read since."""

    value: T | None = None
    at: float | None = None
    fault: str = ""


@dataclass(frozen=True)
class Readings:
    """Everything that a snapshot is made from."""

    nodes: Reading[tuple[Node, ...]] = Reading()
    jobs: Reading[tuple["Job", ...]] = Reading()
    kubernetes: Reading[None] = Reading()
    """Of its objects: `at` is when the API server was last heard."""
    node_sets: Sequence[NodeSet] = ()
    slurm_nodes: Sequence[SlurmNode] = ()


@dataclass(frozen=True)
class Job:
    """A row of the queue: a job, or the waiting tasks of an array."""

    number: str
    name: str
    user: str
    account: str
    partition: str
    state: str
    tasks: int
    nodes: str
    """Hostlist, or how many nodes it waits for."""
    gpus: int
    reason: str
    submitted: int | None
    ends: int | None


def read_nodes(rows: Iterable[Mapping[str, str]]) -> tuple[Node, ...]:
    """The nodes of the answer to GET /nodes/. Raises KeyError and ValueError."""
    return tuple(read_node(each) for each in rows)


def read_jobs(rows: Iterable[Mapping[str, str]]) -> tuple[Job, ...]:
    """The jobs of the answer to GET /queue/: those that run, then those that wait. Raises KeyError and ValueError."""
    return tuple(sorted((_job(each) for each in rows), key=lambda job: job.state == "PENDING"))


def use(nodes: Sequence[Node], at: float) -> Point:
    """The cluster's use as a point of the last day. A node whose state is unknown counts as used: it may run a job."""
    busy = sum(category(node.state) in ("allocated", "draining", "unknown") for node in nodes)
    cpus, gpus = [node.cpus for node in nodes], [node.gpus for node in nodes]
    return (int(at), busy, len(nodes), *_sums(cpus), *_sums(gpus))


def build(cluster: str, readings: Readings, history: Sequence[Point], hidden: frozenset[str]) -> dict[str, Any]:
    """The snapshot as JSON. `hidden` has `nodes` and `jobs` where Slurm's PrivateData does: then only sums are told of them."""
    nodes = readings.nodes.value
    rows = _fallback(readings) if nodes is None else _nodes(nodes, readings.slurm_nodes)
    shown = [] if "nodes" in hidden else rows[:MOST_NODES]
    return {
        "cluster": cluster,
        "readings": {
            "nodes": _about(readings.nodes),
            "jobs": _about(readings.jobs),
            "causes": _about(readings.kubernetes),
        },
        "hidden": sorted(hidden),
        "use": None if nodes is None else use(nodes, readings.nodes.at or 0)[1:],
        "states": dict(Counter(row["state"] for row in rows)),
        "sets": [] if "nodes" in hidden else [_set(each) for each in sorted(readings.node_sets, key=lambda each: each.metadata.name)],
        "nodes": shown,
        "moreNodes": 0 if "nodes" in hidden else len(rows) - len(shown),
        "queue": None if readings.jobs.value is None else _queue(readings.jobs.value, "jobs" in hidden),
        "history": history,
    }


def jobs_of(user: str, jobs: Sequence[Job] | None, hidden: frozenset[str]) -> dict[str, Any]:
    """One user's jobs as JSON. Anybody may ask for anybody's, so nothing is told where Slurm hides jobs."""
    found = [] if jobs is None or "jobs" in hidden else [job for job in jobs if job.user == user]
    return {"user": user[:_SHORT], "jobs": [_row(job) for job in found[:MOST_JOBS]], "more": max(0, len(found) - MOST_JOBS)}


def state_of(node: Node) -> str:
    """One word for the node's cell: `slurm.states.category`, or why a node that looks idle takes no job."""
    word = category(node.state)
    if word in ("idle", "allocated"):
        flags = node.state.flags
        if flags & {"NOT_RESPONDING", "INVALID_REG"}:
            return "not_responding"
        if "MAINTENANCE" in flags:
            return "maintenance"
    return word


def _job(said: Mapping[str, str]) -> Job:
    waits = said["State"] == "PENDING"
    return Job(
        number=said["JobArrayID"][:_SHORT],
        name=said.get("Name", "")[:_SHORT],
        user=said["UserName"][:_SHORT],
        account=_plain(said["Account"])[:_SHORT],
        partition=said["Partition"][:_LONG],
        state=said["State"],
        tasks=count_tasks(said["JobArrayID"]) if waits else 1,
        nodes=(said["ReqNodes"] if waits else said["NodeList"])[:_SHORT],
        gpus=sum(count_gpus(said["tres-alloc"].replace("gres/", "").replace("=", ":")).values()),
        reason=_plain(said["Reason"])[:_LONG] if waits else "",
        submitted=read_seconds(said["SubmitTime"]),
        ends=None if waits else read_seconds(said["EndTime"]),
    )


def _plain(text: str) -> str:
    return "" if text in _UNLIMITED or text == "None" else text


def _sums(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    listed = [*pairs]
    return sum(used for used, _ in listed), sum(there for _, there in listed)


def _about(reading: Reading[Any]) -> dict[str, Any]:
    return {"at": reading.at, "fault": reading.fault[:_LONG]}


def _nodes(nodes: Sequence[Node], objects: Sequence[SlurmNode]) -> list[dict[str, Any]]:
    known = {each.metadata.name: each for each in objects}
    return [_with_causes(_node(node), known.get(node.name)) for node in sorted(nodes, key=_by(lambda node: (node.node_set, node.name)))]


def _node(node: Node) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": node.name[:_SHORT],
        "set": node.node_set[:_SHORT],
        "state": state_of(node),
        "slurm": str(node.state)[:_LONG],
    }
    row |= {"cpus": node.cpus, **({"gpus": node.gpus} if node.gpus[1] else {})}
    if node.reason:
        row |= {"reason": node.reason[:_LONG], "by": node.by[:_SHORT], "since": node.since}
    return row


def _with_causes(row: dict[str, Any], found: SlurmNode | None) -> dict[str, Any]:
    if found is None:
        return row
    if found.status.machine:
        row["machine"] = found.status.machine[:_SHORT]
    if found.status.causes:
        row["causes"] = [
            {
                "name": cause.name[:_SHORT],
                "evidence": cause.evidence[:_LONG],
                "source": cause.source[:_SHORT],
                "next": cause.next[:_LONG],
                "since": read_time(cause.since),
            }
            for cause in found.status.causes[:_MOST_CAUSES]
        ]
    return row


def _fallback(readings: Readings) -> list[dict[str, Any]]:
    """Nodes as the NodeSet controller knew them last: Slurm has said nothing since this program's start."""
    rows: list[dict[str, Any]] = []
    for each in sorted(readings.slurm_nodes, key=_by(lambda each: (each.status.node_set, each.metadata.name))):
        row = {"name": each.metadata.name, "set": each.status.node_set, "state": _STATES.get(each.status.state, "unknown")}
        rows.append(_with_causes(row, each))
    return rows


def _by(names: Callable[[T], tuple[str, str]]) -> Callable[[T], tuple[str, str, int, str]]:
    """An order in which gpu-10 comes after gpu-9."""

    def key(one: T) -> tuple[str, str, int, str]:
        group, name = names(one)
        stem, _, number = name.rpartition("-")
        return group, stem, int(number) if number.isdecimal() else -1, name

    return key


def _set(found: NodeSet) -> dict[str, Any]:
    status = found.status
    why = "its controller has not seen it yet" if not status.phase else status.why
    return {
        "name": found.metadata.name,
        "wanted": status.wanted,
        "ready": status.ready,
        "phase": status.phase or "Unseen",
        "why": why[:_LONG],
        "isElastic": found.spec.is_elastic,
    }


def _queue(jobs: Sequence[Job], is_hidden: bool) -> dict[str, Any]:
    running, waiting, oldest = Counter[str](), Counter[str](), dict[str, int]()
    why: dict[str, Counter[str]] = {}
    for job in jobs:
        for partition in job.partition.split(","):
            if job.state != "PENDING":
                running[partition] += 1
                continue
            waiting[partition] += job.tasks
            why.setdefault(partition, Counter())[job.reason] += job.tasks
            if job.submitted is not None:
                oldest[partition] = min(job.submitted, oldest.get(partition, job.submitted))
    shown = [] if is_hidden else _first(jobs)
    return {
        "running": sum(job.state != "PENDING" for job in jobs),
        "waiting": sum(job.tasks for job in jobs if job.state == "PENDING"),
        "partitions": [
            {
                "name": name[:_SHORT],
                "running": running[name],
                "waiting": waiting[name],
                "oldest": oldest.get(name),
                "why": why.get(name, Counter[str]()).most_common(_MOST_REASONS),
            }
            for name in sorted(running | waiting)[:MOST_JOBS]
        ],
        "jobs": [_row(job) for job in shown],
        "more": 0 if is_hidden else len(jobs) - len(shown),
    }


def _first(jobs: Sequence[Job]) -> list[Job]:
    """As many rows as fit, half of them jobs that wait where there are so many of both: neither hides the other."""
    running = [job for job in jobs if job.state != "PENDING"]
    waiting = [job for job in jobs if job.state == "PENDING"]
    kept = max(MOST_JOBS // 2, MOST_JOBS - len(waiting))
    return [*running[:kept], *waiting][:MOST_JOBS]


def _row(job: Job) -> dict[str, Any]:
    return {
        "id": job.number,
        "name": job.name,
        "user": job.user,
        "account": job.account,
        "partition": job.partition,
        "state": job.state,
        "tasks": job.tasks,
        "nodes": job.nodes,
        "gpus": job.gpus,
        "reason": job.reason,
        "submitted": job.submitted,
        "ends": job.ends,
    }
