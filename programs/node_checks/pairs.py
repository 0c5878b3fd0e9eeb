"""Decides which pairs of nodes a test of their network looks at next, and which node or link is at fault. Pure.

The first rounds are a round-robin tournament: all nodes at once, in disjoint pairs. Then each node of a failing pair is tested with good
nodes, another one each time. A pass proves both nodes. PROOF such failures without a single pass are a node at fault. A failing pair of
good nodes is a link at fault. All else stays unknown.

Suppose that n nodes have at most (n - 4) / 5 faults, and that no good node has as many as PROOF links at fault. Then all nodes at fault are
named within `rounds_needed` rounds. So is each link at fault that a round tests. With PROOF such links, a good node could be named. However
many nodes are at fault, no good node is named for that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from slurm.check_results import FAILED, PASSED

PROOF = 2
"""Good nodes with which a node has to fail before it counts as at fault."""

Pair = tuple[str, str]
"""Two nodes, in the order of their names."""


@dataclass(frozen=True)
class Verdict:
    """What tests of pairs prove."""

    good: frozenset[str]
    faulty: Mapping[str, tuple[str, ...]]
    """Nodes at fault, and the good nodes with which each has failed."""
    links: frozenset[Pair]
    """Pairs that fail, though both nodes pass with others."""
    open: frozenset[str]
    """Nodes of which neither is proved."""


def pair(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)


def rounds_needed(screening: int = 1) -> int:
    """The most rounds of a run: those of the tournament, and those that name who is at fault."""
    return screening + PROOF


def tournament(nodes: Sequence[str], round_: int) -> list[Pair]:
    """The pairs of one round, by the circle method: n - 1 rounds (n, where it is odd) bring each pair once. One node of an odd number
    sits out."""
    seats: list[str | None] = [*nodes, *([None] if len(nodes) % 2 else [])]
    if len(seats) < 2:
        return []
    fixed, rotating = seats[0], seats[1:]
    shift = round_ % len(rotating)
    turned = [fixed, *rotating[shift:], *rotating[:shift]]
    half = len(turned) // 2
    sides = zip(turned[:half], reversed(turned[half:]), strict=True)
    return [pair(left, right) for left, right in sides if left is not None and right is not None]


def verdict(nodes: Iterable[str], tested: Mapping[Pair, str]) -> Verdict:
    """From the results of all pairs so far: `passed`, `failed`, or anything else, which proves nothing."""
    good = frozenset(node for names, result in tested.items() if result == PASSED for node in names)
    failed = [names for names, result in tested.items() if result == FAILED]
    against: dict[str, set[str]] = {}
    for left, right in failed:
        for node, partner in ((left, right), (right, left)):
            if node not in good and partner in good:
                against.setdefault(node, set()).add(partner)
    faulty = {node: tuple(sorted(partners)) for node, partners in sorted(against.items()) if len(partners) >= PROOF}
    links = frozenset(names for names in failed if good.issuperset(names))
    return Verdict(good, faulty, links, frozenset(nodes) - good - faulty.keys())


def plan_pairs(nodes: Sequence[str], tested: Mapping[Pair, str], round_: int, screening: int = 1, turn: int = 0) -> list[Pair]:
    """The disjoint pairs of the next round; none if all is known, or nothing more can be. `round_` counts from 0, `turn` chooses where the
    tournament begins, so that the runs of a check go through all links. `nodes` are those that are still available."""
    if round_ < screening:
        return tournament(nodes, round_ + turn * screening)
    if round_ >= rounds_needed(screening):
        return []
    known = verdict(nodes, tested)
    free = [node for node in nodes if node in known.good]
    planned: list[Pair] = []
    for node in sorted(known.open.intersection(nodes), key=lambda name: (-_failures(name, tested), name)):
        partner = next((candidate for candidate in free if pair(node, candidate) not in tested), None)
        if partner is not None:
            free.remove(partner)
            planned.append(pair(node, partner))
    return planned


def _failures(node: str, tested: Mapping[Pair, str]) -> int:
    return sum(result == FAILED and node in names for names, result in tested.items())
