"""Rounds: what is read once is told once, also when a round fails or is killed in the middle; and what cannot be read is tried again."""

from collections.abc import Callable
from pathlib import Path

import pytest

from programs.mail.spool import Spool
from programs.notify.reader import CHUNK_S, Reader
from programs.notify.settings import Receiver
from programs.notify.state import load, spool_of
from slurm.commands import SlurmError
from slurm.ended import FORGET_S, LOOK_BACK_S
from tests.unit.programs.notify.examples import BETWEEN, NOW, receiver, rows, sinfo

CHAT = (receiver(),)
DRAINED = {"StateComplete": "mixed+drain", "Reason": "fan"}
NODES = (receiver(events=frozenset({"nodeDrain"})),)


class Site:
    """A Slurm of recorded answers, the time, and a disk."""

    def __init__(self, folder: Path) -> None:
        self.now, self.folder, self.mails = NOW, folder / "notify", folder / "mail"
        self.said: list[str] = []
        self.asked: list[tuple[str, ...]] = []
        self.rows: list[dict[str, str]] = []
        self.squeue = ""
        self.running: list[dict[str, str]] = []
        self.sinfo: list[dict[str, str]] = [{}]
        self.is_silent = False
        self.reader = self.start()

    def start(self) -> Reader:
        return Reader("dev", self.ask, self.said.append, lambda: self.now, self.folder, self.mails)

    def ask(self, *command: str) -> str:
        self.asked.append(command)
        if self.is_silent:
            raise SlurmError("slurmdbd is silent")
        if command[0] == "squeue":
            return self.squeue if "%F" in command[-1] else running(command[-1], *self.running)
        if command[0] == "sinfo":
            return sinfo(*self.sinfo).replace(BETWEEN, command[-1].rpartition(":0")[2])
        return rows(*self.rows).replace(BETWEEN, next(word for word in command if word.startswith("--delimiter=")).partition("=")[2])

    def end(self, number: str, **more: str) -> None:
        self.rows.append({"JobID": number, "End": str(int(self.now)), **more})

    def told(self) -> list[str]:
        spool = spool_of("chat", self.folder)
        return [spool.read(name).subject for name in spool.names()]

    def round(self, who: tuple[Receiver, ...] = CHAT, later_s: float = 15) -> None:
        self.now += later_s
        self.reader.round(who)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_run_is_told_once_and_not_what_ended_before_the_first_start(site: Site) -> None:
    site.end("1", End=str(int(NOW) - 1))
    site.round()
    site.end("2")
    for _ in range(3):
        site.round()
    assert site.told() == ["Job 2 (train) completed"]


def test_late_row_is_told_as_well(site: Site) -> None:
    site.round()
    at = int(site.now)
    site.round(later_s=LOOK_BACK_S - 20)
    site.end("1", End=str(at))
    site.round()
    assert len(site.told()) == 1


def test_another_start_goes_on_where_the_last_one_was(site: Site) -> None:
    site.round()
    site.end("1")
    site.round()
    site.reader = site.start()
    site.end("2")
    site.round()
    assert site.told() == ["Job 1 (train) completed", "Job 2 (train) completed"]


def test_kill_before_the_state_is_written_tells_twice_and_loses_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.round()
    site.end("1")
    monkeypatch.setattr("programs.notify.reader.save", fail(RuntimeError("killed")))
    with pytest.raises(RuntimeError):
        site.round()
    monkeypatch.undo()
    site.reader = site.start()
    site.round()
    assert site.told() == ["Job 1 (train) completed"] * 2


def test_full_disk_holds_up_the_next_reading_and_loses_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.round()
    site.end("1")
    site.end("2")
    monkeypatch.setattr(Spool, "add", fail(OSError("no space left")))
    for _ in range(2):
        with pytest.raises(OSError, match="no space"):
            site.round()
    monkeypatch.undo()
    readings = len(site.asked)
    site.round()
    assert (len(site.told()), len(site.asked)) == (2, readings)


def test_silent_slurm_is_logged_once_and_asked_for_all_since(site: Site) -> None:
    site.round()
    site.is_silent = True
    site.end("1")
    for _ in range(3):
        site.round(later_s=200)
    site.is_silent = False
    site.round()
    assert site.told() == ["Job 1 (train) completed"]
    assert site.said == [
        *(f"{what} cannot be read, trying again: slurmdbd is silent" for what in ("jobs", "nodes")),
        *(f"{what} can be read again" for what in ("jobs", "nodes")),
    ]


def test_long_outage_is_read_in_parts_and_logged_beyond_a_day(site: Site) -> None:
    site.round()
    site.round(later_s=FORGET_S + 5 * CHUNK_S)
    assert site.said[0].startswith("LOST: jobs that ended before ")
    windows = {word for command in site.asked for word in command if word.startswith("--endtime")}
    assert f"--endtime=uts{int(site.now - FORGET_S + CHUNK_S)}" in windows


def test_state_that_is_broken_is_logged(site: Site) -> None:
    site.folder.mkdir()
    (site.folder / "state.json").write_text('{"since": 1}')
    site.start()
    assert site.said[0].startswith("LOST: ")


def test_state_comes_back_as_it_was(site: Site) -> None:
    site.squeue = "15 RUNNING"
    site.round((*CHAT, *NODES))
    site.end("15_0", Comment="notify:chat")
    site.sinfo = [{"StateComplete": "idle+drain", "Reason": "fan"}]
    site.round((*CHAT, *NODES))
    found = load(site.folder / "state.json")
    assert found is not None
    assert (found.arrays["15"].example.asked, found.nodes is not None and found.nodes.seen) == ({"chat"}, {"gpu-0"})
    before = site.told()
    site.reader = site.start()
    site.round((*CHAT, *NODES))
    assert [each for each in site.told() if each not in before] == ["Node gpu-0 takes no jobs"]
    site.squeue = ""
    site.round((*CHAT, *NODES))
    assert site.told()[-1] == "Array job 15 (train): 1 completed"


def test_full_spool_is_logged_by_what_it_had_no_room_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.round()
    site.end("1")
    monkeypatch.setattr(Spool, "add", no)
    site.round()
    assert site.said == ["LOST: chat is not told: Job 1 (train) completed: too many messages wait for it"]


def test_slurm_is_asked_only_for_what_somebody_wants(site: Site) -> None:
    site.round(())
    assert site.asked == []
    site.round(NODES)
    assert [command[0] for command in site.asked] == ["sinfo"]
    site.sinfo = [DRAINED]
    for _ in range(2):
        site.round(NODES)
    assert {command[0] for command in site.asked} == {"sinfo"}


def test_user_hears_once_of_a_drain_also_after_a_kill(site: Site) -> None:
    """Running jobs are asked for once, in the round in which the drain is news."""
    site.running = [{"Comment": "notify:chat"}, {"JobArrayID": "8"}]
    site.round()
    site.sinfo = [DRAINED]
    for _ in range(3):
        site.round()
        site.reader = site.start()
    site.sinfo = [{**DRAINED, "Reason": "fan and disk"}]
    for _ in range(3):
        site.round()
    assert site.told() == ["Node gpu-0, on which your job 7 runs, was drained: fan; the job goes on for now"]
    assert sum(command[0] == "squeue" for command in site.asked) == 1


def test_running_jobs_that_cannot_be_read_are_read_again(site: Site) -> None:
    site.running = [{"Comment": "notify:chat"}]
    site.round()
    site.sinfo = [DRAINED]
    site.round()
    site.running = [{"NodeList": "gpu-[0-"}]
    site.round()
    assert site.told() == []
    site.running = [{"Comment": "notify:chat"}]
    site.round()
    assert len(site.told()) == 1


def test_mail_goes_into_the_spool_of_mails(site: Site) -> None:
    who = (receiver(kind="mail", to=("a@example.com", "b@example.com")),)
    site.round(who)
    site.end("1")
    site.round(who)
    mails = Spool(site.mails)
    [name] = mails.names()
    assert (mails.read(name).address, mails.read(name).subject) == ("a@example.com, b@example.com", "[dev] Job 1 (train) completed")


def running(option: str, *jobs: dict[str, str]) -> str:
    """squeue's answer about running jobs."""
    base = {"JobID": "7", "JobArrayID": "7", "HetJobID": "0", "State": "RUNNING", "NodeList": "gpu-0", "UserName": "alice"}
    fields = [field.partition(":0") for field in option.removeprefix("--Format=").split(",")]
    return "".join("".join(f"{ {**base, **job}.get(name, '') }{end}" for name, _, end in fields) + "\n" for job in jobs)


def no(*_: object) -> bool:
    return False


def fail(error: Exception) -> Callable[..., None]:
    def raised(*_: object) -> None:
        raise error

    return raised


def test_what_slurmdbd_hears_late_after_an_outage_is_told(site: Site) -> None:
    """slurmctld hands over what ended meanwhile once slurmdbd is back: this job ended in the middle of it."""
    site.round()
    site.is_silent = True
    for _ in range(50):
        site.round(later_s=60)
    ended = site.now - 1800
    site.is_silent = False
    site.round()
    site.rows.append({"JobID": "17", "End": str(int(ended))})
    site.round()
    assert site.told() == [site.told()[0]]
    assert "17" in site.told()[0]
    for _ in range(100):
        site.round()
    assert len(site.told()) == 1
    questions = [command for command in site.asked if command[0] == "sacct"]
    assert questions[-1] != questions[0]
    state = load(site.folder / "state.json")
    assert state is not None
    assert state.gap is None, "it looks back no further than usual again"


def test_clock_that_is_set_back_ends_no_news(site: Site) -> None:
    site.round()
    site.now -= 7200
    site.round()
    site.end("17")
    site.round()
    assert len(site.told()) == 1
