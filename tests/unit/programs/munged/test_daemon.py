"""munged's start and its change of keys, with a stand-in for munged and for slurmctld's port."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from names import ports
from programs.munged import daemon, keys
from programs.munged.daemon import Munged, dial
from programs.munged.plan import Dial, Step
from tests.support.patience import patience


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keys below a folder; munged is a program that writes down its key and sleeps."""
    for name in ("SECRET", "KEY", "NOTE", "WAITS"):
        monkeypatch.setattr(keys, name, str(tmp_path / name))
    monkeypatch.setattr(daemon, "KEY", str(tmp_path / "KEY"))
    monkeypatch.setattr(keys.os, "getuid", lambda: 1000)
    monkeypatch.setattr(daemon, "_STATE", str(tmp_path))
    monkeypatch.setattr(daemon, "pause_s", pause)
    munged = tmp_path / "munged"
    munged.write_text(f'#!/bin/bash\ncat "$8" >>{tmp_path}/started\n[[ ! -e {tmp_path}/broken ]] || exit 3\nexec sleep 60\n')
    munged.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "SECRET").write_text("a\n")
    return tmp_path


def pause(_: Step) -> float:
    return 0.02


@pytest.fixture
def port() -> Iterator[int]:
    """A port that listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def until(what: str, folder: Path, text: str) -> None:
    began = time.monotonic()
    while not (folder / what).exists() or (folder / what).read_text() != text:
        assert time.monotonic() - began < 30 * patience(), what
        time.sleep(0.01)


def put_key(folder: Path, key: str) -> None:
    """As the kubelet does: another file."""
    (folder / "other").write_text(key)
    (folder / "other").replace(folder / "SECRET")


def test_new_key_waits_while_slurmctld_listens_and_is_taken_when_silent(folder: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [Dial.ANSWERED]
    monkeypatch.setattr(daemon, "dial", lambda _: answers[0])  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    said: list[str] = []
    munged = Munged(said.append, "ctl")
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(munged.run()))
    thread.start()
    try:
        until("started", folder, "a\n")
        put_key(folder, "b\n")
        until("WAITS", folder, "")
        assert (folder / "KEY").read_text() == "a\n"
        answers[0] = Dial.REFUSED
        until("started", folder, "a\nb\n")
        began = time.monotonic()
        while (folder / "WAITS").exists() or len(said) < 2:
            assert time.monotonic() - began < 30 * patience()
            time.sleep(0.01)
    finally:
        munged.stop()
        thread.join(30 * patience())
    assert said == ["another key has come; it waits until slurmctld stops listening", "munged runs with another key"]
    assert codes == [-15]


def test_watch_goes_on_while_no_thread_can_be_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job took all processes of the pod: the key that waits is looked after as soon as there is one again."""
    calls: list[str] = []

    def dial_without_threads(_: str) -> Dial:
        calls.append("")
        if len(calls) < 3:
            raise RuntimeError("can't start new thread")
        return Dial.REFUSED

    monkeypatch.setattr(daemon, "dial", dial_without_threads)
    said: list[str] = []
    munged = Munged(said.append, "ctl")
    thread = threading.Thread(target=munged.run)
    thread.start()
    try:
        until("started", folder, "a\n")
        put_key(folder, "b\n")
        until("started", folder, "a\nb\n")
    finally:
        munged.stop()
        thread.join(30 * patience())
    assert "could not look after the key, trying again: can't start new thread" in said


def test_munged_is_not_started_where_nobody_could_watch_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    munged = Munged(print, "ctl")
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            munged.run()
    assert not (folder / "started").exists()
    (folder / "broken").touch()
    assert munged.run() == 3
    munged.stop()


def test_munged_that_ends_by_itself_ends_the_run_and_keeps_its_key(folder: Path) -> None:
    (folder / "broken").touch()
    munged = Munged(print, "ctl")
    assert munged.run() == 3
    put_key(folder, "b\n")
    assert munged.run() == 3
    munged.stop()
    assert (folder / "started").read_text() == "a\na\n"


def test_stop_before_munged_is_there_is_not_lost(folder: Path) -> None:
    munged = Munged(print, "ctl")
    munged.stop()
    assert munged.run() == -15


def test_dial_tells_a_closed_port_from_silence(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "SLURMCTLD", port)
    assert dial("127.0.0.1") is Dial.ANSWERED
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setattr(ports, "SLURMCTLD", closed.getsockname()[1])
        assert dial("127.0.0.1") is Dial.REFUSED

    found = threading.Event()

    def look_up(*_: object) -> None:
        found.wait(30)
        raise OSError

    monkeypatch.setattr(daemon, "_DIAL_S", 0.1)
    monkeypatch.setattr(socket, "create_connection", look_up)
    assert dial("a-name") is Dial.NOTHING
    found.set()


def test_sidecar_gives_the_exit_code_of_munged(folder: Path, tmp_path: Path) -> None:
    code = f"""
import os, sys
from programs.munged import daemon, keys, run
keys.SECRET, keys.KEY, keys.NOTE, daemon.KEY = "{folder}/SECRET", "{folder}/KEY", "{folder}/NOTE", "{folder}/KEY"
daemon._STATE = "{folder}"
os.getuid = lambda: 1000
sys.exit(run.main())
"""
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "SLIPWAY_SLURMCTLD": "ctl"}
    root = Path(__file__).parents[4]
    (folder / "broken").touch()
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=root, env=environment, timeout=60 * patience(), check=False).returncode == 3
    (folder / "broken").unlink()
    (folder / "started").unlink()
    with subprocess.Popen(command, cwd=root, env=environment) as running:
        until("started", folder, "a\n")
        running.terminate()
        assert running.wait(30 * patience()) == 0
