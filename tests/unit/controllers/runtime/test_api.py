import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from lightkube.config.models import User

from controllers.runtime.api import Api, WatchEvent, connect
from controllers.runtime.errors import ApiError, Conflict, Gone, NotFound, Refused, Unreachable, Unreadable
from controllers.runtime.structs import CONFIG_MAPS, KUBE_NODES, PODS, ConfigMap, Resource
from tests.support.fakes.kubernetes import FakeKubernetes
from tests.support.fakes.requests import Failure
from tests.support.patience import patience
from tests.unit.controllers.runtime.examples import config_map, pod

pytestmark = pytest.mark.anyio


class Strict(msgspec.Struct):
    """A kind whose objects may be unfit."""

    metadata: dict[str, Any]
    spec: dict[str, int]


STRICT = Resource("slipway.dev/v1alpha1", "stricts", "Strict", Strict)


async def test_pod_is_read_into_the_fields_that_matter(server: FakeKubernetes, api: Api) -> None:
    stored = server.put(PODS, pod("gpu-0", labels={"a": "b"}, node="machine-3", phase="Running"))
    read = await api.get(PODS, "slurm", "gpu-0")
    assert (read.metadata.key, read.metadata.uid, read.metadata.labels) == (("slurm", "gpu-0"), stored["metadata"]["uid"], {"a": "b"})
    assert (read.spec.node_name, read.status.phase, read.status.pod_ip) == ("machine-3", "Running", "198.18.1.7")
    assert (read.status.conditions[0].type, read.status.conditions[0].status) == ("Ready", "False")
    container = read.status.container_statuses[0]
    assert container.state is not None
    assert container.state.waiting is not None
    assert (container.restart_count, container.state.waiting.reason) == (2, "ErrImagePull")


async def test_pod_without_node_is_nowhere(server: FakeKubernetes, api: Api) -> None:
    server.put(PODS, pod("gpu-0"))
    assert (await api.get(PODS, "slurm", "gpu-0")).spec.node_name is None


async def test_kubernetes_node_is_read(server: FakeKubernetes, api: Api) -> None:
    taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    node = {"metadata": {"name": "m-0"}, "spec": {"unschedulable": True, "taints": [taint]}, "status": {"allocatable": {"cpu": "15500m"}}}
    server.put(KUBE_NODES, node)
    read = await api.get(KUBE_NODES, "", "m-0")
    assert (read.spec.unschedulable, read.spec.taints[0].key, read.status.allocatable) == (True, "nvidia.com/gpu", {"cpu": "15500m"})
    assert server.requests[0].path == "/api/v1/nodes/m-0"


async def test_list_comes_in_parts_of_one_moment(server: FakeKubernetes, api: Api) -> None:
    for number in range(5):
        server.put(PODS, pod(f"gpu-{number}"))
    first = await api.list_page(PODS, limit=2)
    server.remove(PODS, ("slurm", "gpu-3"))
    second = await api.list_page(PODS, limit=2, more=first.more)
    third = await api.list_page(PODS, limit=2, more=second.more)
    names = [item.metadata.name for page in (first, second, third) for item in page.items]
    assert (names, third.more, first.version) == ([f"gpu-{number}" for number in range(5)], "", third.version)


@pytest.mark.parametrize(
    ("labels", "fields", "namespace", "names"),
    [
        pytest.param("", "", "", ["other", "gpu-0", "gpu-1"], id="all"),
        pytest.param("", "", "slurm", ["gpu-0", "gpu-1"], id="namespace"),
        pytest.param("set=a", "", "", ["gpu-0"], id="label is"),
        pytest.param("set!=a", "", "slurm", ["gpu-1"], id="label is not"),
        pytest.param("set", "", "", ["gpu-0", "gpu-1"], id="label is there"),
        pytest.param("!set", "", "", ["other"], id="label is not there"),
        pytest.param("set in (a, b),set notin (b)", "", "", ["gpu-0"], id="sets"),
        pytest.param("", "spec.nodeName=m-1", "", ["gpu-1"], id="field"),
    ],
)
async def test_list_is_selected(server: FakeKubernetes, api: Api, labels: str, fields: str, namespace: str, names: list[str]) -> None:
    server.put(PODS, pod("gpu-0", labels={"set": "a"}))
    server.put(PODS, pod("gpu-1", labels={"set": "b"}, node="m-1"))
    server.put(PODS, pod("other", namespace="default"))
    page = await api.list_page(PODS, namespace=namespace, labels=labels, fields=fields)
    assert [item.metadata.name for item in page.items] == names


async def test_empty_list_may_be_null(api: Api) -> None:
    assert (await api.list_page(PODS)).items == []


async def test_unfit_object_does_not_hide_the_others(server: FakeKubernetes, api: Api) -> None:
    for name, value in (("a", 1), ("b", "one"), ("c", 3)):
        server.put(STRICT, {"metadata": {"name": name, "namespace": "n"}, "spec": {"value": value}})
    page = await api.list_page(STRICT)
    assert [item.metadata["name"] for item in page.items] == ["a", "c"]
    assert list(page.unreadable) == [("n", "b")]
    with pytest.raises(Unreadable, match=r"spec"):
        await api.get(STRICT, "n", "b")


async def test_old_continue_token_is_gone(server: FakeKubernetes, api: Api) -> None:
    for number in range(3):
        server.put(PODS, pod(f"gpu-{number}"))
    page = await api.list_page(PODS, limit=1)
    server.expire()
    with pytest.raises(Gone):
        await api.list_page(PODS, limit=1, more=page.more)


async def test_object_is_made_once(server: FakeKubernetes, api: Api) -> None:
    made = await api.create(CONFIG_MAPS, config_map("places", {"0": "m-0"}), field_manager="slipway")
    assert made.data == {"0": "m-0"}
    with pytest.raises(Conflict) as caught:
        await api.create(CONFIG_MAPS, config_map("places", {}), field_manager="slipway")
    assert (caught.value.status, caught.value.reason) == (409, "AlreadyExists")
    assert server.requests[0].query == {"fieldManager": "slipway"}


async def test_apply_makes_changes_and_removes_its_own_fields_only(server: FakeKubernetes, api: Api) -> None:
    def apply(data: dict[str, str]) -> Awaitable[ConfigMap]:
        manifest = {"metadata": {"name": "places", "namespace": "slurm"}, "data": data}
        return api.apply(CONFIG_MAPS, manifest, field_manager="slipway")

    await apply({"0": "m-0", "1": "m-1"})
    server.patch(CONFIG_MAPS, ("slurm", "places"), {"data": {"note": "a person's"}})
    changed = await apply({"0": "m-9"})
    assert changed.data == {"0": "m-9", "note": "a person's"}
    assert (await apply({"0": "m-9"})).metadata.resource_version == changed.metadata.resource_version
    assert server.requests[0].content()["kind"] == "ConfigMap"


async def test_apply_without_force_leaves_others_fields(server: FakeKubernetes, api: Api) -> None:
    manifest = config_map("places", {"0": "theirs"})
    await api.apply(CONFIG_MAPS, manifest, field_manager="other")
    mine = config_map("places", {"0": "mine"})
    with pytest.raises(Conflict, match=r"data\.0 of other"):
        await api.apply(CONFIG_MAPS, mine, field_manager="slipway", force=False)
    assert (await api.apply(CONFIG_MAPS, mine, field_manager="slipway")).data == {"0": "mine"}


async def test_patch_of_the_status_changes_nothing_else(server: FakeKubernetes, api: Api) -> None:
    before = server.put(PODS, pod("gpu-0"))
    change = {"status": {"phase": "Running"}, "metadata": {"labels": {"a": "b"}}}
    after = await api.patch(PODS, "slurm", "gpu-0", change, subresource="status", field_manager="slipway")
    assert (after.status.phase, after.status.pod_ip, after.metadata.labels) == ("Running", "198.18.1.7", {})
    spec = await api.patch(PODS, "slurm", "gpu-0", {"spec": {"nodeName": "m"}, "status": None}, field_manager="slipway")
    assert (spec.spec.node_name, spec.status.phase) == ("m", "Running")
    assert spec.metadata.generation == before["metadata"]["generation"] + 1


async def test_patch_of_an_object_that_has_changed_is_a_conflict(server: FakeKubernetes, api: Api) -> None:
    old = server.put(PODS, pod("gpu-0"))["metadata"]["resourceVersion"]
    server.patch(PODS, ("slurm", "gpu-0"), {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(Conflict):
        await api.patch(PODS, "slurm", "gpu-0", {"metadata": {"resourceVersion": old}, "spec": {}}, field_manager="slipway")


async def test_deletion_spares_the_successor(server: FakeKubernetes, api: Api) -> None:
    old = server.put(PODS, pod("gpu-0"))["metadata"]
    server.remove(PODS, ("slurm", "gpu-0"))
    server.put(PODS, pod("gpu-0"))
    with pytest.raises(Conflict):
        await api.delete(PODS, "slurm", "gpu-0", uid=old["uid"])
    with pytest.raises(Conflict):
        await api.delete(PODS, "slurm", "gpu-0", version=old["resourceVersion"])
    uid = server.get(PODS, ("slurm", "gpu-0"))["metadata"]["uid"]
    await api.delete(PODS, "slurm", "gpu-0", uid=uid)
    with pytest.raises(NotFound):
        await api.delete(PODS, "slurm", "gpu-0", uid=uid)


async def test_running_pod_stops_before_it_is_gone(server: FakeKubernetes, api: Api) -> None:
    server.put(PODS, pod("gpu-0", node="m-0"))
    await api.delete(PODS, "slurm", "gpu-0")
    assert (await api.get(PODS, "slurm", "gpu-0")).metadata.deletion_timestamp is not None
    await api.delete(PODS, "slurm", "gpu-0", grace_s=0)
    assert server.keys(PODS) == set()


async def test_object_with_a_finalizer_goes_when_that_is_gone(server: FakeKubernetes, api: Api) -> None:
    held = config_map("places", {})
    held["metadata"]["finalizers"] = ["slipway.dev/drain"]
    server.put(CONFIG_MAPS, held)
    await api.delete(CONFIG_MAPS, "slurm", "places")
    kept = await api.get(CONFIG_MAPS, "slurm", "places")
    assert kept.metadata.deletion_timestamp is not None
    assert kept.metadata.finalizers == ("slipway.dev/drain",)
    await api.patch(CONFIG_MAPS, "slurm", "places", {"metadata": {"finalizers": None}}, field_manager="slipway")
    assert server.keys(CONFIG_MAPS) == set()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        pytest.param(400, Refused, id="bad request"),
        pytest.param(403, Refused, id="forbidden"),
        pytest.param(404, NotFound, id="not found"),
        pytest.param(409, Conflict, id="conflict"),
        pytest.param(410, Gone, id="gone"),
        pytest.param(422, Refused, id="invalid"),
        pytest.param(429, Refused, id="too many"),
        pytest.param(500, Refused, id="broken"),
        pytest.param(503, Refused, id="unavailable"),
    ],
)
async def test_answer_is_a_typed_error(server: FakeKubernetes, api: Api, status: int, error: type[ApiError]) -> None:
    server.fail(Failure("status", status, reason="Because", message="of this", retry_after_s=7))
    with pytest.raises(error) as caught:
        await api.get(PODS, "slurm", "gpu-0")
    assert (caught.value.status, caught.value.reason, caught.value.retry_after_s) == (status, "Because", 7)
    assert caught.value.message == f"{status}: of this"


Call = Callable[[Api], Awaitable[object]]
CALLS: dict[str, Call] = {
    "get": lambda api: api.get(PODS, "n", "a", deadline_s=0.1),
    "list": lambda api: api.list_page(PODS, deadline_s=0.1),
    "create": lambda api: api.create(CONFIG_MAPS, config_map("a", {}), field_manager="s", deadline_s=0.1),
    "apply": lambda api: api.apply(CONFIG_MAPS, config_map("a", {}), field_manager="s", deadline_s=0.1),
    "patch": lambda api: api.patch(PODS, "n", "a", {}, field_manager="s", deadline_s=0.1),
    "delete": lambda api: api.delete(PODS, "n", "a", deadline_s=0.1),
}


@pytest.mark.parametrize("what", ["hang", "cut"])
@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in CALLS.items()])
async def test_no_answer_is_unreachable_within_the_deadline(server: FakeKubernetes, api: Api, call: Call, what: Any) -> None:
    server.fail(Failure(what))
    async with asyncio.timeout(5 * patience()):
        with pytest.raises(Unreachable):
            await call(api)


async def test_slow_answer_is_no_answer_and_the_next_call_works(server: FakeKubernetes, api: Api) -> None:
    server.put(PODS, pod("gpu-0"))
    server.fail(Failure("slow", seconds=0.5))
    with pytest.raises(Unreachable, match="deadline"):
        await api.get(PODS, "slurm", "gpu-0", deadline_s=0.05)
    assert (await api.get(PODS, "slurm", "gpu-0")).metadata.name == "gpu-0"


async def test_server_that_takes_no_connections_is_unreachable(server: FakeKubernetes, api: Api) -> None:
    await server.refuse()
    with pytest.raises(Unreachable):
        await api.get(PODS, "slurm", "gpu-0")
    await server.accept()
    with pytest.raises(NotFound):
        await api.get(PODS, "slurm", "gpu-0")


async def test_write_without_an_answer_may_have_happened(server: FakeKubernetes, api: Api) -> None:
    server.fail(Failure("cut_after", verb="create"))
    with pytest.raises(Unreachable):
        await api.create(CONFIG_MAPS, config_map("places", {}), field_manager="slipway")
    assert server.keys(CONFIG_MAPS) == {("slurm", "places")}


async def test_watch_gives_lines_from_a_version_on(server: FakeKubernetes, api: Api) -> None:
    server.put(PODS, pod("before"))
    version = str(server.objects.version)
    server.put(PODS, pod("gpu-0"))
    server.remove(PODS, ("slurm", "gpu-0"))
    seen: list[WatchEvent] = []
    async with aclosing(api.watch(PODS, version, silence_s=5 * patience(), last_s=60)) as batches:
        async for batch in batches:
            seen += [msgspec.json.decode(line, type=WatchEvent) for line in batch]
            if len(seen) == 2:
                server.end_watches()
    assert [event.type for event in seen] == ["ADDED", "DELETED"]
    query = server.requests[-1].query
    assert (query["allowWatchBookmarks"], query["timeoutSeconds"], query["resourceVersion"]) == ("true", "60", version)


async def test_silent_watch_is_broken_off(server: FakeKubernetes, api: Api) -> None:
    async with aclosing(api.watch(PODS, "1", silence_s=0.05 * patience(), last_s=60)) as batches:
        assert await anext(batches) == []
        with pytest.raises(Unreachable, match="silent"):
            await anext(batches)


async def test_rotated_token_is_read_again(server: FakeKubernetes, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    server.token = "one"
    api = connect(server.config(User(token_file=str(file))))
    await api.list_page(PODS)
    server.token = "two"
    with pytest.raises(Refused, match="401"):
        await api.list_page(PODS)
    file.write_text("two")
    await api.list_page(PODS)
    file.unlink()
    server.token = "three"
    with pytest.raises(Unreachable, match="token"):
        await api.list_page(PODS)
    await api.close()
