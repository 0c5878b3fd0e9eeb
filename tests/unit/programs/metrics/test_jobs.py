"""Metrics of jobs from recorded lines of squeue."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.metrics.jobs import Ended, Waits, ended_runs, job_metrics, read_jobs
from programs.metrics.text import render
from slurm.scontrol import AnswerError
from tests.support.programs.metrics.recorded import NOW, job, of, samples


def page(*lines: str, accounts: int = 100) -> str:
    return render(job_metrics(read_jobs("\n".join(lines) + "\n"), NOW, accounts))


def test_jobs_are_counted_by_partition_and_state() -> None:
    text = page(job(), job(Partition="gpu"), job("2_[0-9%2]", "PENDING"), job("3", "COMPLETED"), job("4", "SOMETHING_NEW"))
    assert of(text, "slipway_jobs") == {"main/running": 1, "gpu/running": 1, "main/pending": 10, "main/other": 1}


@pytest.mark.parametrize(
    ("number", "tasks"),
    [("7", 1), ("7_3", 1), ("7_[3]", 1), ("7_[0-9]", 10), ("7_[0-9:2]", 5), ("7_[1,4-6%1]", 4), ("7_[0-9,...]", 1)],
)
def test_tasks_of_a_waiting_array_count_each(number: str, tasks: int) -> None:
    assert of(page(job(number, "PENDING")), "slipway_pending_jobs") == {"main/Resources": tasks}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        pytest.param("Priority", "Priority", id="word"),
        pytest.param("ReqNodeNotAvail, UnavailableNodes:gpu-1", "ReqNodeNotAvail", id="with-nodes"),
        pytest.param("launch failed requeued held", "other", id="sentence"),
        pytest.param('a"b', "other", id="quote"),
        pytest.param("", "other", id="empty"),
    ],
)
def test_reason_is_slurms_word_and_nothing_behind_it(said: str, reason: str) -> None:
    assert of(page(job(state="PENDING", Reason=said)), "slipway_pending_jobs") == {f"main/{reason}": 1}


@pytest.mark.parametrize(
    ("more", "waits"),
    [
        pytest.param({}, 100, id="room"),
        pytest.param({"Reason": "Priority"}, 100, id="priority"),
        pytest.param({"Reason": "JobHeldUser"}, 0, id="held"),
        pytest.param({"Reason": "JobHeldAdmin"}, 0, id="held-by-admin"),
        pytest.param({"Reason": "Dependency", "EligibleTime": "N/A"}, 0, id="dependent"),
        pytest.param({"Reason": "DependencyNeverSatisfied"}, 0, id="never"),
        pytest.param({"Reason": "BeginTime", "EligibleTime": NOW + 60}, 0, id="later"),
        pytest.param({"Reason": "AssocGrpCpuLimit"}, 0, id="limit-of-the-account"),
        pytest.param({"Reason": "QOSMaxJobsPerUserLimit"}, 0, id="limit-of-the-qos"),
    ],
)
def test_queue_wait_is_that_of_jobs_that_wait_for_room(more: dict[str, Any], waits: float) -> None:
    text = page(job("1", "PENDING", **more), job("2", "PENDING", Partition="gpu", EligibleTime=NOW - 7))
    assert of(text, "slipway_queue_wait_seconds") == {"main": waits, "gpu": 7}


def test_accounts_have_jobs_processors_and_gpus() -> None:
    text = page(
        job("1", **{"tres-alloc": "cpu=4,mem=1G,node=2,billing=4,gres/gpu=3,gres/gpu:h100=3"}),
        job("2", "PENDING", **{"tres-alloc": "cpu=64,mem=1G,node=1,gres/gpu=8"}),
        job("3", Account="(null)"),
    )
    assert of(text, "slipway_account_jobs") == {"research/running": 1, "research/pending": 1, "none/running": 1}
    assert of(text, "slipway_account_cpus") == {"research": 4, "none": 2}
    assert of(text, "slipway_account_gpus") == {"research": 3, "none": 0}


@pytest.mark.parametrize(
    ("more", "gpus"),
    [
        pytest.param({"NumNodes": 2, "tres-per-node": "gres/gpu:h100:2"}, 4, id="per-node"),
        pytest.param({"tres-per-node": "gres/gpu"}, 1, id="one"),
        pytest.param({"tres-per-job": "gres/gpu:3"}, 3, id="per-job"),
        pytest.param({}, 0, id="none"),
    ],
)
def test_gpus_without_tres_are_those_that_the_job_asked_for(more: dict[str, Any], gpus: int) -> None:
    assert of(page(job(**more)), "slipway_account_gpus") == {"research": gpus}


def test_accounts_beyond_the_largest_are_summed_up() -> None:
    lines = [job(str(at), Account=f"a{at}", NumCPUs=at + 1, **{"tres-alloc": f"cpu={at + 1}"}) for at in range(10)]
    text = page(*lines, job("11", "PENDING", Account="a0"), accounts=2)
    assert of(text, "slipway_account_cpus") == {"a8": 9, "a9": 10, "other": sum(range(1, 9))}
    assert of(text, "slipway_account_jobs") == {"a8/running": 1, "a9/running": 1, "other/running": 8, "other/pending": 1}


@given(
    st.lists(st.tuples(st.integers(0, 9999), st.text(), st.text(), st.sampled_from(["RUNNING", "PENDING", "?"])), max_size=60),
    st.integers(1, 4),
)
def test_labels_stay_bounded_with_any_users_accounts_and_reasons(rows: list[tuple[int, str, str, str]], most: int) -> None:
    """10,000 users, each with an account of any name and a reason of any text: the series are few, and the page stays valid."""
    lines = (
        job(str(at), state, Account=account.strip() or "x", Reason=reason)
        for at, (_, account, reason, state) in enumerate(rows)
        if not {"\x1f", "\n"} & {*account, *reason}
    )
    text = page(*lines, accounts=most)
    found = samples(text)
    for name in ("slipway_account_cpus", "slipway_account_gpus"):
        assert len(of(text, name)) <= most + 1
    assert len(of(text, "slipway_pending_jobs")) <= 51
    assert {label for _, labels in found for label, _ in labels} <= {"partition", "state", "reason", "account"}


def test_ten_thousand_users_make_no_more_series_than_one() -> None:
    users = [job(str(at), Account=f"user{at}") for at in range(10_000)]
    assert len(samples(page(*users))) <= 3 * 101 + 10


def test_line_without_all_fields_is_refused() -> None:
    with pytest.raises(AnswerError, match="has not 13 fields"):
        page(job()[:-20])


def test_start_of_a_job_is_counted_once_and_with_its_wait() -> None:
    waits = Waits(began=NOW - 60)
    started = job("1", EligibleTime=NOW - 100, StartTime=NOW - 50)
    for lines in ([started], [started, job("2", "PENDING")], [started]):
        waits.add(read_jobs("\n".join(lines)))
    assert of(waits.render(), "slipway_job_wait_seconds_count") == {"main": 1}
    assert of(waits.render(), "slipway_job_wait_seconds_sum") == {"main": 50}
    buckets = of(waits.render(), "slipway_job_wait_seconds_bucket")
    assert (buckets["15/main"], buckets["60/main"], buckets["+Inf/main"]) == (0, 1, 1)


def test_requeued_job_starts_again() -> None:
    waits = Waits(began=NOW - 60)
    waits.add(read_jobs(job("1", StartTime=NOW - 50)))
    waits.add(read_jobs(job("1", "PENDING")))
    waits.add(read_jobs(job("1", EligibleTime=NOW - 30, StartTime=NOW - 10)))
    assert of(waits.render(), "slipway_job_wait_seconds_count") == {"main": 2}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(job(StartTime=NOW - 90), id="before-the-collector"),
        pytest.param(job(state="PENDING", StartTime=NOW + 100), id="expected-start"),
        pytest.param(job(state="CANCELLED", StartTime=NOW, EndTime=NOW), id="cancelled-while-it-waited"),
        pytest.param(job(EligibleTime="N/A"), id="never-eligible"),
    ],
)
def test_what_has_not_started_since_then_is_no_wait(line: str) -> None:
    waits = Waits(began=NOW - 60)
    waits.add(read_jobs(line))
    assert waits.render() == ""


def test_runs_that_are_over() -> None:
    lines = [
        job("1"),
        job("2", "FAILED", StartTime=NOW - 30, EndTime=NOW - 10, **{"tres-alloc": "cpu=2,gres/gpu=4"}),
        job("3", "CANCELLED", StartTime=NOW, EndTime=NOW),
        job("4", "PENDING"),
    ]
    assert [*ended_runs(read_jobs("\n".join(lines)))] == [Ended(("2", NOW - 30, NOW - 10), "research", "FAILED", 20, 2, 4)]
