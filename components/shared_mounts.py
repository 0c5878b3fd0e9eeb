"""Folders that pods share, from any kind of source: which pod mounts what, and how. `storage` makes the claims behind them."""

from dataclasses import dataclass

from components.labels import Manifest, object_name
from components.pods import mount
from configs.models.cluster import Cluster
from configs.models.storage import Mount, Source
from configs.render import shared_root
from names import paths


@dataclass(frozen=True)
class SharedMount:
    """One shared folder of the config, as pods have it."""

    name: str
    """Name of the volume, unique in the cluster."""
    mount_path: str
    """Where pods see it."""
    source: Source
    """Where its files are kept."""
    read_only: bool = False
    """True: pods cannot write to it."""


def shared_mounts(cluster: Cluster, further: tuple[Mount, ...]) -> list[SharedMount]:
    """The shared root, homes and the further mounts of one kind of pod."""
    return [
        root_mount(cluster),
        SharedMount("home", paths.HOMES, cluster.storage.home),
        # A prefix keeps a user's names and those of a pod's own volumes apart.
        *(SharedMount(f"mount-{shared.name}", shared.mount_path, shared, shared.read_only) for shared in further),
    ]


def root_mount(cluster: Cluster) -> SharedMount:
    """The shared volume, which holds the versioned root and the users from LDAP."""
    return SharedMount("shared-root", shared_root.SHARED, cluster.storage.shared_root)


def build_volume(cluster: str, shared: SharedMount) -> Manifest:
    """The pod volume of a shared folder."""
    if shared.source.host_path is not None:
        return {"name": shared.name, "hostPath": {"path": shared.source.host_path, "type": "DirectoryOrCreate"}}
    return {"name": shared.name, "persistentVolumeClaim": {"claimName": shared.source.claim or object_name(cluster, shared.name)}}


def build_mount(shared: SharedMount) -> Manifest:
    """Where a container sees a shared folder. Mounts that the node adds later (an automounter's) show up in running pods."""
    return {**mount(shared.name, shared.mount_path, shared.read_only), "mountPropagation": "HostToContainer"}
