"""The sources of shared folders."""

from typing import Any

import pytest

from components import storage
from components.shared_mounts import build_volume, shared_mounts
from configs.models.cluster import Cluster
from tests.support.configs.stacks import cluster
from tests.unit.components.structure import structural_faults

SERVER = {"size": "1Ti", "clusterIP": "10.96.20.49", "options": ["nfsvers=4.2"]}
NFS = {"nfs": {"server": "10.0.0.5", "path": "/export", "options": ["nfsvers=4.1"]}}
DISK = {"disk": {"size": "10Gi"}}


def mounting(source: dict[str, Any]) -> Cluster:
    """The example with one further mount. Its machines are one, which a disk needs."""
    edits: dict[str, Any] = {
        "storage.mounts": [{"name": "data", "mountPath": "/data", **source}],
        **({"storage.nfsServer": SERVER} if "nfsServer" in source else {}),
    }
    if "disk" in source:
        workers = {"labels": {"slipway.dev/pool": "workers"}, "taints": [{"key": "slipway.dev/pool", "value": "workers"}]}
        edits |= {"systemNodes": workers, "nodePools[0].max": 1, "nodePools[0].existing.count": 1}
        edits |= {"nodeSets[0].size": 1, "nodeSets[1].size": 1, "nodeSets[2].max": 1}
    return cluster("dev", edits)


def claims(source: dict[str, Any]) -> list[dict[str, Any]]:
    return storage.build_claims(mounting(source))


@pytest.mark.parametrize(
    ("source", "volume", "made"),
    [
        pytest.param(
            {"hostPath": "/var/lib/home"},
            {"hostPath": {"path": "/var/lib/home", "type": "DirectoryOrCreate"}},
            [],
            id="host-path",
        ),
        pytest.param({"claim": "homes"}, {"persistentVolumeClaim": {"claimName": "homes"}}, [], id="existing-claim"),
        pytest.param(
            {"storageClass": "efs", "size": "1Ti"},
            {"persistentVolumeClaim": {"claimName": "dev-mount-data"}},
            ["PersistentVolumeClaim"],
            id="storage-class",
        ),
        pytest.param(
            {"disk": {"size": "10Gi"}},
            {"persistentVolumeClaim": {"claimName": "dev-mount-data"}},
            ["PersistentVolumeClaim"],
            id="disk",
        ),
        pytest.param(
            {"nfs": {"server": "nfs", "path": "/home"}},
            {"persistentVolumeClaim": {"claimName": "dev-mount-data"}},
            ["PersistentVolume", "PersistentVolumeClaim"],
            id="nfs",
        ),
        pytest.param(
            {"nfsServer": True},
            {"persistentVolumeClaim": {"claimName": "dev-mount-data"}},
            ["PersistentVolume", "PersistentVolumeClaim"],
            id="own-server",
        ),
    ],
)
def test_each_source_gives_its_volume_and_makes_what_it_needs(source: dict[str, Any], volume: dict[str, Any], made: list[str]) -> None:
    config = mounting(source)
    assert build_volume("dev", shared_mounts(config, config.storage.mounts)[-1]) == {"name": "mount-data", **volume}
    assert [manifest["kind"] for manifest in claims(source)] == made
    assert [fault for manifest in claims(source) for fault in structural_faults(manifest)] == []


def test_claim_is_not_waited_for_as_it_may_bind_only_with_its_first_pod() -> None:
    [claim] = claims({"storageClass": "efs", "size": "1Ti"})
    assert claim["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


def test_disk_is_of_the_default_class_and_for_one_machine() -> None:
    [claim] = claims(DISK)
    assert claim["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}


def test_nfs_volume_is_for_its_claim_alone_and_is_never_wiped() -> None:
    volume, claim = claims(NFS)
    assert volume["metadata"]["name"] == claim["spec"]["volumeName"] == "slurm-dev-mount-data"
    assert volume["spec"]["claimRef"]["name"] == claim["metadata"]["name"] == "dev-mount-data"
    assert volume["spec"]["claimRef"]["namespace"] == "slurm"
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert volume["spec"]["mountOptions"] == ["nfsvers=4.1"]


def test_volume_on_the_clusters_own_server_is_nfs_from_a_known_address() -> None:
    volume, _ = claims({"nfsServer": True})
    assert volume["spec"]["nfs"] == {"server": "10.96.20.49", "path": "/mount-data"}
    assert volume["spec"]["mountOptions"] == ["nfsvers=4.2"]


def test_no_class_of_the_cluster_takes_an_nfs_claim() -> None:
    volume, claim = claims(NFS)
    assert volume["spec"]["storageClassName"] == claim["spec"]["storageClassName"] == ""
