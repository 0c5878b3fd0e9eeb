"""Nodes and jobs as programs/running_jobs lists them: sinfo's and squeue's fields by name, as text. Pure; times are seconds since 1970."""

from collections.abc import Mapping

from slurm.check_results import read_results
from slurm.reasons import written
from slurm.records import record
from slurm.states import NodeState, node_state
from slurm.times import read_time
from slurm.tres import count_gpus

_AWAY = frozenset({"DRAIN", "DOWN", "ERROR", "FAIL", "NOT_RESPONDING", "INVALID_REG", "MAINTENANCE", "UNKNOWN"})
"""A node with one of these takes no job for now. A node that is off, or on its way, is healthy."""


@record
class Node:
    """A Slurm node."""

    name: str
    node_set: str
    state: NodeState
    cpus: tuple[int, int]
    """In use, and in all."""
    gpus: tuple[int, int]
    reason: str = ""
    """Why it is drained or down."""
    by: str = ""
    """Who gave that reason, and since when it stands."""
    since: int | None = None
    checks: Mapping[str, tuple[str, float | None]] | None = None
    """By health check: the last result, and when that was; None if no result was reported."""

    @property
    def is_away(self) -> bool:
        """True when no job could start on it, and somebody should know why."""
        return not self.state.is_known or bool(self.state.flags & _AWAY)


def read_node(answer: Mapping[str, str]) -> Node:
    """A node of the answer to GET /nodes/. Raises KeyError and ValueError."""
    allocated, _, _, total = (int(part) for part in answer["CPUsState"].split("/"))
    used, gpu_total = (sum(count_gpus(answer[key]).values()) for key in ("GresUsed", "Gres"))
    reason = "" if answer["Reason"].lower() in ("none", "(null)") else written(answer["Reason"])
    since = read_seconds(answer["TimeStamp"])
    return Node(
        name=answer["NodeList"],
        node_set=answer["NodeList"].rpartition("-")[0],
        state=node_state(answer["StateComplete"].upper().split("+")),
        cpus=(allocated, total),
        gpus=(used, gpu_total),
        reason=reason,
        by=answer["User"].partition("(")[0] if reason else "",
        since=since if reason else None,
        checks=_results(answer["Extra"]),
    )


def count_tasks(number: str) -> int:
    """The number of tasks in a line of squeue: `12_[4-9%2]` are six pending ones."""
    _, _, inside = number.partition("_[")
    listed = inside.removesuffix("]").partition("%")[0]
    if not listed or "..." in listed:
        return 1
    total = 0
    for part in listed.split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        total += (int(last or first) - int(first)) // int(step or 1) + 1
    return total


def read_seconds(text: str) -> int | None:
    """A time of squeue or sinfo; None if it has none (`N/A`, `NONE`)."""
    return int(text) if text.isdecimal() else None


def _results(extra: str) -> Mapping[str, tuple[str, float | None]] | None:
    """The last results of checks in a node's `Extra`; None if it is somebody else's."""
    results = read_results(extra)
    return {name: (result.result, read_time(result.at)) for name, result in results.items()} if results else None
