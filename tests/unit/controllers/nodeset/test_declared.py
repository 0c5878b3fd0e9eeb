"""Sets that the pulumi CLI declares no more: drained and deleted here, while the list of declared sets waits for the last of them."""

from typing import Any

import pytest

from controllers.nodeset.declared import DeclaredSets, plan_declared
from controllers.nodeset.structs import NODESETS, NodeSetObject, NodeSetSpec, PodTemplate
from controllers.runtime.clock import SYSTEM
from controllers.runtime.structs import CONFIG_MAPS, ConfigMap, ObjectMeta
from controllers.runtime.writer import Writer
from names import annotations, finalizers
from tests.support.controllers.nodeset.memory_cluster import KEY, Cluster

LIST = ("slurm", "dev-node-sets")


def declared(*names: str, deleting: bool = False, finalizers: tuple[str, ...] = (finalizers.NODE_SETS,)) -> ConfigMap:
    meta = ObjectMeta(name=LIST[1], namespace="slurm", deletion_timestamp="now" if deleting else None, finalizers=finalizers)
    return ConfigMap(meta, dict.fromkeys(names, ""))


def nodeset(name: str = "gpu", listed_in: str | None = LIST[1], deleting: bool = False) -> NodeSetObject:
    about = {annotations.DECLARED_IN: listed_in} if listed_in else {}
    meta = ObjectMeta(name=name, namespace="slurm", annotations=about, deletion_timestamp="now" if deleting else None)
    return NodeSetObject(meta, NodeSetSpec(cluster="dev", template=PodTemplate({})))


@pytest.mark.parametrize(
    ("one", "found", "is_deleted"),
    [
        pytest.param(nodeset(), declared("gpu", "cpu"), False, id="declared"),
        pytest.param(nodeset(), declared("cpu"), True, id="declared-no-more"),
        pytest.param(nodeset(), declared("gpu", deleting=True), True, id="everything-goes"),
        pytest.param(nodeset(), None, False, id="no-list-says-nothing"),
        pytest.param(nodeset(listed_in=None), declared("cpu"), False, id="not-the-clis"),
        pytest.param(nodeset(listed_in="other"), declared("cpu"), False, id="of-another-list"),
        pytest.param(nodeset(deleting=True), declared("cpu"), False, id="on-its-way-out"),
    ],
)
def test_set_is_deleted_exactly_when_its_list_leaves_it_out(one: NodeSetObject, found: ConfigMap | None, is_deleted: bool) -> None:
    decided = plan_declared([one], {LIST: found} if found else {})
    assert decided.delete == ((one,) if is_deleted else ())


@pytest.mark.parametrize(
    ("sets", "found", "is_released"),
    [
        pytest.param([nodeset(deleting=True)], declared(deleting=True), False, id="a-set-still-drains"),
        pytest.param([], declared(deleting=True), True, id="all-sets-are-gone"),
        pytest.param([nodeset(listed_in=None)], declared(deleting=True), True, id="a-set-of-somebody-else"),
        pytest.param([], declared(), False, id="not-being-deleted"),
        pytest.param([], declared(deleting=True, finalizers=("other",)), False, id="not-held-by-us"),
    ],
)
def test_list_goes_when_no_set_names_it(sets: list[NodeSetObject], found: ConfigMap, is_released: bool) -> None:
    assert plan_declared(sets, {LIST: found}).release == ((found,) if is_released else ())


def put_list(cluster: Cluster, *names: str) -> None:
    meta: dict[str, Any] = {"namespace": "slurm", "name": LIST[1], "finalizers": [finalizers.NODE_SETS]}
    cluster.server.put(CONFIG_MAPS, {"metadata": meta, "data": dict.fromkeys(names, "")})


def look(cluster: Cluster) -> DeclaredSets:
    process = cluster.process
    return DeclaredSets(process.nodesets, process.pins, process.api, Writer(process.api, rate_per_s=10_000, burst=10_000), SYSTEM)


@pytest.mark.anyio
async def test_removed_busy_set_drains_and_holds_the_list_until_its_job_ends(cluster: Cluster) -> None:
    put_list(cluster, "gpu")
    cluster.declare(replicas=1)
    cluster.server.patch(NODESETS, KEY, {"metadata": {"annotations": {annotations.DECLARED_IN: LIST[1]}}})
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    await look(cluster).look()
    assert "deletionTimestamp" not in cluster.server.get(NODESETS, KEY)["metadata"]
    cluster.server.objects.delete(cluster.server.objects.kind("v1", "configmaps"), LIST)
    for _ in range(4):
        await cluster.rounds(1)
        await look(cluster).look()
    assert cluster.server.get(NODESETS, KEY)["metadata"]["deletionTimestamp"]
    assert cluster.pods(), "its job runs"
    assert LIST in cluster.server.keys(CONFIG_MAPS)
    cluster.slurm.end_job("gpu-0")
    for _ in range(6):
        await cluster.rounds(1)
        await cluster.process.caught_up()
        await look(cluster).look()
    assert KEY not in cluster.server.keys(NODESETS)
    assert LIST not in cluster.server.keys(CONFIG_MAPS)
    assert cluster.ended_with_a_job == []


@pytest.mark.anyio
async def test_new_set_is_not_deleted_on_old_news_of_its_list(cluster: Cluster) -> None:
    put_list(cluster, "cpu")
    cluster.declare(replicas=1)
    cluster.server.patch(NODESETS, KEY, {"metadata": {"annotations": {annotations.DECLARED_IN: LIST[1]}}})
    await cluster.process.caught_up()
    looking = look(cluster)
    cluster.server.freeze()  # watches say nothing more, so the informer does not hear that the set is on the list
    put_list(cluster, "cpu", "gpu")
    await looking.look()
    cluster.server.freeze(False)
    assert "deletionTimestamp" not in cluster.server.get(NODESETS, KEY)["metadata"]
