"""Runs of checks that the NodeSet controller has asked for: only its nodes, also those that it holds drained until they have passed."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from names import variables
from programs.node_checks.plan import BUSY, Done, Drain, Note, Outcome, Release, Reservation, Reserve, Resume, Run, Step, next_step, reserve
from programs.node_checks.run import read_spec, run_all
from slurm.check_results import (
    FAILED,
    PASSED,
    SKIPPED,
    UNKNOWN,
    CheckResult,
    Failure,
    Request,
    read_requests,
    read_results,
    requests_text,
    with_result,
)
from slurm.reasons import REMEDY
from slurm.scontrol import Node
from slurm.states import node_state
from tests.support.programs.node_checks.fake import FakeSlurm, Killed
from tests.unit.programs.node_checks import group_runs as groups
from tests.unit.programs.node_checks.runs import AT, FINDINGS, spec

ASKED = Request("i-1", AT)
DRAINED = Node("n-0", node_state(frozenset({"IDLE", "DRAIN"})), REMEDY, "slurm", ("main",))
HELD, THEIRS = reserve("disk", DRAINED, is_asked=True), reserve("disk", DRAINED)
"""The reservation of such a run, and that of a run of the schedule."""
OLD = {each: replace(each, age_s=7201.0) for each in (HELD, THEIRS)}
"""Older than a run can be: its run was killed."""
RESUMED = Node("n-0", node_state(frozenset({"IDLE", "RESERVED", "MAINTENANCE"})), "", "", ("main",))
PASS, FAIL = FINDINGS[PASSED], FINDINGS[FAILED]


@pytest.mark.parametrize(
    ("node", "outcome", "noted", "is_asked", "held", "step"),
    [
        pytest.param(DRAINED, None, False, True, None, Reserve(HELD), id="asked"),
        pytest.param(DRAINED, None, False, False, None, Done(Outcome(SKIPPED, f"drained by slurm: {REMEDY}")), id="not-asked"),
        pytest.param(DRAINED, None, False, True, HELD, Resume(), id="reserved"),
        pytest.param(RESUMED, None, False, True, HELD, Run(HELD), id="resumed"),
        pytest.param(RESUMED, PASS, False, True, HELD, Drain(REMEDY), id="the-drain-comes-back-with-its-reason"),
        pytest.param(DRAINED, PASS, False, True, HELD, Note(), id="a-pass-is-noted-first"),
        pytest.param(DRAINED, PASS, True, True, HELD, Release(HELD), id="then-the-node-is-let-go"),
        pytest.param(RESUMED, FAIL, True, True, HELD, Drain(REMEDY), id="a-failure"),
        pytest.param(DRAINED, None, False, False, HELD, Done(BUSY), id="a-run-of-the-schedule-leaves-it-alone"),
        pytest.param(RESUMED, None, False, False, HELD, Done(BUSY), id="a-run-of-the-schedule-leaves-it-resumed"),
        pytest.param(RESUMED, None, False, True, THEIRS, Done(BUSY), id="and-is-left-alone"),
        pytest.param(DRAINED, None, False, False, OLD[HELD], Release(OLD[HELD]), id="left-drained-by-a-killed-run"),
        pytest.param(RESUMED, FINDINGS[UNKNOWN], False, False, OLD[HELD], Drain(REMEDY), id="left-resumed-by-a-killed-run"),
        pytest.param(DRAINED, None, False, True, OLD[THEIRS], Resume(), id="left-by-a-killed-run-of-the-schedule"),
    ],
)
def test_next_step(node: Node, outcome: Outcome | None, noted: bool, is_asked: bool, held: Reservation | None, step: Step) -> None:
    assert next_step("disk", "n-0", node, held, outcome, noted, is_asked, longest_s=7200) == step


def test_run_of_the_schedule_beside_it_opens_no_node_to_users() -> None:
    """It begins while the check is under way, and ends after the other has resumed the node."""
    slurm = site(PASSED)
    open_to_users: list[str] = []

    def meanwhile(name: str) -> None:
        slurm.on_job = lambda _: None
        run_all(spec(1), slurm, lambda _name, _outcome: None, AT, clock=lambda: 0, pause=lambda _: None)
        open_to_users.extend(each for each in (name,) if slurm.is_open_to_users(each))

    slurm.on_job = meanwhile
    run(slurm, 1, "n-0")
    assert (open_to_users, slurm.held, slurm.known["n-0"].reason) == ([], {}, REMEDY)


def test_failure_that_another_check_notes_meanwhile_is_not_written_over() -> None:
    """What has passed for the controller is another text for each node, so writing takes long."""
    size = 120
    slurm = site(*[PASSED] * size)
    record, failed = slurm.record, with_result("", "gpu", CheckResult(FAILED, AT, Failure(AT, "fell off")))
    assert failed is not None

    def slow(nodes: Iterable[str], extra: str) -> None:
        written = sum(operation == "record" for operation, _ in slurm.log)
        if written == 60:
            record(["n-99"], failed)
        record(nodes, extra)

    slurm.record = slow  # type: ignore[method-assign]
    outcomes: dict[str, Outcome] = {}
    asked = replace(spec(size), asked={f"n-{at}": Request(f"i-{at}", AT) for at in range(size)})
    for at in range(size):
        slurm.known[f"n-{at}"] = Node(f"n-{at}", node_state(frozenset({"IDLE"})), "", "", ("main",))
    run_all(asked, slurm, outcomes.__setitem__, AT, clock=lambda: 0, pause=lambda _: None)
    noted = {name: read_results(node.extra) or {} for name, node in slurm.known.items()}
    assert all(results["disk"].passed_for == Request(name.replace("n", "i"), AT) for name, results in noted.items())
    assert noted["n-99"]["gpu"].result == FAILED


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
    slurm.held["n-1"] = reserve("disk", slurm.known["n-1"], is_asked=True)
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
    text = '{"name": "a", "check": "disk", "timeoutS": 1, "parallel": 1, "deadlineS": 1, "causeKind": "node", "nodeSets": []}'
    assert read_requests(requests_text(asked)) == asked
    assert read_spec(text, requests_text(asked)).asked == asked
    assert read_spec(text).asked is None


@pytest.mark.parametrize("text", ["{", "[]", '{"n-0": {}}', '{"n-0": "i-1"}'])
def test_text_of_somebody_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=variables.ASKED_NODES):
        read_requests(text)
