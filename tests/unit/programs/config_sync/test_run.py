"""The copy of the files that slurmctld runs with, on a disk that outlives whoever is killed."""

import time
from pathlib import Path

import pytest

from programs.config_sync import copies, run, slurm
from programs.config_sync.copies import go_back, remove_other_copies, take_over
from programs.config_sync.report import Desk
from slurm.commands import SlurmError


class Killed(BaseException):
    """Ends whatever runs, as SIGKILL does: no handler of errors sees it."""


def reconfigure(monkeypatch: pytest.MonkeyPatch, outcome: BaseException | None) -> None:
    def answer() -> None:
        if outcome:
            raise outcome

    monkeypatch.setattr(slurm, "reconfigure", answer)


def files(claim: Path) -> list[str]:
    """What is on the disk, without the version that is offered; a folder of a random name is `copy`."""
    known = ("conf", "conf.start", "conf.before", "conf.link")
    return sorted(each.name if each.name in known else "copy" for each in claim.iterdir() if each.name != "new")


def test_files_taken_by_slurmctld_stay_beside_older_ones_for_slurmds(claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reconfigure(monkeypatch, None)
    take_over(claim / "new")
    assert (claim / "conf/slurm.conf").read_text() == "new"
    assert files(claim) == ["conf", "conf.start", "copy"]
    remove_other_copies((claim / "conf").readlink().name)
    assert files(claim) == ["conf", "copy"]


@pytest.mark.parametrize("error", [slurm.Refused("no"), SlurmError("no answer")], ids=["refused", "silent"])
def test_files_that_slurmctld_did_not_take_leave_nothing(claim: Path, monkeypatch: pytest.MonkeyPatch, error: SlurmError) -> None:
    reconfigure(monkeypatch, error)
    with pytest.raises(SlurmError):
        take_over(claim / "new")
    assert (claim / "conf/slurm.conf").read_text() == "old"
    assert files(claim) == ["conf", "conf.start"]


def test_kill_before_the_answer_leaves_a_note_of_the_files_before(claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reconfigure(monkeypatch, Killed())
    with pytest.raises(Killed):
        take_over(claim / "new")
    assert (claim / "conf.before").readlink() == Path("conf.start")
    go_back()
    assert (claim / "conf/slurm.conf").read_text() == "old"
    go_back()
    assert files(claim) == ["conf", "conf.start", "copy"]
    reconfigure(monkeypatch, None)
    take_over(claim / "new")
    assert files(claim) == ["conf", "conf.start", "copy"]


def test_slurmctld_that_started_meanwhile_has_not_taken_the_files(claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """programs/slurmctld went back to the files before: so they are told again."""

    def restart() -> None:
        (claim / "conf.before").replace(claim / "conf")

    monkeypatch.setattr(slurm, "reconfigure", restart)
    with pytest.raises(OSError, match=r"conf\.before"):
        take_over(claim / "new")
    assert (claim / "conf/slurm.conf").read_text() == "old"
    assert files(claim) == ["conf", "conf.start"]


def test_restarted_sidecar_reads_slurm_by_the_files_before(claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm's own commands cannot read files that slurmctld refuses: it would wait for an answer for ever."""
    reconfigure(monkeypatch, Killed())
    with pytest.raises(Killed):
        take_over(claim / "new")
    seen: list[str] = []

    def read() -> slurm.Reading:
        seen.append((claim / "conf/slurm.conf").read_text())
        raise SlurmError("seen")

    monkeypatch.setattr(slurm, "read", read)
    monkeypatch.setattr(slurm, "expand", frozenset)
    (claim / "new/slurm.conf").write_text("ClusterName=t\nNodeName=a\nPartitionName=b\n")
    run.Sync(Desk()).attempt(claim / "new")
    assert seen == ["old"]


def test_refusal_is_noted_until_slurmctld_takes_the_files(claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slurmctld that is silent says nothing new of them."""
    note = claim / "new/..refused"
    (claim / "new/slurm.conf").write_text("ClusterName=t\nNodeName=a\nPartitionName=b\n")
    monkeypatch.setattr(slurm, "expand", frozenset)
    monkeypatch.setattr(slurm, "read", lambda: slurm.Reading({}, {}, (), time.monotonic()))
    sync = run.Sync(Desk())
    for outcome, words in (
        (None, None),
        (slurm.Refused("no MinJobAge"), "no MinJobAge"),
        (SlurmError("no answer"), "no MinJobAge"),
        (None, None),
    ):
        reconfigure(monkeypatch, outcome)
        sync.attempt(claim / "new")
        assert words in note.read_text() if words else not note.exists(), outcome


def test_slurmctld_that_reverts_before_the_copy_is_named_keeps_its_files(claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was started again at the worst moment. A name that leads nowhere would have it take the ConfigMap's files, unjudged."""

    def restart(path: Path) -> None:
        if path == claim:
            (claim / "conf.before").replace(claim / "conf")

    monkeypatch.setattr(copies, "_flush", restart)
    reconfigure(monkeypatch, slurm.Refused("no"))
    with pytest.raises(slurm.Refused):
        take_over(claim / "new")
    assert (claim / "conf/slurm.conf").read_text() == "old"
    assert files(claim) == ["conf", "conf.start"]
