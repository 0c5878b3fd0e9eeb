"""Jobs of which no node was told: which they are, what becomes of them, and that being killed at any write loses none."""

import dataclasses
import itertools
import time
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.config_sync import rescue, slurm, untold
from programs.config_sync.slurmds import Slurmd
from programs.config_sync.untold import Job, find_waiting, plan_untold, read_jobs
from slurm.commands import SlurmError
from slurm.job_marks import read_marks
from slurm.states import NodeState, node_state

BOOT = 1_000
UP, SILENT = node_state(["ALLOCATED"]), node_state(["ALLOCATED", "NOT_RESPONDING"])
LOST = Job("7", is_running=True, reason="Prolog", started=BOOT, nodes=frozenset({"a", "b"}), is_batch=True, may_requeue=True)


def planned(job: Job, steps: Iterable[str] = (), nodes: dict[str, NodeState] | None = None) -> list[str]:
    """What is done with a job, by the plan's words."""
    plan = plan_untold([job], find_waiting([job], BOOT), steps, {"a": UP, "b": UP} if nodes is None else nodes)
    return [name for name, jobs in dataclasses.asdict(plan).items() if jobs]


@pytest.mark.parametrize(
    ("changes", "steps", "nodes", "expected"),
    [
        pytest.param({}, [], None, ["requeue"], id="batch job"),
        pytest.param({"may_requeue": False}, [], None, ["requeue"], id="batch job with --no-requeue"),
        pytest.param({"is_batch": False}, [], None, ["end"], id="srun"),
        pytest.param({"is_batch": False}, ["7.extern"], None, ["end"], id="srun of which one node was told"),
        pytest.param({}, ["7.extern"], None, ["requeue"], id="batch job of which one node was told"),
        pytest.param({}, ["7.extern", "7.batch"], None, ["left"], id="script that runs beside a node that was not told"),
        pytest.param({"is_part": True}, [], None, ["left"], id="part of a heterogeneous job"),
        pytest.param({}, [], {"a": UP, "b": SILENT}, ["later"], id="a node is silent"),
        pytest.param({}, [], {"a": UP}, ["later"], id="a node is unknown"),
        pytest.param({"started": BOOT + 1}, [], None, [], id="started by the present process"),
        pytest.param({"started": None}, [], None, [], id="start unknown"),
        pytest.param({"reason": "None"}, [], None, [], id="prolog is over"),
        pytest.param({"is_running": False}, [], None, [], id="waits"),
        pytest.param({"is_running": False, "admin_comment": "x [slipway: lent requeue]"}, [], None, ["give_back"], id="has a lent right"),
        pytest.param({"admin_comment": "x [slipway: lent requeue]"}, [], None, ["requeue"], id="lost and has a lent right"),
    ],
)
def test_job_that_no_node_knows_starts_again_or_ends_and_all_else_is_left_alone(
    changes: dict[str, object], steps: list[str], nodes: dict[str, NodeState] | None, expected: list[str]
) -> None:
    assert planned(dataclasses.replace(LOST, **changes), steps, nodes) == expected  # type: ignore[arg-type]


def test_reading_takes_squeues_fields() -> None:
    lines = [
        ["12", "N/A", "RUNNING", "Prolog", "1795619115", "1", "0", "cpu-[0-1]", "(null)"],
        ["14", "13", "PENDING", "BeginTime", "N/A", "0", "1", "", "x [slipway: requeue]"],
    ]
    assert read_jobs("".join("\x1f".join([*line, "\n"]) for line in lines)) == (
        Job("12", True, "Prolog", 1795619115, frozenset({"cpu-0", "cpu-1"}), True, False, admin_comment="(null)"),
        Job("14", False, "BeginTime", None, frozenset(), False, True, is_part=True, admin_comment="x [slipway: requeue]"),
    )


@pytest.mark.parametrize("line", ["12", "12\x1fN/A\x1f"])
def test_line_that_is_no_job_is_refused(line: str) -> None:
    with pytest.raises(untold.ReadingError):
        read_jobs(line)


class Killed(BaseException):
    """Ends whatever runs, as SIGKILL does."""


class Slurm:
    """slurmctld as it was measured: Requeue=0 is not requeued, and who may not be killed yet may be at the next write."""

    def __init__(self, jobs: Iterable[Job], monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs = {job.id: job for job in jobs}
        self.restarts = dict.fromkeys(self.jobs, 0)
        self.ended: set[str] = set()
        self.writes_left: int | None = None
        monkeypatch.setattr(slurm, "read_config", lambda: {"BOOT_TIME": str(BOOT), "Prolog": "(null)", "PrologEpilogTimeout": "65534"})
        monkeypatch.setattr(slurm, "read_started", self.read_started)
        monkeypatch.setattr(slurm, "read_steps", self.read_steps)
        monkeypatch.setattr(slurm, "read_slurmds", lambda: {"a": Slurmd(UP, 1), "b": Slurmd(UP, 1)})
        monkeypatch.setattr(slurm, "requeue", self.requeue)
        monkeypatch.setattr(slurm, "note", self.note)
        monkeypatch.setattr(slurm, "end", self.end)
        monkeypatch.setattr(time, "monotonic", itertools.count(0, 1).__next__)

    def read_started(self, states: str) -> tuple[Job, ...]:
        return tuple(job for job in self.jobs.values() if job.is_running or "PENDING" in states)

    def read_steps(self, jobs: Iterable[str]) -> tuple[str, ...]:
        assert {*jobs} <= {*self.jobs}
        return ()

    def write(self) -> None:
        if self.writes_left == 0:
            raise Killed
        self.writes_left = None if self.writes_left is None else self.writes_left - 1

    def requeue(self, job: str) -> None:
        self.write()
        if not self.jobs[job].may_requeue:
            raise SlurmError(f"Requested operation is presently disabled for job {job}")
        self.restarts[job] += 1
        self.jobs[job] = dataclasses.replace(self.jobs[job], is_running=False, reason="BeginTime", started=None)

    def note(self, job: str, comment: str, may_requeue: bool | None = None) -> None:
        self.write()
        right = self.jobs[job].may_requeue if may_requeue is None else may_requeue
        self.jobs[job] = dataclasses.replace(self.jobs[job], admin_comment=comment, may_requeue=right)

    def end(self, job: str, words: str) -> None:
        self.write()
        self.ended.add(job)
        del self.jobs[job]


def looks(runs: int) -> None:
    """A run of the sidecar that looks several times."""
    made = rescue.Rescue(lambda text: None)
    for _ in range(runs * 20):
        made.look()


JOBS = st.lists(
    st.builds(
        dataclasses.replace,
        st.just(LOST),
        is_batch=st.booleans(),
        may_requeue=st.booleans(),
        reason=st.sampled_from(["Prolog", "None"]),
        admin_comment=st.sampled_from(["(null)", "said [slipway: requeue; warned m1@5]"]),
    ),
    max_size=4,
)


@given(jobs=JOBS, kills=st.lists(st.integers(0, 6), max_size=3))
def test_killed_at_any_write_each_lost_job_starts_again_once_and_keeps_its_own_right(jobs: list[Job], kills: list[int]) -> None:
    before = [dataclasses.replace(job, id=str(number)) for number, job in enumerate(jobs)]
    with pytest.MonkeyPatch.context() as monkeypatch:
        made = Slurm(before, monkeypatch)
        for made.writes_left in (*kills, None):
            try:
                looks(3)
            except Killed:
                continue
    for job in before:
        is_lost = job.reason == "Prolog"
        assert (job.id in made.ended) == (is_lost and not job.is_batch)
        if job.id in made.ended:
            continue
        assert made.restarts[job.id] == (1 if is_lost else 0)
        assert made.jobs[job.id].may_requeue == job.may_requeue
        marks, own = read_marks(made.jobs[job.id].admin_comment), read_marks(job.admin_comment)
        assert marks == dataclasses.replace(own, text=untold.AGAIN if is_lost else own.text)


def test_without_a_limit_for_prologs_jobs_are_named_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Slurm([LOST], monkeypatch)
    monkeypatch.setattr(slurm, "read_config", lambda: {"BOOT_TIME": str(BOOT), "Prolog[0]": "/shared/mine.sh"})
    said: list[str] = []
    looking = rescue.Rescue(said.append)
    for _ in range(40):
        looking.look()
    assert made.jobs == {"7": LOST}
    assert len(said) == 1
    assert "jobs 7 may wait in vain" in said[0]
    assert "PrologTimeout" in said[0]


def test_prologs_that_may_still_run_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Slurm([LOST], monkeypatch)
    config = {"BOOT_TIME": str(BOOT), "Prolog[0]": "/shared/mine.sh", "PrologTimeout": "300"}
    monkeypatch.setattr(slurm, "read_config", lambda: config)
    now = [BOOT + 329.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    looks(1)
    assert made.jobs == {"7": LOST}
    now[0] = BOOT + 330.0
    looks(1)
    assert made.restarts == {"7": 1}
