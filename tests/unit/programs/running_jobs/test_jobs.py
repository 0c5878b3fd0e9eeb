"""squeue's lines as slurmrestd would say them; with a real slurmctld it is tests/slurm/test_rest_client.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.running_jobs.jobs import QUEUE_FIELDS, parse, parse_queue

NONE = {"set": False, "infinite": False, "number": 0}


def number(value: int) -> dict[str, object]:
    return {"set": True, "infinite": False, "number": value}


def test_task_of_an_array_is_told_with_its_end_and_its_nodes() -> None:
    assert parse("17|RUNNING|gpu-[0-1]|1800000000|1|0|12|3|N/A|\n") == [
        {
            "job_id": 17,
            "job_state": ["RUNNING"],
            "nodes": "gpu-[0-1]",
            "end_time": number(1_800_000_000),
            "batch_flag": True,
            "requeue": False,
            "array_job_id": number(12),
            "array_task_id": number(3),
            "het_job_id": NONE,
        }
    ]


def test_job_without_nodes_is_left_out() -> None:
    assert parse("17|COMPLETING||NONE|1|1|17|N/A|0|\n18|RUNNING|gpu-0|NONE|0|1|18|N/A|0|\n")[0]["job_id"] == 18


@pytest.mark.parametrize("line", ["slurm_load_jobs error", "17|RUNNING|gpu-0", "|||||||||"])
def test_line_that_is_no_job_is_a_fault_and_not_a_shorter_list(line: str) -> None:
    with pytest.raises((KeyError, ValueError)):
        parse(f"18|RUNNING|gpu-0|NONE|0|1|18|N/A|0|\n{line}\n")


BETWEEN = "\x1f0badcafe\x1f"


def told(*rows: list[str]) -> str:
    return "".join("".join(f"{value}{BETWEEN}" for value in row) + "\n" for row in rows)


def test_queue_is_told_by_field_whatever_a_constraint_holds() -> None:
    values = [f"{field} a|b" for field in QUEUE_FIELDS]
    assert parse_queue(told(values, values), BETWEEN) == [dict(zip(QUEUE_FIELDS, values, strict=True))] * 2


@given(name=st.text(st.characters(exclude_categories=["Cs"])))
def test_name_of_a_job_makes_no_row_and_hides_none(name: str) -> None:
    row = [*QUEUE_FIELDS[:-1], name]
    found = parse_queue(told(row, row), BETWEEN)
    assert [each["JobArrayID"] for each in found] == ["JobArrayID", "JobArrayID"]
    assert found[0]["Name"] == " ".join(name.split())


def test_no_job_is_an_empty_list() -> None:
    assert parse_queue("", BETWEEN) == []


@pytest.mark.parametrize("line", ["slurm_load_jobs error", f"a{BETWEEN}b{BETWEEN}"])
def test_line_of_the_queue_that_is_no_job_is_a_fault(line: str) -> None:
    with pytest.raises(ValueError, match="fields"):
        parse_queue(f"{line}\n", BETWEEN)
