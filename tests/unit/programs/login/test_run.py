"""A login node's program with stand-ins for sshd and slurmctld."""

import contextlib
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from programs.login import limits, run, state
from slurm.commands import SlurmError
from tests.support.patience import patience

ROOT = Path(__file__).parents[4]
_AS_LOGIN = """
import os, subprocess, sys
from programs.login import run
from slurm.signals import Signals
run.Login._keep_configuration = run.Login._keep_state = lambda _: None
real = subprocess.Popen
subprocess.Popen = lambda command, **more: real(["{folder}/sshd"], **more)
run.count_sessions = lambda: int(open("{folder}/sessions").read())
run.tell = lambda text: print(text, file=sys.stderr, flush=True)
sys.exit(run.Login(Signals(has_children=True), "ctl", 65).run())
"""


def start(folder: Path, sshd: str) -> subprocess.Popen[str]:
    (folder / "sshd").write_text(f"#!/bin/bash\necho >>{folder}/starts\n{sshd}\n")
    (folder / "sshd").chmod(0o755)
    code = _AS_LOGIN.format(folder=folder)
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until_started(folder: Path, number: int) -> None:
    began = time.monotonic()
    while not (folder / "starts").exists() or (folder / "starts").stat().st_size < number:
        assert time.monotonic() - began < 30 * patience()
        time.sleep(0.01)


def test_end_of_sshd_is_the_pod_s_only_without_sessions(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("1")
    with start(tmp_path, f"(($(wc -l <{tmp_path}/starts) < 2)) || echo 0 >{tmp_path}/sessions; exit 7") as login:
        said = login.communicate(timeout=60 * patience())[0]
    assert (login.returncode, (tmp_path / "starts").read_text()) == (7, "\n\n")
    assert said.count("open sessions continue, and it is started again in 1 s") == 1


def test_pod_that_is_told_to_go_waits_for_its_sessions(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("2")
    with start(tmp_path, "exec sleep 60") as login:
        until_started(tmp_path, 1)
        login.terminate()
        assert login.stderr
        assert "ends in 1 min 5 s" in login.stderr.readline()
        assert login.poll() is None
        (tmp_path / "sessions").write_text("0")
        assert login.wait(30 * patience()) == 0


def test_terminal_that_nobody_reads_holds_up_no_one(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    full = os.open(os.ttyname(theirs), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    (tmp_path / "0").symlink_to(os.ttyname(theirs))
    (tmp_path / "ptmx").touch()
    run.tell("hello", tmp_path)
    assert b"hello" in os.read(ours, 100)
    with contextlib.suppress(BlockingIOError):
        while os.write(full, b"x" * 4096):
            pass
    run.tell("again", tmp_path)
    for each in (full, ours, theirs):
        os.close(each)


def test_sessions_are_counted_by_their_process_name(tmp_path: Path) -> None:
    for number, name in (("1", "sshd"), ("2", "sshd-session"), ("3", "sshd-session"), ("self", "sshd-session")):
        (tmp_path / number).mkdir()
        (tmp_path / number / "comm").write_text(f"{name}\n")
    (tmp_path / "4").mkdir()  # ended meanwhile
    assert run.count_sessions(tmp_path) == 2


def test_state_of_the_cluster_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_FOLDER", tmp_path / "login")
    answers = {"sinfo": "main|1|idle\n", "curl": 'slurm_user_jobs_running{username="alice"} 2\n\n200'}

    def call(*command: str, timeout_s: float) -> str:
        if not (answer := (broken or answers)[command[0]]):
            raise SlurmError("silent")
        return answer

    broken: dict[str, str] = {}
    monkeypatch.setattr(state, "call", call)
    state.write_state("ctl")
    assert (tmp_path / "login/jobs").read_text() == "alice 2 0\n"
    read_at = (tmp_path / "login/read").read_text()
    for name, answer in (("curl", ""), ("curl", "busy\n503"), ("sinfo", ""), ("sinfo", "nonsense\n")):
        broken.update({**answers, name: answer})
        with pytest.raises(SlurmError):
            state.write_state("ctl")
    assert (tmp_path / "login/read").read_text() == read_at
    broken.update({**answers, "curl": "Invalid authentication credential\n401"})
    state.write_state("ctl")
    assert sorted(file.name for file in (tmp_path / "login").iterdir()) == ["cluster", "read"], "jobs of users are nobody's to see"


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        pytest.param("tasks=7\n", None, "* - nproc 7\n", id="first"),
        pytest.param(None, None, "* - as 1048576\n* - nproc 100\n", id="never-read"),
        pytest.param(None, "* - nproc 5\n", "* - nproc 5\n", id="gone-since"),
        pytest.param("tasks=\n", "* - nproc 5\n", "* - nproc 5\n", id="damaged-since"),
    ],
)
def test_limits_that_cannot_be_read_are_not_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, before: str | None, after: str
) -> None:
    monkeypatch.setattr(limits, "_LIMITS", tmp_path / "limits")
    monkeypatch.setattr(limits, "_PAM", tmp_path / "pam.conf")
    monkeypatch.setattr(limits, "_most", lambda _: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    for file, content in (("limits", text), ("pam.conf", before)):
        if content is not None:
            (tmp_path / file).write_text(content)
    assert limits.write_pam_limits() is (text == "tasks=7\n" or before is None)
    assert (tmp_path / "pam.conf").read_text() == after


def test_sackd_that_ends_while_sessions_go_on_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open sessions still need the configuration that sackd keeps."""
    starts: list[object] = []

    class Ended:
        """sackd, which ends at once; the third time the pod is over."""

        def __init__(self, command: object, **_: object) -> None:
            starts.append(command)
            login._is_over = len(starts) == 3  # pyright: ignore[reportPrivateUsage]

        def wait(self) -> int:
            return 1

    class Told:
        """The pod was told to go."""

        is_stopping = True

    login = run.Login(Told(), "ctl", 65)  # pyright: ignore[reportArgumentType]
    monkeypatch.setattr(run, "_has_munge", lambda: True)
    monkeypatch.setattr(login, "_answers", lambda: True)
    monkeypatch.setattr(run.time, "sleep", lambda _: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(run.subprocess, "Popen", Ended)
    login._keep_configuration()  # pyright: ignore[reportPrivateUsage]
    assert len(starts) == 3
