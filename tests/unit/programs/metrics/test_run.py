"""The collector: Slurm that is silent, answers that make no sense, and a scrape that asks nobody."""

import http.client
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from programs.metrics import jobs, nodes
from programs.metrics.readings import Readings
from programs.metrics.run import KEY_WAITS, Collector, key_waits_s, listener
from programs.metrics.settings import Settings
from programs.munged.keys import WAITS
from slurm.commands import SlurmError
from slurm.ended import LATE_S, LONGEST_PAUSE_S, LOOK_BACK_S, pause_s
from slurm.listen import InThread
from tests.support.patience import patience
from tests.support.programs.metrics.recorded import job, node, of, samples
from tests.unit.programs.metrics.fake import Slurm

SETTINGS = Settings(accounting=True, accounts=2, checks={"gpu": {"disk": "job"}})


@pytest.fixture
def slurm() -> Slurm:
    return Slurm()


@pytest.fixture
def collector(slurm: Slurm) -> Collector:
    return Collector(SETTINGS, slurm.ask, slurm.clock, slurm.wall)


def page(collector: Collector, slurm: Slurm) -> str:
    return collector.readings.page(slurm.now, 1 << 20, 0.5).decode()


def test_before_the_first_reading_slurm_is_not_up_and_ages_grow(collector: Collector, slurm: Slurm) -> None:
    slurm.now += 30
    text = page(collector, slurm)
    assert of(text, "slipway_slurm_up") == {"": 0}
    assert of(text, "slipway_collector_reading_age_seconds") == {"nodes": 30, "jobs": 30, "accounting": 30}
    assert of(text, "slipway_collector_reading_seconds") == {}


def test_readings_are_served_with_their_age_and_time(collector: Collector, slurm: Slurm) -> None:
    for kind in ("nodes", "jobs", "accounting"):
        assert collector.read(kind) == 2
    text = page(collector, slurm)
    assert of(text, "slipway_slurm_up") == {"": 1}
    assert of(text, "slipway_collector_reading_age_seconds") == {"nodes": 6, "jobs": 4, "accounting": 2}
    assert of(text, "slipway_collector_reading_seconds") == {"nodes": 2, "jobs": 2, "accounting": 2}
    assert of(text, "slipway_node_state") == {"gpu-0/gpu/mixed": 1}
    assert of(text, "slipway_jobs") == {"main/running": 1}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(SlurmError("scontrol did not answer within 20 s"), id="silent"),
        pytest.param("slurm_load_node error", id="nonsense"),
        pytest.param("", id="nothing"),
    ],
)
def test_silent_slurm_leaves_the_last_reading_and_says_so(collector: Collector, slurm: Slurm, answer: str | Exception) -> None:
    collector.read("nodes")
    collector.read("jobs")
    slurm.answers["scontrol"] = answer
    for _ in range(3):
        slurm.now += 60
        collector.read("nodes")
    text = page(collector, slurm)
    assert of(text, "slipway_slurm_up") == {"": 0}
    assert of(text, "slipway_collector_reading_age_seconds")["nodes"] == 190
    assert of(text, "slipway_node_state") == {"gpu-0/gpu/mixed": 1}
    slurm.answers["scontrol"] = node("gpu-0")
    collector.read("nodes")
    assert of(page(collector, slurm), "slipway_slurm_up") == {"": 1}


def test_silent_slurmdbd_does_not_mean_that_slurm_is_down(collector: Collector, slurm: Slurm) -> None:
    for kind in ("nodes", "jobs"):
        collector.read(kind)
    slurm.answers["sacct"] = SlurmError("slurmdbd is away")
    collector.read("accounting")
    assert of(page(collector, slurm), "slipway_slurm_up") == {"": 1}
    assert of(page(collector, slurm), "slipway_collector_reading_age_seconds")["accounting"] == 6


def test_each_outage_is_said_once(collector: Collector, slurm: Slurm, capfd: pytest.CaptureFixture[str]) -> None:
    slurm.answers["scontrol"] = SlurmError("not yet")
    for _ in range(2):
        collector.read("nodes")
    slurm.answers["scontrol"] = node("gpu-0")
    collector.read("nodes")
    slurm.answers["scontrol"] = SlurmError("away")
    for _ in range(3):
        collector.read("nodes")
    told = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(each["reading"], each["error"]) for each in told] == [("nodes", "not yet"), ("nodes", "away")]


def test_ended_jobs_are_asked_for_from_the_last_good_reading(collector: Collector, slurm: Slurm) -> None:
    collector.read("accounting")
    slurm.answers["sacct"] = SlurmError("away")
    slurm.now += 1000
    collector.read("accounting")
    collector.read("accounting")
    starts = [word for command in slurm.asked for word in command if word.startswith("--starttime")]
    assert starts[1] == starts[2]


def test_job_that_slurmdbd_hears_of_late_after_an_outage_is_counted_once(collector: Collector, slurm: Slurm) -> None:
    """slurmctld hands over what ended meanwhile little by little: the first answer has nothing yet."""
    collector.read("accounting")
    slurm.answers["sacct"] = SlurmError("away")
    for _ in range(30):
        slurm.now += 60
        collector.read("accounting")
    end = int(slurm.wall()) - 900
    slurm.answers["sacct"] = ""
    collector.read("accounting")
    slurm.answers["sacct"] = f"1|ml|COMPLETED|10|cpu=2,gres/gpu=4|{end - 10}|{end}"
    for _ in range(3):
        collector.read("accounting")
    assert of(page(collector, slurm), "slipway_job_gpu_seconds_total") == {"ml/completed": 40}
    slurm.answers["sacct"] = ""
    slurm.now += LATE_S + 60
    collector.read("accounting")
    slurm.now += 60
    collector.read("accounting")
    last = next(word for word in slurm.asked[-1] if word.startswith("--starttime"))
    assert int(last.partition("=uts")[2]) > slurm.wall() - 2 * LOOK_BACK_S, "it looks back no further than usual again"


def test_without_accounting_squeue_tells_what_has_ended(slurm: Slurm) -> None:
    collector = Collector(Settings(accounting=False, accounts=2, checks={}), slurm.ask, slurm.clock, slurm.wall)
    now = int(slurm.wall())
    slurm.answers["squeue"] = job("1", "TIMEOUT", StartTime=now - 60, EndTime=now, **{"tres-per-node": "gres/gpu:2"})
    slurm.answers["scontrol"] = node("gpu-0", "MIXED+CLOUD", (2, 2), (1, 4), has_tres=False)
    for kind in ("nodes", "jobs", "jobs"):
        collector.read(kind)
    text = page(collector, slurm)
    assert of(text, "slipway_job_gpu_seconds_total") == {"research/timeout": 120}
    assert of(text, "slipway_gpus")["gpu/allocated"] == 1
    assert slurm.asked == [nodes.DETAILED, jobs.COMMAND, jobs.COMMAND]


@pytest.mark.parametrize(("took", "pause"), [(0.0, 15.0), (0.1, 15.0), (0.5, 25.0), (20.0, LONGEST_PAUSE_S)])
def test_slow_readings_are_made_less_often(took: float, pause: float) -> None:
    assert pause_s(took, 15.0) == pause


@pytest.fixture
def serve() -> Iterator[Callable[[Readings], http.client.HTTPConnection]]:
    servers: list[InThread] = []

    def start(readings: Readings) -> http.client.HTTPConnection:
        servers.append(InThread((listener(readings), 0)))
        return http.client.HTTPConnection("127.0.0.1", servers[-1].ports[0], timeout=5 * patience())

    yield start
    for server in servers:
        server.close()


def test_scrape_says_for_how_long_another_munge_key_waits(
    serve: Callable[[Readings], http.client.HTTPConnection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alert KeyRotationHangs goes by it. The note is that of programs/munged in the same pod."""
    note = tmp_path / "key-waits"
    monkeypatch.setattr("programs.metrics.run.key_waits_s", lambda: key_waits_s(note))

    def shown() -> float:
        connection = serve(Readings(["nodes"], 0))
        connection.request("GET", "/metrics")
        return of(connection.getresponse().read().decode(), "slipway_munge_key_waits_seconds")[""]

    assert shown() == 0
    note.touch()
    at = time.time() - 500
    os.utime(note, (at, at))
    assert 499 < shown() < 600


def test_collector_looks_where_munged_leaves_its_note() -> None:
    assert str(KEY_WAITS) == WAITS


def test_scrape_is_answered_while_a_reading_hangs(serve: Callable[[Readings], http.client.HTTPConnection]) -> None:
    asked, go_on = threading.Event(), threading.Event()

    def hang(*_: str) -> str:
        asked.set()
        go_on.wait(60 * patience())
        raise SlurmError("given up")

    collector = Collector(SETTINGS, hang)
    reading = threading.Thread(target=collector.read, args=("nodes",))
    reading.start()
    assert asked.wait(5 * patience())
    connection = serve(collector.readings)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    text = answer.read().decode()
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert samples(text)["slipway_slurm_up", ()] == 0
    assert samples(text)["process_resident_memory_bytes", ()] > 1 << 20
    go_on.set()
    reading.join()


@pytest.mark.parametrize(("path", "status"), [("/healthz", 404), ("/", 404), ("/metrics/x", 404)])
def test_other_paths(serve: Callable[[Readings], http.client.HTTPConnection], path: str, status: int) -> None:
    connection = serve(Readings(("nodes",), 0))
    connection.request("GET", path)
    assert connection.getresponse().status == status
