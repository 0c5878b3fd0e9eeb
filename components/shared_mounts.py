"""Shared folders from any kind of source: which pods mount them, and how. `storage` makes their claims."""

from dataclasses import dataclass

from components.labels import Manifest, object_name
from components.pods import mount
from configs.models.cluster import Cluster
from configs.models.storage import Mount, Source
from configs.render import shared_root
from names import paths


@dataclass(frozen=True)
class SharedMount:
    """One shared folder of the config, for pods."""

    name: str
    """Name of the volume, unique in the cluster."""
    mount_path: str
    """Its path in pods."""
    source: Source
    """The storage of its files."""
    read_only: bool = False
    """True: pods cannot write to it."""


def shared_mounts(cluster: Cluster, further: tuple[Mount, ...]) -> list[SharedMount]:
    """The shared root, the homes, and further mounts of a kind of pod."""
    return [
        root_mount(cluster),
        SharedMount("home", paths.HOMES, cluster.storage.home),
        # The prefix avoids conflicts between a user's names and a pod's own volumes.
        *(SharedMount(f"mount-{shared.name}", shared.mount_path, shared, shared.read_only) for shared in further),
    ]


def root_mount(cluster: Cluster) -> SharedMount:
    """The shared volume with the versioned root and the users from LDAP."""
    return SharedMount("shared-root", shared_root.SHARED, cluster.storage.shared_root)


def build_volume(cluster: str, shared: SharedMount) -> Manifest:
    """The pod volume of a shared folder."""
    if shared.source.host_path is not None:
        return {"name": shared.name, "hostPath": {"path": shared.source.host_path, "type": "DirectoryOrCreate"}}
    return {"name": shared.name, "persistentVolumeClaim": {"claimName": shared.source.claim or object_name(cluster, shared.name)}}


def build_mount(shared: SharedMount) -> Manifest:
    """The mount of a shared folder. Mounts that the node adds later (by an automounter) appear in running pods."""
    return {**mount(shared.name, shared.mount_path, shared.read_only), "mountPropagation": "HostToContainer"}
