"""How long a node waits for the program that takes what it has found, by a munge that only copies and a listener of the test's own."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm import collector


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    munge = tmp_path / "munge"
    munge.write_text("#!/bin/sh\nexec cat\n")
    munge.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_answer_is_waited_for_while_slurm_is_busy(listener: socket.socket) -> None:
    """A connection is made at once or not at all; the answer may take as long as the collector has for it."""
    waits: list[float | None] = []

    def answer() -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile() as lines:
            report = json.loads(lines.readline())
            connection.sendall(json.dumps({"refused": report["results"]}).encode() + b"\n")

    class Connection(socket.socket):
        def settimeout(self, value: float | None) -> None:
            waits.append(value)
            super().settimeout(value)

    thread = threading.Thread(target=answer)
    thread.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "socket", Connection)
        assert collector.tell("127.0.0.1", listener.getsockname()[1], 64030, {"results": ["gpu"]}) == {"refused": ["gpu"]}
    thread.join()
    [made, asked] = [wait for wait in waits if wait is not None]
    assert made < collector.ANSWER_S < asked


def test_collector_that_is_silent_is_given_up(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes the connection of a process that hangs."""
    monkeypatch.setattr(collector, "ANSWER_S", 0.1)
    monkeypatch.setattr(collector, "_SLACK_S", 0.1)
    with pytest.raises(TimeoutError):
        collector.tell("127.0.0.1", listener.getsockname()[1], 64030, {})


def test_collector_that_is_away_holds_up_nobody(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    listener.close()
    with pytest.raises(ConnectionRefusedError):
        collector.tell("127.0.0.1", port, 64030, {})
