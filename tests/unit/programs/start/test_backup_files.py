"""The rules of backup files, run on a folder: which of them stay, and which one a restore takes."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[4] / "programs" / "start" / "backup-files.sh"
TIMES = [
    *("2026-01-01T01-00-00Z", "2026-01-01T02-00-00Z", "2026-01-02T01-00-00Z"),
    *("2026-01-03T01-00-00Z", "2026-01-03T02-00-00Z", "2026-01-03T03-00-00Z"),
]


FUTURE = "2099-01-01T00-00-00Z"
UNREADABLE = 'find() { echo "find: HERE: Input/output error" >&2; return 1; }; '
"""A folder whose disk gives errors: root may read all others."""


def run(folder: Path, command: str, restore_from: str | None = "") -> str:
    """What a command says, with the functions of the file; a wait is ended after its first word. `restore_from` None: it is not there."""
    decision = folder / "from"
    if restore_from is not None:
        decision.write_text(restore_from)
    script = SCRIPT.read_text().replace("/etc/slipway/restore/from", str(decision)).replace("sleep 2 & wait $!", "exit 7")
    script = f'set -euo pipefail\nsay() {{ echo "$*" >&2; }}\n{script}\n{command.replace("HERE", str(folder))}'
    done = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=30)
    return done.stdout.strip()


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / f"{name}.x").touch()


@pytest.mark.parametrize(
    ("rule", "gone"),
    [
        pytest.param("10", [], id="fewer-than-stay"),
        pytest.param("2", TIMES[:4], id="the-newest"),
        pytest.param("2 3", [TIMES[0], TIMES[3]], id="the-newest-and-the-last-of-each-day"),
        pytest.param("1 2", [TIMES[0], TIMES[1], TIMES[3], TIMES[4]], id="days-have-a-limit-too"),
    ],
)
def test_older_ones_go(tmp_path: Path, rule: str, gone: list[str]) -> None:
    make(tmp_path, *TIMES)
    (tmp_path / "notes.x").touch()
    (tmp_path / "2026-01-01T01-00-00Z.y").touch()
    run(tmp_path, f"prune HERE .x {rule}")
    assert sorted(each.name for each in tmp_path.glob("2*.x")) == [f"{name}.x" for name in TIMES if name not in gone]
    assert (tmp_path / "notes.x").exists()
    assert (tmp_path / "2026-01-01T01-00-00Z.y").exists()


@pytest.mark.parametrize(
    ("restore_from", "chosen"),
    [
        pytest.param("latest", f"{TIMES[-1]}.x", id="latest"),
        pytest.param(TIMES[1], f"{TIMES[1]}.x", id="that-one"),
        pytest.param("2026-01-02T23-00-00Z", f"{TIMES[2]}.x", id="the-newest-until-then"),
        pytest.param("nothing", "", id="nothing"),
        pytest.param("2098-12-31T00-00-00Z", f"{TIMES[-1]}.x", id="none-of-the-future-for-another-time"),
        pytest.param("2099-12-31T00-00-00Z", f"{TIMES[-1]}.x", id="none-of-the-future-before-that-time"),
        pytest.param(FUTURE, f"{FUTURE}.x", id="one-of-the-future-by-its-very-name"),
    ],
)
def test_restore_takes(tmp_path: Path, restore_from: str, chosen: str) -> None:
    make(tmp_path, *TIMES, FUTURE)
    said = run(tmp_path, 'choose_backup HERE .x "the disk"; echo "chosen=$chosen"', restore_from)
    assert said == f"chosen={tmp_path / chosen if chosen else ''}"


def test_backups_without_a_word_are_a_question(tmp_path: Path) -> None:
    make(tmp_path, *TIMES)
    said = run(tmp_path, 'choose_backup HERE .x "the disk"; echo started')
    assert said.startswith(f"WAITING: the disk is empty, but there are 6 backups, the newest {TIMES[-1]}")
    assert "started" not in said


def test_new_cluster_without_backups_starts(tmp_path: Path) -> None:
    assert run(tmp_path, 'choose_backup HERE .x "the disk"; echo "chosen=$chosen"') == "chosen="


@pytest.mark.parametrize("restore_from", ["latest", "2025-12-31T00-00-00Z"])
def test_word_without_its_backup_starts_nothing(tmp_path: Path, restore_from: str) -> None:
    if restore_from != "latest":
        make(tmp_path, *TIMES)
    said = run(tmp_path, 'choose_backup HERE .x "the disk"; echo started', restore_from)
    assert f"there is no backup for backup.restoreFrom: {restore_from}" in said
    assert "started" not in said


def test_missing_folder_is_no_reason_to_start_empty(tmp_path: Path) -> None:
    said = run(tmp_path, 'choose_backup HERE/nothere .x "the disk" || echo refused')
    assert said.splitlines()[-1] == "refused"
    assert "whether there are backups is unknown" in said


@pytest.mark.parametrize("restore_from", ["", "latest"])
def test_backups_of_the_future_alone_start_nothing_and_are_named(tmp_path: Path, restore_from: str) -> None:
    make(tmp_path, FUTURE)
    said = run(tmp_path, 'choose_backup HERE .x "the disk"; echo started', restore_from)
    assert said.startswith("WAITING: the disk is empty")
    assert f"Dated in the future, by a clock that was wrong, and taken only by its very name: {FUTURE}" in said
    assert "started" not in said


def test_backup_of_the_future_neither_hides_the_age_nor_stays_for_another(tmp_path: Path) -> None:
    make(tmp_path, *TIMES, FUTURE)
    age = int(run(tmp_path, "newest_age HERE .x"))
    assert age > 0
    run(tmp_path, "prune HERE .x 2")
    assert sorted(each.name for each in tmp_path.glob("2*.x")) == [f"{TIMES[4]}.x", f"{TIMES[5]}.x", f"{FUTURE}.x"]


def test_backup_of_the_future_is_a_fault_with_its_name(tmp_path: Path) -> None:
    make(tmp_path, *TIMES)
    assert run(tmp_path, "future_fault HERE .x && echo fine") == "fine"
    make(tmp_path, FUTURE)
    said = run(tmp_path, "future_fault HERE .x || echo failed")
    assert said.splitlines()[-1] == "failed"
    assert f"FAILED: dated in the future, by a clock that was wrong: {FUTURE} in {tmp_path}" in said


def clock(offset: str) -> str:
    """A name as the scripts give it, some time from now."""
    command = ["date", "-u", "-d", offset, "+%Y-%m-%dT%H-%M-%SZ"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_clocks_that_differ_by_a_minute_are_no_fault(tmp_path: Path) -> None:
    soon = clock("+60 seconds")
    make(tmp_path, soon)
    assert run(tmp_path, "future_fault HERE .x && list_backups HERE .x") == soon


@pytest.mark.parametrize("word", ["", "latest", TIMES[0]])
def test_unreadable_folder_of_backups_is_not_an_empty_one(tmp_path: Path, word: str) -> None:
    make(tmp_path, *TIMES)
    said = run(tmp_path, f'{UNREADABLE}choose_backup HERE .x "the disk" || {{ echo refused; exit; }}; echo started', word)
    assert said.splitlines()[1:] == [f"FAILED: the folder {tmp_path} cannot be read", "refused"]


@pytest.mark.parametrize("command", ["newest_age HERE .x", "prune HERE .x 1", "future_fault HERE .x"])
def test_unreadable_folder_has_no_age_and_loses_nothing(tmp_path: Path, command: str) -> None:
    make(tmp_path, *TIMES)
    assert run(tmp_path, f"{UNREADABLE}{command} || echo failed").splitlines()[-1] == "failed"
    assert len([*tmp_path.glob("2*.x")]) == len(TIMES)


def test_unreadable_word_is_not_no_word(tmp_path: Path) -> None:
    said = run(tmp_path, 'choose_backup HERE .x "the disk" || { echo refused; exit; }; echo started', None)
    assert said.splitlines()[-1] == "refused"
    assert "backup.restoreFrom is unknown" in said


def script(name: str, folder: Path, stubs: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """One of the scripts as a whole, with its folders below `folder`; `stubs` are shell functions in place of programs."""
    text = (SCRIPT.parent / name).read_text()
    text = text.replace('. "$here/backup-files.sh"', f'. "{folder}/backup-files.sh"').replace(
        '. "$(dirname "$0")/backup-files.sh"', f'. "{folder}/backup-files.sh"'
    )
    text = text.replace('. "$here/database-client.sh"', "database=d database_host=h; write_client() { :; }")
    places = ("/backup", "/etc/slipway", "/var/spool/slurmctld")
    for place in places:
        text = text.replace(f"{place}/", f"{folder}{place}/")
    files = SCRIPT.read_text()
    for place in places:
        files = files.replace(f"{place}/", f"{folder}{place}/")
    (folder / "backup-files.sh").write_text(files)
    (folder / "etc/slipway/restore").mkdir(parents=True, exist_ok=True)
    (folder / "etc/slipway/restore/from").touch()
    command = ["bash", "-c", f"{stubs}\n{text}"]
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SLIPWAY_CLUSTER": "c", **env}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=env)


DATABASE = """
mariadb() { echo a_table; }
mariadb-dump() { echo '-- Dump completed'; }
"""


@pytest.mark.parametrize("kind", ["database", "state"])
def test_database_is_backed_up_beside_one_of_the_future_and_its_job_fails(tmp_path: Path, kind: str) -> None:
    ending = {"database": ".sql.zst", "state": ".tar.zst"}
    folders = {each: tmp_path / "backup/c" / each for each in ending}
    for each, folder in folders.items():
        folder.mkdir(parents=True)
        assert each in ending
    now = clock("now")
    (folders["state"] / f"{now}.tar.zst").touch()
    env = {"SLIPWAY_BACKUP_KEEP": "3", "SLIPWAY_STATE_BACKUP_S": "600"}
    done = script("database-backup.sh", tmp_path, DATABASE, **env)
    assert done.returncode == 0, done.stderr
    (folders[kind] / f"{FUTURE}{ending[kind]}").touch()
    for old in folders["database"].glob("20[0-8]*.sql.zst"):
        old.unlink()
    done = script("database-backup.sh", tmp_path, DATABASE, **env)
    assert done.returncode == 1
    assert f"dated in the future, by a clock that was wrong: {FUTURE} in {folders[kind]}" in done.stderr
    assert len([*folders["database"].glob("20[0-8]*.sql.zst")]) == 1


def test_age_of_the_state_backups_is_not_that_of_one_of_the_future(tmp_path: Path) -> None:
    for each in ("database", "state"):
        (tmp_path / "backup/c" / each).mkdir(parents=True)
    (tmp_path / "backup/c/state" / f"{FUTURE}.tar.zst").touch()
    done = script("database-backup.sh", tmp_path, DATABASE, SLIPWAY_BACKUP_KEEP="3", SLIPWAY_STATE_BACKUP_S="600")
    assert done.returncode == 1
    assert "slurmctld's state has no backup younger than 1800 s" in done.stderr


def state_backup(tmp_path: Path, stubs: str = "") -> subprocess.CompletedProcess[str]:
    """The sidecar, until it waits for its next look."""
    return script("state-backup.sh", tmp_path, f"sleep() {{ kill $$; }}; {stubs}", SLIPWAY_BACKUP_KEEP="3", SLIPWAY_STATE_BACKUP_S="60")


def test_state_is_backed_up_beside_a_backup_of_the_future(tmp_path: Path) -> None:
    state, folder = tmp_path / "var/spool/slurmctld/state", tmp_path / "backup/c/state"
    state.mkdir(parents=True)
    folder.mkdir(parents=True)
    for name in ("job_state", "node_state", "part_state", "clustername"):
        (state / name).write_text(name)
    (folder / f"{FUTURE}.tar.zst").touch()
    done = state_backup(tmp_path)
    assert len([*folder.glob("20[0-8]*.tar.zst")]) == 1, done.stderr
    assert f"FAILED: dated in the future, by a clock that was wrong: {FUTURE}" in done.stderr


def test_state_that_cannot_all_be_read_is_no_backup(tmp_path: Path) -> None:
    state, folder = tmp_path / "var/spool/slurmctld/state", tmp_path / "backup/c/state"
    state.mkdir(parents=True)
    folder.mkdir(parents=True)
    for name in ("job_state", "node_state", "part_state", "clustername", "job.1"):
        (state / name).write_text(name)
    said = "tar() { command tar \"$@\"; [[ $1 != --create ]] || echo 'tar: job.1: Warning: Cannot open: Input/output error' >&2; }; "
    done = state_backup(tmp_path, said)
    assert [*folder.glob("2*.tar.zst")] == [], done.stderr
    assert "FAILED: not all of slurmctld's state can be read: tar: job.1: Warning: Cannot open: Input/output error" in done.stderr


def test_state_that_cannot_be_read_is_not_restored_over(tmp_path: Path) -> None:
    state, folder = tmp_path / "var/spool/slurmctld/state", tmp_path / "backup/c/state"
    state.mkdir(parents=True)
    folder.mkdir(parents=True)
    (state / "job_state").write_text("jobs")
    done = script("state-restore.sh", tmp_path, UNREADABLE)
    assert done.returncode == 1
    assert "whether slurmctld's state is there is unknown" in done.stderr
    assert (state / "job_state").read_text() == "jobs"
