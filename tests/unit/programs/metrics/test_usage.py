"""Counters of what ended jobs took: each run once, whatever sacct says again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.metrics.jobs import Ended
from programs.metrics.text import render
from programs.metrics.usage import FIELDS, Usage, command, read_ended
from slurm.ended import LOOK_BACK_S
from slurm.scontrol import AnswerError
from tests.support.programs.metrics.recorded import NOW, of


def line(number: str = "1", account: str = "ml", state: str = "COMPLETED", seconds: int = 10, end: int = NOW) -> str:
    """A line of sacct, as recorded."""
    return f"{number}|{account}|{state}|{seconds}|billing=2,cpu=2,gres/gpu:h100=4,gres/gpu=4,mem=2G,node=1|{end - seconds}|{end}"


def page(usage: Usage) -> str:
    return render(usage.families())


@pytest.mark.parametrize(
    ("state", "result"),
    [
        ("COMPLETED", "completed"),
        ("FAILED", "failed"),
        ("LAUNCH_FAILED", "failed"),
        ("NODE_FAIL", "node_fail"),
        ("BOOT_FAIL", "node_fail"),
        ("TIMEOUT", "timeout"),
        ("DEADLINE", "timeout"),
        ("CANCELLED by 10001", "cancelled"),
        ("OUT_OF_MEMORY", "out_of_memory"),
        ("PREEMPTED", "preempted"),
        ("REQUEUED", "requeued"),
        ("SOMETHING_NEW", "failed"),
    ],
)
def test_time_counts_by_result(state: str, result: str) -> None:
    usage = Usage(NOW - 100, 100)
    usage.add(read_ended(line(state=state)), NOW - LOOK_BACK_S)
    assert of(page(usage), "slipway_job_gpu_seconds_total") == {f"ml/{result}": 40}
    assert of(page(usage), "slipway_job_cpu_seconds_total") == {f"ml/{result}": 20}


def test_job_that_never_started_took_nothing() -> None:
    usage = Usage(NOW - 100, 100)
    usage.add(read_ended(f"1|ml|CANCELLED by 0|0||None|{NOW}"), NOW - LOOK_BACK_S)
    assert page(usage) == ""


def test_what_ended_before_the_collector_began_does_not_count() -> None:
    usage = Usage(NOW, 100)
    usage.add(read_ended(line(end=NOW - 1)), NOW - LOOK_BACK_S)
    assert page(usage) == ""


def test_run_that_reaches_slurmdbd_late_counts() -> None:
    usage = Usage(NOW - 1000, 100)
    usage.add([], NOW - LOOK_BACK_S)
    usage.add(read_ended(line(end=NOW - 100)), NOW + 60 - LOOK_BACK_S)
    assert of(page(usage), "slipway_job_gpu_seconds_total") == {"ml/completed": 40}


def test_both_runs_of_a_requeued_job_count() -> None:
    usage = Usage(NOW - 1000, 100)
    usage.add(read_ended(f"{line(state='NODE_FAIL', end=NOW - 60)}\n{line(seconds=5)}"), NOW - LOOK_BACK_S)
    assert of(page(usage), "slipway_job_gpu_seconds_total") == {"ml/node_fail": 40, "ml/completed": 20}


@given(st.lists(st.integers(0, 600), max_size=40), st.lists(st.integers(1, 120), min_size=1, max_size=20))
def test_no_run_counts_twice_and_none_is_lost(ends: list[int], pauses: list[int]) -> None:
    """Readings at any times, each with all that ended in its window: the sum is that of all runs, each once, and never falls."""
    runs = [Ended((str(number), at, NOW + at), "ml", "COMPLETED", 1, 1, 1) for number, at in enumerate(ends)]
    usage, since, now, before = Usage(NOW, 100), NOW - LOOK_BACK_S, NOW, 0.0
    for pause in (*pauses, 700):
        now += pause
        usage.add([run for run in runs if since <= run.end <= now], since)
        since = now - LOOK_BACK_S
        total = sum(of(page(usage), "slipway_job_gpu_seconds_total").values())
        assert total >= before
        before = total
    assert before == len(runs)


def test_accounts_beyond_the_most_share_one_series_for_good() -> None:
    usage = Usage(NOW - 100, 2)
    for part in range(10):
        runs = (Ended((str(at), NOW - 2, NOW), f"a{at}", "FAILED", 2, 1, 1) for at in range(part * 1000, part * 1000 + 1000))
        usage.add(runs, NOW - LOOK_BACK_S)
    assert of(page(usage), "slipway_job_gpu_seconds_total") == {"a0/failed": 2, "a1/failed": 2, "other/failed": 2 * 9_998}


def test_command_asks_for_runs_and_not_for_steps() -> None:
    asked = command(NOW + 0.5)
    assert {"--allocations", "--duplicates", "--allusers", f"--starttime=uts{NOW}", "--endtime=now"} < set(asked)
    assert f"--format={','.join(FIELDS)}" in asked


def test_line_without_all_fields_is_refused() -> None:
    with pytest.raises(AnswerError, match="has not 7 fields"):
        list(read_ended("sacct: error: slurmdbd"))
