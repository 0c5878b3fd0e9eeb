"""A small stack on a real API server, deployed as Slipway's engine does it or as the Pulumi provider does, with a guard beside it."""

import asyncio
import contextlib
import hashlib
import json
import re
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
from lightkube.config.kubeconfig import KubeConfig

from controllers.guard.guard import Guard, Pace
from controllers.guard.record import KINDS
from controllers.runtime.api import connect
from controllers.runtime.clock import SYSTEM
from controllers.runtime.errors import Conflict
from names import annotations, writers
from tests.support.apiserver.server import ApiServer
from tests.support.controllers.guard.examples import entry
from tests.support.fakes.clock import eventually
from tests.support.patience import patience

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
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": {"app": "login"}},
        "template": {
            "metadata": {"labels": {"app": "login"}},
            "spec": {
                "containers": [{"name": "sshd", "image": "slurm:1", "resources": {"requests": {"cpu": "0.1"}}}],
                "volumes": [{"name": "conf", "configMap": {"name": "files"}}],
            },
        },
    },
}
PROGRAMS: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "programs", "labels": LABELS},
    "data": {"run.py": "print()\n"},
    "immutable": True,
}
NEWER: Mapping[str, Mapping[str, Any]] = {
    "files": {**FILES, "metadata": {**FILES["metadata"], "labels": {"slipway.dev/cluster": "newer"}}, "data": {"slurm.conf": "newer"}},
    "slurmctld": {**SERVICE, "spec": {**SERVICE["spec"], "selector": {"app": "newer"}}},
    "password": {**PASSWORD, "data": {"password": "bmV3ZXI="}},
    "login": {**LOGIN, "spec": {**LOGIN["spec"], "replicas": 3}},
}
MINE: Mapping[str, Any] = {"data": {"slurm.conf": "mine"}}
STACK: tuple[Mapping[str, Any], ...] = (FILES, SERVICE, KEY, PASSWORD, LOGIN, PROGRAMS)


LABELLED = {"metadata": {"labels": {"slipway.dev/cluster": "dev", "extra": "kept"}}, "data": {"gres.conf": "x"}}
OTHER_VOLUME: Mapping[str, Any] = {"spec": {"template": {"spec": {"volumes": [{"name": "conf", "emptyDir": {}}]}}}}
EDITS: dict[str, tuple[str, str, Mapping[str, Any], bool]] = {
    "value-of-a-file": ("ConfigMap", "files", {"data": {"slurm.conf": "ClusterName=mine\n"}}, True),
    "file-removed": ("ConfigMap", "files", {"data": {"gres.conf": None}}, False),
    "file-added": ("ConfigMap", "files", {"data": {"acct_gather.conf": "#\n"}}, True),
    "label-changed": ("ConfigMap", "files", LABELLED, True),
    "selector-of-a-service": ("Service", "slurmctld", {"spec": {"selector": {"app": "mine"}}}, True),
    "selector-of-a-service-grown": ("Service", "slurmctld", {"spec": {"selector": {"mine": "too"}}}, True),
    "port-of-a-service": ("Service", "slurmctld", {"spec": {"ports": [{"name": "slurmctld", "port": 6999}]}}, True),
    "strategy-with-settings": ("Deployment", "login", {"spec": {"strategy": {"type": "RollingUpdate"}}}, True),
    "volume-of-another-kind": ("Deployment", "login", OTHER_VOLUME, True),
    "replicas": ("Deployment", "login", {"spec": {"replicas": 0}}, True),
    "password": ("Secret", "password", {"data": {"password": "dHdv"}}, True),
}


EVENTS = "/apis/events.k8s.io/v1/namespaces/{}/events"
MERGE = "application/merge-patch+json"


@dataclass
class Stack:
    """A small stack in a namespace of its own, deployed as our engine does it. Nothing here holds up the loop that the guard runs on."""

    server: ApiServer
    client: httpx2.AsyncClient
    namespace: str

    async def apply(self, *manifests: Mapping[str, Any], manager: str = "slipway", **more: str) -> None:
        """Server-side apply without force: a conflict is a mistake."""
        headers = {"Content-Type": "application/apply-patch+yaml"}
        for manifest in manifests:
            path = self.path(manifest["kind"], manifest["metadata"]["name"])
            asked = {"fieldManager": manager, **more}
            answer = await self.client.patch(path, params=asked, headers=headers, content=json.dumps(manifest))
            assert answer.is_success, answer.text

    def recorded(self, *manifests: Mapping[str, Any]) -> dict[str, Any]:
        """The record of what was deployed."""
        data = {}
        for manifest in manifests:
            about = {**manifest["metadata"], "namespace": self.namespace}
            ignored = ("data",) if about["name"] in ("munge", "programs") else ()
            declared = {key: value for key, value in {**manifest, "metadata": about}.items() if key not in ignored}
            data[f"{manifest['kind']}.{about['name']}"] = entry(declared, *ignored)
        about = {"name": "deployed", "labels": {**LABELS, "app.kubernetes.io/component": "deployed"}}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": data}

    async def record(self, *manifests: Mapping[str, Any]) -> None:
        """Writes what was deployed: the last step of a deployment."""
        await self.apply(self.recorded(*manifests))

    async def deploy(self, *manifests: Mapping[str, Any]) -> None:
        await self.apply(*manifests)
        await self.record(*manifests)

    async def get(self, kind: str, name: str) -> dict[str, Any] | None:
        answer = await self.client.get(self.path(kind, name))
        return answer.json() if answer.is_success else None

    async def data(self, kind: str, name: str) -> dict[str, str]:
        return (await self.get(kind, name) or {}).get("data", {})

    async def patch(self, kind: str, name: str, change: Mapping[str, Any], manager: str = "kubectl-patch", part: str = "") -> None:
        """As `kubectl patch --type=merge`."""
        path, headers = self.path(kind, name) + part, {"Content-Type": MERGE}
        answer = await self.client.patch(path, params={"fieldManager": manager}, headers=headers, content=json.dumps(change))
        assert answer.is_success, answer.text

    async def annotate(self, kind: str, name: str, value: str | None) -> None:
        await self.patch(kind, name, {"metadata": {"annotations": {annotations.GUARD: value}}}, "kubectl-annotate")

    async def delete(self, kind: str, name: str) -> None:
        answer = await self.client.delete(self.path(kind, name))
        assert answer.is_success, answer.text

    async def events(self, name: str) -> list[str]:
        """What the guard has told of an object. The API server tells of Services, too, when it repairs its table of addresses."""
        found = (await self.client.get(EVENTS.format(self.namespace))).json()
        told = [
            each for each in found["items"] if each["regarding"]["name"] == name and each["reportingController"] == writers.GUARD_REPORTS
        ]
        return [f"{each['reason']}: {each['note']}" for each in told]

    async def told(self, name: str) -> bool:
        return await self.events(name) != []

    async def is_there(self, kind: str, name: str) -> bool:
        return await self.get(kind, name) is not None

    async def has(self, files: Mapping[str, str]) -> bool:
        """Whether the ConfigMap holds these files."""
        return await self.data("ConfigMap", "files") == files

    def path(self, kind: str, name: str = "") -> str:
        return KINDS[kind].path(self.namespace, name)

    @contextlib.asynccontextmanager
    async def guarded(self, conflicts: int = 0, meanwhile: Callable[[], Awaitable[None]] | None = None) -> AsyncGenerator[Guard]:
        """Runs a guard that has synced, and kills it at the end. Its first `conflicts` restores fail with 409; `meanwhile` runs after each
        dry run."""
        config = KubeConfig.from_file(str(self.server.kubeconfig())).get()
        assert config is not None
        api = connect(config)
        for verb in ("apply", "patch"):
            setattr(api, verb, contended(getattr(api, verb), conflicts, meanwhile))
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


def contended(
    apply: Callable[..., Awaitable[Any]], conflicts: int, meanwhile: Callable[[], Awaitable[None]] | None
) -> Callable[..., Awaitable[Any]]:
    """An apply that fails with 409 the first `conflicts` times, as during a rollout; `meanwhile` runs after each dry run."""
    left = [None] * conflicts

    async def call(*args: Any, **more: Any) -> Any:
        if left and not more.get("dry_run"):
            left.pop()
            raise Conflict("the object has been modified", 409, "Conflict")
        answer = await apply(*args, **more)
        if meanwhile is not None and more.get("dry_run"):
            await meanwhile()
        return answer

    return call


async def becomes(holds: Callable[[], Awaitable[bool]], within_s: float = 10) -> None:
    """Waits until the condition holds. Raises AssertionError after `within_s`, scaled by the machine's pace."""
    began = time.monotonic()
    while not await holds():
        assert time.monotonic() - began < within_s * patience(), f"did not come to hold within {time.monotonic() - began:.0f} s"
        await asyncio.sleep(0.02)


async def next_second() -> None:
    """Managed fields have whole seconds: what is written next is written later."""
    written = int(time.time())
    await eventually(lambda: time.time() >= written + 1)


@contextlib.asynccontextmanager
async def small_stack(server: ApiServer, test: str) -> AsyncGenerator[Stack]:
    """A namespace of a test's own, with nothing deployed yet."""
    namespace = re.sub("[^a-z0-9]+", "-", f"guard-{test.partition('test_')[2]}")[-60:].strip("-")
    server.make_namespace(namespace)
    headers, trusted = {"Authorization": "Bearer admin"}, ssl.create_default_context(cafile=str(server.certificates))
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, verify=trusted, timeout=30 * patience()) as client:
        yield Stack(server, client, namespace)


_TAKEN_OVER = (
    *(("kubectl", "Apply"), ("kubectl", "Update"), ("before-first-apply", "Update")),
    *(("pulumi-kubernetes", "Update"), ("pulumi-resource-kubernetes", "Update")),
)
"""What the provider takes over before it applies: names that begin so."""


@dataclass
class Provider:
    """Writes objects as the Pulumi provider 4.34 does: a new one by POST, a change by server-side apply without force.

    Source: pulumi-kubernetes, provider/pkg/await/await.go (fixCSAFieldManagers, patchForce) and fluxssa/patch.go. That it makes objects
    by POST under the plain name was measured.
    """

    stack: Stack

    async def create(self, *manifests: Mapping[str, Any]) -> None:
        for manifest in manifests:
            path, asked = self.stack.path(manifest["kind"]), {"fieldManager": "pulumi-kubernetes"}
            answer = await self.stack.client.post(path, params=asked, json=dict(manifest))
            assert answer.is_success, answer.text

    async def preview(self, manifest: Mapping[str, Any]) -> None:
        """A dry run, forced where the provider has made the object and not changed it since."""
        made = ("pulumi-kubernetes", "Update")
        forced = any((each["manager"], each["operation"]) == made for each in await self.managers(manifest))
        await self.stack.apply(manifest, manager=_applier(manifest), force=str(forced).lower(), dryRun="All")

    async def update(self, manifest: Mapping[str, Any]) -> None:
        """Raises AssertionError for a conflict."""
        kind, name, manager = manifest["kind"], manifest["metadata"]["name"], _applier(manifest)
        entries = await self.managers(manifest)
        own = next((each for each in entries if (each["manager"], each["operation"]) == (manager, "Apply")), None)
        taken = [each for each in entries if each is not own and _is_taken_over(each)]
        if taken:
            heir = own or {**taken[0], "manager": manager, "operation": "Apply"}
            heir["fieldsV1"] = _fields({path for each in [heir, *taken] for path in _paths(each["fieldsV1"])})
            change = [
                {
                    "op": "replace",
                    "path": "/metadata/managedFields",
                    "value": [e for e in entries if e not in taken and e is not own] + [heir],
                }
            ]
            headers = {"Content-Type": "application/json-patch+json"}
            answer = await self.stack.client.patch(self.stack.path(kind, name), headers=headers, content=json.dumps(change))
            assert answer.is_success, answer.text
        await self.stack.apply(manifest, manager=manager)

    async def up(self, *manifests: Mapping[str, Any]) -> None:
        """A preview of all changes, then the changes, and last the record."""
        for manifest in manifests:
            await self.preview(manifest)
        for manifest in manifests:
            await self.update(manifest)
        await self.update(self.stack.recorded(*manifests))

    async def managers(self, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
        live = await self.stack.get(manifest["kind"], manifest["metadata"]["name"])
        assert live is not None
        return live["metadata"]["managedFields"]


def _applier(manifest: Mapping[str, Any]) -> str:
    urn = f"{manifest['kind']} {manifest['metadata']['name']}"
    return f"pulumi-kubernetes-{hashlib.sha256(urn.encode()).hexdigest()[:8]}"


def _is_taken_over(entry: Mapping[str, Any]) -> bool:
    return not entry.get("subresource") and any(
        entry["manager"].startswith(name) and entry["operation"] == operation for name, operation in _TAKEN_OVER
    )


def _paths(fields: Mapping[str, Any], at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The members of a set of fields (FieldsV1)."""
    found: list[tuple[str, ...]] = []
    for key, below in fields.items():
        path = at if key == "." else (*at, key)
        found += _paths(below, path) if below else [path]
    return found


def _fields(paths: set[tuple[str, ...]]) -> dict[str, Any]:
    """The set of fields that has these members."""
    made: dict[str, Any] = {}
    for path in sorted(paths, key=len, reverse=True):  # what is below a member comes before it
        place = made
        for key in path:
            place = place.setdefault(key, {})
        if place:
            place["."] = {}
    return made
