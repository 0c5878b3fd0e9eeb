"""Rules of storage: one source for each volume, no two volumes at one place, and none over the system's folders."""

import posixpath
from collections.abc import Iterable, Mapping

from configs.faults import Fault, quoted
from configs.models.cluster import Cluster
from configs.models.storage import Mount, Nfs, Source
from configs.render import shared_root
from configs.rules.names import check_distinct, check_unique
from names import paths

_SYSTEM = frozenset({"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var"})  # noqa: S108 - refused
_TAKEN = {paths.HOMES: "the users' homes are", paths.SHARED: "the shared root is", paths.PACKAGES: "Slipway's own scripts are"}


_NODES_OWN = ("/var/lib/containerd", "/var/lib/cni", "/var/lib/docker", "/var/lib/etcd", "/var/lib/kubelet", "/var/log", "/var/run")
"""Folders of a node that its own programs keep. Files of users belong neither in them nor in the folders that hold them."""
_VERSIONS = ("3", "4", "4.0", "4.1", "4.2")
"""Of NFS. Source: nfs(5), nfsvers."""
_EXCLUSIVE = (("hard", "soft", "softerr"), ("ro", "rw"), ("sync", "async"), ("ac", "noac"), ("lock", "nolock"), ("tcp", "udp"))
"""Mount options of which one can hold. Source: nfs(5) and mount(8)."""


def check_storage(cluster: Cluster) -> list[Fault]:
    """Faults of all shared volumes."""
    storage = cluster.storage
    volumes = volumes_of(cluster)
    faults = check_unique("cluster.storage.mounts", "mount", [mount.name for mount in storage.mounts])
    for path, source in volumes.items():
        faults += _check_source(path, source, cluster.deletion_protection)
        faults += _check_disk(path, source, cluster)
        if source.nfs is not None:
            is_read_only = isinstance(source, Mount) and source.read_only
            faults += check_options(f"{path}.nfs.options", source.nfs.options) + _check_writable(path, source.nfs, is_read_only)
    faults += _check_sharing(volumes)
    return faults + _check_places([mount.mount_path for mount in storage.mounts])


def check_options(path: str, options: tuple[str, ...]) -> list[Fault]:
    """Faults of NFS mount options: if several contradict each other, the kernel takes the last or refuses the mount."""
    faults = check_distinct(path, options)
    met: dict[str, str] = {}
    for at, option in enumerate(options):
        key, _, value = option.partition("=")
        group = next((options_group[0] for options_group in _EXCLUSIVE if key in options_group), "nfsvers" if key == "vers" else key)
        if group == "nfsvers" and value not in _VERSIONS:
            faults.append(Fault(f"{path}[{at}]", f"{quoted(option)} is not a version of NFS. There are: {', '.join(_VERSIONS)}."))
        elif met.setdefault(group, option) != option:
            faults.append(Fault(f"{path}[{at}]", f"{quoted(option)} contradicts the earlier {quoted(met[group])}. Remove one."))
    return faults


def _check_writable(path: str, nfs: Nfs, is_read_only: bool) -> list[Fault]:
    """A fault if a mount option contradicts what the config promises."""
    if is_read_only or "ro" not in nfs.options:
        return []
    remedy = "Say readOnly: true as well" if ".mounts[" in path else "Users write there"
    return [Fault(f"{path}.nfs.options[{nfs.options.index('ro')}]", f'"ro" lets nobody write. {remedy}, or leave it out.')]


def volumes_of(cluster: Cluster) -> dict[str, Source]:
    """Every shared volume of the cluster, by its path in the config."""
    storage = cluster.storage
    volumes: dict[str, Source] = {"cluster.storage.sharedRoot": storage.shared_root, "cluster.storage.home": storage.home}
    volumes |= {f"cluster.storage.mounts[{at}]": mount for at, mount in enumerate(storage.mounts)}
    if cluster.backup is not None:
        volumes["cluster.backup.volume"] = cluster.backup.volume
    if cluster.accounting.archive is not None:
        volumes["cluster.accounting.archive.volume"] = cluster.accounting.archive.volume
    return volumes


def _check_source(path: str, source: Source, protected: bool) -> list[Fault]:
    kinds = [*source.sources]
    if not kinds:
        return [Fault(path, "has no source. Give it one of hostPath, claim, storageClass (with size), nfs, nfsServer or disk.", (path,))]
    if len(kinds) > 1:
        return [Fault(path, f"has {len(kinds)} sources, {' and '.join(kinds)}. Keep one.")]
    faults: list[Fault] = []
    if kinds == ["storageClass"] and source.size is None:
        faults.append(
            Fault(f"{path}.size", f"is missing: storage class {quoted(source.storage_class)} needs to know how much, such as 100Gi.")
        )
    if kinds != ["storageClass"] and source.size is not None:
        message = f"is only valid with storageClass: a volume from {kinds[0]} has its own size. Remove this key."
        faults.append(Fault(f"{path}.size", message))
    if source.host_path and protected:
        message = "deletionProtection cannot keep a folder of a node. Take another source, or say deletionProtection: false."
        faults.append(Fault(f"{path}.hostPath", message, ("cluster.deletionProtection",)))
    if source.host_path and (_below(source.host_path, _SYSTEM - {"/var", "/root"}) or _is_nodes_own(source.host_path)):
        faults.append(
            Fault(f"{path}.hostPath", f"{quoted(source.host_path)} is the node's own. Take a folder of its own, such as /var/lib/slipway.")
        )
    return faults


def _is_nodes_own(place: str) -> bool:
    """True for a folder of the node's own programs, and for its parents."""
    return place == "/root" or any(_below(place, [folder]) or _below(folder, [place]) for folder in _NODES_OWN)


def _check_disk(path: str, source: Source, cluster: Cluster) -> list[Fault]:
    """Only one machine at a time can mount a disk, so everything that mounts it must be on that machine."""
    if source.disk is None:
        return []
    remedy = "Take a source that many nodes can mount (docs/operate/storage.md)"
    for at, pool in enumerate(cluster.node_pools):
        where = f"cluster.nodePools[{at}]"
        if pool.max > 1:
            message = (
                f"one machine at a time can mount a disk, and pool {quoted(pool.name)} holds up to {pool.max}. {remedy}, or say max: 1."
            )
            return [Fault(f"{path}.disk", message, (f"{where}.max",))]
        if pool.existing is None or pool.existing.labels != cluster.system_nodes.labels or not pool.existing.labels:
            same = "or give systemNodes the labels of the pool's existing machine."
            message = f"one machine at a time can mount a disk, and login pods need not be on that of {quoted(pool.name)}. {remedy}, {same}"
            return [Fault(f"{path}.disk", message, (where, "cluster.systemNodes"))]
    return []


def _check_sharing(volumes: dict[str, Source]) -> list[Fault]:
    """Two volumes over the same folder, or one inside the other, would mix their files and could not be protected separately."""
    faults: list[Fault] = []
    before: list[tuple[str, tuple[str, str], str]] = []
    for path, source in volumes.items():
        for where, place in _places(source):
            for other_path, other_where, other_place in before:
                if where != other_where or not (_below(place, [other_place]) or _below(other_place, [place])):
                    continue
                if place == other_place:
                    faults.append(Fault(path, f"is the same place as {other_path}. Give each its own.", (other_path,)))
                else:
                    verb = "lies in" if _below(place, [other_place]) else "holds"
                    message = (
                        f"{quoted(place)} {verb} {quoted(other_place)}, the place of {other_path}. Give each its own, beside the other."
                    )
                    faults.append(Fault(path, message, (other_path,)))
                break
            before.append((path, where, place))
    return faults


def _places(source: Source) -> list[tuple[tuple[str, str], str]]:
    """The normalised places of a volume's existing files: the kind of place with its host, and the path there."""
    places = [(("hostPath", ""), source.host_path), (("claim", ""), source.claim)]
    if source.nfs:
        places.append((("nfs", source.nfs.server.lower().rstrip(".")), posixpath.normpath(f"/{source.nfs.path.strip('/')}")))
    return [(where, place) for where, place in places if place is not None]


def _check_places(mount_paths: list[str]) -> list[Fault]:
    faults: list[Fault] = []
    before: dict[str, str] = {}
    for at, place in enumerate(mount_paths):
        path = f"cluster.storage.mounts[{at}]"
        faults += check_place(f"{path}.mountPath", place, before)
        before[path] = place
    return faults


def check_place(path: str, place: str, other_places: Mapping[str, str], is_disk: bool = False) -> list[Fault]:
    """Faults of a place in the pods: over an existing folder, or over one of `other_places` (path in the config to place).

    Only a node's own disk (`is_disk`) may take the place of jobs' private /tmp or of container images.
    """
    faults: list[Fault] = []
    taken = next((what for folder, what in _TAKEN.items() if _below(place, [folder])), None)
    if (_below(place, _SYSTEM) and not (is_disk and place in (shared_root.TMP, shared_root.CONTAINERS))) or place == "/opt":
        faults.append(Fault(path, f"{quoted(place)} would hide a folder of the system. Take another, such as /data."))
    elif taken:
        faults.append(Fault(path, f"{quoted(place)} is where {taken}. Take another, such as /data."))
    for other_path, other_place in other_places.items():
        if place == other_place:
            faults.append(Fault(path, f"{quoted(place)} is where {other_path} is. Each needs its own."))
        elif _below(place, [other_place]) or _below(other_place, [place]):
            faults.append(Fault(path, f"{quoted(place)} and {quoted(other_place)} ({other_path}) lie in one another. Move one."))
    return faults


def _below(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)
