"""What a round decides takes four times as much for four times as many nodes, and not sixteen times: counted in lines, not in seconds."""

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, cast

import pytest

from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import plan_nodeset
from controllers.slurm.structs import Reservation
from slurm.check_results import RESERVATION
from tests.support.controllers.nodeset.large_sets import CASES, see, tell

ROOT = Path(__file__).parents[4]
OURS = str(ROOT / "controllers"), str(ROOT / "names"), str(ROOT / "slurm"), __file__
FEW, MANY = 100, 400
MOST = 4.1
"""Times as many lines, at most, for four times as many nodes."""


class Ordinal(int):
    """An ordinal whose comparisons are lines of Python: `ordinal in ordinals` counts as what it is where these are a list or a tuple."""

    def __eq__(self, other: object) -> bool:
        return int(self) == other

    def __hash__(self) -> int:
        return int.__hash__(self)


class Lines:
    """How many lines of ours were run; each turn of a loop is one, of a comprehension too."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if event == "call" and not frame.f_code.co_filename.startswith(OURS):
            return None
        self.count += 1
        return self


@contextmanager
def counting() -> Generator[Lines]:
    lines, before = Lines(), sys.gettrace()
    sys.settrace(lines)
    try:
        yield lines
    finally:
        sys.settrace(before)


def with_ordinals(given: Any) -> Any:
    """The same with an Ordinal for each whole number that is a key or an element."""
    if isinstance(given, Mapping):
        entries = cast("Mapping[Any, Any]", given).items()
        return {Ordinal(key) if type(key) is int else key: value for key, value in entries}
    if isinstance(given, frozenset):
        return frozenset(Ordinal(each) if type(each) is int else each for each in cast("frozenset[Any]", given))
    if is_dataclass(given) and not isinstance(given, type):
        return replace(given, **{each.name: with_ordinals(getattr(given, each.name)) for each in fields(given)})
    return given


def lines_of(case: str, size: int) -> dict[str, int]:
    """Lines of each part of a round."""
    large = CASES[case](size)
    with counting() as seeing:
        observed = see(large)
    observed = cast("Observed", with_ordinals(observed))
    with counting() as planning:
        plan = plan_nodeset(large.nodeset, observed)
    with counting() as telling:
        tell(large, observed, plan)
    return {"observe": seeing.count, "plan": planning.count, "tell": telling.count}


@pytest.mark.parametrize("case", CASES)
def test_round_grows_with_its_set_and_no_faster(case: str) -> None:
    few, many = lines_of(case, FEW), lines_of(case, MANY)
    growth = {part: round(many[part] / few[part], 2) for part in few}
    assert max(growth.values()) < MOST, f"{growth}: {few} lines for {FEW} nodes, {many} for {MANY}"
    assert few["plan"] > 10 * FEW, "it does something for each node"


def test_reservation_costs_a_set_no_more_than_its_own_nodes() -> None:
    """One for maintenance may name all nodes of the cluster, and each set looks at it in each round."""

    def lines(others: int) -> int:
        large = CASES["at rest"](FEW)
        nodes = ",".join(["gpu-[0-9]", *(f"set{number}-[0-9]" for number in range(others))])
        large = replace(large, snapshot=replace(large.snapshot, reservations=(Reservation(f"{RESERVATION}a", node_list=nodes),)))
        assert see(large).looked_at == frozenset(range(10))
        with counting() as counted:
            see(large)
        return counted.count

    assert lines(FEW) == lines(MANY)


def test_a_step_of_each_with_each_other_would_be_seen() -> None:
    """Also where Python's own code compares."""

    def lines(size: int) -> int:
        ordinals = [Ordinal(at) for at in range(size)]
        asked = [Ordinal(at) for at in range(size)]
        with counting() as counted:
            assert all(each in ordinals for each in asked)
        return counted.count

    assert lines(MANY) / lines(FEW) > 15
