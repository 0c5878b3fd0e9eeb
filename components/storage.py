"""Storage that users and jobs share: the shared root, homes and further mounts, from any kind of source; and the cluster's own NFS
server, which is NFS like any other to those that mount it.

Makes a claim where a source needs it; host paths and claims that exist are only referred to. What is on the storage is left alone.
"""

from typing import NotRequired, TypedDict

import pulumi

from components.accounting import archive_mount
from components.backup import backup_mount
from components.labels import Manifest, labels, metadata, object_name
from components.nfs_server import NfsServer, NfsServerArgs, nfs_server_args
from components.objects import SKIP_AWAIT, declare
from components.pods import PodDefaults
from components.shared_mounts import NfsArgs, SharedMountArgs, shared_mounts
from configs.models.cluster import Cluster


class SharedStorageArgs(TypedDict):
    """What shared storage needs to know."""

    cluster: str
    """Name of the cluster, prefix of the claims' names."""
    namespace: str
    """Namespace of the claims."""
    mounts: list[SharedMountArgs]
    """The shared folders."""
    server: NotRequired[NfsServerArgs]
    """The cluster's own NFS server, if it has an NFS server of its own."""
    deletion_protection: bool
    """True: claims and volumes cannot be deleted by a change of the stack, and outlive it."""


def storage_args(cluster: Cluster, pods: PodDefaults) -> SharedStorageArgs:
    made: SharedStorageArgs = {
        "cluster": cluster.name,
        "namespace": cluster.namespace,
        "mounts": [
            *shared_mounts(cluster, cluster.storage.mounts),
            *([backup_mount(cluster.backup)] if cluster.backup else []),
            *([archive] if (archive := archive_mount(cluster)) else []),
        ],
        "deletion_protection": cluster.deletion_protection,
    }
    if cluster.storage.nfs_server is not None:
        made["server"] = nfs_server_args(cluster, pods, cluster.storage.nfs_server)
    return made


class SharedStorage(pulumi.ComponentResource):
    """Claims for the shared folders of one cluster. A change of a source replaces its claim; the old claim's data is not moved."""

    claim_names: pulumi.Output[list[str]]
    """Names of the claims made here, sorted."""

    def __init__(self, name: str, args: SharedStorageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:SharedStorage", name, {}, opts)
        protected = args["deletion_protection"]
        served: list[pulumi.Resource] = []
        if "server" in args:
            served.append(NfsServer(object_name(args["cluster"], "nfs"), args["server"], pulumi.ResourceOptions(parent=self)))
        # After the server, so that it goes last: a folder of a server that is gone cannot be unmounted.
        kept = pulumi.ResourceOptions(parent=self, protect=protected, retain_on_delete=protected, depends_on=served)
        claims = build_claims(args)
        for manifest in claims:
            declare(manifest, kept)
        self.claim_names = pulumi.Output.from_input(sorted(m["metadata"]["name"] for m in claims if m["kind"] == "PersistentVolumeClaim"))
        self.register_outputs({"claim_names": self.claim_names})


def build_claims(args: SharedStorageArgs) -> list[Manifest]:
    """The claims to make, and for NFS their volumes: a volume written in a pod takes no mount options."""
    made: list[Manifest] = []
    for source in args["mounts"]:
        if "nfs" in source:
            volume = _nfs_volume(args, source["name"], source["nfs"])
            made += [volume, _claim(args, source["name"], "1Gi", "", volume["metadata"]["name"])]
        elif "storage_class" in source:
            made.append(_claim(args, source["name"], source.get("size", ""), source["storage_class"]))
        elif "disk" in source:
            disk = source["disk"]
            made.append(_claim(args, source["name"], disk["size"], disk.get("storage_class"), mode="ReadWriteOnce"))
    return made


def _claim(
    args: SharedStorageArgs, name: str, size: str, storage_class: str | None, volume: str | None = None, mode: str = "ReadWriteMany"
) -> Manifest:
    # Not waited for: with WaitForFirstConsumer a claim binds only when a pod, which is declared after it, asks for it.
    about = metadata(object_name(args["cluster"], name), args["namespace"], labels(args["cluster"], "storage"), SKIP_AWAIT)
    spec: Manifest = {
        "accessModes": [mode],
        "resources": {"requests": {"storage": size}},
        **({"storageClassName": storage_class} if storage_class is not None else {}),
        **({"volumeName": volume} if volume else {}),
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": about, "spec": spec}


def _nfs_volume(args: SharedStorageArgs, name: str, nfs: NfsArgs) -> Manifest:
    claim = object_name(args["cluster"], name)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        # Volumes have no namespace of their own, so the name carries it. It never changes: another name would replace the claim, which is
        # bound by name. Two stacks whose names meet here are refused by Kubernetes, as a volume's source is fixed.
        "metadata": {
            "name": f"{args['namespace']}-{claim}",
            "labels": labels(args["cluster"], "storage"),
            "annotations": SKIP_AWAIT,
        },
        "spec": {
            # NFS has no size; Kubernetes wants a number, the same as the claim's.
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "mountOptions": nfs["options"],
            "nfs": {"server": nfs["server"], "path": nfs["path"]},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": claim, "namespace": args["namespace"]},
        },
    }
