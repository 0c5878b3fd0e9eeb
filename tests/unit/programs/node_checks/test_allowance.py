"""Which nodes count as held by checks, and who may be the next of its set."""

from collections.abc import Sequence

import pytest

from programs.node_checks.allowance import Allowance, held_by_checks
from slurm.check_results import FAILED, PASSED, CheckResult, Failure, with_result
from slurm.scontrol import Node
from slurm.states import node_state

AT, LATELY, LONG_AGO = "2026-01-02T03:04:05Z", "2026-01-02T03:00:00Z", "2026-01-02T02:30:00Z"


def extra(at: str, drains: bool = True, result: str = FAILED) -> str:
    """What a check of disks notes."""
    return with_result("", "disk", CheckResult(result, at, Failure(at, "full", "node", drains))) or ""


@pytest.mark.parametrize(
    ("state", "reason", "noted", "is_held"),
    [
        pytest.param("IDLE+DRAIN", "slipway: check disk: full", extra(LONG_AGO), True, id="drained"),
        pytest.param("MIXED+DRAIN", "slipway: check gpu: gone", "rack 7", True, id="drained-and-no-room-to-note-it"),
        pytest.param("IDLE+DRAIN", "fan is loud", extra(LONG_AGO), True, id="behind-an-administrators-words"),
        pytest.param("IDLE+RESERVED", "", extra(LONG_AGO), True, id="looked-at-again"),
        pytest.param("IDLE", "", extra(LATELY), True, id="about-to-be-drained"),
        pytest.param("IDLE", "", extra(LONG_AGO), False, id="of-a-check-that-is-not-declared-any-more"),
        pytest.param("IDLE+DRAIN", "", extra(LATELY, drains=False), False, id="spared"),
        pytest.param("IDLE+DRAIN", "fan is loud", "{}", False, id="drained-by-others"),
        pytest.param("IDLE", "", extra(LATELY, result=PASSED), True, id="has-not-passed-often-enough"),
    ],
)
def test_node_counts_while_a_check_holds_it(state: str, reason: str, noted: str, is_held: bool) -> None:
    node = Node("gpu-0", node_state(state.split("+")), reason, extra=noted)
    assert held_by_checks({"gpu-0": node}, AT) == ({"gpu-0"} if is_held else set())


def test_node_reserved_by_a_check_counts_before_its_state_shows_it() -> None:
    nodes = {name: Node(name, node_state(["IDLE"])) for name in ("gpu-0", "gpu-1")}
    assert held_by_checks(nodes, AT, {"gpu-0", "gone-7"}) == {"gpu-0"}


@pytest.mark.parametrize(
    ("held", "node", "most", "may"),
    [
        pytest.param((), "gpu-0", 1, True, id="the-first"),
        pytest.param(("gpu-1",), "gpu-0", 1, False, id="another-one-is-held"),
        pytest.param(("gpu-1",), "gpu-1", 1, True, id="held-already"),
        pytest.param(("gpu-1", "gpu-2"), "gpu-2", 1, True, id="a-lower-limit-lets-none-go"),
        pytest.param(("cpu-1", "big-gpu-1"), "gpu-0", 1, True, id="other-sets-have-their-own"),
        pytest.param(("gpu-1",), "gpu-0", 2, True, id="a-check-with-a-higher-limit"),
        pytest.param((), "gpu-0", 0, False, id="none-at-all"),
    ],
)
def test_every_set_has_one_allowance(held: Sequence[str], node: str, most: int, may: bool) -> None:
    allowance = Allowance(held)
    assert [allowance.has_room(node, most), allowance.take(node, most)] == [may, may]


def test_node_that_was_taken_counts_for_the_next() -> None:
    allowance = Allowance(())
    assert [allowance.take(f"gpu-{at}", 2) for at in range(3)] == [True, True, False]
    allowance.add({"cpu-1"})
    assert not allowance.take("cpu-0", 1)
