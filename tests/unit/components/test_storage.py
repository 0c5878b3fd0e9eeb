"""The four sources of shared folders."""

from typing import Any

import pytest

from components import storage
from components.shared_mounts import SharedMountArgs, build_volume
from components.storage import SharedStorageArgs
from tests.unit.components.structure import structural_faults

NFS: SharedMountArgs = {
    "name": "mount-data",
    "mount_path": "/data",
    "nfs": {"server": "10.0.0.5", "path": "/export", "options": ["nfsvers=4.1"]},
}


def claims(*mounts: SharedMountArgs) -> list[dict[str, Any]]:
    args: SharedStorageArgs = {"cluster": "dev", "namespace": "slurm", "mounts": list(mounts), "deletion_protection": True}
    return storage.build_claims(args)


@pytest.mark.parametrize(
    ("source", "volume", "made"),
    [
        pytest.param(
            {"host_path": "/var/lib/home"},
            {"hostPath": {"path": "/var/lib/home", "type": "DirectoryOrCreate"}},
            [],
            id="host-path",
        ),
        pytest.param({"claim": "homes"}, {"persistentVolumeClaim": {"claimName": "homes"}}, [], id="existing-claim"),
        pytest.param(
            {"storage_class": "efs", "size": "1Ti"},
            {"persistentVolumeClaim": {"claimName": "dev-home"}},
            ["PersistentVolumeClaim"],
            id="storage-class",
        ),
        pytest.param(
            {"disk": {"size": "10Gi"}},
            {"persistentVolumeClaim": {"claimName": "dev-home"}},
            ["PersistentVolumeClaim"],
            id="disk",
        ),
        pytest.param(
            {"nfs": {"server": "nfs", "path": "/home", "options": []}},
            {"persistentVolumeClaim": {"claimName": "dev-home"}},
            ["PersistentVolume", "PersistentVolumeClaim"],
            id="nfs",
        ),
    ],
)
def test_each_source_gives_its_volume_and_makes_what_it_needs(source: Any, volume: dict[str, Any], made: list[str]) -> None:
    mount: Any = {"name": "home", "mount_path": "/home", **source}
    assert build_volume("dev", mount) == {"name": "home", **volume}
    assert [manifest["kind"] for manifest in claims(mount)] == made
    assert [fault for manifest in claims(mount) for fault in structural_faults(manifest)] == []


def test_claim_is_not_waited_for_as_it_may_bind_only_with_its_first_pod() -> None:
    [claim] = claims({"name": "home", "mount_path": "/home", "storage_class": "efs", "size": "1Ti"})
    assert claim["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


def test_disk_is_of_the_default_class_and_for_one_machine() -> None:
    [claim] = claims({"name": "home", "mount_path": "/home", "disk": {"size": "10Gi"}})
    assert claim["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}


def test_nfs_volume_is_for_its_claim_alone_and_is_never_wiped() -> None:
    volume, claim = claims(NFS)
    assert volume["metadata"]["name"] == claim["spec"]["volumeName"] == "slurm-dev-mount-data"
    assert volume["spec"]["claimRef"]["name"] == claim["metadata"]["name"] == "dev-mount-data"
    assert volume["spec"]["claimRef"]["namespace"] == "slurm"
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert volume["spec"]["mountOptions"] == ["nfsvers=4.1"]


def test_no_class_of_the_cluster_takes_an_nfs_claim() -> None:
    volume, claim = claims(NFS)
    assert volume["spec"]["storageClassName"] == claim["spec"]["storageClassName"] == ""
