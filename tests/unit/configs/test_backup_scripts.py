"""The rules of backup files, run on a folder: which of them stay, and which one a restore takes."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "configs" / "scripts" / "start" / "backup-files.sh"
TIMES = [
    *("2026-01-01T01-00-00Z", "2026-01-01T02-00-00Z", "2026-01-02T01-00-00Z"),
    *("2026-01-03T01-00-00Z", "2026-01-03T02-00-00Z", "2026-01-03T03-00-00Z"),
]


def run(folder: Path, command: str, restore_from: str | None = None) -> str:
    """What a command says, with the functions of the file; a wait is ended after its first word."""
    decision = folder / "from"
    if restore_from is not None:
        decision.write_text(restore_from)
    script = SCRIPT.read_text().replace("/etc/slipway/restore/from", str(decision)).replace("sleep 2 & wait $!", "exit 7")
    script = f'set -euo pipefail\nsay() {{ echo "$*"; }}\n{script}\n{command.replace("HERE", str(folder))}'
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=30).stdout.strip()


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
    ],
)
def test_restore_takes(tmp_path: Path, restore_from: str, chosen: str) -> None:
    make(tmp_path, *TIMES)
    said = run(tmp_path, 'choose_backup HERE .x "the disk"; echo "chosen=$chosen"', restore_from)
    assert said == f"chosen={tmp_path / chosen if chosen else ''}"


@pytest.mark.parametrize("restore_from", [pytest.param(None, id="no-word"), pytest.param("", id="empty-word")])
def test_backups_without_a_word_are_a_question(tmp_path: Path, restore_from: str | None) -> None:
    make(tmp_path, *TIMES)
    said = run(tmp_path, 'choose_backup HERE .x "the disk"; echo started', restore_from)
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
