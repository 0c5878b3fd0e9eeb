"""The programs of backups and restores, run on folders: what cannot be read is a fault, never empty. MariaDB's programs are stand-ins."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from programs.backup.plan import name_of
from tests.support.log_lines import as_words
from tests.support.patience import patience

PROJECT = Path(__file__).parents[4]
FUTURE = "2099-01-01T00-00-00Z"
OLD = "2026-01-01T01-00-00Z"
PROGRAM = """
import os, sys
from pathlib import Path
from programs.backup import database_backup, files, state_backup, state_restore
from programs.database import client
folder = Path(sys.argv[1])
files.BACKUP, files.RESTORE_FROM = folder / "backup", folder / "from"
client.PASSWORD, client.SETTINGS = folder / "password", folder / "client.cnf"
state_backup.DISK = state_restore.DISK = folder / "disk/state"
{prepare}
{act}
"""
DATABASE, RESTORE = "sys.exit(database_backup.main())", "sys.exit(state_restore.main())"
STATE = """
folder = files.Folder("state", ".tar.zst", state_backup.say)
state_backup.Sidecar(folder, 60, 3).look()
"""
"""One look of the sidecar."""
UNREADABLE = """
def scandir(path):
    if {names!r} in str(path):
        raise OSError(5, "Input/output error")
    return list_folder(path)
list_folder, os.scandir = os.scandir, scandir
"""
"""A folder whose disk gives errors: root may read all others."""

PAUSES = """
import time
looks = []
def pause(_):
    looks.append(1)
    if len(looks) == 3:
        files.RESTORE_FROM.write_text("latest")
time.sleep = pause
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A backup volume with the cluster's folders, an empty disk of slurmctld, no word of what to restore."""
    for name in ("backup/c/database", "backup/c/state", "disk/state", "programs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "from").touch()
    (tmp_path / "password").write_text("secret\n")
    stand_in(tmp_path, "mariadb", "echo a_table")
    stand_in(tmp_path, "mariadb-dump", "echo '-- Dump completed'")
    return tmp_path


def stand_in(folder: Path, name: str, script: str) -> None:
    file = folder / "programs" / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def run(folder: Path, act: str, prepare: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.replace("{prepare}", prepare).replace("{act}", act)
    variables = {
        "PATH": f"{folder / 'programs'}:/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C",
        "SLIPWAY_CLUSTER": "c",
        "SLIPWAY_MARIADB_HOST": "db",
        "SLIPWAY_BACKUP_KEEP": "3",
        **env,
    }
    command = [sys.executable, "-c", program, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60 * patience(), env=variables, cwd=PROJECT)


def log_of(done: subprocess.CompletedProcess[str]) -> str:
    """Its log."""
    return as_words(done.stdout)


def backups(folder: Path, kind: str) -> list[str]:
    """Finished ones of the past, the oldest first."""
    return sorted(file.name for file in (folder / "backup/c" / kind).glob("20[0-8]*"))


def write_state(folder: Path) -> None:
    for name in ("job_state", "node_state", "part_state", "clustername"):
        (folder / "disk/state" / name).write_text(name)


def test_database_is_backed_up_and_older_ones_go(folder: Path) -> None:
    for day in range(1, 5):
        (folder / "backup/c/database" / f"2026-01-0{day}T00-00-00Z.sql.zst").touch()
    (folder / "backup/c/database/.partial-left").touch()
    done = run(folder, DATABASE)
    assert done.returncode == 0, log_of(done)
    assert len(backups(folder, "database")) == 3
    assert not (folder / "backup/c/database/.partial-left").exists()
    assert (folder / "client.cnf").stat().st_mode & 0o777 == 0o600
    assert "1 tables" in log_of(done)


@pytest.mark.parametrize(
    ("program", "script", "words"),
    [
        pytest.param("mariadb", "exit 1", "the database at db does not answer", id="silent"),
        pytest.param("mariadb", "true", "has no tables", id="empty"),
        pytest.param("mariadb", "echo slipway_restore", "is being restored", id="half-a-restore"),
        pytest.param(
            "mariadb-dump", "echo '-- Dump completed'; exit 1", "broke off; the older backups stay as they are (", id="broken-off"
        ),
        pytest.param("mariadb-dump", "echo half", "the dump is not whole", id="cut"),
    ],
)
def test_backup_that_fails_leaves_the_older_ones(folder: Path, program: str, script: str, words: str) -> None:
    names = [f"2026-01-0{day}T00-00-00Z.sql.zst" for day in range(1, 6)]
    for name in names:
        (folder / "backup/c/database" / name).touch()
    stand_in(folder, program, script)
    done = run(folder, DATABASE)
    assert done.returncode == 1
    assert words in log_of(done)
    assert backups(folder, "database") == names
    assert not [*(folder / "backup/c/database").glob(".partial-*")]


@pytest.mark.parametrize("kind", ["database", "state"])
def test_database_is_backed_up_beside_one_of_the_future_and_its_job_fails(folder: Path, kind: str) -> None:
    ending = {"database": ".sql.zst", "state": ".tar.zst"}[kind]
    (folder / "backup/c/state" / f"{name_of(time.time())}.tar.zst").touch()
    assert run(folder, DATABASE, SLIPWAY_STATE_BACKUP_S="600").returncode == 0
    (folder / "backup/c" / kind / f"{FUTURE}{ending}").touch()
    for made in backups(folder, "database"):
        (folder / "backup/c/database" / made).unlink()
    done = run(folder, DATABASE, SLIPWAY_STATE_BACKUP_S="600")
    assert done.returncode == 1
    assert f"dated in the future, by a clock that was wrong: {FUTURE} in {folder / 'backup/c' / kind}" in log_of(done)
    assert len(backups(folder, "database")) == 1


def test_age_of_the_state_backups_is_not_that_of_one_of_the_future(folder: Path) -> None:
    (folder / "backup/c/state" / f"{FUTURE}.tar.zst").touch()
    done = run(folder, DATABASE, SLIPWAY_STATE_BACKUP_S="600")
    assert done.returncode == 1
    assert "slurmctld's state has no backup younger than 1800 s" in log_of(done)


def test_unreadable_folder_loses_nothing_and_its_job_fails(folder: Path) -> None:
    names = [f"2026-01-0{day}T00-00-00Z.sql.zst" for day in range(1, 6)]
    for name in names:
        (folder / "backup/c/database" / name).touch()
    done = run(folder, DATABASE, UNREADABLE.format(names="backup/c/database"))
    assert done.returncode == 1
    assert "FAILED: " in log_of(done)
    assert set(names) <= set(backups(folder, "database"))


def test_state_is_backed_up_beside_a_future_backup_and_can_be_restored(folder: Path) -> None:
    write_state(folder)
    (folder / "disk/state/hash.1").mkdir()
    (folder / "disk/state/hash.1/script").write_text("srun hostname")
    (folder / "backup/c/state" / f"{FUTURE}.tar.zst").touch()
    done = run(folder, STATE)
    assert len(backups(folder, "state")) == 1, log_of(done)
    assert f"FAILED: dated in the future, by a clock that was wrong: {FUTURE}" in log_of(done)
    (folder / "disk/state").rename(folder / "lost")
    (folder / "from").write_text("latest\n")
    assert run(folder, RESTORE).returncode == 0
    assert (folder / "disk/state/job_state").read_text() == "job_state"
    assert (folder / "disk/state/hash.1/script").read_text() == "srun hostname"
    assert (folder / "disk/state").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("file", ["job_state", "clustername"])
def test_state_without_one_of_its_files_is_no_backup(folder: Path, file: str) -> None:
    write_state(folder)
    (folder / "disk/state" / file).unlink()
    assert run(folder, STATE).returncode == 0
    assert backups(folder, "state") == []


def test_state_that_cannot_all_be_read_is_no_backup(folder: Path) -> None:
    write_state(folder)
    said = "tar: job.1: Warning: Cannot open: Input/output error"
    stand_in(folder, "tar", f'[ "$1" != --create ] || echo "{said}" >&2; exec /bin/tar "$@"')
    done = run(folder, STATE)
    assert backups(folder, "state") == [], log_of(done)
    assert f"FAILED: not all of slurmctld's state can be read: {said}" in log_of(done)


def test_young_backup_of_the_state_is_enough(folder: Path) -> None:
    write_state(folder)
    (folder / "backup/c/state" / f"{name_of(time.time())}.tar.zst").touch()
    assert log_of(run(folder, STATE)) == ""
    assert len(backups(folder, "state")) == 1


def test_only_one_backup_at_a_time(folder: Path) -> None:
    take = "import fcntl; held = (folder / 'backup/c/database/.lock').open('a'); fcntl.flock(held, fcntl.LOCK_EX)"
    done = run(folder, DATABASE, take)
    assert done.returncode == 1
    assert f"another backup into {folder / 'backup/c/database'} is under way" in log_of(done)


def test_state_that_cannot_be_read_is_not_restored_over(folder: Path) -> None:
    write_state(folder)
    done = run(folder, RESTORE, UNREADABLE.format(names="disk/state"))
    assert done.returncode == 1
    assert "whether slurmctld's state is there is unknown" in log_of(done)
    assert (folder / "disk/state/job_state").read_text() == "job_state"


def test_state_that_is_there_is_left_alone(folder: Path) -> None:
    write_state(folder)
    (folder / "from").write_text("latest")
    (folder / "backup/c/state" / f"{OLD}.tar.zst").touch()
    done = run(folder, RESTORE)
    assert (done.returncode, log_of(done)) == (0, "state-restore: slurmctld's state is there; nothing to restore\n")


def test_folders_of_a_state_without_files_are_kept_beside_the_restored(folder: Path) -> None:
    write_state(folder)
    assert run(folder, STATE).returncode == 0
    for file in (folder / "disk/state").iterdir():
        file.unlink()
    (folder / "disk/state/hash.1").mkdir()
    (folder / "from").write_text("latest")
    assert run(folder, RESTORE).returncode == 0
    assert len([*(folder / "disk").glob("state.before-restore.*/hash.1")]) == 1
    assert (folder / "disk/state/job_state").exists()


def test_damaged_backup_is_told_with_those_that_there_are(folder: Path) -> None:
    for name in (OLD, "2026-01-02T01-00-00Z"):
        (folder / "backup/c/state" / f"{name}.tar.zst").write_text("rubbish")
    (folder / "from").write_text("latest")
    done = run(folder, RESTORE)
    assert done.returncode == 1
    assert f"is damaged. Set backup.restoreFrom to the time of an older one: 2026-01-02T01-00-00Z {OLD}" in log_of(done)
    assert [*(folder / "disk/state").iterdir()] == []


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        pytest.param("files.BACKUP = folder / 'nothere'", "whether there are backups is unknown", id="folder-that-is-not-there"),
        pytest.param(UNREADABLE.format(names="backup/c/state"), "cannot be read", id="folder-that-cannot-be-read"),
        pytest.param("files.RESTORE_FROM.unlink()", "backup.restoreFrom is unknown", id="no-word"),
    ],
)
def test_unknown_is_no_reason_to_start_empty(folder: Path, prepare: str, words: str) -> None:
    done = run(folder, RESTORE, prepare)
    assert done.returncode == 1
    assert words in log_of(done)


def test_restore_waits_for_a_word_and_takes_it_when_it_comes(folder: Path) -> None:
    """It says once what it waits for. The program's own pause hands it the word."""
    write_state(folder)
    assert run(folder, STATE).returncode == 0
    (folder / "disk/state").rename(folder / "lost")
    done = run(folder, RESTORE, PAUSES)
    assert done.returncode == 0, log_of(done)
    assert log_of(done).count("WAITING: slurmctld's disk is empty, but there are 1 backups") == 1
    assert (folder / "disk/state/job_state").exists()


def test_end_while_it_waits_is_at_once(folder: Path) -> None:
    (folder / "backup/c/state" / f"{OLD}.tar.zst").touch()
    end = "import time, signal; time.sleep = lambda _: os.kill(os.getpid(), signal.SIGTERM)"
    done = run(folder, RESTORE, end)
    assert done.returncode == 143
    assert [*(folder / "disk/state").iterdir()] == []
