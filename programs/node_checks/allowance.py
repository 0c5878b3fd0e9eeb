"""How many nodes of a node set health checks may hold drained, all checks together. If more fail, something that they share is broken, and
jobs still start.

Pure, but for what an Allowance counts. Checks as jobs and the collector of checks beside jobs follow the same rule.
"""

from collections.abc import Collection, Iterable, Mapping
from threading import Lock

from slurm import reasons
from slurm.check_results import FAILURE, failures, read_results
from slurm.retelling import UNKNOWN_AFTER_S
from slurm.scontrol import Node
from slurm.times import read_time

_HELD = frozenset({"DRAIN", "RESERVED", "MAINTENANCE"})
"""A check looks at a drained node again in a reservation, for which the drain is lifted."""


def held_by_checks(nodes: Mapping[str, Node], at: str, reserved: Collection[str] = ()) -> set[str]:
    """The nodes that checks hold drained, have reserved, or are about to drain. `at` is when the nodes were read, RFC 3339 in UTC.

    A fresh failure holds a node that is not drained yet. A failure of a check that no longer exists counts while anybody has its node
    drained or reserved: too many counted drain too few. A drain for another driver counts.
    """
    return {name for name, node in nodes.items() if name in reserved or _is_held(node, read_time(at) or 0)}


def _is_held(node: Node, now: float) -> bool:
    if "DRAIN" in node.state.flags and reasons.is_check(node.reason):
        return True
    results = (read_results(node.extra) or {}) if FAILURE in node.extra else {}
    drains = {name for name, failure in failures(results).items() if failure.drains}
    is_closed = bool(node.state.flags & _HELD)
    return any(is_closed or now - (read_time(results[name].at) or 0) < UNKNOWN_AFTER_S for name in drains)


class Allowance:
    """The nodes that checks hold, by node set, and who may be the next. Any thread may ask."""

    def __init__(self, held: Iterable[str]) -> None:
        self._held: dict[str, set[str]] = {}
        self._lock = Lock()
        self.add(held)

    def add(self, held: Iterable[str]) -> None:
        """Counts further nodes that checks hold."""
        with self._lock:
            for node in held:
                self._of_its_set(node).add(node)

    def has_room(self, node: str, most: int) -> bool:
        """True if checks may hold that node, as one of at most `most` of its set. A node that is already held has room."""
        with self._lock:
            held = self._of_its_set(node)
            return node in held or len(held) < most

    def take(self, node: str, most: int) -> bool:
        """As `has_room`, and counts the node."""
        with self._lock:
            held = self._of_its_set(node)
            if node in held or len(held) < most:
                held.add(node)
                return True
            return False

    def _of_its_set(self, node: str) -> set[str]:
        return self._held.setdefault(node.rpartition("-")[0], set())
