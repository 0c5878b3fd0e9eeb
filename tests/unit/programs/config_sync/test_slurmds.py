"""Which slurmds have the files that slurmctld has taken."""

import time

import pytest

from programs.config_sync import copies, report, run, slurm
from programs.config_sync.report import Desk, Report
from programs.config_sync.slurmds import (
    AGAIN_S,
    Slurmd,
    Told,
    are_files_at_fault,
    describe,
    find_behind,
    find_silent,
    look_after_s,
    note_done,
    tell_again,
)
from slurm.commands import SlurmError
from slurm.scontrol import AnswerError, read_starts
from slurm.states import node_state

AT = 1_000.5


def slurmd(started: int | None, state: str = "IDLE+CLOUD") -> Slurmd:
    return Slurmd(node_state(state.split("+")), started)


def behind(found: Slurmd, before: int | None) -> list[str]:
    slurmds = {"gpu-0": found}
    return find_behind(slurmds, note_done(slurmds, Told(AT, {} if before is None else {"gpu-0": before})))


@pytest.mark.parametrize(
    ("found", "before", "is_behind"),
    [
        pytest.param(slurmd(None), 900, True, id="not-heard-since"),
        pytest.param(slurmd(1000), 900, False, id="started-anew"),
        pytest.param(slurmd(900), 900, True, id="registered-without-a-new-start"),
        pytest.param(slurmd(890), 900, False, id="started-anew-after-its-clock-was-set-back"),
        pytest.param(slurmd(1000), None, False, id="new-since"),
        pytest.param(slurmd(999), None, True, id="new-with-files-from-before"),
        pytest.param(slurmd(None, "MIXED+CLOUD+DRAIN"), 900, True, id="drained-with-a-job"),
        pytest.param(slurmd(None, "IDLE+CLOUD+POWERED_DOWN"), 900, False, id="asleep"),
        pytest.param(slurmd(None, "MIXED+CLOUD+NOT_RESPONDING+POWERING_UP"), None, False, id="waking"),
        pytest.param(slurmd(None, "DOWN+CLOUD+NOT_RESPONDING"), 900, False, id="down"),
        pytest.param(slurmd(None, "IDLE+CLOUD+NOT_RESPONDING"), 900, False, id="silent"),
    ],
)
def test_slurmd_that_answers_without_a_new_start_is_behind(found: Slurmd, before: int | None, is_behind: bool) -> None:
    assert behind(found, before) == (["gpu-0"] if is_behind else [])


def test_slurmds_with_the_files_are_not_awaited_if_others_are_told_again() -> None:
    told = note_done({"a": slurmd(1001), "b": slurmd(900)}, Told(AT, {"a": 900, "b": 900}))
    told = tell_again({"a": slurmd(1001), "b": slurmd(900)}, told, AT + 20)
    assert find_behind({"a": slurmd(None), "b": slurmd(None)}, told) == ["b"]
    found = {"a": slurmd(None), "b": slurmd(1021)}
    assert find_behind(found, note_done(found, told)) == []


def test_slurmd_started_twice_in_a_second_is_done_after_the_next_signal() -> None:
    """Slurm tells whole seconds: both starts look the same."""
    found = {"a": slurmd(1000)}
    told = note_done(found, Told(AT, {"a": 1000}))
    assert find_behind(found, told) == ["a"]
    told = note_done({"a": slurmd(1021)}, tell_again(found, told, AT + 20))
    assert find_behind(found, told) == []


@pytest.mark.parametrize(
    ("state", "is_silent"),
    [("IDLE+CLOUD+NOT_RESPONDING", True), ("DOWN+CLOUD+NOT_RESPONDING", True), ("IDLE+CLOUD+POWERED_DOWN", False), ("IDLE+CLOUD", False)],
    ids=["silent", "down", "asleep", "answers"],
)
def test_slurmd_that_fell_silent_may_come_back_with_the_old_files(state: str, is_silent: bool) -> None:
    """Also to a sidecar that has just started and does not know when it had started."""
    told = Told(AT, {"a": 900, "gone": 900})
    assert find_silent({"a": slurmd(None, state), "b": slurmd(None, state)}, told) == (["a", "b"] if is_silent else [])


@pytest.mark.parametrize(
    ("found", "awaited", "silent", "words"),
    [
        ([], 0, [], "no slurmd answers"),
        ([], 300, [], "all 300 slurmds that answer have them"),
        (["a"], 3, [], "1 of 3 slurmds do not have them yet: a"),
        (list("abcdefg"), 9, [], "7 of 9 slurmds do not have them yet: a, b, c, d, e and 2 more"),
        ([], 2, ["c"], "all 2 slurmds that answer have them; of silent slurmds nothing is known: c"),
    ],
    ids=["none", "all", "single", "many", "silent"],
)
def test_words_name_five_slurmds_at_most(found: list[str], awaited: int, silent: list[str], words: str) -> None:
    assert describe(found, awaited, silent) == words


def test_looks_become_rare() -> None:
    assert [look_after_s(age) for age in (0, 11, 100)] == [0.25, 2, 15]


def test_starts_are_seconds_and_missing_for_unregistered_slurmds() -> None:
    text = "NodeName=a State=IDLE BootTime=5 SlurmdStartTime=7 Comment=SlurmdStartTime=9\nNodeName=b State=IDLE SlurmdStartTime=None X=1\n"
    assert read_starts(text) == {"a": 7}
    with pytest.raises(AnswerError, match="seconds"):
        read_starts("NodeName=a State=IDLE SlurmdStartTime=2026-11-23T03:17:12\n")


WITH_NODES = "ClusterName=t\nNodeName=a\nNodeName=b\nPartitionName=b\n"


class Lab:
    """slurmctld and two slurmds, at a time that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.told = AT, 0
        self.slurmds: dict[str, Slurmd] | SlurmError = {"a": slurmd(900), "b": slurmd(900)}
        self.desk = Desk()
        self.sync = run.Sync(self.desk)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "time", lambda: self.now)
        monkeypatch.setattr(slurm, "expand", frozenset)
        monkeypatch.setattr(
            slurm, "read", lambda: slurm.Reading({n: slurmd(900).state for n in "ab"}, {}, (), self.now, {"a": 900, "b": 900})
        )
        monkeypatch.setattr(slurm, "read_slurmds", self._read)
        monkeypatch.setattr(slurm, "reconfigure", self._tell)

    def _read(self) -> dict[str, Slurmd]:
        if isinstance(self.slurmds, SlurmError):
            raise self.slurmds
        return self.slurmds

    def _tell(self) -> None:
        self.told += 1

    def look(self, after_s: float = 1) -> Report:
        self.now += after_s
        self.sync.look()
        return self.desk.report


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, claim: object) -> Lab:
    made = Lab(monkeypatch)
    (copies.CLAIM / "conf.start/slurm.conf").write_text(WITH_NODES)
    (copies.CLAIM / "new/slurm.conf").write_text(f"{WITH_NODES}KillWait=59\n")
    assert made.sync.attempt(copies.CLAIM / "new") is None
    assert made.desk.report.state == report.SPREADING
    return made


def test_files_are_live_once_every_slurmd_has_them(lab: Lab) -> None:
    lab.slurmds = {"a": slurmd(1001), "b": slurmd(None)}
    assert (lab.look().state, lab.desk.report.message) == (
        report.SPREADING,
        "slurmctld runs with these files; 1 of 2 slurmds do not have them yet: b",
    )
    lab.slurmds = {"a": slurmd(1001), "b": slurmd(1002)}
    assert lab.look() == Report(lab.desk.report.files, report.LIVE, "slurmctld runs with these files; all 2 slurmds that answer have them")
    assert lab.told == 1


def test_slurmds_left_behind_are_told_once_more_and_then_reported(lab: Lab) -> None:
    lab.slurmds = {"a": slurmd(1001), "b": slurmd(None)}
    lab.look()
    assert (lab.look(AGAIN_S).state, lab.told) == (report.SPREADING, 2)
    late = lab.look(AGAIN_S)
    assert (late.state, lab.told) == (report.BEHIND, 2)
    assert "Read the log of b: container slurmd of its pod" in late.message
    assert (lab.look(100).state, lab.told) == (report.BEHIND, 2)
    lab.slurmds = {"a": slurmd(None), "b": slurmd(1060)}
    assert (lab.look(100).state, lab.told) == (report.LIVE, 2)


def test_slurmd_that_comes_back_with_the_old_files_is_told_again(lab: Lab) -> None:
    lab.slurmds = {"a": slurmd(1001), "b": slurmd(None, "IDLE+CLOUD+NOT_RESPONDING")}
    assert (lab.look().state, lab.look(1000).state, lab.told) == (report.SPREADING, report.LIVE, 1)
    lab.slurmds = {"a": slurmd(1001), "b": slurmd(900)}
    assert (lab.look(1000).state, lab.told) == (report.SPREADING, 2)
    lab.slurmds = {"a": slurmd(3005), "b": slurmd(3005)}
    assert (lab.look(100).state, lab.told) == (report.LIVE, 2)


def test_silence_about_slurmds_is_no_news(lab: Lab) -> None:
    lab.slurmds = SlurmError("no answer")
    assert lab.look(2 * AGAIN_S).state == report.SPREADING
    lab.slurmds = {"a": slurmd(1001), "b": slurmd(1001)}
    assert lab.look(3).state == report.LIVE


def test_next_files_are_taken_while_slurmds_are_behind(lab: Lab) -> None:
    lab.slurmds = {"a": slurmd(None), "b": slurmd(None)}
    before = lab.look(AGAIN_S).files
    (copies.CLAIM / "new/slurm.conf").write_text(f"{WITH_NODES}KillWait=60\n")
    assert lab.sync.attempt(copies.CLAIM / "new") is None
    assert (lab.desk.report.state, lab.desk.report.files != before) == (report.SPREADING, True)


def lost(lab: Lab) -> None:
    """Both slurmds have ended over the files."""
    lab.slurmds = {name: slurmd(None, "IDLE+CLOUD+NOT_RESPONDING") for name in "ab"}


def test_files_over_which_slurmds_end_are_given_back(lab: Lab) -> None:
    lost(lab)
    assert lab.look().state == report.SPREADING
    refused = lab.look(AGAIN_S)
    assert refused.state == report.REFUSED
    assert "slurmctld runs with the files before again: 2 slurmds that had answered ended over these files" in refused.message
    assert ((copies.CLAIM / "conf/slurm.conf").read_text(), lab.told) == (WITH_NODES, 2)
    assert lab.sync.attempt(copies.CLAIM / "new") == 60
    assert ((copies.CLAIM / "conf/slurm.conf").read_text(), lab.told, lab.look(100).state) == (WITH_NODES, 2, report.REFUSED)
    (copies.CLAIM / "new/slurm.conf").write_text(f"{WITH_NODES}KillWait=60\n")
    assert lab.sync.attempt(copies.CLAIM / "new") is None


def test_withdrawn_files_are_tried_again_once_all_lost_slurmds_answer(lab: Lab) -> None:
    lost(lab)
    lab.look()
    files = lab.look(AGAIN_S).files
    lab.slurmds = {"a": slurmd(1100), "b": slurmd(None, "IDLE+CLOUD+NOT_RESPONDING")}
    assert lab.sync.attempt(copies.CLAIM / "new") == 60
    lab.slurmds = {"a": slurmd(1100), "b": slurmd(1100)}
    assert lab.sync.attempt(copies.CLAIM / "new") is None
    lost(lab)
    assert (lab.look().state, lab.look(AGAIN_S).state) == (report.SPREADING, report.REFUSED)
    lab.slurmds = {"a": slurmd(1200), "b": slurmd(1200)}
    assert lab.sync.attempt(copies.CLAIM / "new") == 60
    assert copies.find_good(files) is not None


def test_second_chance_that_works_is_the_end_of_it(lab: Lab) -> None:
    lost(lab)
    lab.look()
    files = lab.look(AGAIN_S).files
    lab.slurmds = {"a": slurmd(1100), "b": slurmd(1100)}
    assert lab.sync.attempt(copies.CLAIM / "new") is None
    lab.slurmds = {"a": slurmd(1200), "b": slurmd(1200)}
    assert lab.look().state == report.LIVE
    assert copies.find_good(files) is None
    assert "KillWait=59" in (copies.CLAIM / "conf/slurm.conf").read_text()


@pytest.mark.parametrize("last", ["note_bad", "point", "reconfigure"])
def test_sidecar_killed_while_it_gives_files_back_does_so_at_its_start(lab: Lab, monkeypatch: pytest.MonkeyPatch, last: str) -> None:
    class Killed(BaseException):
        """Ends whatever runs."""

    def kill(*_: object) -> None:
        raise Killed

    lost(lab)
    lab.look()
    with monkeypatch.context() as patch:
        at = {"note_bad": (copies, "point"), "point": (slurm, "reconfigure"), "reconfigure": (run, "note_refusal")}[last]
        patch.setattr(*at, kill)
        with pytest.raises(Killed):
            lab.look(AGAIN_S)
    sync, told = run.Sync(lab.desk), lab.told
    assert sync.attempt(copies.CLAIM / "new") == 60
    assert (copies.CLAIM / "conf/slurm.conf").read_text() == WITH_NODES
    assert lab.told > told
    assert lab.desk.report.state == report.REFUSED


def test_files_are_not_given_back_where_that_takes_a_node_away(lab: Lab) -> None:
    (copies.CLAIM / "conf.start/slurm.conf").write_text("ClusterName=t\nNodeName=a\nPartitionName=b\n")
    lost(lab)
    lab.look()
    assert lab.look(AGAIN_S).state != report.REFUSED
    assert "KillWait=59" in (copies.CLAIM / "conf/slurm.conf").read_text()


@pytest.mark.parametrize(
    ("answered", "gone", "at_fault"),
    [
        pytest.param(["gpu-0", "gpu-1", "cpu-0"], ["gpu-0", "gpu-1"], True, id="a-whole-set"),
        pytest.param(["gpu-0", "gpu-1"], ["gpu-0"], False, id="half-of-a-set"),
        pytest.param(["gpu-0", "gpu-1", "gpu-2"], ["gpu-0", "gpu-2"], True, id="more-than-half"),
        pytest.param([f"cpu-{n}" for n in range(100)], ["cpu-3"], False, id="a-single-machine"),
        pytest.param(["gpu-0"], ["gpu-0"], True, id="a-set-of-one-node"),
        pytest.param(["gpu-0"], [], False, id="none"),
    ],
)
def test_files_are_at_fault_when_more_than_half_of_a_set_is_lost(answered: list[str], gone: list[str], at_fault: bool) -> None:
    assert are_files_at_fault(gone, Told(AT, {}, answered=frozenset(answered))) == at_fault
