"""How far Slurm's files are: what the condition and the events of slurmctld's pod say, by what its sidecar reports."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import pytest
from prometheus_client import REGISTRY

from controllers.files import progress
from controllers.files.progress import (
    DAEMON_PODS,
    DaemonPod,
    FileProgress,
    PodCondition,
    PodStatus,
    Report,
    Verdict,
    ask,
    build_event,
    build_status,
    hash_files,
    judge,
)
from controllers.runtime.api import connect
from controllers.runtime.clock import SYSTEM
from controllers.runtime.informer import Informer
from controllers.runtime.structs import CONFIG_MAPS, EVENTS, PODS, ConfigMap, ObjectMeta
from controllers.runtime.writer import Writer
from controllers.slurm.connections import Broken
from names import annotations, conditions, ports
from programs.config_sync.report import Desk
from programs.config_sync.report import Report as SidecarsReport
from slurm.files import content_hash
from tests.support.fakes.clock import eventually
from tests.support.fakes.kubernetes import FakeKubernetes

POD = ("slurm", "dev-slurmctld-0")
CONFIG = ("slurm", "dev-slurm-config")
OLD, NEW = "2026-11-01T00:00:00Z", "2026-11-23T00:00:00Z"


def pod(before: Verdict | None = None) -> DaemonPod:
    said = (PodCondition(conditions.FILES_LIVE, before.status, before.reason, before.message, OLD),) if before else ()
    about = {annotations.FILES_HASH: before.files} if before else {}
    meta = ObjectMeta(name=POD[1], namespace="slurm", uid="u", annotations=about)
    return DaemonPod(meta, PodStatus("10.0.0.1", said))


@pytest.mark.parametrize(
    ("report", "status", "reason", "words"),
    [
        pytest.param(Report("a", "live", "all have them"), "True", "Live", "all have them", id="live"),
        pytest.param(Report("b", "live", "all have them"), "Unknown", "Delivering", "not brought these files", id="live-with-others"),
        pytest.param(Report("a", "spreading", "1 of 2"), "Unknown", "Delivering", "1 of 2", id="spreading"),
        pytest.param(Report("a", "waiting", "wait for: node a"), "False", "Waiting", "wait for: node a. They are taken over", id="waiting"),
        pytest.param(Report("a", "refused", "no MinJobAge"), "False", "Refused", "no MinJobAge. Mend the stack file", id="refused"),
        pytest.param(Report("a", "slurmds-behind", "1 of 2"), "False", "SlurmdsBehind", "1 of 2", id="slurmds-behind"),
        pytest.param(Report("a", "from-a-newer-sidecar", "x"), "Unknown", "Delivering", "x", id="unknown-word"),
        pytest.param(None, "Unknown", "Delivering", "does not say how far the files are: no route", id="silent"),
    ],
)
def test_condition_says_how_far_these_files_are(report: Report | None, status: str, reason: str, words: str) -> None:
    verdict = judge("a", report, "no route")
    assert (verdict.files, verdict.status, verdict.reason) == ("a", status, reason)
    assert words in verdict.message


def test_long_words_keep_their_remedy_and_fit_an_event() -> None:
    message = judge("a", Report("a", "refused", "x" * 5000)).message
    assert len(message) <= 1024
    assert message.endswith("deploy it again")


def test_condition_keeps_its_transition_time_and_names_the_files() -> None:
    live = Verdict("b", "Live", "all")
    other = build_status(pod(Verdict("a", "Live", "all")), live, NEW)
    assert other["metadata"]["annotations"] == {annotations.FILES_HASH: "b"}
    assert [each["lastTransitionTime"] for each in other["status"]["conditions"]] == [OLD]
    turned = build_status(pod(Verdict("a", "Refused", "no")), live, NEW)
    assert [each["lastTransitionTime"] for each in turned["status"]["conditions"]] == [NEW]


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        pytest.param(None, Verdict("a", "Live", "all"), "Normal", id="first-files"),
        pytest.param(Verdict("a", "Delivering", ""), Verdict("a", "Refused", "no"), "Warning", id="refused"),
        pytest.param(Verdict("a", "Refused", "no"), Verdict("b", "Delivering", ""), None, id="on-their-way"),
        pytest.param(Verdict("b", "Delivering", ""), Verdict("b", "Live", "all"), "Normal", id="good-again"),
        pytest.param(Verdict("b", "Delivering", ""), Verdict("b", "Waiting", "node a"), "Normal", id="waiting"),
        pytest.param(Verdict("b", "Live", "all"), Verdict("b", "SlurmdsBehind", "1"), "Warning", id="behind"),
        pytest.param(Verdict("a", "Refused", "no"), Verdict("a", "Refused", "never"), None, id="refused-in-other-words"),
    ],
)
def test_events_tell_news_only(before: Verdict | None, now: Verdict, kind: str | None) -> None:
    event = build_event(pod(before), now, NEW, "pod")
    assert (event and event["type"]) == kind


def test_same_news_of_a_pod_have_the_same_name() -> None:
    made = [build_event(pod(), Verdict(files, "Refused", words), NEW, "pod") or {} for files, words in ("ax", "ay", "bx")]
    first, again, other = (each["metadata"]["name"] for each in made)
    assert first == again != other


def test_hash_is_that_of_the_files_in_the_pod() -> None:
    maps = [ConfigMap(ObjectMeta(name="a"), {"slurm.conf": "a", "gres.conf": "é"})]
    assert hash_files(maps) == content_hash({"slurm.conf": b"a", "gres.conf": "é".encode()})
    assert hash_files([]) == ""


@pytest.mark.anyio
async def test_sidecar_is_asked_and_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    desk.report = SidecarsReport("ab", "live", "all")
    server = desk.serve(0)
    monkeypatch.setattr(ports, "CONFIG_SYNC", server.ports[0])
    try:
        assert await ask("127.0.0.1") == Report("ab", "live", "all")
    finally:
        await asyncio.to_thread(server.close)
    with pytest.raises(Broken):
        await ask("127.0.0.1")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server() -> AsyncIterator[FakeKubernetes]:
    async with FakeKubernetes() as made:
        made.put(CONFIG_MAPS, {"metadata": {"namespace": "slurm", "name": CONFIG[1]}, "data": {"slurm.conf": "a"}})
        made.put(PODS, {"metadata": {"namespace": "slurm", "name": POD[1]}, "spec": {}, "status": {"podIP": "10.0.0.1"}})
        yield made


class Sidecar:
    """What it reports, and how often it was asked."""

    def __init__(self) -> None:
        self.report: Report | None = None
        self.asked = 0

    async def ask(self, address: str) -> Report:
        assert address == "10.0.0.1"
        self.asked += 1
        if self.report is None:
            raise Broken("no route")
        return self.report

    def say(self, text: str, state: str, message: str = "") -> None:
        self.report = Report(content_hash({"slurm.conf": text.encode()}), state, message)


@contextlib.asynccontextmanager
async def process(
    server: FakeKubernetes, sidecar: Sidecar, held_changed: Callable[[frozenset[str]], None] = lambda _: None
) -> AsyncGenerator[FileProgress]:
    """A controller that follows the files, until it is killed."""
    api = connect(server.config())
    maps, pods = Informer(api, CONFIG_MAPS, namespace="slurm"), Informer(api, DAEMON_PODS, namespace="slurm")
    following = FileProgress(maps, pods, Writer(api), SYSTEM, "pod", sidecar.ask, held_changed)
    tasks = [asyncio.create_task(work()) for work in (maps.run, pods.run, following.run)]
    try:
        yield following
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await api.close()


def said(server: FakeKubernetes) -> tuple[str, str]:
    """For which files the condition is, and its reason."""
    found = server.get(PODS, POD)
    reasons = [each["reason"] for each in found["status"].get("conditions", []) if each["type"] == conditions.FILES_LIVE]
    return found["metadata"].get("annotations", {}).get(annotations.FILES_HASH, ""), "".join(reasons)


def events(server: FakeKubernetes) -> list[str]:
    return sorted(json.loads(json.dumps(server.get(EVENTS, key)))["reason"] for key in server.keys(EVENTS))


@pytest.mark.anyio
async def test_refusal_and_what_mends_it_are_each_told_once(server: FakeKubernetes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SOON_S", 0.02)
    sidecar = Sidecar()
    hashes: dict[str, Any] = {text: content_hash({"slurm.conf": text.encode()}) for text in ("a", "bad", "good")}
    async with process(server, sidecar):
        await eventually(lambda: said(server) == (hashes["a"], "Delivering"))
        sidecar.say("a", "live")
        await eventually(lambda: said(server) == (hashes["a"], "Live"))
        server.patch(CONFIG_MAPS, CONFIG, {"data": {"slurm.conf": "bad"}})
        await eventually(lambda: said(server) == (hashes["bad"], "Delivering"))
        sidecar.say("bad", "refused", "no")
        await eventually(lambda: said(server) == (hashes["bad"], "Refused"))
        assert REGISTRY.get_sample_value("slipway_slurm_files_refused") == 1
    async with process(server, sidecar):  # a controller that takes over
        server.patch(CONFIG_MAPS, CONFIG, {"data": {"slurm.conf": "good"}})
        await eventually(lambda: said(server) == (hashes["good"], "Delivering"))
        sidecar.say("good", "live")
        await eventually(lambda: said(server) == (hashes["good"], "Live"))
        assert REGISTRY.get_sample_value("slipway_slurm_files_refused") == 0
    assert events(server) == ["FilesLive", "FilesLive", "FilesRefused"]


@pytest.mark.anyio
async def test_metrics_say_since_when_slurmctld_has_its_keys(server: FakeKubernetes) -> None:
    """The alert KeyOld goes by it."""
    sidecar = Sidecar()
    sidecar.report = Report(content_hash({"slurm.conf": b"a"}), "live", "", keys={"munge": 1000.5})
    async with process(server, sidecar):
        await eventually(lambda: said(server)[1] == "Live")
        assert REGISTRY.get_sample_value("slipway_key_since_timestamp_seconds", {"key": "munge"}) == 1000.5


@pytest.mark.anyio
async def test_list_of_nodes_that_keep_their_size_survives_a_silent_sidecar(
    server: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_SOON_S", 0.02)
    monkeypatch.setattr(progress, "_UNSETTLED_S", 0.02)
    sidecar, changes = Sidecar(), list[frozenset[str]]()
    files: str = content_hash({"slurm.conf": b"a"})
    async with process(server, sidecar, changes.append) as following:
        sidecar.report = Report(files, "live", "all", held="gpu-[0-1]")
        await eventually(lambda: said(server) == (files, "Live"))
        await eventually(lambda: following.held == frozenset({"gpu-0", "gpu-1"}))
        sidecar.report = Report(files, "live", "all", held="gpu-1")
        await eventually(lambda: following.held == frozenset({"gpu-1"}))
        sidecar.report = None
        await eventually(lambda: said(server) == (files, "Delivering"))
        assert following.held == frozenset({"gpu-1"})
        sidecar.report = Report(files, "live", "all", held="gpu-[")
        asked = sidecar.asked
        await eventually(lambda: sidecar.asked > asked + 1)
        assert following.held == frozenset({"gpu-1"})
        sidecar.report = Report(files, "live", "all")
        await eventually(lambda: not following.held)
    assert changes == [{"gpu-0", "gpu-1"}, {"gpu-0"}, {"gpu-1"}]
