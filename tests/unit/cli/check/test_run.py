"""The checks over ssh, with bash in the place of a session and small programs in the place of Slurm's."""

from pathlib import Path

import pytest

from cli.check.login import Login
from cli.check.run import check
from cli.check.tasks import Row
from engine.faults import SlipwayError

PROGRAMS = {
    "ssh": "exec bash -s",
    "sinfo": "echo 'node|cpu-0|main*|idle|(null)'",
    "sudo": "echo 'sudo: a password is required' >&2; exit 1",
    "scontrol": """case $* in
*config*) echo 'AccountingStorageType = (null)' ;;
*) echo "JobId=7 JobState=$(cat state) Reason=Priority Dependency=(null)" ;;
esac""",
    "sbatch": 'cat >script; mkdir -p hello-cpu.files; echo "cpu-0 $(id -un)" >hello-cpu.files/cpu-0; touch hello-cpu.out; echo 7',
    "squeue": "true",
    "scancel": 'echo "$@" >>$HOME/cancelled',
}


@pytest.fixture
def login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Login:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in PROGRAMS.items():
        program(folder, name, script)
    (tmp_path / "state").write_text("COMPLETED")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return Login("host", 22, "alice", tmp_path / "key")


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/bash\n{script}\n")
    (folder / name).chmod(0o755)


def by_title(rows: list[Row]) -> dict[str, Row]:
    return {row.title: row for row in rows}


def left(folder: Path) -> list[str]:
    return [each.name for each in folder.glob(".slipway-check*")]


def test_rows_tell_what_works_and_nothing_is_left(login: Login, tmp_path: Path) -> None:
    rows = by_title(check(login, 5))
    assert {title: row.passed for title, row in rows.items()} == {
        "login": True,
        "hello on cpu": True,
        "accounting": None,
        "shared home": True,
        "MPI over two nodes": None,
        "container": None,
        "package for jobs": None,
    }
    assert (tmp_path / "cancelled").read_text() == "7\n"
    assert not left(tmp_path)


def test_refusal_of_a_job_is_in_its_row_even_if_it_resembles_our_output(login: Login, tmp_path: Path) -> None:
    program(tmp_path / "bin", "sbatch", "echo 'no job|9 for you' >&2; exit 1")
    row = by_title(check(login, 5))["hello on cpu"]
    assert (row.passed, row.said) == (False, "no job|9 for you")
    assert not left(tmp_path)


def test_job_that_waits_is_cancelled_and_its_row_tells_for_what_it_waits(login: Login, tmp_path: Path) -> None:
    program(tmp_path / "bin", "squeue", "echo 7")
    (tmp_path / "state").write_text("PENDING")
    row = by_title(check(login, 1))["hello on cpu"]
    assert (row.passed, row.said) == (False, "job 7 waited: Priority")
    assert (tmp_path / "cancelled").read_text() == "7\n"
    assert not left(tmp_path)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param("echo 'alice@host: Permission denied (publickey).' >&2; exit 255", "Permission denied", id="refused"),
        pytest.param("echo 'not Slurm at all'", "Check that host is a login node of Slipway", id="another-machine"),
    ],
)
def test_nobody_who_does_not_get_in_gets_a_table(login: Login, tmp_path: Path, script: str, said: str) -> None:
    program(tmp_path / "bin", "ssh", script)
    with pytest.raises(SlipwayError, match=said):
        check(login, 5)
