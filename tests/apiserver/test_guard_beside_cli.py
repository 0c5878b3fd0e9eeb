"""The guard beside the Pulumi CLI, against a real API server: the CLI can change what the guard has restored, without a conflict."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from tests.support.apiserver.server import ApiServer
from tests.support.apiserver.small_stack import (
    EDITS,
    FILES,
    MINE,
    NEWER,
    STACK,
    Provider,
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
    """The small stack as the CLI's first `up` leaves it: no object was applied yet."""
    async with small_stack(server, request.node.name) as made:
        await Provider(made).create(*STACK, made.recorded(*STACK))
        yield made


def newer(name: str) -> list[Mapping[str, Any]]:
    """The stack with one changed object."""
    return [NEWER[name] if each["metadata"]["name"] == name else each for each in STACK]


async def keepers(stack: Stack, name: str) -> set[tuple[str, str]]:
    """Who has fields of an object, and by which operation."""
    kind = next(each["kind"] for each in STACK if each["metadata"]["name"] == name)
    live = await stack.get(kind, name)
    return {(each["manager"], each["operation"]) for each in (live or {"metadata": {}})["metadata"].get("managedFields", [])}


async def is_newer(stack: Stack, name: str) -> bool:
    manifest = NEWER[name]
    live = await stack.get(manifest["kind"], name)
    assert live is not None
    part = "data" if "data" in manifest else "spec"
    return all(
        live[part][key] == value for key, value in manifest[part].items() if key in ("slurm.conf", "password", "selector", "replicas")
    )


@pytest.mark.parametrize(("kind", "name", "change", "is_traced"), EDITS.values(), ids=EDITS)
async def test_cli_changes_what_was_edited_and_restored(
    stack: Stack, kind: str, name: str, change: Mapping[str, Any], is_traced: bool
) -> None:
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
        assert "pulumi-kubernetes" not in said
        assert "kubectl-patch" in said or not is_traced
        await next_second()
        await Provider(stack).up(*newer(name))
        await becomes(lambda: is_newer(stack, name))


async def test_event_of_a_scale_accuses_nobody(stack: Stack) -> None:
    """Measured: the API server then has no owner of `replicas` at all."""
    await stack.patch("Deployment", "login", {"metadata": {"annotations": {"note": "x"}}}, "kubectl-annotate")
    await next_second()
    await Provider(stack).up(*STACK)
    async with stack.guarded():
        await stack.patch("Deployment", "login", {"spec": {"replicas": 0}}, "kubectl", "/scale")
        await becomes(lambda: stack.told("login"))
        (said,) = await stack.events("login")
        assert "spec.replicas, changed by " in said
        assert "pulumi-kubernetes" not in said
        assert "annotate" not in said
        await next_second()
        await Provider(stack).up(*newer("login"))


@pytest.mark.parametrize("name", NEWER)
async def test_cli_changes_what_was_deleted_and_made_again(stack: Stack, name: str) -> None:
    kind = NEWER[name]["kind"]
    async with stack.guarded():
        await stack.delete(kind, name)
        await becomes(lambda: stack.told(name))
        assert await keepers(stack, name) == {("pulumi-kubernetes", "Update")}
        await next_second()
        await Provider(stack).up(*newer(name))
        await becomes(lambda: is_newer(stack, name))


@pytest.mark.parametrize("is_applied", [False, True], ids=["made", "applied"])
async def test_deployment_that_goes_on_is_left_alone_and_then_kept(stack: Stack, is_applied: bool) -> None:
    provider = Provider(stack)
    if is_applied:
        await provider.up(*STACK)
    async with stack.guarded() as guard:
        await eventually(lambda: len(guard.queue) == 0)
        await next_second()
        await provider.update(NEWER["files"])
        await guard.look(("ConfigMap", "files"))
        assert await stack.has(NEWER["files"]["data"])
        await provider.update(stack.recorded(*newer("files")))
        await stack.patch("ConfigMap", "files", MINE)
        await becomes(lambda: stack.has(NEWER["files"]["data"]))
        await next_second()
        await provider.up(*STACK)
        await becomes(lambda: stack.has(FILES["data"]))


async def test_restore_meets_conflicts_and_is_told_once(stack: Stack) -> None:
    async with stack.guarded(conflicts=3):
        await stack.patch("ConfigMap", "files", MINE)
        await becomes(lambda: stack.told("files"))
        assert await stack.has(FILES["data"])
    assert ["Restored" in each for each in await stack.events("files")] == [True]


OLD_GUARDS: dict[str, tuple[bool, bool]] = {
    "restored-what-was-made": (False, False),
    "restored-what-was-applied": (True, False),
    "made-again": (False, True),
}


@pytest.mark.parametrize(("is_applied", "is_deleted"), OLD_GUARDS.values(), ids=OLD_GUARDS)
async def test_cli_changes_what_an_older_guard_has_restored(stack: Stack, is_applied: bool, is_deleted: bool) -> None:
    """An older guard applied as Slipway's engine whatever the CLI had made."""
    provider = Provider(stack)
    if is_applied:
        await provider.up(*STACK)
    for manifest in STACK:
        if is_deleted:
            await stack.delete(manifest["kind"], manifest["metadata"]["name"])
        await stack.apply(manifest, force="true")
    with pytest.raises(AssertionError, match=r'conflict with \\"slipway\\"'):
        await provider.update(NEWER["files"])
    async with stack.guarded():
        for manifest in STACK:
            name = manifest["metadata"]["name"]
            await becomes(lambda name=name: _is_mended(stack, name))
            assert await stack.events(name) == []
        await next_second()
        await provider.up(*(NEWER.get(each["metadata"]["name"], each) for each in STACK))
        for name in NEWER:
            await becomes(lambda name=name: is_newer(stack, name))


async def _is_mended(stack: Stack, name: str) -> bool:
    return ("slipway", "Apply") not in await keepers(stack, name)


async def test_engine_that_takes_the_stack_over_keeps_its_fields(stack: Stack) -> None:
    labelled = {**NEWER["files"]["metadata"], "labels": {**FILES["metadata"]["labels"], "applyset.kubernetes.io/part-of": "set"}}
    await next_second()
    async with stack.guarded() as guard:
        await eventually(lambda: len(guard.queue) == 0)
        await stack.apply({**NEWER["files"], "metadata": labelled}, force="true")
        await guard.look(("ConfigMap", "files"))
        assert await stack.has({**FILES["data"], **NEWER["files"]["data"]})
        assert ("slipway", "Apply") in await keepers(stack, "files")
