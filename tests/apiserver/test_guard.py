"""The guard against a real API server: what is edited or deleted by hand is restored, and what a deployment does is left alone."""

import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from tests.support.apiserver.server import ApiServer
from tests.support.apiserver.small_stack import (
    EDITS,
    FILES,
    LABELS,
    LOGIN,
    MINE,
    NEWER,
    PROGRAMS,
    SERVICE,
    STACK,
    Stack,
    becomes,
    next_second,
    small_stack,
)
from tests.support.fakes.clock import eventually

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """The event loop that the guard runs on."""
    return "asyncio"


@pytest.fixture
async def stack(server: ApiServer, request: pytest.FixtureRequest) -> AsyncIterator[Stack]:
    """The small stack, deployed by Slipway's engine."""
    async with small_stack(server, request.node.name) as made:
        await made.deploy(*STACK)
        yield made


@pytest.mark.parametrize(("kind", "name", "change", "is_traced"), EDITS.values(), ids=EDITS)
async def test_what_is_edited_is_restored_and_told(stack: Stack, kind: str, name: str, change: Mapping[str, Any], is_traced: bool) -> None:
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


@pytest.mark.parametrize(("kind", "name", "change", "is_traced"), EDITS.values(), ids=EDITS)
async def test_engine_changes_what_was_restored(stack: Stack, kind: str, name: str, change: Mapping[str, Any], is_traced: bool) -> None:
    """Without a conflict: it applies without force."""
    newer_port = {"spec": {"ports": [{"name": "slurmctld", "port": 6900}]}}
    newer_start = {"spec": {**LOGIN["spec"], "strategy": {"type": "RollingUpdate"}}}
    newer = {**NEWER[name], **({"Service": newer_port, "Deployment": newer_start}.get(kind, {}))}

    async def has_only_the_engine() -> bool:
        live = await stack.get(kind, name)
        return live is not None and {each["manager"] for each in live["metadata"]["managedFields"]} - {"kubectl-patch"} == {"slipway"}

    async with stack.guarded():
        await stack.patch(kind, name, change)
        await becomes(lambda: stack.told(name))
        await becomes(has_only_the_engine)
        await stack.apply(newer)
        assert len(await stack.events(name)) == 1, is_traced


@pytest.mark.parametrize(
    ("kind", "name"), [("ConfigMap", "files"), ("Service", "slurmctld"), ("Deployment", "login"), ("Secret", "password")]
)
async def test_what_is_deleted_is_made_again(stack: Stack, kind: str, name: str) -> None:
    async with stack.guarded():
        await stack.delete(kind, name)
        await becomes(lambda: stack.is_there(kind, name))
        await becomes(lambda: stack.told(name))
    assert "made again as it was deployed" in (await stack.events(name))[0]


async def test_programs_are_made_again_from_what_the_guard_has_seen(stack: Stack) -> None:
    async with stack.guarded() as guard:
        await eventually(lambda: len(guard.queue) == 0 and guard.informers["ConfigMap"].get((stack.namespace, "programs")) is not None)
        await guard.look(("ConfigMap", "programs"))
        await stack.delete("ConfigMap", "programs")
        await becomes(lambda: stack.is_there("ConfigMap", "programs"))
    assert await stack.data("ConfigMap", "programs") == PROGRAMS["data"]


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


FIXED, ELASTIC = {"replicas": 3}, {"min": 0, "max": 5}


@pytest.mark.parametrize(
    ("declared", "edit", "after"),
    [
        pytest.param(FIXED, {"replicas": 1}, {"replicas": 1}, id="resized"),
        pytest.param(FIXED, {"replicas": None, **ELASTIC}, FIXED, id="made-elastic"),
        pytest.param(ELASTIC, {"min": None, "max": None, **FIXED}, ELASTIC, id="made-fixed"),
        pytest.param(ELASTIC, {"max": 9}, ELASTIC, id="grown"),
    ],
)
async def test_size_of_a_fixed_set_is_left_and_its_kind_restored(
    stack: Stack, declared: dict[str, Any], edit: dict[str, Any], after: dict[str, Any]
) -> None:
    async def has_its_size() -> bool:
        live = await stack.get("NodeSet", "gpu")
        return live is not None and {key: live["spec"][key] for key in ("replicas", "min", "max") if key in live["spec"]} == after

    template = {"spec": {"containers": [{"name": "slurmd", "image": "slurm:1"}]}}
    spec = {"cluster": "dev", "template": template, "ordinals": 9, **declared}
    nodeset = {"apiVersion": "slipway.dev/v1alpha1", "kind": "NodeSet", "metadata": {"name": "gpu", "labels": LABELS}, "spec": spec}
    await stack.deploy(*STACK, nodeset)
    await stack.patch("NodeSet", "gpu", {"spec": edit})
    async with stack.guarded():
        await stack.delete("Service", "slurmctld")  # a deed that shows that the guard has come by
        await becomes(lambda: stack.is_there("Service", "slurmctld"))
        await becomes(has_its_size)


async def test_unrestorable_object_is_reported_once_and_recreated_when_deleted(stack: Stack) -> None:
    """Kubernetes changes no selector of a Deployment."""

    async def has_its_selector() -> bool:
        live = await stack.get("Deployment", "login")
        return live is not None and live["spec"]["selector"] == LOGIN["spec"]["selector"]

    other = {"app": "mine"}
    template = {**LOGIN["spec"]["template"], "metadata": {"labels": other}}
    await stack.delete("Deployment", "login")
    await stack.apply({**LOGIN, "spec": {**LOGIN["spec"], "selector": {"matchLabels": other}, "template": template}}, manager="kubectl")
    async with stack.guarded() as guard:
        await becomes(lambda: stack.told("login"))
        await eventually(lambda: guard.queue.failures(("Deployment", "login")) > 2)
        (said,) = await stack.events("login")
        assert said.startswith("NotRestored: cannot be restored to what was deployed. ")
        assert "The API server: 422: " in said
        assert f"kubectl delete deployment login -n {stack.namespace}" in said
        await stack.delete("Deployment", "login")
        await becomes(has_its_selector)


async def test_restore_that_did_not_come_about_is_no_fight(stack: Stack) -> None:
    async with stack.guarded(conflicts=6):
        await stack.patch("ConfigMap", "files", MINE)
        await becomes(lambda: stack.told("files"))
        assert await stack.has(FILES["data"])
    assert ["Restored" in each for each in await stack.events("files")] == [True]


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(b'{"manifest": {}}', id="no-object"),
        pytest.param(b"{", id="no-json"),
        pytest.param(b'{"manifest": {"kind": "ConfigMap", "metadata": {"name": "files", "labels": null}}}', id="null-for-labels"),
        pytest.param(b'{"manifest": {"kind": "ConfigMap", "metadata": {"name": "files", "annotations": []}}}', id="list-for-annotations"),
        pytest.param(b'{"manifest": {"kind": "ConfigMap", "metadata": {"name": "files"}, "data": 7}}', id="number-for-data"),
    ],
)
async def test_entry_that_holds_no_object_stops_nothing_but_itself(stack: Stack, entry: bytes) -> None:
    async with stack.guarded():
        garbage = base64.b64encode(entry).decode()
        await stack.patch("Secret", "deployed", {"data": {"ConfigMap.files": garbage}})
        await stack.delete("Service", "slurmctld")
        await becomes(lambda: stack.is_there("Service", "slurmctld"))


async def test_deployment_that_goes_on_is_left_alone_and_then_kept(stack: Stack) -> None:
    newer = {**FILES, "data": {"slurm.conf": "ClusterName=newer\n"}}
    async with stack.guarded() as guard:
        await eventually(lambda: len(guard.queue) == 0)
        await next_second()
        await stack.apply(newer)
        await guard.look(("ConfigMap", "files"))
        assert await stack.has(newer["data"])
        await stack.record(newer, *STACK[1:])
        await stack.patch("ConfigMap", "files", MINE)
        await becomes(lambda: stack.has(newer["data"]))
        await stack.apply({**newer, "data": {"slurm.conf": "ClusterName=newest\n"}})  # no conflict: the guard is no third party


async def test_deployment_that_ends_during_a_look_is_kept(stack: Stack) -> None:
    """The look began with the record of the deployment before: what it would restore is older than the record that is there now."""
    newer = {**FILES, "data": {"slurm.conf": "ClusterName=newer\n"}}
    ends: list[Callable[[], Awaitable[None]]] = []

    async def meanwhile() -> None:
        if ends:
            await ends.pop()()

    async with stack.guarded(meanwhile=meanwhile) as guard:

        def versions() -> set[str]:
            return {each.metadata.resource_version for each in guard.record_informer.store.values()}

        before = versions()

        async def end() -> None:
            await stack.record(newer, *STACK[1:])
            await eventually(lambda: versions() != before)

        await eventually(lambda: len(guard.queue) == 0)
        await next_second()
        ends.append(end)
        await stack.apply(newer)
        await eventually(lambda: not ends and versions() != before)
        await guard.look(("ConfigMap", "files"))
        assert await stack.has(newer["data"])
        assert await stack.events("files") == []


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
