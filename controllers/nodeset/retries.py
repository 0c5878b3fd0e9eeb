"""Nodes that failed to come up, and pods that a kubelet refused: how long each is left alone before it is tried again.

In memory only: a new leader starts without it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from controllers.runtime.structs import Key


@dataclass
class _Node:
    failures: int
    is_down: bool
    until: float


@dataclass
class Retries:
    """By set and ordinal; times in seconds, all on the same clock."""

    first_s: float = 30
    longest_s: float = 1800
    _nodes: dict[Key, dict[int, _Node]] = field(default_factory=dict[Key, dict[int, _Node]])

    def note(self, key: Key, failed: Iterable[int], now: float) -> None:
        """Notes which nodes are down now. Each new failure doubles the pause."""
        nodes = self._nodes.setdefault(key, {})
        down = set(failed)
        for ordinal in down:
            before = nodes.get(ordinal)
            if before is None or not before.is_down:
                failures = 1 if before is None else before.failures + 1
                nodes[ordinal] = _Node(failures, True, now + min(self.longest_s, self.first_s * 2 ** min(failures - 1, 20)))
        for ordinal, node in nodes.items():
            node.is_down = ordinal in down

    def forget(self, key: Key, registered: Iterable[int]) -> None:
        """Forgets the failures of nodes that came up."""
        nodes = self._nodes.get(key, {})
        for ordinal in registered:
            nodes.pop(ordinal, None)

    def failures(self, key: Key, ordinal: int) -> int:
        """How often in a row a node has failed."""
        node = self._nodes.get(key, {}).get(ordinal)
        return 0 if node is None else node.failures

    def drop(self, key: Key) -> None:
        """Forgets all failures of a set."""
        self._nodes.pop(key, None)

    def held(self, key: Key, now: float) -> frozenset[int]:
        """Ordinals that are left alone for now."""
        return frozenset(self.until(key, now))

    def until(self, key: Key, now: float) -> dict[int, float]:
        """When each ordinal that is left alone is tried again."""
        return {ordinal: node.until for ordinal, node in self._nodes.get(key, {}).items() if now < node.until}

    def next_s(self, key: Key, now: float) -> float:
        """Seconds until the next ordinal is tried again; infinite when none waits."""
        return min((at - now for at in self.until(key, now).values()), default=float("inf"))
