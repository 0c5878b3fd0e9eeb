"""Volume claims: which stay, which go, and pods that wait for them."""

import pytest

from controllers.nodeset.structs import NODESETS
from controllers.runtime.structs import CLAIMS, PODS
from tests.support.controllers.nodeset.memory_cluster import KEY, Cluster, disks


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("when_scaled", "when_deleted", "kept"),
    [
        pytest.param("Delete", "Retain", {"disk-gpu-0", "disk-gpu-1"}, id="retained"),
        pytest.param("Delete", "Delete", set[str](), id="both-delete"),
        pytest.param("Retain", "Delete", set[str](), id="deleted"),
    ],
)
async def test_disks_of_a_set_that_is_deleted_go_or_stay_as_when_deleted_says(
    cluster: Cluster, when_scaled: str, when_deleted: str, kept: set[str]
) -> None:
    cluster.declare(replicas=2, ordinals=2, **disks(when_scaled, when_deleted))
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-1", 9)
    cluster.server.objects.delete(cluster.server.objects.kind("slipway.dev/v1alpha1", "nodesets"), KEY)
    await cluster.rounds(4)
    assert set(cluster.pods()) == {"gpu-1"}
    assert cluster.disks() == {"disk-gpu-0", "disk-gpu-1"}, "none goes before the last pod has"
    cluster.slurm.end_job("gpu-1")
    await cluster.rounds(4)
    assert KEY not in cluster.server.keys(NODESETS)
    assert cluster.disks() == kept


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("when_scaled", "kept"),
    [pytest.param("Delete", {"disk-gpu-1"}, id="delete"), pytest.param("Retain", {"disk-gpu-0", "disk-gpu-1"}, id="retain")],
)
async def test_disks_of_a_node_that_is_scaled_in_go_once_its_pod_has_gone(cluster: Cluster, when_scaled: str, kept: set[str]) -> None:
    cluster.declare(replicas=2, ordinals=2, **disks(when_scaled, "Retain"))
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-1", 9)
    cluster.declare(replicas=1, ordinals=2, **disks(when_scaled, "Retain"))
    await cluster.rounds(6)
    assert (set(cluster.pods()), cluster.disks()) == ({"gpu-1"}, kept)
    owned = [key for key in cluster.server.keys(CLAIMS) if "ownerReferences" in cluster.server.get(CLAIMS, key)["metadata"]]
    assert not owned, "the garbage collector would take them with the set"


@pytest.mark.anyio
async def test_lost_pod_returns_to_its_disk_although_a_lower_ordinal_is_free(cluster: Cluster) -> None:
    cluster.declare(replicas=2, ordinals=2, **disks("Delete", "Retain"))
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-1", 9)
    cluster.declare(replicas=1, ordinals=2, **disks("Delete", "Retain"))
    await cluster.rounds(6)
    cluster.slurm.end_job("gpu-1")
    cluster.server.remove(PODS, ("slurm", "gpu-1"))
    await cluster.rounds(3)
    assert (set(cluster.pods()), cluster.disks()) == ({"gpu-1"}, {"disk-gpu-1"})


@pytest.mark.anyio
async def test_no_disk_goes_before_the_set_has_shrunk(cluster: Cluster) -> None:
    cluster.declare(replicas=3, ordinals=3, **disks("Delete", "Retain"))
    await cluster.rounds(4)
    for number, name in enumerate(("gpu-0", "gpu-1", "gpu-2")):
        cluster.slurm.start_job(name, number + 1)
    cluster.declare(replicas=1, ordinals=3, **disks("Delete", "Retain"))
    await cluster.rounds(4)
    cluster.server.remove(PODS, ("slurm", "gpu-0"))
    await cluster.rounds(4)
    assert (set(cluster.pods()), cluster.disks()) == ({"gpu-1", "gpu-2"}, {"disk-gpu-0", "disk-gpu-1", "disk-gpu-2"})


@pytest.mark.anyio
async def test_sleeping_elastic_node_keeps_its_disk_until_max_shrinks_below_it(cluster: Cluster) -> None:
    cluster.declare(min=0, max=4, **disks("Delete", "Retain"))
    await cluster.rounds(2)
    for name in ("gpu-1", "gpu-3"):
        cluster.slurm.words[name] = {"MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"}
    await cluster.rounds(2)
    for name in ("gpu-1", "gpu-3"):
        cluster.slurm.words[name] = {"IDLE", "CLOUD", "POWERING_DOWN"}
    await cluster.rounds(4)
    assert (cluster.pods(), cluster.disks()) == ({}, {"disk-gpu-1", "disk-gpu-3"})
    cluster.declare(min=0, max=2, **disks("Delete", "Retain"))
    await cluster.rounds(3)
    assert cluster.disks() == {"disk-gpu-1"}


@pytest.mark.anyio
async def test_disks_of_a_removed_template_and_claims_of_others_are_left_alone(cluster: Cluster) -> None:
    labels = {"slipway.dev/cluster": "dev", "slipway.dev/nodeset": "gpu"}
    cluster.declare(replicas=1, ordinals=2, **disks("Delete", "Delete"))
    await cluster.rounds(4)
    for name in ("by-hand", "disk-gpu-x", "disk-cpu-7"):
        cluster.server.put(CLAIMS, {"metadata": {"namespace": "slurm", "name": name, "labels": labels}, "spec": {}})
    cluster.declare(replicas=1, volumeClaimTemplates=[], volumeClaimRetention={"whenScaled": "Delete", "whenDeleted": "Delete"})
    await cluster.rounds(6)
    assert cluster.disks() == {"disk-gpu-0", "by-hand", "disk-gpu-x", "disk-cpu-7"}
    cluster.server.objects.delete(cluster.server.objects.kind("slipway.dev/v1alpha1", "nodesets"), KEY)
    await cluster.rounds(4)
    assert cluster.disks() == {"by-hand", "disk-gpu-x", "disk-cpu-7"}


@pytest.mark.anyio
async def test_claim_being_deleted_holds_its_pod_back_and_the_status_says_so(cluster: Cluster) -> None:
    claim = ("slurm", "disk-gpu-1")
    cluster.declare(replicas=2, **disks("Retain", "Retain"))
    await cluster.rounds(4)
    cluster.server.patch(CLAIMS, claim, {"metadata": {"finalizers": ["kubernetes.io/pvc-protection"]}})
    cluster.server.objects.delete(cluster.server.objects.kind("v1", "persistentvolumeclaims"), claim)
    await cluster.rounds(2)
    assert set(cluster.pods()) == {"gpu-0", "gpu-1"}, "a pod that is there goes on"
    cluster.server.remove(PODS, ("slurm", "gpu-1"))
    await cluster.rounds(3)
    assert set(cluster.pods()) == {"gpu-0"}
    assert "gpu-1" in (said := cluster.status()["why"])
    assert "disk is still being deleted" in said
    before = len(cluster.server.writes())
    await cluster.rounds(2)
    assert len(cluster.server.writes()) == before
    cluster.server.patch(CLAIMS, claim, {"metadata": {"finalizers": None}})
    await cluster.rounds(3)
    assert (set(cluster.pods()), cluster.disks()) == ({"gpu-0", "gpu-1"}, {"disk-gpu-0", "disk-gpu-1"})
    assert cluster.status()["phase"] == "Ready"


@pytest.mark.anyio
async def test_pod_whose_claim_went_before_a_machine_was_found_gets_another(cluster: Cluster) -> None:
    cluster.declare(replicas=1, **disks("Retain", "Retain"))
    await cluster.process.round()
    cluster.server.remove(CLAIMS, ("slurm", "disk-gpu-0"))
    await cluster.process.round()
    assert (set(cluster.pods()), cluster.disks()) == ({"gpu-0"}, {"disk-gpu-0"})


OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "another"}
OURS = {"slipway.dev/cluster": "dev", "slipway.dev/nodeset": "gpu"}


def put_claim(cluster: Cluster, name: str, labels: dict[str, str], owners: list[dict[str, str]]) -> None:
    cluster.server.put(CLAIMS, {"metadata": {"namespace": "slurm", "name": name, "labels": labels, "ownerReferences": owners}, "spec": {}})


@pytest.mark.anyio
@pytest.mark.parametrize("labels", [pytest.param({}, id="without-our-labels"), pytest.param(OURS, id="with-our-labels")])
@pytest.mark.parametrize("size", [{"replicas": 1, "ordinals": 1}, {"min": 1, "max": 1}], ids=["fixed", "elastic"])
async def test_claim_of_somebody_else_is_reported_and_left_alone(cluster: Cluster, labels: dict[str, str], size: dict[str, int]) -> None:
    put_claim(cluster, "disk-gpu-0", labels, [OWNER])
    cluster.declare(nodes=1, **size, **disks("Delete", "Delete"))
    await cluster.rounds(3)
    assert cluster.pods() == {}
    told = next(one for one in cluster.status()["conditions"] if one["type"] == "PodsStart")
    assert "claim disk-gpu-0 (StatefulSet db) belongs to somebody else" in told["message"]
    assert "DRAIN" in cluster.slurm.words["gpu-0"], "a job would wait for a pod that nobody makes"
    cluster.server.objects.delete(cluster.server.objects.kind("slipway.dev/v1alpha1", "nodesets"), KEY)
    await cluster.rounds(3)
    assert KEY not in cluster.server.keys(NODESETS)
    assert cluster.disks() == {"disk-gpu-0"}


@pytest.mark.anyio
async def test_fixed_set_skips_an_ordinal_whose_claim_belongs_to_somebody_else(cluster: Cluster) -> None:
    put_claim(cluster, "disk-gpu-0", {}, [OWNER])
    cluster.declare(nodes=2, replicas=1, ordinals=2, **disks("Delete", "Delete"))
    await cluster.rounds(3)
    assert (set(cluster.pods()), cluster.disks()) == ({"gpu-1"}, {"disk-gpu-0", "disk-gpu-1"})


@pytest.mark.anyio
async def test_node_gets_its_pod_once_the_claim_is_nobodys(cluster: Cluster) -> None:
    put_claim(cluster, "disk-gpu-0", {}, [OWNER])
    cluster.declare(nodes=1, replicas=1, ordinals=1, **disks("Delete", "Delete"))
    await cluster.rounds(3)
    cluster.server.patch(CLAIMS, ("slurm", "disk-gpu-0"), {"metadata": {"ownerReferences": None}})
    await cluster.rounds(4)
    assert (set(cluster.pods()), cluster.slurm.words["gpu-0"]) == ({"gpu-0"}, {"IDLE", "CLOUD"})


@pytest.mark.anyio
async def test_disk_of_somebody_else_stays_when_the_nodes_own_disk_is_deleted(cluster: Cluster) -> None:
    cluster.declare(nodes=2, replicas=2, ordinals=2, **disks("Delete", "Retain"))
    await cluster.rounds(4)
    put_claim(cluster, "old-gpu-0", OURS, [OWNER])
    cluster.slurm.start_job("gpu-1", 7)
    cluster.declare(nodes=2, replicas=1, ordinals=2, **disks("Delete", "Retain"))
    await cluster.rounds(6)
    assert (set(cluster.pods()), cluster.disks()) == ({"gpu-1"}, {"disk-gpu-1", "old-gpu-0"})


@pytest.mark.anyio
async def test_claim_that_somebody_made_for_a_node_is_used_and_never_deleted(cluster: Cluster) -> None:
    put_claim(cluster, "disk-gpu-0", {}, [])
    cluster.declare(nodes=1, replicas=1, ordinals=1, **disks("Delete", "Delete"))
    await cluster.rounds(3)
    assert set(cluster.pods()) == {"gpu-0"}
    cluster.server.objects.delete(cluster.server.objects.kind("slipway.dev/v1alpha1", "nodesets"), KEY)
    await cluster.rounds(4)
    assert KEY not in cluster.server.keys(NODESETS)
    assert cluster.disks() == {"disk-gpu-0"}
