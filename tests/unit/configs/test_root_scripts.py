"""The script that removes versions of the shared root, run on a folder: nothing goes that a job, `current` or the stack needs.

slurmctld's answer is a file here; with the real one, and real jobs, it is tests/slurm/test_shared_root.py.
"""

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


SQUEUE = """#!/bin/sh
case "$*" in
  *%U*) echo "$RUNNING" ;;
  *) echo "$RUNNING" | sed 's/ .*/ RUNNING/'; echo "$ENDED" ;;
esac
"""


def clean(shared: Path, declared: str, keep_days: int = 0, running: str | None = "", ended: str = "") -> str:
    """What the script says; `running` and `ended` are what slurmctld answers, and None that it does not."""
    script = SCRIPT.read_text().replace("shared=/shared", f"shared={shared}")
    programs = shared.parent / f"{shared.name}-programs"
    programs.mkdir(parents=True, exist_ok=True)
    for name, text in (("squeue", "#!/bin/sh\nexit 1\n" if running is None else SQUEUE), ("id", "#!/bin/sh\necho 64030\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    environment = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "SLIPWAY_ROOT_VERSIONS": declared,
        "SLIPWAY_ROOT_KEEP_DAYS": str(keep_days),
        "SLIPWAY_ROOT_LOOKS": "1",
        "SLIPWAY_SLURMCTLD": "dev-slurmctld",
        "RUNNING": running or "",
        "ENDED": ended,
    }
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
    assert "used by 1 jobs" in clean(shared, "2 3", running="17 1000")
    (shared / "jobs" / "17").unlink()
    clean(shared, "2 3")
    assert versions(shared) == ["2", "3"]


@pytest.mark.parametrize(
    ("running", "stays"),
    [
        pytest.param("", False, id="no-job"),
        pytest.param("16 1000\n17 1000", False, id="all-known"),
        pytest.param("17 1000\n18 1000", True, id="one-without-a-link"),
        pytest.param("18 64030", False, id="a-health-check"),
        pytest.param(None, True, id="slurmctld-is-silent"),
    ],
)
def test_version_is_removed_only_when_the_version_of_every_running_job_is_known(shared: Path, running: str | None, stays: bool) -> None:
    for job in ("16", "17"):
        (shared / "jobs" / job).symlink_to("3")
    said = clean(shared, "2 3", running=running, ended="16 COMPLETING\n17 COMPLETING")
    assert ("1" in versions(shared)) == stays
    assert ("version 1 stays: " in said) == stays
    assert list((shared / "filling").iterdir()) == []


@pytest.mark.parametrize(
    ("running", "ended", "stays"),
    [
        pytest.param("", "", False, id="unknown-to-slurmctld"),
        pytest.param("", "17 TIMEOUT", False, id="ended"),
        pytest.param("", "17 COMPLETING", True, id="ending"),
        pytest.param("", "17 PENDING", True, id="requeued"),
        pytest.param("17 1000", "", True, id="running"),
        pytest.param(None, "", True, id="slurmctld-is-silent"),
    ],
)
def test_link_of_an_ended_job_is_removed(shared: Path, running: str | None, ended: str, stays: bool) -> None:
    link = shared / "jobs" / "17"
    link.symlink_to("1")
    clean(shared, "1 2 3", running=running, ended=ended)
    assert link.is_symlink() == stays


def test_what_is_unclear_keeps_every_version(shared: Path) -> None:
    said = clean(shared, "3", running=None)
    assert said.count("stays: slurmctld does not say which jobs run") == 2
    assert versions(shared) == ["1", "2", "3"]


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
    clean(shared, "2 3", running="17 1000")
    assert versions(shared) == ["1", "2", "3"]


def test_nothing_is_removed_while_nobody_knows_which_version_is_current(shared: Path) -> None:
    (shared / "current").unlink()
    assert "no version is current" in clean(shared, "")
    assert versions(shared) == ["1", "2", "3"]


def test_volume_that_was_never_filled_is_no_fault(tmp_path: Path) -> None:
    assert clean(tmp_path, "1") == ""
