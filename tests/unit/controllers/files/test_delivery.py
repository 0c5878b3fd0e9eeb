"""The kubelets of the daemons are notified of changed files: at once, once more, and again by whoever follows a killed controller."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from controllers.files.delivery import FileDelivery, plan_words
from controllers.files.progress import DAEMON_PODS, DaemonPod
from controllers.runtime.api import connect
from controllers.runtime.clock import SYSTEM
from controllers.runtime.informer import Informer
from controllers.runtime.structs import CONFIG_MAPS, PODS, ConfigMap, ObjectMeta
from controllers.runtime.writer import Writer
from names import annotations
from tests.support.fakes.clock import eventually
from tests.support.fakes.kubernetes import FakeKubernetes
from tests.support.fakes.requests import Failure

POD = ("slurm", "dev-slurmctld-0")
CONFIG = ("slurm", "dev-slurm-config")


def pod(said: str = "", deleting: bool = False) -> DaemonPod:
    told = {annotations.FILES: said} if said else {}
    return DaemonPod(ObjectMeta(name=POD[1], namespace="slurm", annotations=told, deletion_timestamp="now" if deleting else None))


def files(version: str) -> ConfigMap:
    return ConfigMap(ObjectMeta(name=CONFIG[1], namespace="slurm", resource_version=version))


@pytest.mark.parametrize(
    ("found", "said", "words"),
    [
        pytest.param([files("7")], "", ["7.1"], id="a-new-pod"),
        pytest.param([files("7")], "6.2", ["7.1"], id="changed-files"),
        pytest.param([files("7")], "6.1", ["7.1"], id="changed-again-before-the-second-word"),
        pytest.param([files("7")], "7.1", ["7.2"], id="the-second-word"),
        pytest.param([files("7")], "7.2", [], id="all-is-said"),
        pytest.param([], "6.2", [], id="no-files"),
    ],
)
def test_each_version_of_the_files_is_told_twice(found: list[ConfigMap], said: str, words: list[str]) -> None:
    assert [word.text for word in plan_words(found, [pod(said)])] == words


def test_pod_on_its_way_out_is_told_nothing() -> None:
    assert plan_words([files("7")], [pod(deleting=True)]) == []


@pytest.fixture
async def server() -> AsyncIterator[FakeKubernetes]:
    async with FakeKubernetes() as made:
        made.put(CONFIG_MAPS, {"metadata": {"namespace": "slurm", "name": CONFIG[1]}, "data": {"slurm.conf": "a"}})
        made.put(PODS, {"metadata": {"namespace": "slurm", "name": POD[1]}, "spec": {}})
        yield made


@contextlib.asynccontextmanager
async def process(server: FakeKubernetes, twice_after_s: float = 0.05) -> AsyncGenerator[None]:
    """A controller that follows the files, until it is killed."""
    api = connect(server.config())
    maps, pods = Informer(api, CONFIG_MAPS, namespace="slurm"), Informer(api, DAEMON_PODS, namespace="slurm")
    delivery = FileDelivery("slurmctld", maps, pods, Writer(api), SYSTEM, twice_after_s)
    tasks = [asyncio.create_task(work()) for work in (maps.run, pods.run, delivery.run)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await api.close()


def said(server: FakeKubernetes) -> str:
    return server.get(PODS, POD)["metadata"].get("annotations", {}).get(annotations.FILES, "")


def version(server: FakeKubernetes) -> str:
    return server.get(CONFIG_MAPS, CONFIG)["metadata"]["resourceVersion"]


@pytest.mark.anyio
async def test_changed_files_are_told_at_once_and_once_more(server: FakeKubernetes) -> None:
    async with process(server):
        await eventually(lambda: said(server) == f"{version(server)}.2")
        server.patch(CONFIG_MAPS, CONFIG, {"data": {"slurm.conf": "b"}})
        await eventually(lambda: said(server) == f"{version(server)}.2")


@pytest.mark.anyio
async def test_second_signal_is_sent_if_the_controller_dies_after_the_first(server: FakeKubernetes) -> None:
    async with process(server, twice_after_s=3600):
        await eventually(lambda: said(server) == f"{version(server)}.1")
    async with process(server):
        await eventually(lambda: said(server) == f"{version(server)}.2")


@pytest.mark.anyio
async def test_refused_word_is_said_again(server: FakeKubernetes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controllers.files.delivery.AGAIN_S", 0.05)
    server.fail(Failure("status", verb="patch", times=2))
    async with process(server):
        await eventually(lambda: said(server) == f"{version(server)}.2")
