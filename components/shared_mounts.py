"""Folders that pods share, from any kind of source: which pod mounts what, and how. `storage` makes the claims behind them."""

from typing import NotRequired, TypedDict

from components.claims import ClaimArgs, claim_args
from components.labels import Manifest, object_name
from components.pods import mount
from configs.models.cluster import Cluster
from configs.models.nfs_server import NfsServer
from configs.models.storage import Mount, Source
from configs.render import shared_root
from names import paths


class NfsArgs(TypedDict):
    """A folder of an NFS server."""

    server: str
    """Name or address, as the nodes see it."""
    path: str
    """The exported folder."""
    options: list[str]
    """Mount options, for instance `nfsvers=4.1`."""


class SharedMountArgs(TypedDict):
    """One shared folder and its source: exactly one of `host_path`, `claim`, `storage_class` with `size`, `disk`, or `nfs`."""

    name: str
    """Name of the volume, unique in the cluster."""
    mount_path: str
    """Where login and worker pods see it."""
    read_only: NotRequired[bool]
    """True: pods cannot write to it."""
    host_path: NotRequired[str]
    """A folder that every node has, made where missing."""
    claim: NotRequired[str]
    """Name of a claim that exists in the namespace."""
    storage_class: NotRequired[str]
    """Class of a claim to be made; it must give ReadWriteMany."""
    size: NotRequired[str]
    """Size of that claim, for instance `100Gi`."""
    disk: NotRequired[ClaimArgs]
    """A disk to be made, for pods that are all on one machine (ReadWriteOnce)."""
    nfs: NotRequired[NfsArgs]
    """An NFS server's folder, mounted by the nodes."""


def shared_mounts(cluster: Cluster, further: tuple[Mount, ...]) -> list[SharedMountArgs]:
    """The shared root, homes and the further mounts of one kind of pod."""
    storage = cluster.storage
    return [
        root_mount(cluster),
        shared_mount("home", paths.HOMES, storage.home, server=storage.nfs_server),
        # A prefix keeps a user's names and those of a pod's own volumes apart.
        *(shared_mount(f"mount-{mount.name}", mount.mount_path, mount, mount.read_only, storage.nfs_server) for mount in further),
    ]


def root_mount(cluster: Cluster) -> SharedMountArgs:
    """The shared volume, which holds the versioned root and the users from LDAP."""
    return shared_mount("shared-root", shared_root.SHARED, cluster.storage.shared_root, server=cluster.storage.nfs_server)


def shared_mount(name: str, path: str, source: Source, read_only: bool = False, server: NfsServer | None = None) -> SharedMountArgs:
    """One shared folder, with the fields of its source that are set. Pods mount the cluster's own server as any other NFS."""
    made: SharedMountArgs = {"name": name, "mount_path": path, "read_only": read_only}
    if source.host_path is not None:
        made["host_path"] = source.host_path
    elif source.claim is not None:
        made["claim"] = source.claim
    elif source.nfs is not None:
        made["nfs"] = {"server": source.nfs.server, "path": source.nfs.path, "options": list(source.nfs.options)}
    elif source.nfs_server and server is not None:
        made["nfs"] = {"server": server.cluster_ip, "path": f"/{name}", "options": list(server.options)}
    elif source.storage_class is not None:
        made["storage_class"] = source.storage_class
        made["size"] = source.size or ""
    elif source.disk is not None:
        made["disk"] = claim_args(source.disk)
    return made


def build_volume(cluster: str, source: SharedMountArgs) -> Manifest:
    """The pod volume of a shared folder."""
    if "host_path" in source:
        return {"name": source["name"], "hostPath": {"path": source["host_path"], "type": "DirectoryOrCreate"}}
    claim = source["claim"] if "claim" in source else object_name(cluster, source["name"])
    return {"name": source["name"], "persistentVolumeClaim": {"claimName": claim}}


def build_mount(source: SharedMountArgs) -> Manifest:
    """Where a container sees a shared folder. Mounts that the node adds later (an automounter's) show up in running pods."""
    return {**mount(source["name"], source["mount_path"], source.get("read_only", False)), "mountPropagation": "HostToContainer"}
