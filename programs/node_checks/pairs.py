"""Decides which pairs of nodes a test of their network looks at next, and which node or link is at fault. Pure.

A test of two nodes fails where one of them is at fault, or the link between them. So a pass proves both nodes. The first rounds are
those of a round-robin tournament: all nodes at once, in disjoint pairs. Then each node of a failing pair is tested with nodes that are
known to be good, another one each time. PROOF such failures without a single pass are a node at fault; a pair that fails while both of
its nodes pass with others is a link. All else stays open: unknown, and nobody's fault.

The promise: where n nodes have at most (n - 4) / 5 faults, and no good node has as many as PROOF links at fault, all nodes at fault are
named within `rounds_needed` rounds, and each link that a round tests. With that many links, a good node could be named; however many
nodes are at fault, none is.
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
    fixed, others = seats[0], seats[1:]
    shift = round_ % len(others)
    turned = [fixed, *others[shift:], *others[:shift]]
    half = len(turned) // 2
    sides = zip(turned[:half], reversed(turned[half:]), strict=True)
    return [pair(one, other) for one, other in sides if one is not None and other is not None]


def verdict(nodes: Iterable[str], tested: Mapping[Pair, str]) -> Verdict:
    """From the results of all pairs so far: `passed`, `failed`, or anything else, which proves nothing."""
    good = frozenset(node for each, result in tested.items() if result == PASSED for node in each)
    failed = [each for each, result in tested.items() if result == FAILED]
    against: dict[str, set[str]] = {}
    for one, other in failed:
        for node, partner in ((one, other), (other, one)):
            if node not in good and partner in good:
                against.setdefault(node, set()).add(partner)
    faulty = {node: tuple(sorted(partners)) for node, partners in sorted(against.items()) if len(partners) >= PROOF}
    links = frozenset(each for each in failed if good.issuperset(each))
    return Verdict(good, faulty, links, frozenset(nodes) - good - faulty.keys())


def plan_pairs(nodes: Sequence[str], tested: Mapping[Pair, str], round_: int, screening: int = 1, turn: int = 0) -> list[Pair]:
    """The disjoint pairs of the next round; none when all is known, or nothing more can be. `round_` counts from 0, `turn` chooses where
    the tournament begins, so that the runs of a check go through all links. `nodes` are those that are still to be had."""
    if round_ < screening:
        return tournament(nodes, round_ + turn * screening)
    if round_ >= rounds_needed(screening):
        return []
    known = verdict(nodes, tested)
    free = [node for node in nodes if node in known.good]
    planned: list[Pair] = []
    for node in sorted(known.open.intersection(nodes), key=lambda each: (-_failures(each, tested), each)):
        partner = next((each for each in free if pair(node, each) not in tested), None)
        if partner is not None:
            free.remove(partner)
            planned.append(pair(node, partner))
    return planned


def _failures(node: str, tested: Mapping[Pair, str]) -> int:
    return sum(result == FAILED and node in each for each, result in tested.items())
