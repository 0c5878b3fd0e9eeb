"""The fate of jobs: which run where nodes leave, and which could never run any more."""

from dataclasses import replace
from typing import Any

import pytest

from changes.configuration import parse
from changes.jobs import Job, QueueError, affected, minutes, read_queue, stranded
from tests.unit.changes.lab import CONF, GPUS, WAITING, running

STRANDED: dict[str, tuple[tuple[str, str], Job, str]] = {
    "its partition goes": (("PartitionName=main", "PartitionName=other"), WAITING, "partition main is gone"),
    "its time is too long": (
        ("1-00:00:00", "00:30:00"),
        WAITING,
        "it asks for 60 min, and partition main allows 30 min",
    ),
    "a node it names goes": (
        ("main Nodes=cpu-[0-3]", "main Nodes=cpu-[0-2]"),
        replace(WAITING, asks_for=frozenset({"cpu-3"})),
        "it asks for cpu-3, which partition main does not have any more",
    ),
    "too few nodes": (("gpu Nodes=gpu-[0-1]", "gpu Nodes=gpu-0"), GPUS, "it asks for 2 nodes, and partition gpu has 1"),
    "a feature goes": (
        ("=nvlink,ib", "=nvlink"),
        replace(GPUS, features="nvlink&ib"),
        "it asks for 2 nodes with nvlink&ib, and partition gpu has 0",
    ),
    "too few GPUs": (("h100:4", "h100:2"), GPUS, "it asks for 8 gres/gpu:h100, and partition gpu has 4"),
    "other GPUs": (("h100:4", "a100:4"), GPUS, "it asks for 8 gres/gpu:h100, and partition gpu has 0"),
}
UNTOUCHED: dict[str, tuple[tuple[str, str], Job]] = {
    "another of its partitions stays": (("PartitionName=main", "PartitionName=other"), replace(WAITING, partitions=("main", "gpu"))),
    "it runs": (("PartitionName=main", "PartitionName=other"), running("1", "alice", "cpu-0")),
    "its time fits": (("1-00:00:00", "01:00:00"), WAITING),
    "a constraint with choices": (("=nvlink,ib", "=nvlink"), replace(GPUS, features="[nvlink|ib]")),
    "it could never run before either": (("CPUs=8", "CPUs=4"), replace(GPUS, tres={"cpu": 1000})),
    "more of what it needs": (("h100:4", "h100:8"), GPUS),
}


@pytest.mark.parametrize(("edit", "job", "reason"), STRANDED.values(), ids=STRANDED)
def test_waiting_job_that_can_no_longer_run_is_named_with_the_reason(edit: tuple[str, str], job: Job, reason: str) -> None:
    assert edit[0] in CONF
    [found] = stranded([job], parse(CONF), parse(CONF.replace(*edit, 1)))
    assert (found.number, found.user, found.reason) == (job.number, job.user, reason)


@pytest.mark.parametrize(("edit", "job"), UNTOUCHED.values(), ids=UNTOUCHED)
def test_job_that_may_run_or_that_nothing_changes_for_is_not_named(edit: tuple[str, str], job: Job) -> None:
    assert edit[0] in CONF
    assert stranded([job], parse(CONF), parse(CONF.replace(*edit, 1))) == []


def test_jobs_on_nodes_that_leave_are_counted_by_user_with_their_last_end() -> None:
    jobs = [
        running("1", "bob", "cpu-2", ends_at=50),
        running("2", "al", "cpu-2", "cpu-3", ends_at=90),
        running("3", "bob", "cpu-3", ends_at=70),
    ]
    found = affected("removed", frozenset({"cpu-2", "cpu-3"}), None, "they end first", [*jobs, running("4", "eve", "cpu-0"), WAITING])
    assert (found.jobs, found.users, found.last_end, found.has_endless) == (3, (("bob", 2), ("al", 1)), 90, False)


def test_last_end_is_unknown_where_a_job_has_no_limit() -> None:
    jobs = [running("1", "bob", "cpu-2", ends_at=50), running("2", "al", "cpu-2", ends_at=None)]
    found = affected("removed", frozenset({"cpu-2"}), None, "", jobs)
    assert (found.last_end, found.has_endless) == (None, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30", 30),
        ("30:30", 31),
        ("01:30:00", 90),
        ("2-0", 2880),
        ("1-12:00:00", 2160),
        ("1-00:00:01", 1441),
        ("UNLIMITED", None),
        ("", None),
    ],
)
def test_times_are_read_as_slurm_writes_them(text: str, expected: int | None) -> None:
    assert minutes(text) == expected


ROW = {
    "JobArrayID": "12_[4-9]",
    "State": "PENDING",
    "NodeList": "",
    "EndTime": "N/A",
    "TimeLimit": "2:00:00",
    "UserName": "alice",
    "Account": "physics",
    "Partition": "main,gpu",
    "ReqNodes": "cpu-[1-2]",
    "Feature": "nvlink|ib",
    "tres-alloc": "cpu=4,mem=4000M,node=2,billing=4,gres/gpu:h100=8",
}


def test_waiting_job_is_read_as_squeue_gives_it() -> None:
    [job] = read_queue({"jobs": [ROW]})
    assert job == Job(
        "12_[4-9]",
        "alice",
        is_waiting=True,
        partitions=("main", "gpu"),
        limit_min=120,
        asks_for=frozenset({"cpu-1", "cpu-2"}),
        node_count=2,
        features="nvlink|ib",
        tres={"cpu": 4, "gres/gpu:h100": 8},
    )


def test_running_job_is_read_with_its_nodes_and_its_end() -> None:
    [job] = read_queue({"jobs": [ROW | {"State": "RUNNING", "NodeList": "cpu-[0-1]", "EndTime": "1700000000", "ReqNodes": ""}]})
    assert (job.nodes, job.ends_at, job.is_waiting) == (frozenset({"cpu-0", "cpu-1"}), 1_700_000_000, False)


NO_LISTS: list[Any] = [None, {}, {"jobs": [{}]}, {"jobs": [ROW | {"NodeList": "a[", "State": "RUNNING"}]}, [], {"jobs": 3}]


@pytest.mark.parametrize("answer", NO_LISTS)
def test_answer_without_a_list_of_jobs_is_an_error_not_an_empty_list(answer: object) -> None:
    with pytest.raises(QueueError):
        read_queue(answer)


def test_fifty_thousand_jobs_of_few_shapes_are_judged_by_shape() -> None:
    large = CONF.replace("cpu-[0-3]", "cpu-[0-9999]")
    jobs = [replace(WAITING, number=str(number), limit_min=60 + number % 3) for number in range(50_000)]
    found = stranded(jobs, parse(large), parse(large.replace("1-00:00:00", "01:01:00")))
    assert len(found) == 16_666
