"""The guard against a real API server: what is edited or deleted by hand is restored, and what a deployment does is left alone."""

import asyncio
import base64
import contextlib
import json
import re
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from lightkube.config.kubeconfig import KubeConfig

from controllers.guard.guard import Guard, Pace
from controllers.guard.record import GUARD, KINDS
from controllers.guard.reports import REPORTER
from controllers.runtime.api import connect
from controllers.runtime.clock import SYSTEM
from controllers.runtime.errors import Conflict
from tests.apiserver.server import ApiServer
from tests.fakes.clock import eventually

pytestmark = pytest.mark.anyio

SETTLE_S = 0.3
LABELS = {"slipway.dev/cluster": "dev"}
FILES: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "files", "labels": LABELS},
    "data": {"slurm.conf": "ClusterName=dev\n", "gres.conf": "# none\n"},
}
SERVICE: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "slurmctld", "labels": LABELS},
    "spec": {"selector": {"app": "slurmctld"}, "ports": [{"name": "slurmctld", "port": 6817}]},
}
KEY: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "munge", "labels": LABELS},
    "data": {"munge.key": "b25l"},
}
PASSWORD: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "password", "labels": LABELS},
    "data": {"password": "b25l"},
}
LOGIN: Mapping[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "login", "labels": LABELS},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "login"}},
        "template": {
            "metadata": {"labels": {"app": "login"}},
            "spec": {"containers": [{"name": "sshd", "image": "slurm:1", "resources": {"requests": {"cpu": "0.1"}}}]},
        },
    },
}
MINE: Mapping[str, Any] = {"data": {"slurm.conf": "mine"}}
STACK: tuple[Mapping[str, Any], ...] = (FILES, SERVICE, KEY, PASSWORD, LOGIN)


EVENTS = "/apis/events.k8s.io/v1/namespaces/{}/events"
MERGE = "application/merge-patch+json"


@dataclass
class Stack:
    """A small stack in a namespace of its own, deployed as standalone does it. Nothing here holds up the loop that the guard runs on."""

    server: ApiServer
    client: httpx2.AsyncClient
    namespace: str

    async def apply(self, *manifests: Mapping[str, Any], manager: str = "slipway") -> None:
        """Server-side apply without force: a conflict is a mistake."""
        headers = {"Content-Type": "application/apply-patch+yaml"}
        for manifest in manifests:
            path = self._path(manifest["kind"], manifest["metadata"]["name"])
            answer = await self.client.patch(path, params={"fieldManager": manager}, headers=headers, content=json.dumps(manifest))
            assert answer.is_success, answer.text

    async def record(self, *manifests: Mapping[str, Any], manager: str = "slipway") -> None:
        """Writes what was deployed: the last step of a deployment."""
        data = {}
        for manifest in manifests:
            about = {**manifest["metadata"], "namespace": self.namespace}
            entry: dict[str, Any] = {"manifest": {**manifest, "metadata": about}}
            if about["name"] == "munge":
                entry["ignored"] = ["data"]
            data[f"{manifest['kind']}.{about['name']}"] = base64.b64encode(json.dumps(entry).encode()).decode()
        about = {"name": "deployed", "labels": {**LABELS, "app.kubernetes.io/component": "deployed"}}
        await self.apply({"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": data}, manager=manager)

    async def deploy(self, *manifests: Mapping[str, Any], manager: str = "slipway") -> None:
        await self.apply(*manifests, manager=manager)
        await self.record(*manifests, manager=manager)

    async def get(self, kind: str, name: str) -> dict[str, Any] | None:
        answer = await self.client.get(self._path(kind, name))
        return answer.json() if answer.is_success else None

    async def data(self, kind: str, name: str) -> dict[str, str]:
        return (await self.get(kind, name) or {}).get("data", {})

    async def patch(self, kind: str, name: str, change: Mapping[str, Any], manager: str = "kubectl-patch") -> None:
        """As `kubectl patch --type=merge`."""
        path, headers = self._path(kind, name), {"Content-Type": MERGE}
        answer = await self.client.patch(path, params={"fieldManager": manager}, headers=headers, content=json.dumps(change))
        assert answer.is_success, answer.text

    async def annotate(self, kind: str, name: str, value: str | None) -> None:
        await self.patch(kind, name, {"metadata": {"annotations": {GUARD: value}}}, "kubectl-annotate")

    async def delete(self, kind: str, name: str) -> None:
        answer = await self.client.delete(self._path(kind, name))
        assert answer.is_success, answer.text

    async def events(self, name: str) -> list[str]:
        """What the guard has told of an object. The API server tells of Services, too, when it repairs its table of addresses."""
        found = (await self.client.get(EVENTS.format(self.namespace))).json()
        told = [each for each in found["items"] if each["regarding"]["name"] == name and each["reportingController"] == REPORTER]
        return [f"{each['reason']}: {each['note']}" for each in told]

    async def told(self, name: str) -> bool:
        return await self.events(name) != []

    async def is_there(self, kind: str, name: str) -> bool:
        return await self.get(kind, name) is not None

    async def has(self, files: Mapping[str, str]) -> bool:
        """Whether the ConfigMap holds these files."""
        return await self.data("ConfigMap", "files") == files

    def _path(self, kind: str, name: str) -> str:
        return KINDS[kind].path(self.namespace, name)

    @contextlib.asynccontextmanager
    async def guarded(self, conflicts: int = 0) -> AsyncGenerator[Guard]:
        """A guard that has looked at everything, until it is killed. Its first restores meet so many conflicts."""
        config = KubeConfig.from_file(str(self.server.kubeconfig())).get()
        assert config is not None
        api = connect(config)
        setattr(api, "apply", contended(api.apply, conflicts))  # noqa: B010 - its type is generic
        guard = Guard(api, self.namespace, "dev", "guard-0", SYSTEM, Pace(settle_s=SETTLE_S, retry_most_s=0.5))
        tasks = [
            asyncio.create_task(work()) for work in (guard.record_informer.run, *(each.run for each in guard.informers.values()), guard.run)
        ]
        try:
            for informer in (guard.record_informer, *guard.informers.values()):
                await informer.synced.wait()
            yield guard
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            await api.close()
            assert [each for each in ended if not isinstance(each, asyncio.CancelledError)] == []


def contended(apply: Callable[..., Awaitable[Any]], conflicts: int) -> Callable[..., Awaitable[Any]]:
    """An apply that finds the object changed so many times, as while a rollout writes its status."""
    left = [None] * conflicts

    async def call(*args: Any, **more: Any) -> Any:
        if left and not more.get("dry_run"):
            left.pop()
            raise Conflict("the object has been modified", 409, "Conflict")
        return await apply(*args, **more)

    return call


async def becomes(holds: Callable[[], Awaitable[bool]], within_s: float = 10) -> None:
    """Waits until it holds. Raises AssertionError after so many seconds."""
    end = time.monotonic() + within_s
    while not await holds():
        assert time.monotonic() < end, f"did not come to hold within {within_s} s"
        await asyncio.sleep(0.02)


@pytest.fixture
def anyio_backend() -> str:
    """The event loop that the guard runs on."""
    return "asyncio"


@pytest.fixture
async def stack(server: ApiServer, request: pytest.FixtureRequest) -> AsyncIterator[Stack]:
    """The small stack, deployed."""
    namespace = re.sub("[^a-z0-9]+", "-", f"guard-{request.node.name.partition('test_')[2]}")[-60:].strip("-")
    server.make_namespace(namespace)
    headers, trusted = {"Authorization": "Bearer admin"}, ssl.create_default_context(cafile=str(server.certificates))
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, verify=trusted, timeout=30) as client:
        made = Stack(server, client, namespace)
        await made.deploy(*STACK)
        yield made


LABELLED = {"metadata": {"labels": {"slipway.dev/cluster": "dev", "extra": "kept"}}, "data": {"gres.conf": "x"}}
EDITS: dict[str, tuple[str, str, dict[str, Any], bool]] = {
    "value-of-a-file": ("ConfigMap", "files", {"data": {"slurm.conf": "ClusterName=mine\n"}}, True),
    "file-removed": ("ConfigMap", "files", {"data": {"gres.conf": None}}, False),
    "file-added": ("ConfigMap", "files", {"data": {"acct_gather.conf": "#\n"}}, True),
    "label-changed": ("ConfigMap", "files", LABELLED, True),
    "selector-of-a-service": ("Service", "slurmctld", {"spec": {"selector": {"app": "mine"}}}, True),
    "selector-of-a-service-grown": ("Service", "slurmctld", {"spec": {"selector": {"mine": "too"}}}, True),
    "replicas": ("Deployment", "login", {"spec": {"replicas": 0}}, True),
    "password": ("Secret", "password", {"data": {"password": "dHdv"}}, True),
}


@pytest.mark.parametrize(("kind", "name", "change", "is_traced"), EDITS.values(), ids=EDITS)
async def test_what_is_edited_is_restored_and_told(stack: Stack, kind: str, name: str, change: dict[str, Any], is_traced: bool) -> None:
    before = await stack.get(kind, name)
    assert before is not None
    async with stack.guarded():
        await stack.patch(kind, name, change)
        await becomes(lambda: stack.told(name))
    after = await stack.get(kind, name)
    assert after is not None
    part = "data" if "data" in before else "spec"
    assert after[part] == before[part]
    (said,) = await stack.events(name)
    assert "Restored: restored to what was deployed: " in said
    assert "kubectl-patch" in said or not is_traced


@pytest.mark.parametrize(
    ("kind", "name"), [("ConfigMap", "files"), ("Service", "slurmctld"), ("Deployment", "login"), ("Secret", "password")]
)
async def test_what_is_deleted_is_made_again(stack: Stack, kind: str, name: str) -> None:
    async with stack.guarded():
        await stack.delete(kind, name)
        await becomes(lambda: stack.is_there(kind, name))
        await becomes(lambda: stack.told(name))
    assert "made again as it was deployed" in (await stack.events(name))[0]


async def test_what_changed_while_no_guard_ran_is_restored_when_it_starts(stack: Stack) -> None:
    await stack.patch("ConfigMap", "files", MINE)
    await stack.delete("Service", "slurmctld")
    async with stack.guarded():
        await becomes(lambda: stack.is_there("Service", "slurmctld"))
        await becomes(lambda: stack.has(FILES["data"]))


async def test_rotated_key_is_left_as_it_is_and_not_made_again(stack: Stack) -> None:
    async with stack.guarded():
        await stack.patch("Secret", "munge", {"data": {"munge.key": "dHdv"}})
        await stack.delete("Service", "slurmctld")  # a deed that shows that the guard has come by
        await becomes(lambda: stack.is_there("Service", "slurmctld"))
        assert await stack.data("Secret", "munge") == {"munge.key": "dHdv"}
        await stack.delete("Secret", "munge")
        await stack.delete("Service", "slurmctld")
        await becomes(lambda: stack.is_there("Service", "slurmctld"))
        assert not await stack.is_there("Secret", "munge")


@pytest.mark.parametrize("at", [("ConfigMap", "files"), ("Secret", "deployed")], ids=["an-object", "the-record"])
async def test_annotation_pauses_it_until_it_is_gone(stack: Stack, at: tuple[str, str]) -> None:
    await stack.annotate(*at, "paused")
    async with stack.guarded() as guard:
        await stack.patch("ConfigMap", "files", MINE)
        await eventually(lambda: len(guard.queue) == 0 and guard.informers["ConfigMap"].get((stack.namespace, "files")) is not None)
        await guard.look(("ConfigMap", "files"))
        assert await stack.has({**FILES["data"], **MINE["data"]})
        await stack.annotate(*at, None)
        await becomes(lambda: stack.has(FILES["data"]))


async def test_object_that_is_deleted_while_it_is_paused_is_not_made_again(stack: Stack) -> None:
    await stack.annotate("ConfigMap", "files", "paused")
    async with stack.guarded() as guard:
        await eventually(lambda: len(guard.queue) == 0 and guard.informers["ConfigMap"].get((stack.namespace, "files")) is not None)
        await guard.look(("ConfigMap", "files"))
        await stack.delete("ConfigMap", "files")
        await stack.delete("Service", "slurmctld")
        await becomes(lambda: stack.is_there("Service", "slurmctld"))
        assert not await stack.is_there("ConfigMap", "files")


async def test_who_changes_it_again_and_again_wins_and_is_told_of(stack: Stack) -> None:
    async def stopped() -> bool:
        return any("GuardStopped" in each for each in await stack.events("files"))

    async with stack.guarded():
        for turn in range(6):
            await stack.patch("ConfigMap", "files", {"data": {"slurm.conf": f"turn {turn}"}})
            if turn < 5:
                await becomes(lambda: stack.has(FILES["data"]))
        await becomes(stopped)
        assert await stack.has({**FILES["data"], "slurm.conf": "turn 5"})
        told = next(each for each in await stack.events("files") if "GuardStopped" in each)
        assert f"kubectl annotate configmap files slipway.dev/guard- -n {stack.namespace}" in told
        await stack.annotate("ConfigMap", "files", None)
        await becomes(lambda: stack.has(FILES["data"]))


async def test_restore_that_did_not_come_about_is_no_fight(stack: Stack) -> None:
    async with stack.guarded(conflicts=6):
        await stack.patch("ConfigMap", "files", MINE)
        await becomes(lambda: stack.told("files"))
        assert await stack.has(FILES["data"])
    assert ["Restored" in each for each in await stack.events("files")] == [True]


async def test_entry_that_holds_no_object_stops_nothing_but_itself(stack: Stack) -> None:
    async with stack.guarded():
        garbage = base64.b64encode(b'{"manifest": {}}').decode()
        await stack.patch("Secret", "deployed", {"data": {"ConfigMap.files": garbage}})
        await stack.delete("Service", "slurmctld")
        await becomes(lambda: stack.is_there("Service", "slurmctld"))


@pytest.mark.parametrize("manager", ["slipway", "pulumi-kubernetes-1a2b"])
async def test_deployment_that_goes_on_is_left_alone_and_then_kept(stack: Stack, manager: str) -> None:
    newer = {**FILES, "data": {"slurm.conf": "ClusterName=newer\n"}}
    if manager != "slipway":
        for manifest in STACK:
            await stack.delete(manifest["kind"], manifest["metadata"]["name"])
        await stack.delete("Secret", "deployed")
        await stack.deploy(*STACK, manager=manager)
    async with stack.guarded() as guard:
        await eventually(lambda: len(guard.queue) == 0)
        written = int(time.time())
        await eventually(lambda: time.time() >= written + 1)  # managed fields have whole seconds
        await stack.apply(newer, manager=manager)
        await guard.look(("ConfigMap", "files"))
        assert await stack.has(newer["data"])
        await stack.record(newer, *STACK[1:], manager=manager)
        await stack.patch("ConfigMap", "files", MINE)
        await becomes(lambda: stack.has(newer["data"]))
        await stack.apply(
            {**newer, "data": {"slurm.conf": "ClusterName=newest\n"}}, manager=manager
        )  # no conflict: the guard is no third party


async def test_object_that_left_the_stack_is_not_made_again(stack: Stack) -> None:
    async with stack.guarded() as guard:
        await stack.record(*(each for each in STACK if each is not SERVICE))
        await stack.delete("Service", "slurmctld")
        await stack.delete("ConfigMap", "files")
        await becomes(lambda: stack.is_there("ConfigMap", "files"))
        await guard.look(("Service", "slurmctld"))
        assert not await stack.is_there("Service", "slurmctld")


async def test_nothing_is_made_again_once_the_record_is_gone(stack: Stack) -> None:
    async with stack.guarded() as guard:
        await stack.delete("Service", "slurmctld")
        await stack.delete("Secret", "deployed")
        await eventually(lambda: not guard.record_informer.store.values())
        await guard.look(("Service", "slurmctld"))
        assert not await stack.is_there("Service", "slurmctld")
