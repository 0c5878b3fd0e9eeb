"""Config of storage: the shared root, homes, further mounts, and the disks of slurmctld and the accounting database."""

from collections.abc import Mapping
from typing import Literal

from configs.fields import (
    AbsolutePath,
    Days,
    ExportPath,
    Flag,
    Host,
    ImageReference,
    IPAddress,
    Model,
    MountName,
    MountOption,
    Name,
    Network,
    ObjectName,
    RootVersionName,
    Sha256,
    Size,
    TarUrl,
)

SourceKind = Literal["hostPath", "claim", "storageClass", "nfs", "nfsServer", "disk"]

SERVER_OPTIONS = (
    "nfsvers=4.1",  # sessions: a request that is sent again is done once, and locks come back after a restart (RFC 8881, 2.10 and 8.4.2)
    "hard",  # a server that is away is waited for; "soft" may lose what was written (nfs(5))
    "timeo=100",  # tenths of a second. With retrans, a server that left without a word is given up after 30 s and dialled again; a slow one
    "retrans=2",  # answers TCP's own probes and is not (xs_tcp_set_socket_timeouts in Linux' net/sunrpc/xprtsock.c)
    "nconnect=4",  # clouds bound one TCP connection, often to 5 Gbit/s, and not the machine; from Linux 5.3 (nfs(5))
)
"""How nodes mount what the cluster's own NFS server has. TCP is all it speaks; `noatime` means nothing to an NFS client (nfs(5))."""


class Nfs(Model):
    """An NFS export."""

    server: Host
    path: ExportPath
    options: tuple[MountOption, ...] = ()
    """Mount options, such as nfsvers=4.1."""


class Disk(Model):
    """A disk of one pod (ReadWriteOnce)."""

    storage_class: ObjectName | None = None
    """Default: the cluster's own default class."""
    size: Size = "5Gi"


class Source(Model):
    """Where a shared volume comes from: exactly one of the six. `storageClass` must offer ReadWriteMany and wants a `size`."""

    host_path: AbsolutePath | None = None
    """A folder on every node. It is shared only if something else shares it: for one machine."""
    claim: ObjectName | None = None
    """An existing PersistentVolumeClaim in the cluster's namespace."""
    storage_class: ObjectName | None = None
    size: Size | None = None
    nfs: Nfs | None = None
    nfs_server: Flag = False
    """A folder of its own on the cluster's own server, which storage.nfsServer declares."""
    disk: Disk | None = None
    """A disk of the class, the cluster's default one where left out (ReadWriteOnce): for clusters whose pods are all on one machine."""

    @property
    def sources(self) -> Mapping[SourceKind, object]:
        """The sources that are given, by their key. One, once the config has been checked."""
        candidates: dict[SourceKind, object] = {
            "hostPath": self.host_path,
            "claim": self.claim,
            "storageClass": self.storage_class,
            "nfs": self.nfs,
            "nfsServer": self.nfs_server or None,
            "disk": self.disk,
        }
        return {kind: value for kind, value in candidates.items() if value is not None}

    @property
    def kind(self) -> SourceKind:
        """Which of the six it is."""
        return next(iter(self.sources))


class Mount(Source):
    """A further shared volume, in the login pods and in the workers that do not choose others."""

    name: MountName
    mount_path: AbsolutePath
    read_only: Flag = False


class NfsServer(Model):
    """An NFS server in the cluster, for those without a shared file system: one pod on one disk, which every `nfsServer: true` shares."""

    storage_class: ObjectName | None = None
    """The disk's class. Default: the cluster's own default class."""
    size: Size
    """The disk's size."""
    cluster_ip: IPAddress
    """A free address of the Kubernetes cluster's service range: nodes mount by it, and know it before anything runs."""
    options: tuple[MountOption, ...] = SERVER_OPTIONS
    """Mount options, instead of `SERVER_OPTIONS`."""
    networks: tuple[Network, ...] = ()
    """Networks that the nodes mount from; all others are refused. Default: every network, from ports that only root may use."""


class RootTar(Model):
    """A tar of a root file system: plain, or compressed with gzip, xz or zstd."""

    url: TarUrl
    """https://, http://, or file:///shared/... for a file that somebody put on the shared volume."""
    sha256: Sha256
    """Of the file as it is there, as sha256sum prints it."""


class RootVersion(Model):
    """One version of the root that jobs and logins see; filled once, from an image or a tar, and never again."""

    name: RootVersionName
    image: ImageReference | None = None
    """What it is filled from. Default, where there is no tar: the image of the Slurm roles. It has to have that image's release of Debian
    and Slurm."""
    tar: RootTar | None = None
    """What it is filled from, instead of an image."""
    carry_from: Name | None = None
    """The version whose changes get into this one when it is filled: packages, files and system users that came after its own fill."""


class Root(Model):
    """The versioned root: jobs and logins see one version of it as `/`, instead of their pod's image."""

    versions: tuple[RootVersion, ...] = ()
    """Default: one, from the image of the Slurm roles and called after its tag."""
    current: RootVersionName | None = None
    """What new jobs and sessions get. Default: the last of the versions. Jobs that run keep theirs."""
    keep_days: Days = 7
    """For so long a version stays that is not declared any more; longer where a job uses it. Sessions older than that lose their root."""


class Storage(Model):
    """All storage of the cluster."""

    shared_root: Source
    """The shared volume, at /shared in the login pods and workers; the versions of `root` are on it."""
    root: Root | None = None
    """Without it, jobs and logins see their pod's image, and /shared."""
    home: Source
    """Homes of the users, at /home."""
    mounts: tuple[Mount, ...] = ()
    nfs_server: NfsServer | None = None
    """The cluster's own NFS server."""
    state: Disk = Disk()
    """slurmctld's state: the queue lives here."""
