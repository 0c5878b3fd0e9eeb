"""Jobs of which no node was told: which they are, what becomes of them, and that being killed at any write loses none."""

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs.config_sync import rescue, slurm, untold
from programs.config_sync.slurmds import Slurmd
from programs.config_sync.untold import Job, noted, read_jobs
from slurm.commands import SlurmError
from slurm.job_marks import read_marks
from slurm.squeue import ReadingError
from slurm.states import NodeState, node_state

BOOT, SLACK_S = 1_000, 40.0
UP, SILENT = node_state(["ALLOCATED"]), node_state(["ALLOCATED", "NOT_RESPONDING"])
NODES = frozenset({"a", "b"})
LOST = Job("7", "7", is_running=True, reason="Prolog", started=BOOT, nodes=NODES, is_batch=True, may_requeue=True)
TEXT = "said by others"
END = "\x1fbadcafe"


def test_job_that_our_own_plugin_prepares_is_not_taken_for_lost() -> None:
    plugin = (Path(__file__).parents[4] / "images/slurm/root/spank.c").read_text()
    [given_s] = re.findall(r"SCRIPT_S = (\d+)", plugin)
    assert int(given_s) + 30 <= rescue.SLACK_S


def test_reading_takes_squeues_fields_whatever_a_comment_holds() -> None:
    lines = [
        ["12", "12", "N/A", "RUNNING", "Prolog", "1795619115", "1", "0", "cpu-[0-1]", "(null)"],
        ["15", "13_4", "N/A", "PENDING", "BeginTime", "N/A", "1", "1", "", "two\nlines \x1f and\u2028 more [slipway: requeue]"],
        ["14", "14", "13", "RUNNING", "None", "1795619115", "0", "1", "cpu-0", ""],
    ]
    one, two, three = read_jobs("".join(END.join([*line, "\n"]) for line in lines), END)
    assert one == dataclasses.replace(
        LOST, number="12", id="12", started=1795619115, nodes=frozenset({"cpu-0", "cpu-1"}), may_requeue=False, admin_comment="(null)"
    )
    assert (two.number, two.id, two.is_running, two.started, two.admin_comment) == ("15", "13_4", False, None, lines[1][-1])
    assert (three.is_part, three.is_batch, three.reason) == (True, False, "None")


@pytest.mark.parametrize("text", [f"12{END}\n", f"12{END}N/A{END}\n"])
def test_line_that_is_no_job_is_refused(text: str) -> None:
    with pytest.raises(ReadingError):
        read_jobs(text, END)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("(null)", "why", id="none"),
        pytest.param("said [slipway: requeue; lent requeue; warned m1@5]", "said; why [slipway: requeue; warned m1@5]", id="others' words"),
        pytest.param("said; why", "said; why", id="told already"),
    ],
)
def test_what_became_of_a_job_stands_after_what_others_wrote(before: str, after: str) -> None:
    assert noted(before, "why") == after


class Killed(BaseException):
    """Ends whatever runs, as SIGKILL does."""


class Slurm:
    """slurmctld as it was measured: Requeue=0 is not requeued. Its sidecar may be killed at a write."""

    def __init__(self, jobs: Iterable[Job], monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs = {job.id: job for job in jobs}
        self.restarts = dict.fromkeys(self.jobs, 0)
        self.ended: list[str] = []
        self.known: set[str] = set()
        """Numbers of jobs of which a node has a step."""
        self.mute: set[str] = set()
        """Numbers of jobs whose nodes sstat cannot ask."""
        self.nodes: dict[str, NodeState] = {"a": UP, "b": UP}
        self.config = {"BOOT_TIME": str(BOOT), "Prolog": "(null)", "PrologEpilogTimeout": "65534", "PrologFlags": "Alloc,Contain"}
        self.writes_left: int | None = None
        self.now = 0.0
        self.said: list[str] = []
        monkeypatch.setattr(slurm, "read_config", lambda: self.config)
        for call in (self.read_started, self.read_known, self.read_slurmds, self.requeue, self.note, self.end):
            monkeypatch.setattr(slurm, call.__name__, call)
        self.sidecar = self.start()

    def start(self) -> rescue.Rescue:
        """Another run of the sidecar."""
        return rescue.Rescue(self.said.append, SLACK_S, lambda: self.now)

    def looks(self, seconds: float) -> None:
        """The sidecar runs for a while."""
        end = self.now + seconds
        while self.now < end:
            self.sidecar.look()
            self.now += 5

    def read_started(self, state: str, job: str = "") -> tuple[Job, ...]:
        return tuple(one for one in self.jobs.values() if (one.is_running or not state) and job in ("", one.id))

    def read_known(self, jobs: Iterable[str]) -> frozenset[str]:
        if self.mute & {*jobs}:
            raise SlurmError("sstat: error: there was an error with the request to a")
        return frozenset(self.known)

    def read_slurmds(self) -> dict[str, Slurmd]:
        return {name: Slurmd(state, 1) for name, state in self.nodes.items()}

    def change(self, job: str, **changes: Any) -> None:
        self.jobs[job] = dataclasses.replace(self.jobs[job], **changes)

    def requeue(self, job: str) -> None:
        self._write()
        if not self.jobs[job].may_requeue:
            raise SlurmError(f"Requested operation is presently disabled for job {job}")
        if self.jobs[job].is_running:
            self.restarts[job] += 1
            self.change(job, is_running=False, reason="BeginTime", started=None)

    def note(self, job: str, comment: str, may_requeue: bool | None = None) -> None:
        self._write()
        self.change(job, admin_comment=comment, may_requeue=self.jobs[job].may_requeue if may_requeue is None else may_requeue)

    def end(self, job: str, words: str) -> None:
        self._write()
        assert words
        self.ended.append(job)
        del self.jobs[job]

    def _write(self) -> None:
        if self.writes_left == 0:
            raise Killed
        self.writes_left = None if self.writes_left is None else self.writes_left - 1


@pytest.mark.parametrize(
    ("changes", "around", "outcome"),
    [
        pytest.param({}, {}, "again", id="batch job"),
        pytest.param({"may_requeue": False}, {}, "again", id="batch job with --no-requeue"),
        pytest.param({"is_batch": False}, {}, "ended", id="srun"),
        pytest.param({}, {"known": {"7"}}, "left", id="batch job that a node knows"),
        pytest.param({"is_batch": False}, {"known": {"7"}}, "left", id="srun that a node knows"),
        pytest.param({}, {"mute": {"7"}}, "left", id="a node cannot be asked"),
        pytest.param({"is_part": True}, {}, "left", id="part of a heterogeneous job"),
        pytest.param({}, {"nodes": {"a": UP, "b": SILENT}}, "left", id="a node is silent"),
        pytest.param({}, {"nodes": {"a": UP}}, "left", id="a node is unknown"),
        pytest.param({"started": BOOT + 1}, {}, "left", id="started by the present process"),
        pytest.param({"started": None}, {}, "left", id="start unknown"),
        pytest.param({"reason": "None"}, {}, "left", id="prolog is over"),
        pytest.param({"is_running": False}, {}, "left", id="waits"),
    ],
)
def test_job_unknown_to_all_nodes_restarts_or_ends_and_others_are_left(
    changes: dict[str, Any], around: dict[str, Any], outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Slurm([dataclasses.replace(LOST, **changes)], monkeypatch)
    before = dict(made.jobs)
    for name, value in around.items():
        setattr(made, name, value)
    made.looks(SLACK_S * 4)
    assert {"again": made.restarts == {"7": 1}, "ended": made.ended == ["7"], "left": made.jobs == before}[outcome]
    assert (outcome == "left") == (made.restarts == {"7": 0} and made.ended == [])


def test_task_is_named_so_that_no_other_task_of_its_array_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last task of an array has the array's own number."""
    lost, works = dataclasses.replace(LOST, id="7_2"), dataclasses.replace(LOST, id="7_1", number="8", reason="None")
    made = Slurm([lost, works], monkeypatch)
    made.looks(SLACK_S * 4)
    assert made.restarts == {"7_2": 1, "7_1": 0}
    assert made.jobs["7_1"] == works


def test_job_is_left_to_its_prologs_for_their_timeout_since_it_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Slurm([LOST], monkeypatch)
    made.config |= {"Prolog[0]": "/shared/mine.sh", "PrologTimeout": "300"}
    made.looks(300 + SLACK_S - 10)
    assert made.restarts == {"7": 0}
    made.config |= {"BOOT_TIME": str(BOOT + 330)}  # another reconfigure begins no new wait
    made.looks(30)
    assert made.restarts == {"7": 1}


def test_job_that_is_given_nodes_after_the_first_look_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waited for a node that powered up: its prolog began after slurmctld's process, though its start is older."""
    made = Slurm([dataclasses.replace(LOST, reason="None", is_running=False)], monkeypatch)
    made.looks(20)
    made.change("7", is_running=True, reason="Prolog")
    made.looks(SLACK_S * 4)
    assert made.restarts == {"7": 0}


def test_job_that_began_between_the_reading_and_the_write_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Slurm([LOST], monkeypatch)

    def begin(jobs: Iterable[str]) -> frozenset[str]:
        for job in jobs:
            made.change(job, reason="None")
        return frozenset()

    monkeypatch.setattr(slurm, "read_known", begin)
    made.looks(SLACK_S * 4)
    assert made.restarts == {"7": 0}


def test_without_a_limit_for_prologs_jobs_are_named_once_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Slurm([LOST], monkeypatch)
    made.config |= {"Prolog[0]": "/shared/mine.sh"}
    made.looks(SLACK_S * 4)
    assert made.jobs == {"7": LOST}
    [said] = made.said
    assert "told no node of jobs 7" in said
    assert "PrologTimeout" in said


def test_one_refusal_holds_up_no_other_job_and_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Slurm([LOST, dataclasses.replace(LOST, number="8", id="8")], monkeypatch)

    def refuse(job: str) -> None:
        if job == "7":
            raise SlurmError("no")
        made.requeue(job)

    monkeypatch.setattr(slurm, "requeue", refuse)
    made.looks(SLACK_S * 12)
    assert made.restarts == {"7": 0, "8": 1}
    assert sum("job 7, of which" in text for text in made.said) == 1


JOBS = st.lists(
    st.builds(
        dataclasses.replace,
        st.just(LOST),
        is_batch=st.booleans(),
        may_requeue=st.booleans(),
        reason=st.sampled_from(["Prolog", "None"]),
        admin_comment=st.sampled_from(["(null)", f"{TEXT} [slipway: requeue; warned m1@5]"]),
    ),
    max_size=4,
)


@given(jobs=JOBS, kills=st.lists(st.integers(0, 6), max_size=3))
def test_lost_jobs_restart_once_at_any_kill_and_keep_their_requeue_flag(jobs: list[Job], kills: list[int]) -> None:
    before = [dataclasses.replace(job, id=str(number), number=str(number)) for number, job in enumerate(jobs)]
    with pytest.MonkeyPatch.context() as monkeypatch:
        made = Slurm(before, monkeypatch)
        for made.writes_left in (*kills, None):
            made.sidecar = made.start()
            try:
                made.looks(SLACK_S * 3)
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
        assert dataclasses.replace(marks, text="") == dataclasses.replace(own, text="")
        assert marks.text in (own.text, "; ".join(filter(None, (own.text, untold.AGAIN))))
