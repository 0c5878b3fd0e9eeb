"""Runs of checks of groups of nodes."""

from dataclasses import replace
from typing import Any

from programs.node_checks.groups import run_groups
from programs.node_checks.pairs import Pair
from programs.node_checks.plan import Outcome
from programs.node_checks.run import Spec
from programs.node_checks.settings import CheckedSet
from slurm.check_results import FAILED, PASSED
from slurm.scontrol import Node
from slurm.states import node_state
from tests.support.programs.node_checks.fake import FakeSlurm

AT = "2026-01-02T03:04:05Z"
LIMITS = {"minBandwidthMBs": 0, "maxLatencyUs": 0, "minShareOfMedianPercent": 50, "messageKiB": 1024, "seconds": 1, "rounds": 1}
FINE, SLOW = Outcome(PASSED, ""), Outcome(FAILED, "")


def cluster(count: int, faulty: set[int], links: set[Pair] = frozenset(), busy: set[int] = frozenset()) -> FakeSlurm:  # type: ignore[assignment]
    names = [f"n-{ordinal}" for ordinal in range(count)]
    slurm = FakeSlurm({}, {name: SLOW if at in faulty else FINE for at, name in enumerate(names)}, slow_links=links)
    for at, name in enumerate(names):
        slurm.known[name] = Node(name, node_state(frozenset({"ALLOCATED" if at in busy else "IDLE"})), partitions=("main",))
    return slurm


def spec(count: int, **more: Any) -> Spec:
    targets = {f"n-{ordinal}": CheckedSet("n", count, 0, 100, {**LIMITS}) for ordinal in range(count)}
    return replace(Spec("mpi", "mpi", 60, 1, 600, "hardware", (), per="pair", targets=targets), **more)


def run(slurm: FakeSlurm, asked: Spec, turn: int = 0) -> tuple[dict[str, Outcome], dict[Pair, str]]:
    outcomes: dict[str, Outcome] = {}
    pairs: dict[Pair, str] = {}
    run_groups(
        asked, slurm, outcomes.__setitem__, lambda each, result, _: pairs.update({each: result}), AT, turn, lambda: 0, lambda _: None
    )
    return outcomes, pairs
