"""slurmctld's program with stand-ins for Slurm's: what cannot be read is a failure, and a kill leaves whole files."""

import errno
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from programs.slurmctld import claim as claims
from programs.slurmctld import run
from programs.slurmctld.claim import Claim
from programs.slurmctld.plan import Found
from slurm.commands import SlurmError
from tests.support.log_lines import as_words


class Signals:
    """Stops the program once it waits for munged."""

    def __init__(self) -> None:
        self.is_stopping = False

    def wait(self, seconds: float | None) -> None:
        self.is_stopping = True


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders of a pod below one; gives that of the claim."""
    for name, folder in {"OFFERED": "etc/slurm", "RUN": "run/slurm", "MUNGE": "run/munge"}.items():
        (tmp_path / folder).mkdir(parents=True)
        monkeypatch.setattr(run, name, tmp_path / folder)
    for name, words in {"slurmctld": "echo slurm 26.05", "munge": "exit 9"}.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{words}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_CONF", "")
    (tmp_path / "claim").mkdir()
    (tmp_path / "etc/slurm/slurm.conf").write_text(f"StateSaveLocation={tmp_path}/claim/state\n")
    return tmp_path / "claim"


def start() -> int:
    """A start until it waits for munged."""
    return run.Controller(Signals(), 120).run()  # pyright: ignore[reportArgumentType]


def copies(claim: Path, conf: str, before: str | None = None, texts: Mapping[str, str] | None = None) -> None:
    """Copies of files on the claim, and the links to them."""
    for name in ("conf.start", "conf.bad"):
        (claim / name).mkdir(parents=True)
        (claim / name / "slurm.conf").write_text((texts or {}).get(name, name))
    (claim / "conf").symlink_to(conf)
    if before:
        (claim / "conf.before").symlink_to(before)


def test_first_start_takes_the_files_of_the_config_map(places: Path, tmp_path: Path) -> None:
    (tmp_path / "etc/slurm/..data").mkdir()
    assert start() == 0
    assert (places / "conf/slurm.conf").read_text().startswith("StateSaveLocation=")
    assert os.environ["SLURM_CONF"] == f"{places}/conf/slurm.conf"
    assert (places / "state").stat().st_mode & 0o777 == 0o700


def test_full_disk_that_takes_no_note_keeps_slurmctld_from_nothing(
    places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Claim, "note", refuse)
    (tmp_path / "slurmctld").write_text(f"#!/bin/bash\n[[ $1 == -V ]] || touch {tmp_path}/started\n")
    controller = run.Controller(Signals(), 120)  # pyright: ignore[reportArgumentType]
    controller._start()  # pyright: ignore[reportPrivateUsage]
    assert (tmp_path / "started").exists()
    assert "cannot note which munge key slurmctld has: No space left on device" in as_words(capfd.readouterr().out)


def test_note_of_a_key_is_as_old_as_its_first_use(places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The alert KeyOld goes by it: a start with the same key leaves it, another key renews it."""
    (tmp_path / "slurmctld").write_text("#!/bin/bash\n")
    jwt = tmp_path / "jwt_hs256.key"
    monkeypatch.setattr(run, "JWT_KEY", jwt)
    controller, note, noted = run.Controller(Signals(), 120), places / "conf.jwt-key", list[tuple[str, bool]]()  # pyright: ignore[reportArgumentType]
    for key in ("one", "one", "two"):
        jwt.write_text(key)
        controller._start()  # pyright: ignore[reportPrivateUsage]
        noted.append((note.read_text().strip(), note.stat().st_mtime > 1000))
        os.utime(note, (1000, 1000))
    assert [is_new for _, is_new in noted] == [True, False, True]
    assert len({name for name, _ in noted}) == 2
    assert "one" not in noted[0][0]


def test_start_after_a_kill_in_mid_change_is_with_the_files_before(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """slurmctld may have refused those that the link names; programs/config_sync made the note."""
    copies(places, "conf.bad", "conf.start")
    assert start() == 0
    assert (places / "conf/slurm.conf").read_text() == "conf.start"
    assert not (places / "conf.before").is_symlink()
    assert "it starts with those before, conf.start" in as_words(capfd.readouterr().out)


def test_copy_that_cannot_be_read_is_not_a_missing_one(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The ConfigMap's files may take nodes away that run jobs."""
    (places / "conf").symlink_to("conf")  # a link to itself: also root cannot read that
    assert start() == 1
    assert "the configuration that slurmctld had, cannot be read" in as_words(capfd.readouterr().out)
    assert (places / "conf").is_symlink()


def test_note_of_the_munge_key_that_cannot_be_read_is_not_a_missing_one(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A new munge key may not be everybody's yet."""
    (places / "conf.munge-key").symlink_to("conf.munge-key")
    munge = places.parent / "munge"
    munge.write_text("#!/bin/bash\n")
    assert start() == 1
    assert "which munge key slurmctld had is unknown" in as_words(capfd.readouterr().out)


def test_unreadable_note_of_the_last_slurm_does_not_mean_a_new_slurm(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of a new Slurm that ends at its start, the ConfigMap's files are taken over, which may end jobs."""
    made = run.Controller(Signals(), 120)  # pyright: ignore[reportArgumentType]
    assert made.run() == 0
    note = places / "conf.version"

    def is_new() -> bool:
        return made._is_new_slurm()  # pyright: ignore[reportPrivateUsage]

    assert is_new()
    note.write_text("slurm 26.05\n")
    assert not is_new()
    note.write_text("slurm 25.11\n")
    assert is_new()
    note.unlink()
    note.symlink_to(note.name)
    assert not is_new()
    assert "which Slurm ran here last is unknown" in as_words(capfd.readouterr().out)


def die(*_: object) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("dies_at", ["copy", "replace", None])
def test_start_that_is_killed_while_it_takes_files_leaves_whole_ones(
    places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_at: str | None
) -> None:
    """The copy in use is never written to, so that half of another cannot take its place."""
    copies(places, "conf.start")
    claim = Claim(places, tmp_path / "etc/slurm")
    if dies_at:
        monkeypatch.setattr(*((claims.shutil, "copy") if dies_at == "copy" else (Path, "replace")), die)
        with pytest.raises(ZeroDivisionError):
            claim.accept()
        assert (places / "conf/slurm.conf").read_text() == "conf.start"
        monkeypatch.undo()
    for _ in range(2):
        claim.accept()
        assert (places / "conf/slurm.conf").read_text().startswith("StateSaveLocation=")
    assert claim.find() is Found.READABLE


def test_prologs_get_one_answer_and_none_while_slurmctld_is_silent(places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, unready = tmp_path / "run/slurm/waiting", tmp_path / "run/slurm/unready"
    answers = iter(["mixed# el-1\nallocated el-0\n", SlurmError("silent"), ""])

    def call(*_: str, timeout_s: float) -> str:
        answer = next(answers)
        if isinstance(answer, SlurmError):
            raise answer
        return answer

    monkeypatch.setattr(run, "call", call)
    run.answer_prologs()
    assert not unready.exists()
    waiting.touch()
    run.answer_prologs()
    asked, *nodes = unready.read_text().split()
    assert (nodes, len(asked), waiting.exists()) == (["el-1"], 16, False)
    waiting.touch()
    with pytest.raises(SlurmError):
        run.answer_prologs()
    assert unready.read_text().split() == [asked, "el-1"], "the old answer stays; its time is in it"
    waiting.touch()
    run.answer_prologs()
    assert unready.read_text().split() != [asked, "el-1"]


def test_process_of_the_daemon_is_the_init_s_child(tmp_path: Path) -> None:
    lines = {7: "7 (slurmctld) S 1 7", 8: "8 (slurmctld) S 7 7", 9: "9 (slurmctld) Z 1 7", 10: "10 (sh (x) y) S 1 1"}
    for number, line in lines.items():
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "stat").write_text(line)
    (tmp_path / "11").mkdir()  # ended meanwhile
    assert run.find_process("slurmctld", tmp_path) == 7
    (tmp_path / "7/stat").unlink()
    assert run.find_process("slurmctld", tmp_path) is None
