"""The script that removes versions of the shared root, run on a folder: nothing goes that a job, `current` or the stack needs."""

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "configs" / "scripts" / "start" / "root-clean.sh"


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Versions 1, 2 and 3; 3 is current."""
    for version in ("1", "2", "3"):
        (tmp_path / "versions" / version / "bin").mkdir(parents=True)
    for folder in ("jobs", "sources", "filling"):
        (tmp_path / folder).mkdir()
    (tmp_path / "current").symlink_to("versions/3")
    return tmp_path


def clean(shared: Path, declared: str, keep_days: int = 0) -> str:
    script = SCRIPT.read_text().replace("shared=/shared", f"shared={shared}")
    environment = {"PATH": "/usr/bin:/bin", "SLIPWAY_ROOT_VERSIONS": declared, "SLIPWAY_ROOT_KEEP_DAYS": str(keep_days)}
    return subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True, timeout=30).stderr


def versions(shared: Path) -> list[str]:
    return sorted(folder.name for folder in (shared / "versions").iterdir())


def test_version_that_nothing_needs_is_removed(shared: Path) -> None:
    assert "version 1 is removed" in clean(shared, "2 3")
    assert versions(shared) == ["2", "3"]
    assert list((shared / "filling").iterdir()) == []


def test_current_version_stays_although_nobody_declares_it(shared: Path) -> None:
    clean(shared, "1 2")
    assert versions(shared) == ["1", "2", "3"]


def test_version_of_a_job_stays_until_the_job_has_ended(shared: Path) -> None:
    (shared / "jobs" / "17").symlink_to("1")
    assert "used by 1 jobs" in clean(shared, "2 3")
    (shared / "jobs" / "17").unlink()
    clean(shared, "2 3")
    assert versions(shared) == ["2", "3"]


def test_version_stays_for_its_days_and_starts_anew_when_it_was_declared_in_between(shared: Path) -> None:
    assert "it stays for 7 more days" in clean(shared, "2 3", keep_days=7)
    mark = shared / "sources" / "1.unused"
    mark.write_text(f"{int(mark.read_text()) - 8 * 86400}\n")
    clean(shared, "1 2 3", keep_days=7)
    assert "it stays for 7 more days" in clean(shared, "2 3", keep_days=7)
    mark.write_text(f"{int(mark.read_text()) - 8 * 86400}\n")
    clean(shared, "2 3", keep_days=7)
    assert versions(shared) == ["2", "3"]


def test_what_a_killed_run_left_goes_with_the_next(shared: Path) -> None:
    (shared / "filling" / ".gone-0" / "bin").mkdir(parents=True)
    clean(shared, "1 2 3")
    assert not (shared / "filling" / ".gone-0").exists()


def test_version_that_a_killed_run_had_put_aside_is_back_for_the_job_that_took_it(shared: Path) -> None:
    (shared / "versions" / "1").rename(shared / "filling" / ".aside-1")
    (shared / "jobs" / "17").symlink_to("1")
    clean(shared, "2 3")
    assert versions(shared) == ["1", "2", "3"]


def test_nothing_is_removed_while_nobody_knows_which_version_is_current(shared: Path) -> None:
    (shared / "current").unlink()
    assert "no version is current" in clean(shared, "")
    assert versions(shared) == ["1", "2", "3"]


def test_volume_that_was_never_filled_is_no_fault(tmp_path: Path) -> None:
    assert clean(tmp_path, "1") == ""
