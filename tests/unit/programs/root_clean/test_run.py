"""The program that removes versions of the shared root, run on a folder: nothing goes that a job, `current` or the stack needs.

slurmctld's answer is a file here; with the real one, and real jobs, it is tests/slurm/test_shared_root.py.
"""

import fcntl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.log_lines import as_words
from tests.support.patience import patience

PROJECT = Path(__file__).parents[4]
PROGRAM = """
import sys
from pathlib import Path
from programs.root_clean import run
run.SHARED = Path(sys.argv[1])
"""


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
  *%U*) eval "$MEANWHILE"; echo "$RUNNING" ;;
  *) echo "$RUNNING" | sed 's/ .*/ RUNNING/'; echo "$ENDED" ;;
esac
"""


IS_ASIDE = '[ -d "$SHARED/filling/.aside-1" ]'


def start(
    shared: Path,
    declared: str,
    keep_days: int = 0,
    running: str | None = "",
    ended: str = "",
    looks: int = 1,
    meanwhile: str = "",
    main: str = "sys.exit(run.main())",
) -> subprocess.Popen[str]:
    """The program, begun. slurmctld answers with `running` and `ended`, or not at all (None); `meanwhile` runs when it is asked."""
    programs = shared.parent / f"{shared.name}-programs"
    programs.mkdir(parents=True, exist_ok=True)
    squeue = programs / "squeue"
    squeue.write_text("#!/bin/sh\nexit 1\n" if running is None else SQUEUE)
    squeue.chmod(0o755)
    environment = {
        "PATH": f"{programs}:/usr/bin:/bin",
        "SLIPWAY_ROOT_VERSIONS": declared,
        "SLIPWAY_ROOT_KEEP_DAYS": str(keep_days),
        "SLIPWAY_ROOT_LOOKS": str(looks),
        "SLIPWAY_SLURMCTLD": "dev-slurmctld",
        "SHARED": str(shared),
        "RUNNING": running or "",
        "ENDED": ended,
        "MEANWHILE": meanwhile,
    }
    command = [sys.executable, "-c", PROGRAM + main, str(shared)]
    return subprocess.Popen(command, env=environment, cwd=PROJECT, stdout=subprocess.PIPE, text=True)


def clean(
    shared: Path, declared: str, keep_days: int = 0, running: str | None = "", ended: str = "", looks: int = 1, meanwhile: str = ""
) -> str:
    """What the program says."""
    with start(shared, declared, keep_days, running, ended, looks, meanwhile) as process:
        said = as_words(process.communicate(timeout=30 * patience())[0])
    assert process.returncode == 0, said
    return said


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
        pytest.param("18 64030 RUNNING", False, id="a-health-check"),
        pytest.param("18 1000 CONFIGURING", False, id="one-that-waits-for-its-nodes"),
        pytest.param(None, True, id="slurmctld-is-silent"),
    ],
)
def test_version_is_removed_only_when_all_running_jobs_are_accounted_for(shared: Path, running: str | None, stays: bool) -> None:
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


def test_days_of_an_unused_version_start_anew_if_it_was_declared_again(shared: Path) -> None:
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


def test_version_put_aside_by_a_killed_run_returns_for_the_job_using_it(shared: Path) -> None:
    (shared / "versions" / "1").rename(shared / "filling" / ".aside-1")
    (shared / "jobs" / "17").symlink_to("1")
    clean(shared, "2 3", running="17 1000")
    assert versions(shared) == ["1", "2", "3"]


def test_version_is_in_reach_for_as_long_as_it_is_unclear_what_runs(shared: Path) -> None:
    """A job without a link, looked at twice, then gets one; after it the version is out of reach for a single look."""
    (shared / "jobs" / "17").symlink_to("3")
    mark = f'{IS_ASIDE} && echo aside >> "$SHARED/looks" || echo there >> "$SHARED/looks"'
    link = '[ $(wc -l < "$SHARED/looks") -lt 2 ] || ln -sfn 3 "$SHARED/jobs/18"'
    said = clean(shared, "2 3", running="17 1000\n18 1000", ended="18 RUNNING", looks=3, meanwhile=f"{mark}; {link}")
    assert "version 1 is removed" in said
    assert (shared / "looks").read_text().split() == ["there", "there", "aside"]


def test_version_is_never_out_of_reach_where_it_stays_unclear_what_runs(shared: Path) -> None:
    meanwhile = f'{IS_ASIDE} && touch "$SHARED/was-aside"'
    assert "version 1 stays: nothing says" in clean(shared, "2 3", running="18 1000", looks=2, meanwhile=meanwhile)
    assert not (shared / "was-aside").exists()


@pytest.mark.parametrize(
    ("meanwhile", "why"),
    [
        pytest.param('ln -sfn 1 "$SHARED/jobs/19"', "it was taken at this moment", id="job"),
        pytest.param('ln -sfn versions/1 "$SHARED/current"', "it was taken at this moment", id="rollback"),
        pytest.param("RUNNING='18 1000'", "nothing says which version these running jobs have: 18", id="job-without-a-link"),
    ],
)
def test_version_that_is_taken_while_it_is_put_aside_comes_back(shared: Path, meanwhile: str, why: str) -> None:
    assert f"version 1 stays: {why}" in clean(shared, "2 3", meanwhile=f"if {IS_ASIDE}; then {meanwhile}; fi")
    assert versions(shared) == ["1", "2", "3"]
    assert list((shared / "filling").iterdir()) == []


def test_version_that_is_declared_again_while_the_program_looks_stays(shared: Path) -> None:
    """A fill says so by taking the mark away: the program itself knows the list of the deployment before."""
    said = clean(shared, "2 3", meanwhile='rm "$SHARED/sources/1.unused"')
    assert "version 1 stays: it was declared again" in said
    assert versions(shared) == ["1", "2", "3"]


def test_version_is_not_put_aside_while_a_fill_has_its_lock(shared: Path) -> None:
    with (shared / "filling" / "1.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "version 1 stays: it is being filled" in clean(shared, "2 3")
    assert versions(shared) == ["1", "2", "3"]
    assert "version 1 is removed" in clean(shared, "2 3")


def test_fill_waits_while_a_version_is_out_of_reach(shared: Path) -> None:
    probe = f'{IS_ASIDE} || exit 0; flock --nonblock "$SHARED/filling/1.lock" true && touch "$SHARED/free"; touch "$SHARED/probed"'
    assert "version 1 is removed" in clean(shared, "2 3", meanwhile=f"({probe})")
    assert (shared / "probed").exists()
    assert not (shared / "free").exists()


def test_run_that_is_ended_while_a_version_is_out_of_reach_puts_it_back(shared: Path) -> None:
    wait = f'if {IS_ASIDE}; then touch "$SHARED/reached"; until [ -e "$SHARED/go" ]; do :; done; fi'
    with start(shared, "2 3", meanwhile=wait) as process:
        began = time.monotonic()
        while not (shared / "reached").exists():
            assert time.monotonic() - began < 20 * patience()
        process.terminate()
        (shared / "go").touch()
        assert process.wait(timeout=20 * patience()) == 143
    assert versions(shared) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("job", "running", "stays"),
    [
        pytest.param(None, "", False, id="no-job"),
        pytest.param("1", "17 1000", True, id="of-a-job-perhaps"),
        pytest.param(None, "18 1000", True, id="of-a-job-without-a-link-perhaps"),
    ],
)
def test_refilled_version_with_an_older_one_aside_blocks_no_later_run(shared: Path, job: str | None, running: str, stays: bool) -> None:
    aside = shared / "filling" / ".aside-1"
    (aside / "old").mkdir(parents=True)
    if job:
        (shared / "jobs" / "17").symlink_to(job)
    clean(shared, "1 3", running=running)
    assert (shared / "versions" / "1" / "bin").exists()
    assert (aside / "old").exists() == stays
    (shared / "jobs" / "17").unlink(missing_ok=True)
    clean(shared, "1 3")
    assert versions(shared) == ["1", "3"]
    assert not aside.exists()


def test_mark_that_a_full_volume_left_empty_removes_nothing_early(shared: Path) -> None:
    (shared / "sources" / "1.unused").touch()
    assert "it stays for 7 more days" in clean(shared, "2 3", keep_days=7)


@pytest.mark.parametrize("damaged", ["17x", "17", "0899"])
def test_damaged_note_of_an_unused_version_is_not_an_old_one(shared: Path, damaged: str) -> None:
    mark = shared / "sources" / "1.unused"
    mark.write_text(f"{damaged}\n")
    assert f"version 1 stays: {mark} is damaged; its days are counted from now on" in clean(shared, "2 3", keep_days=7)
    assert "it stays for 7 more days" in clean(shared, "2 3", keep_days=7)
    mark.write_text("1700000000\n")
    assert "version 1 is removed" in clean(shared, "2 3", keep_days=7)


@pytest.mark.parametrize("is_aside", [pytest.param(False, id="in-reach"), pytest.param(True, id="put-aside")])
def test_version_whose_users_cannot_be_counted_is_not_unused(shared: Path, is_aside: bool) -> None:
    """The folder of links is a file by the time that they are counted."""
    if is_aside:
        (shared / "filling" / ".aside-1").mkdir()
    meanwhile = 'mv "$SHARED/jobs" "$SHARED/was"; touch "$SHARED/jobs"'
    with start(shared, "1 3" if is_aside else "2 3", meanwhile=f"if {'true' if is_aside else IS_ASIDE}; then {meanwhile}; fi") as process:
        said = as_words(process.communicate(timeout=30 * patience())[0])
    assert process.returncode == 1
    assert "FAILED, nothing more is removed" in said
    assert "1" in versions(shared)
    assert (shared / "filling" / ".aside-1").exists() == is_aside


def test_nothing_is_removed_while_nobody_knows_which_version_is_current(shared: Path) -> None:
    (shared / "current").unlink()
    assert "no version is current" in clean(shared, "")
    assert versions(shared) == ["1", "2", "3"]


def test_volume_that_was_never_filled_is_no_fault(tmp_path: Path) -> None:
    assert clean(tmp_path, "1") == ""


def test_signal_while_a_version_is_put_back_does_not_keep_it_out_of_reach(shared: Path) -> None:
    """The first attempt to put it back is cut off, as by a signal at that moment."""
    cut_off = """
whole = run._put_back
def once(*places):
    run._put_back = whole
    raise SystemExit(143)
run._put_back = once
sys.exit(run.main())
"""
    with start(shared, "2 3", meanwhile='[ -d "$SHARED/filling/.aside-1" ] && ln -s 1 "$SHARED/jobs/18"', main=cut_off) as process:
        process.communicate(timeout=30 * patience())
    assert process.returncode == 143
    assert versions(shared) == ["1", "2", "3"]
    assert list((shared / "filling").iterdir()) == []
