"""Runs of checks that the NodeSet controller has asked for: only its nodes, also those that it holds drained until they have passed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.node_checks.plan import Done, Drain, Note, Outcome, Release, Reserve, Resume, Run, Step, next_step, reserve
from programs.node_checks.run import read_spec, run_all
from slurm.check_results import ASKED as ASKED_NODES
from slurm.check_results import FAILED, PASSED, SKIPPED, UNKNOWN, CheckResult, Request, read_requests, read_results, requests_text
from slurm.reasons import REMEDY
from slurm.scontrol import Node
from slurm.states import node_state
from tests.unit.programs.node_checks import test_groups as groups
from tests.unit.programs.node_checks.fake import FakeSlurm, Killed
from tests.unit.programs.node_checks.test_run import AT, FINDINGS, spec

ASKED = Request("i-1", AT)
DRAINED = Node("n-0", node_state(frozenset({"IDLE", "DRAIN"})), REMEDY, "slurm", ("main",))
HELD = reserve("disk", DRAINED)
RESUMED = Node("n-0", node_state(frozenset({"IDLE", "RESERVED", "MAINTENANCE"})), "", "", ("main",))
PASS, FAIL = FINDINGS[PASSED], FINDINGS[FAILED]


@pytest.mark.parametrize(
    ("node", "outcome", "noted", "is_asked", "held", "step"),
    [
        pytest.param(DRAINED, None, False, True, False, Reserve(HELD), id="asked"),
        pytest.param(DRAINED, None, False, False, False, Done(Outcome(SKIPPED, f"drained by slurm: {REMEDY}")), id="not-asked"),
        pytest.param(DRAINED, None, False, True, True, Resume(), id="reserved"),
        pytest.param(RESUMED, None, False, True, True, Run(HELD), id="resumed"),
        pytest.param(RESUMED, PASS, False, True, True, Drain(REMEDY), id="the-drain-comes-back-with-its-reason"),
        pytest.param(DRAINED, PASS, False, True, True, Note(), id="a-pass-is-noted-first"),
        pytest.param(DRAINED, PASS, True, True, True, Release(HELD), id="then-the-node-is-let-go"),
        pytest.param(RESUMED, FAIL, True, True, True, Drain(REMEDY), id="a-failure"),
        pytest.param(DRAINED, None, False, False, True, Release(HELD), id="left-drained-by-a-killed-run"),
        pytest.param(RESUMED, FINDINGS[UNKNOWN], False, False, True, Drain(REMEDY), id="left-resumed-by-a-killed-run"),
    ],
)
def test_next_step(node: Node, outcome: Outcome | None, noted: bool, is_asked: bool, held: bool, step: Step) -> None:
    assert next_step("disk", "n-0", node, HELD if held else None, outcome, noted, is_asked) == step


def site(*findings: str) -> FakeSlurm:
    """Nodes that the controller holds drained, and what the check finds on them."""
    slurm = FakeSlurm({}, {f"n-{at}": FINDINGS[each] for at, each in enumerate(findings)})
    slurm.known = {f"n-{at}": Node(f"n-{at}", DRAINED.state, REMEDY, "slurm", ("main",)) for at in range(len(findings))}
    return slurm


def run(slurm: FakeSlurm, size: int, *names: str) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    asked = replace(spec(size), asked=dict.fromkeys(names, ASKED))
    run_all(asked, slurm, outcomes.__setitem__, AT, clock=lambda: 0, pause=lambda _: None)
    return outcomes


def result(slurm: FakeSlurm, name: str) -> CheckResult | None:
    return (read_results(slurm.known[name].extra) or {}).get("disk")


@given(st.lists(st.sampled_from([PASSED, FAILED, UNKNOWN]), min_size=2, max_size=4), st.integers(-1, 20))
def test_only_the_asked_nodes_are_looked_at_and_all_stay_drained(findings: list[str], kill_at: int) -> None:
    slurm = site(*findings)
    slurm.kill_at = kill_at
    try:
        run(slurm, len(findings), "n-0")
    except Killed:
        assert not slurm.is_open_to_users("n-0")
    slurm.kill_at = -1
    assert set(run(slurm, len(findings), "n-0")) == {"n-0"}
    assert {name for _, name in slurm.log} == {"n-0"}
    assert slurm.held == {}
    assert all(node.reason == REMEDY and "DRAIN" in node.state.flags for node in slurm.known.values())
    noted = result(slurm, "n-0")
    assert noted is not None
    assert (noted.result, noted.passed_for) == (findings[0], ASKED if findings[0] == PASSED else None)


def test_node_without_a_drain_is_looked_at_as_well() -> None:
    slurm = site(PASSED, PASSED)
    slurm.known["n-0"] = Node("n-0", node_state(frozenset({"IDLE"})), "", "", ("main",))
    run(slurm, 2, "n-0")
    assert result(slurm, "n-0") == CheckResult(PASSED, AT, passed_for=ASKED)
    assert result(slurm, "n-1") is None


def test_what_another_run_of_the_check_has_begun_elsewhere_is_left_to_it() -> None:
    slurm = site(PASSED, PASSED)
    slurm.held["n-1"] = reserve("disk", slurm.known["n-1"])
    assert set(run(slurm, 2, "n-0")) == {"n-0"}
    assert set(slurm.held) == {"n-1"}


def test_check_between_nodes_takes_a_few_idle_ones_to_test_with() -> None:
    slurm = groups.cluster(20, set())
    slurm.known["n-7"] = Node("n-7", DRAINED.state, REMEDY, "slurm", ("main",))
    said, _ = groups.run(slurm, groups.spec(20, asked={"n-7": ASKED}))
    assert (said["n-7"].result, len(said), slurm.known["n-7"].reason) == (PASSED, 5, REMEDY)
    noted = {name: (read_results(node.extra) or {})["mpi"].passed_for for name, node in slurm.known.items() if node.extra}
    assert {name for name, asked in noted.items() if asked} == {"n-7"}
    assert (len(noted), slurm.held) == (5, {})


def test_requests_travel_as_text() -> None:
    asked = {"n-0": ASKED, "n-1": Request("i-2")}
    text = (
        '{"name": "a", "check": "disk", "timeoutS": 1, "parallel": 1, "deadlineS": 1, "maxDrained": 1, "causeKind": "node", "nodeSets": []}'
    )
    assert read_requests(requests_text(asked)) == asked
    assert read_spec(text, requests_text(asked)).asked == asked
    assert read_spec(text).asked is None


@pytest.mark.parametrize("text", ["{", "[]", '{"n-0": {}}', '{"n-0": "i-1"}'])
def test_text_of_somebody_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=ASKED_NODES):
        read_requests(text)
