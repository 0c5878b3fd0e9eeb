"""What the page shows, from the last readings of Slurm and Kubernetes. Pure; times are seconds since 1970.

Bounded: 5,000 nodes, 200 jobs, and the length of each text. Texts are unescaped JSON: the page inserts them as text, never as markup.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from controllers.nodeset.structs import NodeSetObject, SlurmNode
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
"""The state of a node by its SlurmNode, until Slurm answers. `Up` is left out: whether the node is idle is unknown."""
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
    node_sets: Sequence[NodeSetObject] = ()
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
    return tuple(read_node(row) for row in rows)


def read_jobs(rows: Iterable[Mapping[str, str]]) -> tuple[Job, ...]:
    """The jobs of the answer to GET /queue/: those that run, then those that wait. Raises KeyError and ValueError."""
    return tuple(sorted((_job(row) for row in rows), key=lambda job: job.state == "PENDING"))


def use(nodes: Sequence[Node], at: float) -> Point:
    """The cluster's use as a point of the last day. A node whose state is unknown counts as used: it may run a job."""
    busy = sum(category(node.state) in ("allocated", "draining", "unknown") for node in nodes)
    cpus, gpus = [node.cpus for node in nodes], [node.gpus for node in nodes]
    return (int(at), busy, len(nodes), *_sums(cpus), *_sums(gpus))


def build(cluster: str, readings: Readings, history: Sequence[Point], hidden: frozenset[str]) -> dict[str, Any]:
    """The snapshot as JSON. If Slurm's PrivateData hides `nodes` or `jobs`, `hidden` has that word and the snapshot only their sums."""
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
        "sets": []
        if "nodes" in hidden
        else [_set(node_set) for node_set in sorted(readings.node_sets, key=lambda node_set: node_set.metadata.name)],
        "nodes": shown,
        "moreNodes": 0 if "nodes" in hidden else len(rows) - len(shown),
        "queue": None if readings.jobs.value is None else _queue(readings.jobs.value, "jobs" in hidden),
        "history": history,
    }


def jobs_of(user: str, jobs: Sequence[Job] | None, hidden: frozenset[str]) -> dict[str, Any]:
    """One user's jobs as JSON. Anybody may ask for anybody's jobs, so the answer is empty if Slurm hides jobs."""
    users_jobs = [] if jobs is None or "jobs" in hidden else [job for job in jobs if job.user == user]
    return {"user": user[:_SHORT], "jobs": [_row(job) for job in users_jobs[:MOST_JOBS]], "more": max(0, len(users_jobs) - MOST_JOBS)}


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


def _job(row: Mapping[str, str]) -> Job:
    waits = row["State"] == "PENDING"
    return Job(
        number=row["JobArrayID"][:_SHORT],
        name=row.get("Name", "")[:_SHORT],
        user=row["UserName"][:_SHORT],
        account=_plain(row["Account"])[:_SHORT],
        partition=row["Partition"][:_LONG],
        state=row["State"],
        tasks=count_tasks(row["JobArrayID"]) if waits else 1,
        nodes=(row["ReqNodes"] if waits else row["NodeList"])[:_SHORT],
        gpus=sum(count_gpus(row["tres-alloc"].replace("gres/", "").replace("=", ":")).values()),
        reason=_plain(row["Reason"])[:_LONG] if waits else "",
        submitted=read_seconds(row["SubmitTime"]),
        ends=None if waits else read_seconds(row["EndTime"]),
    )


def _plain(text: str) -> str:
    return "" if text in _UNLIMITED or text == "None" else text


def _sums(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    listed = [*pairs]
    return sum(used for used, _ in listed), sum(total for _, total in listed)


def _about(reading: Reading[Any]) -> dict[str, Any]:
    return {"at": reading.at, "fault": reading.fault[:_LONG]}


def _nodes(nodes: Sequence[Node], objects: Sequence[SlurmNode]) -> list[dict[str, Any]]:
    known = {slurm_node.metadata.name: slurm_node for slurm_node in objects}
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


def _with_causes(row: dict[str, Any], slurm_node: SlurmNode | None) -> dict[str, Any]:
    if slurm_node is None:
        return row
    if slurm_node.status.machine:
        row["machine"] = slurm_node.status.machine[:_SHORT]
    if slurm_node.status.causes:
        row["causes"] = [
            {
                "name": cause.name[:_SHORT],
                "evidence": cause.evidence[:_LONG],
                "source": cause.source[:_SHORT],
                "next": cause.next[:_LONG],
                "since": read_time(cause.since),
            }
            for cause in slurm_node.status.causes[:_MOST_CAUSES]
        ]
    return row


def _fallback(readings: Readings) -> list[dict[str, Any]]:
    """Nodes as the NodeSet controller last knew them, for the time before this program's first reading of Slurm."""
    rows: list[dict[str, Any]] = []
    for slurm_node in sorted(readings.slurm_nodes, key=_by(lambda slurm_node: (slurm_node.status.node_set, slurm_node.metadata.name))):
        row = {
            "name": slurm_node.metadata.name,
            "set": slurm_node.status.node_set,
            "state": _STATES.get(slurm_node.status.state, "unknown"),
        }
        rows.append(_with_causes(row, slurm_node))
    return rows


def _by(names: Callable[[T], tuple[str, str]]) -> Callable[[T], tuple[str, str, int, str]]:
    """An order in which gpu-10 comes after gpu-9."""

    def key(item: T) -> tuple[str, str, int, str]:
        group, name = names(item)
        stem, _, number = name.rpartition("-")
        return group, stem, int(number) if number.isdecimal() else -1, name

    return key


def _set(node_set: NodeSetObject) -> dict[str, Any]:
    status = node_set.status
    why = "its controller has not seen it yet" if not status.phase else status.why
    return {
        "name": node_set.metadata.name,
        "wanted": status.wanted,
        "ready": status.ready,
        "phase": status.phase or "Unseen",
        "why": why[:_LONG],
        "isElastic": node_set.spec.is_elastic,
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
    """The first rows that fit. If there are many of both, half of the rows are waiting jobs, so that neither hides the other."""
    running = [job for job in jobs if job.state != "PENDING"]
    waiting = [job for job in jobs if job.state == "PENDING"]
    most_running = max(MOST_JOBS // 2, MOST_JOBS - len(waiting))
    return [*running[:most_running], *waiting][:MOST_JOBS]


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
