"""Who is told of what: filters, arrays that are one message, and a burst that stays small."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.notify.nodes import Changes, Fault
from programs.notify.plan import ARRAY_S, MOST, MOST_ARRAYS, Item, News, gather, plan_jobs, plan_nodes
from programs.notify.runs import Run
from tests.unit.programs.notify.examples import NOW, receiver, run

STATES = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "REQUEUED")
LIVE = frozenset[str]


def of(*found: Run) -> list[Item]:
    return gather({}, found, LIVE(), NOW)[0]


def told(news: list[News]) -> list[str]:
    return [each.item.example.number for each in news if each.item is not None]


@pytest.mark.parametrize(
    ("events", "states"),
    [
        pytest.param({"jobEnd"}, set(STATES) - {"REQUEUED"}, id="end"),
        pytest.param({"jobFail"}, {"FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"}, id="fail"),
        pytest.param({"jobRequeue"}, {"REQUEUED"}, id="requeue"),
        pytest.param({"nodeDrain"}, set[str](), id="nodes-only"),
    ],
)
def test_events_choose_states(events: set[str], states: set[str]) -> None:
    assert {state for state in STATES if plan_jobs(receiver(events=frozenset(events)), of(run(State=state)))} == states


@pytest.mark.parametrize(
    ("filters", "is_told"),
    [
        pytest.param({}, True, id="all"),
        pytest.param({"accounts": frozenset({"ml", "x"})}, True, id="account"),
        pytest.param({"accounts": frozenset({"x"})}, False, id="other-account"),
        pytest.param({"users": frozenset({"alice"})}, True, id="user"),
        pytest.param({"users": frozenset({"bob"})}, False, id="other-user"),
        pytest.param({"partitions": frozenset({"cpu"})}, False, id="other-partition"),
        pytest.param({"accounts": frozenset({"ml"}), "users": frozenset({"bob"})}, False, id="each-filter-counts"),
        pytest.param({"only_asked": True}, False, id="not-asked"),
        pytest.param({"only_asked": True, "name": "vision"}, True, id="asked"),
    ],
)
def test_filters_choose_jobs(filters: dict[str, Any], is_told: bool) -> None:
    assert bool(plan_jobs(receiver(**filters), of(run(Comment="notify:vision")))) is is_told


def test_array_is_told_once_when_no_task_is_left() -> None:
    tasks = [run(JobID=f"15_{at}", State="FAILED" if at == 7 else "COMPLETED") for at in range(10_000)]
    due, waiting = gather({}, tasks[:5000], LIVE({"15"}), NOW)
    assert due == []
    due, waiting = gather(waiting, tasks[5000:], LIVE(), NOW + 15)
    assert due == []  # the last rows may come a round later
    due, waiting = gather(waiting, [], LIVE(), NOW + 30)
    [item] = due
    assert (item.states, item.example.number, item.is_left, waiting) == ({"COMPLETED": 9999, "FAILED": 1}, "15_7", False, {})


def test_array_that_runs_for_long_is_told_of_once_an_hour() -> None:
    _, waiting = gather({}, [run(JobID="15_0")], LIVE({"15"}), NOW)
    assert gather(waiting, [], LIVE({"15"}), NOW + ARRAY_S - 1)[0] == []
    [item], waiting = gather(waiting, [], LIVE({"15"}), NOW + ARRAY_S)
    assert (item.is_left, waiting) == (True, {})


def test_arrays_that_wait_have_a_bound() -> None:
    tasks = [run(JobID=f"{number}_0") for number in range(MOST_ARRAYS + 5)]
    due, waiting = gather({}, tasks, LIVE(str(number) for number in range(MOST_ARRAYS + 5)), NOW)
    assert (len(due), len(waiting)) == (5, MOST_ARRAYS)


@given(st.lists(st.sampled_from(STATES), max_size=60))
def test_burst_is_a_few_messages_and_one_that_counts_the_rest(states: list[str]) -> None:
    ended = [run(JobID=str(number), State=state) for number, state in enumerate(states)]
    news = plan_jobs(receiver(), of(*ended))
    wanted = [each for each in ended if each.state != "REQUEUED"]
    assert len(news) <= MOST + 1
    assert len(told(news)) + sum(sum((each.more or {}).values()) for each in news) == len(wanted)
    failed = [each.number for each in wanted if each.state not in ("COMPLETED", "CANCELLED")]
    assert set(failed[-MOST:]) <= set(told(news)) or len(set(told(news)) & set(failed)) == MOST


def test_nodes_with_one_cause_are_one_message_by_partition() -> None:
    fault = Fault("fan", "root", "drained")
    partitions = {"a-0": frozenset({"cpu"}), **{f"g-{at}": frozenset({"gpu"}) for at in range(200)}}
    changes = Changes(dict.fromkeys(partitions, fault), {"g-9": "fan"})
    both = receiver(events=frozenset({"nodeDrain", "nodeResume"}), partitions=frozenset({"gpu"}))
    out, back = plan_nodes(both, changes, partitions)
    assert (len(out.nodes), out.fault, back.event, back.nodes) == (200, fault, "nodeResume", ("g-9",))
    assert plan_nodes(receiver(), changes, partitions) == []


def test_many_causes_are_summed_up() -> None:
    partitions = {f"g-{at}": frozenset({"gpu"}) for at in range(50)}
    changes = Changes({name: Fault(name, "", "down") for name in partitions}, {})
    news = plan_nodes(receiver(events=frozenset({"nodeDrain"})), changes, partitions)
    assert len(news) == MOST + 1
    assert sorted(name for each in news for name in each.nodes) == sorted(partitions)
