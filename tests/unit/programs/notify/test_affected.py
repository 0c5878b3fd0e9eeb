"""Whose jobs are on nodes that were drained: who hears of it, once for each drain, in one message a user."""

from typing import Any

import pytest

from programs.notify.affected import newly_drained, plan_affected
from programs.notify.nodes import Changes, Fault, Known, Reading, first_known, plan_changes, read_nodes
from programs.notify.plan import MOST, Affected
from slurm.maintenance import Job
from tests.unit.programs.notify.examples import BETWEEN, receiver, sinfo

FAN = Fault("fan", "root", "draining")
DRAINED = {"gpu-0": FAN}
NOBODY = frozenset[str]()


def job(number: str = "17", nodes: str = "gpu-0", **more: Any) -> Job:
    given: dict[str, Any] = {"user": "alice", "account": "ml", "partition": "gpu", "comment": "a notify:chat", "ends_at": None, **more}
    return Job(id=number, nodes=frozenset(nodes.split()), **given)


def told(*jobs: Job, **filters: Any) -> list[Affected]:
    news = plan_affected(receiver(**filters), DRAINED, NOBODY, jobs)
    return [each.affected for each in news if each.affected is not None]


@pytest.mark.parametrize(
    ("filters", "changes", "is_told"),
    [
        pytest.param({}, {}, True, id="asked"),
        pytest.param({}, {"comment": ""}, False, id="not-asked"),
        pytest.param({}, {"comment": "notify:other"}, False, id="another-receiver"),
        pytest.param({}, {"nodes": "gpu-1"}, False, id="another-node"),
        pytest.param({}, {"nodes": "gpu-1 gpu-0"}, True, id="one-node-of-two"),
        pytest.param({"users": frozenset({"bob"})}, {}, False, id="another-user"),
        pytest.param({"accounts": frozenset({"ml"}), "partitions": frozenset({"gpu"})}, {}, True, id="filters-match"),
        pytest.param({"events": frozenset({"jobFail"})}, {}, True, id="of-other-events-of-jobs"),
        pytest.param({"events": frozenset({"nodeDrain"})}, {}, False, id="hears-of-no-jobs"),
    ],
)
def test_user_who_asked_is_told_of_the_own_job(filters: dict[str, Any], changes: dict[str, Any], is_told: bool) -> None:
    assert told(job(**changes), **filters) == ([Affected("alice", ("17",), DRAINED)] if is_told else [])


def test_jobs_of_a_user_are_one_message() -> None:
    found = told(job("17"), job("18_2"), job("19", user="bob"))
    assert [(each.user, each.jobs) for each in found] == [("alice", ("17", "18_2")), ("bob", ("19",))]


def test_users_beyond_the_most_are_counted() -> None:
    jobs = [job(str(at), user=f"user{at:03}") for at in range(MOST + 7)]
    news = plan_affected(receiver(), DRAINED, NOBODY, jobs)
    assert (len(news), news[-1].more_users) == (MOST + 1, 7)


def test_node_that_does_not_answer_is_no_promise() -> None:
    [news] = plan_affected(receiver(), DRAINED, frozenset({"gpu-0"}), [job()])
    assert news.affected is not None
    assert news.affected.is_silent


def reading(state: str = "mixed+drain", reason: str = "fan") -> Reading:
    return read_nodes(sinfo({"StateComplete": state, "Reason": reason}), BETWEEN)


def drains(*readings: Reading) -> list[str]:
    """The reasons of the drains that are told while these are read, one after another."""
    known, found = first_known(reading("idle", "none")), list[str]()
    for each in readings:
        changes, after = plan_changes(known, each)
        found += [fault.reason for fault in newly_drained(known, changes).values()]
        known = after
    return found


def test_drain_is_told_once_whatever_becomes_of_its_reason() -> None:
    again = reading(reason="fan and disk")
    assert drains(reading(), reading(), reading(), again, again) == ["fan"]


def test_another_drain_after_the_node_was_back_is_told() -> None:
    assert drains(reading(), reading(), reading("mixed", "none"), again := reading(reason="disk"), again) == ["fan", "disk"]


@pytest.mark.parametrize("state", ["idle+drain", "down", "down+drain", "strange"])
def test_node_without_running_jobs_is_no_news_for_users(state: str) -> None:
    assert drains(reading(state), reading(state)) == []


def test_drain_before_the_first_reading_is_none() -> None:
    known = first_known(reading())
    assert newly_drained(known, plan_changes(known, reading())[0]) == {}
    assert newly_drained(Known({"gpu-0": "disk"}), Changes(DRAINED, {})) == {}


def test_nodes_that_do_not_answer_are_known() -> None:
    assert reading("mixed+drain+not_responding").silent == {"gpu-0"}
    assert reading().silent == NOBODY
