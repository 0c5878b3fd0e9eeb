"""What sacct says of runs that are over: texts of users make no rows of their own, and each run is known from all others."""

import pytest

from programs.notify.plan import new_runs
from programs.notify.runs import FIELDS, live_arrays, read_runs
from slurm.scontrol import AnswerError
from tests.unit.programs.notify.examples import BETWEEN, rows, run


def test_line_break_or_bar_in_a_name_makes_no_row() -> None:
    found = read_runs(rows({"JobName": "a\n99|b|alice"}, {"JobID": "18", "Comment": "x\ny"}), BETWEEN, "dev")
    assert [each.number for each in found] == ["17", "18"]


@pytest.mark.parametrize("text", [f"1{BETWEEN}" * (len(FIELDS) - 1), rows({}) + "sacct: error"], ids=["a-field-is-missing", "words"])
def test_answer_that_is_not_made_of_rows_is_refused(text: str) -> None:
    with pytest.raises(AnswerError, match="not rows"):
        read_runs(text, BETWEEN, "dev")


def test_no_answer_is_no_run() -> None:
    assert read_runs("\n", BETWEEN, "dev") == []


def test_job_that_still_runs_is_no_run_that_is_over() -> None:
    assert read_runs(rows({"End": "Unknown"}), BETWEEN, "dev") == []


@pytest.mark.parametrize(
    ("number", "array", "tasks"),
    [
        pytest.param("17", "", 1, id="job"),
        pytest.param("15_2", "15", 1, id="task"),
        pytest.param("15_[3-9]", "15", 7, id="tasks-that-never-ran"),
        pytest.param("17+1", "", 1, id="part-of-a-heterogeneous-job"),
    ],
)
def test_number_says_which_array_and_how_many_tasks(number: str, array: str, tasks: int) -> None:
    found = run(JobID=number)
    assert (found.array, found.tasks) == (array, tasks)


@pytest.mark.parametrize(
    ("comment", "asked"),
    [
        pytest.param("", set[str](), id="none"),
        pytest.param("sweep 3,notify:vision; notify:ops", {"vision", "ops"}, id="words-among-others"),
        pytest.param("donotify:vision", set[str](), id="end-of-another-word"),
    ],
)
def test_comment_names_receivers(comment: str, asked: set[str]) -> None:
    assert run(Comment=comment).asked == asked


def test_run_counts_once_and_a_requeued_job_has_several() -> None:
    first, second = run(State="NODE_FAIL"), run(Start="1800000100", End="1800000200")
    assert new_runs([second, first, first], []) == [first, second]
    assert new_runs([first, second], [first.key]) == [second]


def test_cancelled_by_somebody_is_cancelled() -> None:
    assert run(State="CANCELLED by 10001").state == "CANCELLED"


def test_array_with_a_task_that_waits_or_runs_is_live() -> None:
    assert live_arrays("15 COMPLETED\n15 PENDING\n16 FAILED\n17 COMPLETING\n") == {"15", "17"}
