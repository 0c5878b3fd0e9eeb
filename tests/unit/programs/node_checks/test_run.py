"""Whole runs against a Slurm in memory: whatever the nodes are, whatever others do meanwhile, wherever the run is killed."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.node_checks.allowance import Allowance
from programs.node_checks.plan import ENDED, NOT_STARTED, Outcome, Reservation, reserve
from programs.node_checks.run import Notes, Spec, read_spec, run_all
from programs.node_checks.settings import CheckedSet
from slurm.check_results import FAILED, PASSED, SKIPPED, UNKNOWN, CheckResult, Failure, failures, read_results, with_result
from slurm.scontrol import Node
from slurm.states import node_state
from tests.support.programs.node_checks.fake import FakeSlurm, Killed
from tests.unit.programs.node_checks.runs import AT, EARLIER, FINDINGS, spec

OURS = "slipway: check disk: it was full"
WAS_FULL = with_result("", "disk", CheckResult(FAILED, EARLIER, Failure(EARLIER, "it was full"))) or ""
STATES = {
    "idle": (frozenset({"IDLE"}), ""),
    "busy": (frozenset({"ALLOCATED"}), ""),
    "down": (frozenset({"DOWN"}), ""),
    "asleep": (frozenset({"IDLE", "POWERED_DOWN"}), ""),
    "kept": (frozenset({"IDLE", "RESERVED"}), ""),
    "ours": (frozenset({"IDLE", "DRAIN"}), OURS),
    "ours-draining": (frozenset({"ALLOCATED", "DRAIN"}), OURS),
    "admin": (frozenset({"IDLE", "DRAIN"}), "fan is loud"),
    "other-check": (frozenset({"IDLE", "DRAIN"}), "slipway: check memory: 3 errors"),
    "left-drained": (frozenset({"IDLE", "DRAIN", "RESERVED", "MAINTENANCE"}), OURS),
    "left-resumed": (frozenset({"IDLE", "RESERVED", "MAINTENANCE"}), ""),
}


def cluster(states: list[str], findings: list[str]) -> FakeSlurm:
    slurm = FakeSlurm({}, {f"n-{ordinal}": FINDINGS[finding] for ordinal, finding in enumerate(findings)})
    for ordinal, state in enumerate(states):
        name = f"n-{ordinal}"
        flags, reason = STATES[state]
        by = "slurm" if reason == OURS else "alice" if reason else ""
        extra = WAS_FULL if state.startswith(("ours", "left")) else ""
        slurm.known[name] = Node(name, node_state(flags), reason, by, ("main",), extra)
        if state.startswith("left"):
            slurm.held[name] = reserve("disk", Node(name, node_state(flags), OURS))
    return slurm


def run(slurm: FakeSlurm, size: int) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    run_all(spec(size), slurm, outcomes.__setitem__, AT, clock=lambda: 0, pause=lambda _: None)
    return outcomes


def noted(slurm: FakeSlurm, name: str) -> Failure | None:
    """What the check holds against a node, as the controller reads it."""
    results = read_results(slurm.known[name].extra)
    assert results is not None
    return failures(results).get("disk")


nodes = st.lists(st.tuples(st.sampled_from(sorted(STATES)), st.sampled_from(sorted(FINDINGS))), min_size=1, max_size=4)


@given(nodes, st.integers(0, 30))
def test_run_killed_anywhere_is_finished_by_the_next(each: list[tuple[str, str]], kill_at: int) -> None:
    states, findings = [state for state, _ in each], [finding for _, finding in each]
    whole, killed = cluster(states, findings), cluster(states, findings)
    expected = {name: outcome.result for name, outcome in run(whole, len(each)).items()}

    killed.kill_at = kill_at
    try:
        run(killed, len(each))
    except Killed:
        for name, (state, finding) in zip(killed.known, each, strict=True):
            if state in ("ours", "left-drained", "left-resumed"):
                assert not killed.is_open_to_users(name), "a node that failed was open to users before the controller lifted its drain"
                assert finding == PASSED or noted(killed, name), "a node that failed has nothing against it"
        killed.kill_at = -1
        assert {name: outcome.result for name, outcome in run(killed, len(each)).items()} == expected
    assert killed.held == {}
    assert {name: noted(killed, name) for name in killed.known} == {name: noted(whole, name) for name in whole.known}
    assert {name: "DRAIN" in node.state.flags for name, node in killed.known.items()} == {
        name: "DRAIN" in node.state.flags for name, node in whole.known.items()
    }


@given(nodes, st.integers(0, 30))
def test_run_that_sigterm_ends_holds_nothing_and_is_finished_by_the_next(each: list[tuple[str, str]], end_at: int) -> None:
    states, findings = [state for state, _ in each], [finding for _, finding in each]
    whole, ended = cluster(states, findings), cluster(states, findings)
    expected = {name: outcome.result for name, outcome in run(whole, len(each)).items()}

    ended.end_at = end_at
    before = dict(ended.known)
    found = run(ended, len(each))
    for name, (state, _) in zip(ended.known, each, strict=True):
        if state == "ours" or (state.startswith("left") and name not in ended.held):
            assert "DRAIN" in ended.known[name].state.flags
        if found[name] == ENDED:
            assert ended.known[name].extra == before[name].extra, "what was not looked at has no result"
    assert {name for name in ended.held if not states[int(name[2:])].startswith("left")} == set()

    ended.is_ending, ended.end_at = False, -1
    assert {name: outcome.result for name, outcome in run(ended, len(each)).items()} == expected
    assert ended.held == {}
    assert {name: noted(ended, name) for name in ended.known} == {name: noted(whole, name) for name in whole.known}


@given(nodes)
def test_no_drain_is_lifted_and_only_failures_drain(each: list[tuple[str, str]]) -> None:
    slurm = cluster([state for state, _ in each], [finding for _, finding in each])
    before = dict(slurm.known)
    outcomes = run(slurm, len(each))
    for name, (state, finding) in zip(before, each, strict=True):
        after = slurm.known[name]
        if state in ("busy", "down", "asleep", "kept", "admin", "ours-draining"):
            assert (after.state, after.reason) == (before[name].state, before[name].reason)
            assert outcomes[name].result == (UNKNOWN if state == "down" else SKIPPED)
            assert bool(noted(slurm, name)) == (state == "ours-draining")
        elif state == "idle":
            assert ("DRAIN" in after.state.flags) == (finding == FAILED)
            assert noted(slurm, name) == (Failure(AT, "full") if finding == FAILED else None)
        else:
            assert "DRAIN" in after.state.flags
            assert after.reason == (STATES["other-check"][1] if state == "other-check" else OURS)
            since = AT if state == "other-check" else EARLIER
            kept = None if state == "other-check" else Failure(EARLIER, "it was full")
            assert noted(slurm, name) == {PASSED: None, FAILED: Failure(since, "full")}.get(finding, kept)


@given(nodes)
def test_drain_by_an_administrator_during_the_check_stays(each: list[tuple[str, str]]) -> None:
    slurm = cluster([state for state, _ in each], [finding for _, finding in each])
    drained: set[str] = set()

    def drain(name: str) -> None:
        before = slurm.known[name]
        slurm.known[name] = Node(name, node_state(before.state.flags | {"DRAIN"}), "burning", "alice", ("main",), before.extra)
        drained.add(name)

    slurm.on_job = drain
    run(slurm, len(each))
    assert {name: slurm.known[name].reason for name in drained} == dict.fromkeys(drained, "burning")
    assert slurm.held == {}
    failed = {name for name in drained if slurm.is_failing(name)}
    assert all(noted(slurm, name) for name in failed), "lifted by the administrator, the node would take jobs"


def test_node_that_left_the_check_is_drained_again_and_released() -> None:
    slurm = cluster(["idle", "left-resumed"], [PASSED, PASSED])
    assert run(slurm, 1)["n-1"] == Outcome(UNKNOWN, "no longer in the node sets of this check", "kept drained")
    assert slurm.known["n-1"].reason == OURS
    assert slurm.held == {}


def test_nodes_beyond_the_deadline_are_unknown() -> None:
    slurm = cluster(["idle", "idle"], [PASSED, PASSED])
    times = iter([0, 10, 700, 700])
    outcomes: dict[str, Outcome] = {}
    run_all(spec(2), slurm, outcomes.__setitem__, AT, clock=lambda: next(times))
    assert outcomes == {"n-0": FINDINGS[PASSED], "n-1": Outcome(UNKNOWN, "no time left in this run")}


def run_beside_another_check(ends_after: int) -> tuple[Outcome, list[float]]:
    """A run on a node that another check has, for so many looks; and the pauses of the run."""
    slurm = cluster(["busy"], [PASSED])
    slurm.checked.add("n-0")
    outcomes: dict[str, Outcome] = {}
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == ends_after:
            slurm.end_other_check("n-0")

    run_all(spec(1), slurm, outcomes.__setitem__, AT, clock=lambda: sum(pauses), pause=pause)
    return outcomes["n-0"], pauses


def test_node_that_another_check_has_is_waited_for() -> None:
    outcome, pauses = run_beside_another_check(ends_after=3)
    assert (outcome, len(pauses)) == (FINDINGS[PASSED], 3)


def run_on_an_idle_node(refusals: int) -> tuple[Outcome, int]:
    """A run on a node for which Slurm refuses so many jobs, and which is idle at each reading; and how many jobs were tried."""
    slurm = cluster(["idle"], [SKIPPED])
    pauses: list[float] = []
    outcomes: dict[str, Outcome] = {}

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == refusals:
            slurm.found = {"n-0": FINDINGS[PASSED]}

    run_all(spec(1), slurm, outcomes.__setitem__, AT, clock=lambda: sum(pauses), pause=pause)
    return outcomes["n-0"], sum(operation == "run" for operation, _ in slurm.log)


@pytest.mark.parametrize(
    ("refusals", "expected"),
    [
        pytest.param(1, (FINDINGS[PASSED], 2), id="another-check-ended-meanwhile"),
        pytest.param(2, (FINDINGS[PASSED], 3), id="two-others-did"),
        pytest.param(10_000, (NOT_STARTED, 3), id="slurm-always-refuses"),
    ],
)
def test_refusal_on_an_idle_node_is_tried_again(refusals: int, expected: tuple[Outcome, int]) -> None:
    assert run_on_an_idle_node(refusals) == expected


def test_check_that_never_ends_is_not_waited_for_without_end() -> None:
    outcome, pauses = run_beside_another_check(ends_after=10_000)
    assert (outcome, sum(pauses) <= 121) == (FINDINGS[SKIPPED], True)


def test_node_that_another_check_reserves_first_is_waited_for() -> None:
    slurm = cluster(["ours"], [PASSED])
    theirs = reserve("memory", slurm.known["n-0"])
    pauses: list[float] = []

    def be_faster(held: Reservation) -> bool:
        slurm.reserve = ours  # type: ignore[method-assign]
        slurm.held["n-0"] = theirs
        return ours(held)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            slurm.release(theirs)

    ours: Callable[[Reservation], bool] = slurm.reserve
    slurm.reserve = be_faster  # type: ignore[method-assign]
    slurm.checked.add("n-0")
    outcomes: dict[str, Outcome] = {}
    run_all(spec(1), slurm, outcomes.__setitem__, AT, clock=lambda: sum(pauses), pause=pause)
    assert (outcomes["n-0"].result, outcomes["n-0"].action, len(pauses)) == (PASSED, "cleared", 3)
    assert slurm.held == {}


def test_node_with_a_job_of_a_user_is_skipped_at_once() -> None:
    slurm = cluster(["busy"], [PASSED])
    outcomes: dict[str, Outcome] = {}
    run_all(spec(1), slurm, outcomes.__setitem__, AT, clock=lambda: 0, pause=lambda _: pytest.fail("it waited"))
    assert outcomes == {"n-0": FINDINGS[SKIPPED]}


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        pytest.param(["idle"] * 4, 2, id="no-more-than-the-cap"),
        pytest.param(["ours", "idle", "idle"], 2, id="those-drained-before-count"),
        pytest.param(["ours", "ours", "ours", "idle"], 3, id="a-lower-cap-lifts-nothing"),
        pytest.param(["admin", "idle", "idle", "idle"], 3, id="drains-of-others-do-not-count"),
        pytest.param(["other-check", "idle", "idle"], 2, id="those-of-other-checks-count"),
        pytest.param(["left-resumed", "left-drained", "idle", "idle"], 2, id="what-a-killed-run-left-counts-and-is-drained-again"),
    ],
)
def test_check_that_fails_everywhere_drains_no_more_than_its_cap(states: list[str], expected: int) -> None:
    slurm = cluster(states, [FAILED] * len(states))
    outcomes: dict[str, Outcome] = {}
    run_all(spec(len(states), max_drained=2), slurm, outcomes.__setitem__, AT, clock=lambda: 0, pause=lambda _: None)
    drained = {name for name, node in slurm.known.items() if "DRAIN" in node.state.flags}
    assert len(drained) == expected
    spared = {name for name, state in zip(slurm.known, states, strict=True) if state == "idle"} - drained
    assert all("not drained: all checks together may hold no more than 2 of its set" in outcomes[name].found for name in spared)
    assert all(outcomes[name].result == FAILED for name in spared)


def test_spec_names_the_nodes_of_its_sets() -> None:
    text = json.dumps(
        {
            "name": "gpus",
            "check": "gpu",
            "timeoutS": 60,
            "parallel": 16,
            "deadlineS": 900,
            "causeKind": "hardware",
            "nodeSets": [{"name": "gpu", "size": 2, "gpus": 8, "maxDrained": 1, "settings": {"count": 8}}],
        }
    )
    gpu = CheckedSet("gpu", 2, 8, 1, {"count": 8})
    assert read_spec(text) == Spec("gpus", "gpu", 60, 16, 900, "hardware", (gpu,), targets={"gpu-0": gpu, "gpu-1": gpu})


def test_spared_node_is_noted_as_one_that_keeps_its_jobs() -> None:
    slurm = cluster(["idle", "idle"], [FAILED, FAILED])
    run_all(spec(2, max_drained=1), slurm, dict[str, Outcome]().__setitem__, AT, clock=lambda: 0, pause=lambda _: None)
    assert [noted(slurm, name) for name in slurm.known] == [Failure(AT, "full"), Failure(AT, "full", drains=False)]


def test_failure_is_noted_with_the_machine_that_the_node_is_on() -> None:
    slurm = cluster(["idle", "ours"], [FAILED, UNKNOWN])
    for name, each in slurm.known.items():
        slurm.known[name] = Node(name, each.state, each.reason, "", ("main",), each.extra, instance=f"m-{name}/b-1")
    run(slurm, 2)
    assert noted(slurm, "n-0") == Failure(AT, "full", machine="m-n-0/b-1", seen=AT)
    assert noted(slurm, "n-1") == Failure(EARLIER, "it was full")


def test_failure_with_the_wish_none_is_noted_and_drains_nothing() -> None:
    slurm, outcomes = cluster(["idle"], [FAILED]), dict[str, Outcome]()
    run_all(replace(spec(1), wish="none"), slurm, outcomes.__setitem__, AT, clock=lambda: 0, pause=lambda _: None)
    assert noted(slurm, "n-0") == Failure(AT, "full", drains=False, wish="none")
    assert outcomes["n-0"].found == "full; not drained: its wish is none"
    assert "DRAIN" not in slurm.known["n-0"].state.flags


def test_failure_with_wish_none_drains_nothing_if_it_cannot_be_noted() -> None:
    slurm, outcomes = cluster(["idle"], [FAILED]), dict[str, Outcome]()
    slurm.record(["n-0"], "rack 7")
    run_all(replace(spec(1), wish="none"), slurm, outcomes.__setitem__, AT, clock=lambda: 0, pause=lambda _: None)
    assert "DRAIN" not in slurm.known["n-0"].state.flags


def test_failure_with_the_wish_none_leaves_the_drain_of_another_check() -> None:
    """To look again, the check resumes the node in its reservation; then the other one's drain comes back, with its words."""
    slurm, outcomes = cluster(["other-check"], [FAILED]), dict[str, Outcome]()
    before = slurm.known["n-0"].reason
    run_all(replace(spec(1), wish="none"), slurm, outcomes.__setitem__, AT, clock=lambda: 0, pause=lambda _: None)
    assert noted(slurm, "n-0") == Failure(AT, "full", drains=False, wish="none")
    assert ("DRAIN" in slurm.known["n-0"].state.flags, slurm.known["n-0"].reason) == (True, before)


def test_wish_that_has_become_none_leaves_its_own_drain_to_the_controller() -> None:
    slurm, outcomes = cluster(["ours"], [FAILED]), dict[str, Outcome]()
    run_all(replace(spec(1), wish="none"), slurm, outcomes.__setitem__, AT, clock=lambda: 0, pause=lambda _: None)
    now = noted(slurm, "n-0")
    assert now is not None
    assert (now.found, now.drains, now.wish) == ("full", False, "none")
    assert (outcomes["n-0"].action, slurm.held) == ("kept drained", {})


def test_failure_that_asks_for_a_reboot_is_noted_so() -> None:
    slurm = cluster(["idle"], [FAILED])
    run_all(replace(spec(1), wish="reboot"), slurm, dict[str, Outcome]().__setitem__, AT, clock=lambda: 0, pause=lambda _: None)
    assert noted(slurm, "n-0") == Failure(AT, "full", wish="reboot")
    assert "DRAIN" in slurm.known["n-0"].state.flags


def test_failure_that_cannot_be_noted_drains_and_says_who_lifts_it() -> None:
    slurm = cluster(["idle"], [FAILED])
    slurm.record(["n-0"], "rack 7")
    [outcome] = run(slurm, 1).values()
    assert (outcome.result, outcome.action) == (FAILED, "drained")
    assert outcome.found.endswith("so an administrator has to lift this drain")
    assert slurm.known["n-0"].extra == "rack 7"
    assert slurm.known["n-0"].reason.endswith("so an administrator has to lift this drain")


def notes(slurm: FakeSlurm, size: int) -> Notes:
    return Notes(spec(size), slurm, Allowance(()), AT)


def test_equal_results_are_noted_in_one_call_and_skipped_nodes_in_none() -> None:
    slurm = cluster(["idle"] * 4, [PASSED] * 4)
    calls: list[tuple[list[str], str]] = []
    write = slurm.record

    def note(nodes: Iterable[str], extra: str) -> None:
        calls.append((list(nodes), extra))
        write(calls[-1][0], extra)

    slurm.record = note  # type: ignore[method-assign]
    outcomes = {f"n-{ordinal}": FINDINGS[finding] for ordinal, finding in enumerate([FAILED, SKIPPED, FAILED, PASSED])}
    assert notes(slurm, 4).write(outcomes)
    assert sorted((names, read_results(text)) for names, text in calls) == [
        (["n-0", "n-2"], {"disk": CheckResult(FAILED, AT, Failure(AT, "full"))}),
        (["n-3"], {"disk": CheckResult(PASSED, AT)}),
    ]


def test_failure_that_another_check_overwrites_later_is_noted_again() -> None:
    """The other check had read the nodes before the failure was noted, and writes after this run has looked at what it wrote."""
    slurm = cluster(["idle"], [FAILED])
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        slurm.record(["n-0"], with_result("", "gpu", CheckResult(PASSED, AT)) or "")

    run_all(spec(1), slurm, dict[str, Outcome]().__setitem__, AT, clock=lambda: 0, pause=pause)
    assert noted(slurm, "n-0") == Failure(AT, "full")
    assert pauses == [pytest.approx(1.004)]


def test_results_of_two_checks_that_end_at_once_are_both_kept() -> None:
    """The other one has read before our write, and writes after it: ours is gone then, and written again."""
    slurm = cluster(["idle"], [PASSED])
    write, others = slurm.record, [with_result("", "gpu", CheckResult(PASSED, AT))]

    def overtake(nodes: Iterable[str], extra: str) -> None:
        write([*nodes], extra)
        while others:
            write(["n-0"], others.pop() or "")

    slurm.record = overtake  # type: ignore[method-assign]
    assert notes(slurm, 1).write({"n-0": FINDINGS[FAILED]})
    assert (read_results(slurm.known["n-0"].extra) or {}).keys() == {"disk", "gpu"}
