"""The guard against a real API server: what is edited or deleted by hand is restored, and what a deployment does is left alone."""

import asyncio
import base64
import contextlib
import json
import re
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from lightkube.config.kubeconfig import KubeConfig

from controllers.guard.guard import Guard, Pace
from controllers.runtime.api import connect
from controllers.runtime.clock import SYSTEM
from tests.apiserver.server import ApiServer
from tests.fakes.clock import eventually

pytestmark = pytest.mark.anyio

SETTLE_S = 0.3
LABELS = {"slipway.dev/cluster": "dev"}
FILES = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "files", "labels": LABELS},
    "data": {"slurm.conf": "ClusterName=dev\n", "gres.conf": "# none\n"},
}
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "slurmctld", "labels": LABELS},
    "spec": {"selector": {"app": "slurmctld"}, "ports": [{"name": "slurmctld", "port": 6817}]},
}
KEY = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "munge", "labels": LABELS}, "data": {"munge.key": "b25l"}}
PASSWORD = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password", "labels": LABELS}, "data": {"password": "b25l"}}
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
STACK = (FILES, SERVICE, KEY, PASSWORD, LOGIN)


@dataclass
class Stack:
    """A small stack in a namespace of its own, deployed as standalone does it."""

    server: ApiServer
    namespace: str

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        return self.server.run_kubectl(*arguments, "--namespace", self.namespace, stdin=stdin, check=check)

    def apply(self, *manifests: Mapping[str, Any], manager: str = "slipway") -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
        self.kubectl("apply", "--server-side", "--force-conflicts", f"--field-manager={manager}", "-f", "-", stdin=text)

    def record(self, *manifests: Mapping[str, Any], manager: str = "slipway") -> None:
        """Writes what was deployed: the last step of a deployment."""
        data = {}
        for manifest in manifests:
            about = {**manifest["metadata"], "namespace": self.namespace}
            entry: dict[str, Any] = {"manifest": {**manifest, "metadata": about}}
            if about["name"] == "munge":
                entry["ignored"] = ["data"]
            data[f"{manifest['kind']}.{about['name']}"] = base64.b64encode(json.dumps(entry).encode()).decode()
        labels = {**LABELS, "app.kubernetes.io/component": "deployed"}
        self.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "deployed", "labels": labels}, "data": data}, manager=manager
        )

    def deploy(self, *manifests: Mapping[str, Any], manager: str = "slipway") -> None:
        self.apply(*manifests, manager=manager)
        self.record(*manifests, manager=manager)

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        found = self.kubectl("get", kind, name, "--ignore-not-found", "--show-managed-fields", "-o", "json")
        return json.loads(found) if found.strip() else None

    def events(self, name: str) -> list[str]:
        found = json.loads(self.kubectl("get", "events.events.k8s.io", "-o", "json"))
        return [f"{each['reason']}: {each['note']}" for each in found["items"] if each["regarding"]["name"] == name]

    @contextlib.asynccontextmanager
    async def guarded(self) -> AsyncGenerator[Guard]:
        """A guard that has looked at everything, until it is killed."""
        config = KubeConfig.from_file(str(self.server.kubeconfig())).get()
        assert config is not None
        api = connect(config)
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


@pytest.fixture
def anyio_backend() -> str:
    """The event loop that the guard runs on."""
    return "asyncio"


@pytest.fixture
def stack(server: ApiServer, request: pytest.FixtureRequest) -> Stack:
    """The small stack, deployed."""
    namespace = re.sub("[^a-z0-9]+", "-", f"guard-{request.node.name.partition('test_')[2]}")[-60:].strip("-")
    server.make_namespace(namespace)
    made = Stack(server, namespace)
    made.deploy(*STACK)
    return made


EDITS = {
    "value-of-a-file": ("configmap", "files", {"data": {"slurm.conf": "ClusterName=mine\n"}}),
    "file-removed": ("configmap", "files", {"data": {"gres.conf": None}}),
    "file-added": ("configmap", "files", {"data": {"acct_gather.conf": "#\n"}}),
    "label-changed": (
        "configmap",
        "files",
        {"metadata": {"labels": {"slipway.dev/cluster": "dev", "extra": "kept"}}, "data": {"gres.conf": "x"}},
    ),
    "selector-of-a-service": ("service", "slurmctld", {"spec": {"selector": {"app": "mine"}}}),
    "selector-of-a-service-grown": ("service", "slurmctld", {"spec": {"selector": {"mine": "too"}}}),
    "replicas": ("deployment", "login", {"spec": {"replicas": 0}}),
    "password": ("secret", "password", {"data": {"password": "dHdv"}}),
}


@pytest.mark.parametrize(("kind", "name", "change"), EDITS.values(), ids=EDITS)
async def test_what_is_edited_is_restored_and_told(stack: Stack, kind: str, name: str, change: dict[str, Any]) -> None:
    before = stack.get(kind, name)
    assert before is not None
    async with stack.guarded():
        stack.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps(change))
        await eventually(lambda: stack.events(name) != [], within_s=10)
    after = stack.get(kind, name)
    assert after is not None
    part = "data" if "data" in before else "spec"
    assert after[part] == before[part]
    (said,) = stack.events(name)
    assert "Restored: restored to what was deployed: " in said
    assert "kubectl-patch" in said or "file-removed" in stack.namespace


@pytest.mark.parametrize(
    ("kind", "name"), [("configmap", "files"), ("service", "slurmctld"), ("deployment", "login"), ("secret", "password")]
)
async def test_what_is_deleted_is_made_again(stack: Stack, kind: str, name: str) -> None:
    async with stack.guarded():
        stack.kubectl("delete", kind, name)
        await eventually(lambda: stack.get(kind, name) is not None, within_s=10)
        await eventually(lambda: stack.events(name) != [], within_s=10)
    assert "made again as it was deployed" in stack.events(name)[0]


async def test_what_changed_while_no_guard_ran_is_restored_when_it_starts(stack: Stack) -> None:
    stack.kubectl("patch", "configmap", "files", "--type=merge", "-p", '{"data": {"slurm.conf": "mine"}}')
    stack.kubectl("delete", "service", "slurmctld")
    async with stack.guarded():
        await eventually(lambda: stack.get("service", "slurmctld") is not None, within_s=10)
        await eventually(lambda: (stack.get("configmap", "files") or {})["data"] == FILES["data"], within_s=10)


async def test_rotated_key_is_left_as_it_is_and_not_made_again(stack: Stack) -> None:
    async with stack.guarded():
        stack.kubectl("patch", "secret", "munge", "--type=merge", "-p", '{"data": {"munge.key": "dHdv"}}')
        stack.kubectl("delete", "service", "slurmctld")  # a deed that shows that the guard has come by
        await eventually(lambda: stack.get("service", "slurmctld") is not None, within_s=10)
        key = stack.get("secret", "munge")
        assert key is not None
        assert key["data"] == {"munge.key": "dHdv"}
        stack.kubectl("delete", "secret", "munge")
        stack.kubectl("delete", "service", "slurmctld")
        await eventually(lambda: stack.get("service", "slurmctld") is not None, within_s=10)
        assert stack.get("secret", "munge") is None


@pytest.mark.parametrize("at", ["configmap/files", "secret/deployed"], ids=["an-object", "the-record"])
async def test_annotation_pauses_it_until_it_is_gone(stack: Stack, at: str) -> None:
    stack.kubectl("annotate", at, "slipway.dev/guard=paused")
    async with stack.guarded() as guard:
        stack.kubectl("patch", "configmap", "files", "--type=merge", "-p", '{"data": {"slurm.conf": "mine"}}')
        await eventually(
            lambda: len(guard.queue) == 0 and guard.informers["ConfigMap"].get((stack.namespace, "files")) is not None, within_s=10
        )
        await guard.look(("ConfigMap", "files"))
        assert (stack.get("configmap", "files") or {})["data"]["slurm.conf"] == "mine"
        stack.kubectl("annotate", at, "slipway.dev/guard-")
        await eventually(lambda: (stack.get("configmap", "files") or {})["data"] == FILES["data"], within_s=10)


async def test_who_changes_it_again_and_again_wins_and_is_told_of(stack: Stack) -> None:
    async with stack.guarded():
        for turn in range(6):
            text = f"turn {turn}"
            stack.kubectl("patch", "configmap", "files", "--type=merge", "-p", json.dumps({"data": {"slurm.conf": text}}))
            if turn < 5:
                await eventually(lambda: (stack.get("configmap", "files") or {})["data"] == FILES["data"], within_s=10)
        await eventually(lambda: any("GuardStopped" in each for each in stack.events("files")), within_s=10)
        assert (stack.get("configmap", "files") or {})["data"]["slurm.conf"] == "turn 5"
        told = next(each for each in stack.events("files") if "GuardStopped" in each)
        assert f"kubectl annotate configmap files slipway.dev/guard- -n {stack.namespace}" in told
        stack.kubectl("annotate", "configmap", "files", "slipway.dev/guard-")
        await eventually(lambda: (stack.get("configmap", "files") or {})["data"] == FILES["data"], within_s=10)


@pytest.mark.parametrize("manager", ["slipway", "pulumi-kubernetes-7f3a9c21"])
async def test_deployment_that_goes_on_is_left_alone_and_then_kept(stack: Stack, manager: str) -> None:
    newer = {**FILES, "data": {"slurm.conf": "ClusterName=newer\n"}}
    if manager != "slipway":
        for kind, name in (("configmap", "files"), ("secret", "deployed")):
            stack.kubectl("delete", kind, name)
        stack.deploy(*STACK, manager=manager)
    async with stack.guarded() as guard:
        await eventually(lambda: len(guard.queue) == 0, within_s=10)
        written = int(time.time())
        await eventually(lambda: time.time() >= written + 1)  # managed fields have whole seconds
        stack.apply(newer, manager=manager)
        await guard.look(("ConfigMap", "files"))
        assert (stack.get("configmap", "files") or {})["data"] == newer["data"]
        stack.record(newer, *STACK[1:], manager=manager)
        stack.kubectl("patch", "configmap", "files", "--type=merge", "-p", '{"data": {"slurm.conf": "mine"}}')
        await eventually(lambda: (stack.get("configmap", "files") or {})["data"] == newer["data"], within_s=10)
        stack.apply({**newer, "data": {"slurm.conf": "ClusterName=newest\n"}}, manager=manager)  # no conflict: the guard is no third party


async def test_object_that_left_the_stack_is_not_made_again(stack: Stack) -> None:
    async with stack.guarded() as guard:
        stack.record(*(each for each in STACK if each is not SERVICE))
        stack.kubectl("delete", "service", "slurmctld")
        stack.kubectl("delete", "configmap", "files")
        await eventually(lambda: stack.get("configmap", "files") is not None, within_s=10)
        await guard.look(("Service", "slurmctld"))
        assert stack.get("service", "slurmctld") is None


async def test_nothing_is_made_again_once_the_record_is_gone(stack: Stack) -> None:
    async with stack.guarded() as guard:
        stack.kubectl("delete", "service", "slurmctld")
        stack.kubectl("delete", "secret", "deployed")
        await eventually(lambda: not guard.record_informer.store.values(), within_s=10)
        await guard.look(("Service", "slurmctld"))
        assert stack.get("service", "slurmctld") is None
