"""Whether what checks find is noted: what the collector of checks answers, and what becomes of an answer that is none."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from programs.metrics import checks
from programs.metrics.run import Collector
from programs.metrics.settings import Settings
from programs.node_checks.collect import STATUS
from slurm.commands import SlurmError
from tests.support.programs.metrics.recorded import of
from tests.unit.programs.metrics.fake import Slurm


@contextmanager
def answering(answer: bytes) -> Generator[tuple[int, list[bytes]]]:
    """A port that answers one line; and what was asked."""
    asked: list[bytes] = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            asked.append(connection.makefile("rb").readline())
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], asked
        thread.join()


@pytest.mark.parametrize(
    ("answer", "is_noted"),
    [
        pytest.param(b'{"notes": true}\n', True, id="noted"),
        pytest.param(b'{"notes": false}\n', False, id="slurm-takes-nothing"),
        pytest.param(b'{"error": "Invalid credential"}\n', False, id="collector-of-an-earlier-release"),
        pytest.param(b"[]\n", False, id="no-object"),
        pytest.param(b"", False, id="no-answer"),
    ],
)
def test_collector_of_checks_says_whether_it_notes(answer: bytes, is_noted: bool) -> None:
    with answering(answer) as (port, asked):
        assert checks.notes("127.0.0.1", port) == is_noted
    assert asked == [STATUS + b"\n"]


def test_port_that_nobody_listens_on_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert not checks.notes("127.0.0.1", port)


@pytest.mark.parametrize(
    ("collector", "is_noted", "expected"),
    [
        pytest.param(("dev-slurmctld", 6823), True, {"": 1}, id="noted"),
        pytest.param(("dev-slurmctld", 6823), False, {"": 0}, id="not-noted"),
        pytest.param(None, False, {}, id="no-checks-beside-jobs"),
    ],
)
def test_page_says_whether_checks_are_noted(collector: tuple[str, int] | None, is_noted: bool, expected: dict[str, float]) -> None:
    slurm = Slurm()
    settings = Settings(accounting=True, accounts=2, checks={}, checks_collector=collector)
    read = Collector(settings, slurm.ask, slurm.clock, slurm.wall, lambda host, port: (host, port) == collector and is_noted)
    read.read("nodes")
    page = read.readings.page(slurm.now, 0, 0).decode()
    assert of(page, "slipway_checks_noted") == expected


def test_silent_slurm_is_another_alert() -> None:
    slurm = Slurm()
    slurm.answers["scontrol"] = SlurmError("scontrol did not answer within 20 s")
    read = Collector(Settings(accounting=True, accounts=2, checks={}, checks_collector=("a", 1)), slurm.ask, slurm.clock, slurm.wall)
    read.read("nodes")
    assert of(read.readings.page(slurm.now, 0, 0).decode(), "slipway_checks_noted") == {}
