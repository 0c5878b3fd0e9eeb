"""Whole runs of a check between nodes, against a Slurm in memory: who is drained, who is not, and what a killed run leaves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.node_checks.groups import run_groups
from programs.node_checks.measured import Measured, baseline, judge, read_measured
from programs.node_checks.pairs import pair
from programs.node_checks.plan import Outcome
from programs.node_checks.settings import CheckedSet
from slurm.check_results import FAILED, PASSED, SKIPPED, UNKNOWN, failures, read_results
from slurm.scontrol import Node
from slurm.states import node_state
from tests.support.programs.node_checks.fake import FakeSlurm, Killed, changed
from tests.unit.programs.node_checks.group_runs import AT, FINE, LIMITS, cluster, run, spec


def drained(slurm: FakeSlurm) -> set[str]:
    return {name for name, node in slurm.known.items() if "DRAIN" in node.state.flags}


@given(st.integers(9, 20), st.integers(0, 40), st.data())
def test_node_at_fault_is_drained_and_cleared_when_it_is_mended(count: int, turn: int, data: st.DataObject) -> None:
    at_fault = data.draw(st.integers(0, count - 1))
    slurm, asked = cluster(count, {at_fault}), spec(count)
    said, pairs = run(slurm, asked, turn)
    assert {name for name, outcome in said.items() if outcome.result == FAILED} == drained(slurm) == {f"n-{at_fault}"}
    assert said[f"n-{at_fault}"].action == "drained"
    assert FAILED in pairs.values()
    assert {outcome.result for name, outcome in said.items() if name != f"n-{at_fault}"} == {PASSED}
    again, _ = run(slurm, asked, turn)
    assert (again[f"n-{at_fault}"].result, again[f"n-{at_fault}"].action) == (FAILED, "drained")
    slurm.found = dict.fromkeys(slurm.found, FINE)
    mended, _ = run(slurm, asked, turn)
    assert (mended[f"n-{at_fault}"].result, mended[f"n-{at_fault}"].action) == (PASSED, "cleared")
    assert not slurm.held
    assert not failures(read_results(slurm.known[f"n-{at_fault}"].extra) or {})


@given(st.integers(0, 40), st.integers(0, 60))
def test_run_killed_anywhere_is_finished_by_the_next(turn: int, kill_at: int) -> None:
    slurm, asked = cluster(9, {4}), spec(9)
    run(slurm, asked, turn)
    slurm.kill_at = len(slurm.log) + kill_at
    try:
        run(slurm, asked, turn)
    except Killed:
        assert not slurm.is_open_to_users("n-4")
    slurm.kill_at = -1
    said, _ = run(slurm, asked, turn)
    assert (drained(slurm), slurm.held) == ({"n-4"}, {})
    assert said["n-4"].result == FAILED
    assert not any("RESERVED" in node.state.flags for node in slurm.known.values())


@given(st.integers(0, 40), st.integers(0, 60))
def test_run_that_sigterm_ends_holds_nothing_and_knows_nothing_new(turn: int, end_at: int) -> None:
    slurm, asked = cluster(9, {4}), spec(9)
    run(slurm, asked, turn)
    before = drained(slurm)
    slurm.end_at, slurm.log = end_at, []
    said, _ = run(slurm, asked, turn)
    assert not slurm.held
    assert drained(slurm) == before == {"n-4"}
    if slurm.is_ending:
        assert UNKNOWN not in {outcome.result for outcome in said.values()}
    slurm.is_ending, slurm.end_at = False, -1
    again, _ = run(slurm, asked, turn)
    assert {name for name, outcome in again.items() if outcome.result == FAILED} == {"n-4"}


def test_link_at_fault_is_told_at_both_nodes_and_drains_neither() -> None:
    slurm = cluster(6, set(), {pair("n-0", "n-5")})
    said, pairs = run(slurm, spec(6))
    assert {each for each, result in pairs.items() if result == FAILED} == {("n-0", "n-5")}
    assert {name for name, outcome in said.items() if outcome.result == FAILED} == {"n-0", "n-5"}
    assert said["n-0"].found.startswith("the link to n-5 is at fault: 1 MB/s")
    assert not drained(slurm)
    noted = failures(read_results(slurm.known["n-5"].extra) or {})["mpi"]
    assert not noted.drains


@pytest.mark.parametrize("turn", range(4))
def test_three_good_nodes_are_enough_to_look_again_at_the_fourth(turn: int) -> None:
    """They make one pair in a round, so what is usual is known after the second."""
    slurm, asked = cluster(4, {2}), spec(4)
    run(slurm, asked, turn)
    assert drained(slurm) == {"n-2"}
    again, pairs = run(slurm, asked, turn)
    assert (again["n-2"].result, again["n-2"].action) == (FAILED, "drained")
    assert {again[name].result for name in ("n-0", "n-1", "n-3")} == {PASSED}
    assert UNKNOWN not in pairs.values()
    slurm.found = dict.fromkeys(slurm.found, FINE)
    mended, _ = run(slurm, asked, turn)
    assert (mended["n-2"].result, mended["n-2"].action) == (PASSED, "cleared")


def test_two_nodes_alone_cannot_tell_who_is_at_fault() -> None:
    slurm = cluster(2, {0})
    limits = {name: CheckedSet("n", len(slurm.known), 0, 100, {**LIMITS, "minBandwidthMBs": 10}) for name in slurm.known}
    said, _ = run(slurm, spec(2, targets=limits))
    assert {outcome.result for outcome in said.values()} == {UNKNOWN}
    assert said["n-0"].found == "this node, the other one or their link is at fault: 1 MB/s, 30 us, 10 MB/s wanted with n-1"
    assert not drained(slurm)


def test_busy_nodes_are_left_alone_and_a_single_idle_one_is_unknown() -> None:
    said, pairs = run(cluster(3, set(), busy={0, 1}), spec(3))
    assert {name: outcome.result for name, outcome in said.items()} == {"n-0": SKIPPED, "n-1": SKIPPED, "n-2": UNKNOWN}
    assert not pairs


def test_node_that_a_job_takes_between_two_rounds_is_skipped() -> None:
    slurm = cluster(8, {3})

    def take(_: str) -> None:
        if sum(operation == "run" for operation, _ in slurm.log) == 4:
            slurm.known["n-3"] = replace_state(slurm.known["n-3"], "ALLOCATED")

    slurm.on_job = take
    said, _ = run(slurm, spec(8))
    assert said["n-3"].result == SKIPPED
    assert not drained(slurm)


def test_pair_that_meets_another_check_is_tested_once_that_is_over() -> None:
    slurm, outcomes, pauses = cluster(4, set()), dict[str, Outcome](), list[float]()

    def begin_other_check(_: str) -> None:
        if not slurm.checked:
            slurm.known["n-2"] = replace_state(slurm.known["n-2"], "ALLOCATED")
            slurm.checked |= {"n-1", "n-2"}

    def end_other_check(seconds: float) -> None:
        pauses.append(seconds)
        slurm.known["n-2"] = replace_state(slurm.known["n-2"], "IDLE")

    slurm.on_job = begin_other_check
    run_groups(spec(4), slurm, outcomes.__setitem__, lambda _pair, _result, _words: None, AT, 0, lambda: 0, end_other_check)
    assert {outcome.result for outcome in outcomes.values()} == {PASSED}
    assert len(pauses) == 1


@pytest.mark.parametrize(
    "at",
    [
        pytest.param(2, id="before the first test in the reservation"),
        pytest.param(3, id="between the two"),
    ],
)
def test_second_look_waits_for_good_nodes_that_end_a_job_of_the_check(at: int) -> None:
    """Slurm calls nodes completing for a while after srun has ended. One test in the reservation would prove nothing."""
    slurm, asked = cluster(4, {2}), spec(4)
    run(slurm, asked)
    slurm.log.clear()
    completing: set[str] = set()

    def begin_to_complete(_: str) -> None:
        if sum(operation == "run" for operation, _ in slurm.log) == at:
            completing.update({"n-0", "n-1", "n-3"})
            slurm.checked |= slurm.known.keys()
            for name in completing:
                slurm.known[name] = with_flags(slurm.known[name], "IDLE", "COMPLETING")

    def end(_: float) -> None:
        for name in completing:
            slurm.known[name] = with_flags(slurm.known[name], "IDLE")

    slurm.on_job = begin_to_complete
    outcomes: dict[str, Outcome] = {}
    run_groups(asked, slurm, outcomes.__setitem__, lambda _pair, _result, _words: None, AT, 0, lambda: 0, end)
    assert completing
    assert (outcomes["n-2"].result, outcomes["n-2"].action) == (FAILED, "drained"), outcomes["n-2"]


def with_flags(node: Node, *flags: str) -> Node:
    """The node in another state, in its reservation where it has one."""
    kept = node.state.flags & {"RESERVED", "MAINTENANCE"}
    return changed(node, state=node_state(kept | {*flags}))


def replace_state(node: Node, flag: str) -> Node:
    return Node(node.name, node_state(frozenset({flag})), partitions=node.partitions)


def test_whole_set_that_passes_is_one_job_and_else_goes_on_in_pairs() -> None:
    wanted = {name: CheckedSet("n", 9, 0, 100, {**LIMITS, "minBandwidthMBs": 100}) for name in cluster(9, set()).known}
    fine = cluster(9, set())
    said, pairs = run(fine, spec(9, per="set", targets=wanted))
    assert ({outcome.result for outcome in said.values()}, pairs) == ({PASSED}, {})
    slow = cluster(9, {2})
    said, pairs = run(slow, spec(9, per="set", targets=wanted))
    assert drained(slow) == {"n-2"}
    assert pairs


def test_budget_that_is_used_up_begins_no_job() -> None:
    slurm = cluster(4, set())
    slurm.used_s = 600
    said, _ = run(slurm, spec(4, budget_node_minutes=10))
    assert {(outcome.result, outcome.found) for outcome in said.values()} == {(SKIPPED, "the 10 node minutes of 24 hours are used up")}
    assert not any(operation == "run" for operation, _ in slurm.log)


def test_check_that_others_have_to_pass_first_leaves_their_nodes_out() -> None:
    slurm = cluster(4, set())
    said, pairs = run(slurm, spec(4, after=("gpu",)))
    assert {outcome.found for outcome in said.values()} == {"comes after the check gpu, which has not passed here"}
    assert not pairs


USUAL = {"minBandwidthMBs": 0, "maxLatencyUs": 0, "minShareOfMedianPercent": 50}


@pytest.mark.parametrize(
    ("found", "usual", "limits", "answer"),
    [
        pytest.param(Measured(50, 9), 100, {}, PASSED, id="half-of-the-median"),
        pytest.param(Measured(49, 9), 100, {}, FAILED, id="below-half-of-the-median"),
        pytest.param(Measured(49, 9), None, {}, UNKNOWN, id="nothing-to-compare-with"),
        pytest.param(Measured(49, 9), 100, {"minShareOfMedianPercent": 0}, UNKNOWN, id="no-limit-at-all"),
        pytest.param(Measured(49, 9), None, {"minBandwidthMBs": 49}, PASSED, id="as-fast-as-wanted"),
        pytest.param(Measured(48, 9), None, {"minBandwidthMBs": 49}, FAILED, id="slower-than-wanted"),
        pytest.param(Measured(50, 10), None, {"maxLatencyUs": 9}, FAILED, id="late"),
        pytest.param(Measured(50, 9), None, {"maxLatencyUs": 9}, PASSED, id="in-time"),
        pytest.param(Measured(100, 9, True), 100, {}, FAILED, id="wrong-data"),
    ],
)
def test_limits_are_absolute_or_relative(found: Measured, usual: float | None, limits: dict[str, int], answer: str) -> None:
    assert judge(found, usual, USUAL | limits)[0] == answer


def test_median_takes_two_tests() -> None:
    assert baseline([Measured(3, 1)]) is None
    assert baseline([Measured(3, 1), Measured(5, 1), Measured(100, 1)]) == 5


@pytest.mark.parametrize(
    ("code", "output"),
    [
        pytest.param(1, '{"bandwidthMBs": 1, "latencyUs": 2, "wrong": false}', id="failed"),
        pytest.param(0, '{"error": "no OpenMPI"}', id="no-figures"),
        pytest.param(0, "", id="silent"),
    ],
)
def test_what_is_no_measurement_is_none(code: int, output: str) -> None:
    assert read_measured(code, output) is None
    assert read_measured(0, 'noise\n{"bandwidthMBs": 1, "latencyUs": 2, "wrong": false}') == Measured(1, 2)


@pytest.mark.parametrize(
    ("measured", "usual", "least", "answer"),
    [
        pytest.param(Measured(150, 0, unit="GB/s"), None, 200, (FAILED, "150 GB/s, 200 GB/s wanted"), id="below-the-limit"),
        pytest.param(Measured(150, 0, unit="GB/s"), 400, 0, (FAILED, "150 GB/s, where the median is 400 GB/s"), id="below-the-others"),
        pytest.param(Measured(250, 0, unit="GB/s"), 400, 200, (PASSED, "250 GB/s"), id="passed"),
        pytest.param(Measured(250, 0, True, "GB/s"), 400, 0, (FAILED, "250 GB/s and with wrong data"), id="wrong-data"),
    ],
)
def test_reduction_between_gpus_has_limits_of_its_own(measured: Measured, usual: float | None, least: int, answer: tuple[str, str]) -> None:
    assert judge(measured, usual, {"minBusBandwidthGBs": least, "minShareOfMedianPercent": 50}) == answer
    said = f'{{"busBandwidthGBs": {measured.bandwidth}, "latencyUs": 0, "wrong": {str(measured.is_wrong).lower()}}}'
    assert read_measured(0, said) == measured


@pytest.mark.parametrize("check", ["nccl", "ib"])
def test_other_checks_of_pairs_find_the_node_at_fault_too(check: str) -> None:
    """With all GPUs of each node in its jobs."""
    slurm = cluster(6, {3})
    asked = spec(
        6, check=check, targets={f"n-{ordinal}": CheckedSet("n", 6, 8, 100, {**LIMITS, "minBusBandwidthGBs": 0}) for ordinal in range(6)}
    )
    said, _ = run(slurm, asked)
    assert drained(slurm) == {"n-3"} == {name for name, outcome in said.items() if outcome.result == FAILED}
    assert slurm.gpus == {8}
