"""Updates of many nodes as lines for one scontrol, which reads commands from its standard input. Pure.

scontrol cuts a line at spaces outside of quotes, single or double. It knows no backslash, and takes the quotes off a reason only (measured
on 26.05).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from slurm.scontrol import Node

MOST_LINES = 64
"""Of one process: a fifth of a second."""
SIDE_BY_SIDE = 4
MOST_ALONE = 32
"""Updates of one round that are tried alone, each by a process of its own."""
_LONGEST = 16_384
"""Characters of a line: scontrol moves its cursor through all of them."""
_WORD = re.compile(r"""(?:[^\s"']|"[^"]*"|'[^']*')+""")


@dataclass(frozen=True)
class Update:
    """An update that all of its nodes get."""

    nodes: tuple[str, ...]
    extra: str | None = None
    """The new `Extra`; None leaves it as it is."""
    drain: str | None = None
    """The reason of a drain; None drains nothing."""

    def words(self, quote: str = "") -> list[str]:
        """The arguments of `scontrol update`, with such quotes around the reason."""
        extra = [] if self.extra is None else [f"Extra={self.extra}"]
        drain = [] if self.drain is None else ["State=DRAIN", f"Reason={quote}{self.drain}{quote}"]
        return [f"NodeName={','.join(self.nodes)}", *extra, *drain]

    @property
    def line(self) -> str | None:
        """The command as a line; None if scontrol would cut it in other places, or it is too long."""
        words = self.words('"')
        line = " ".join(("update", *words))
        is_plain = line.isascii() and line.isprintable() and len(line) <= _LONGEST and '"' not in (self.drain or "")
        return line if is_plain and all(_WORD.fullmatch(word) for word in words) else None

    def missing(self, nodes: Mapping[str, Node]) -> Iterator["Update"]:
        """What is left to write after a reading: an update for each node that does not have it."""
        for name in self.nodes:
            node = nodes.get(name)
            has_extra = self.extra is None or (node is not None and node.extra == self.extra)
            has_drain = self.drain is None or (node is not None and "DRAIN" in node.state.flags)
            if not (has_extra and has_drain):
                yield Update((name,), self.extra, self.drain)


def in_lots(updates: Iterable[Update]) -> list[list[Update]]:
    """The updates that fit into lines, for one process each."""
    lined = [update for update in updates if update.line is not None]
    return [lined[start : start + MOST_LINES] for start in range(0, len(lined), MOST_LINES)]


def alone(updates: Sequence[Update]) -> list[Update]:
    """The updates that fit into no line: each needs a process of its own."""
    return [update for update in updates if update.line is None]
