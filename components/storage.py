"""Storage that users and jobs share: the shared root, homes and further mounts from any kind of source, and the cluster's own NFS server.

A claim is created if a source needs it; host paths and existing claims are only referenced. Files on the storage are never touched.
"""

import pulumi

from components.accounting import archive_mount
from components.backup import backup_mount
from components.labels import Manifest, labels, metadata, object_name
from components.nfs_server import NfsServer
from components.objects import SKIP_AWAIT, declare
from components.pods import PodDefaults
from components.shared_mounts import shared_mounts
from configs.models.cluster import Cluster
from configs.models.storage import Nfs, Source


class SharedStorage(pulumi.ComponentResource):
    """Claims for the shared folders of one cluster. A change of a source replaces its claim; the old claim's data is not moved."""

    claim_names: pulumi.Output[list[str]]
    """Sorted names of the declared claims."""

    def __init__(self, name: str, cluster: Cluster, pods: PodDefaults, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:SharedStorage", name, {}, opts)
        protected = cluster.deletion_protection
        served: list[pulumi.Resource] = []
        if (server := cluster.storage.nfs_server) is not None:
            served.append(NfsServer(object_name(cluster.name, "nfs"), cluster, pods, server, pulumi.ResourceOptions(parent=self)))
        # Declared after the server, so that the server is deleted last: without it, its folders cannot be unmounted.
        protecting = pulumi.ResourceOptions(parent=self, protect=protected, retain_on_delete=protected, depends_on=served)
        claims = build_claims(cluster)
        for manifest in claims:
            declare(manifest, protecting)
        self.claim_names = pulumi.Output.from_input(sorted(m["metadata"]["name"] for m in claims if m["kind"] == "PersistentVolumeClaim"))
        self.register_outputs({"claim_names": self.claim_names})


def build_claims(cluster: Cluster) -> list[Manifest]:
    """The claims, and for NFS their volumes: a volume in a pod's spec cannot have mount options."""
    folders = [
        *shared_mounts(cluster, cluster.storage.mounts),
        *([backup_mount(cluster.backup)] if cluster.backup else []),
        *([archive] if (archive := archive_mount(cluster)) else []),
    ]
    claims: list[Manifest] = []
    for shared in folders:
        source = shared.source
        if (nfs := _nfs(cluster, shared.name, source)) is not None:
            volume = _nfs_volume(cluster, shared.name, nfs)
            claims += [volume, _claim(cluster, shared.name, "1Gi", "", volume["metadata"]["name"])]
        elif source.storage_class is not None:
            claims.append(_claim(cluster, shared.name, source.size or "", source.storage_class))
        elif source.disk is not None:
            claims.append(_claim(cluster, shared.name, source.disk.size, source.disk.storage_class, mode="ReadWriteOnce"))
    return claims


def _nfs(cluster: Cluster, name: str, source: Source) -> Nfs | None:
    """The NFS export of a shared folder. Pods mount the cluster's own server like any other."""
    server = cluster.storage.nfs_server
    if source.nfs_server and server is not None:
        return Nfs(server=server.cluster_ip, path=f"/{name}", options=server.options)
    return source.nfs


def _claim(
    cluster: Cluster, name: str, size: str, storage_class: str | None, volume: str | None = None, mode: str = "ReadWriteMany"
) -> Manifest:
    # Not awaited: with WaitForFirstConsumer, a claim binds only when a pod uses it, and pods are declared later.
    about = metadata(object_name(cluster.name, name), cluster.namespace, labels(cluster.name, "storage"), SKIP_AWAIT)
    spec: Manifest = {
        "accessModes": [mode],
        "resources": {"requests": {"storage": size}},
        **({"storageClassName": storage_class} if storage_class is not None else {}),
        **({"volumeName": volume} if volume else {}),
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": spec}


def _nfs_volume(cluster: Cluster, name: str, nfs: Nfs) -> Manifest:
    claim = object_name(cluster.name, name)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        # A volume has no namespace, so its name contains it. The name never changes: another would replace the claim, which is bound by
        # name. If the names of two stacks collide, Kubernetes refuses the second, as a volume's source is immutable.
        "metadata": {
            "name": f"{cluster.namespace}-{claim}",
            "labels": labels(cluster.name, "storage"),
            "annotations": SKIP_AWAIT,
        },
        "spec": {
            # NFS has no size, but Kubernetes requires one, equal to the claim's.
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "mountOptions": list(nfs.options),
            "nfs": {"server": nfs.server, "path": nfs.path},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": claim, "namespace": cluster.namespace},
        },
    }
