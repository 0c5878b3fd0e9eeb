"""Config of storage: the shared root, homes, further mounts, and the disks of slurmctld and the accounting database."""

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.faults import quoted
from configs.models.fields import (
    AbsolutePath,
    AtMost,
    Flag,
    Host,
    ImageReference,
    Matching,
    Model,
    Name,
    ObjectName,
    Shown,
    Size,
    Whole,
    dns_label,
    refuse,
)

_RECORDS = (".carried", ".lock", ".manifest", ".new", ".part", ".tar", ".unused")
"""Ends of names in the folders sources and filling of the shared root; see programs/root_fill/place.py."""


def _free_ending(value: str) -> str:
    if value.endswith(_RECORDS):
        raise refuse(f"{quoted(value)} ends like the records that lie beside a version ({', '.join(_RECORDS)}).")
    return value


def _address(value: str) -> str:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        raise refuse(f"{quoted(value)} is not an IP address, such as 10.96.20.49.") from None
    if address.is_loopback or address.is_unspecified or address.is_multicast or address.is_link_local:
        raise refuse(f"{quoted(value)} is an address that no other machine can reach. Take a free one, such as 10.96.20.49.")
    return str(address)


def _network(value: str) -> str:
    try:
        return str(ipaddress.ip_network(value))
    except ValueError:
        raise refuse(f"{quoted(value)} is not a network, such as 10.0.0.0/16.") from None


MountName = Annotated[StrictStr, AfterValidator(dns_label(40, "datasets"))]
"""A volume of the pods is called `mount-<name>`, and its name may have 63 characters."""
RootVersionName = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"[A-Za-z0-9][A-Za-z0-9._-]*",
            "a version name: letters, digits, dots, dashes, underscores, first a letter or digit",
            64,
            "2026-01",
        )
    ),
    AfterValidator(_free_ending),
]
"""A folder on the shared volume, and a word of `srun --root-version`."""
TarUrl = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"https?://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d{1,5})?/[\w.~:/?#\[\]@!$&'()*+,;=%-]+|file:///shared(/(?!\.\.?(/|$))[\w.@+-]+)+",
            "where a tar is: https://host/path, http://host/path, or file:///shared/path for one on the shared volume",
            2000,
            "https://files.example.com/root-2026-01.tar.zst",
        )
    ),
]
Sha256 = Annotated[
    StrictStr,
    AfterValidator(
        Matching(
            r"[0-9a-f]{64}",
            "a SHA-256 digest: 64 hexadecimal digits, as sha256sum prints them",
            64,
            "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
        )
    ),
]
IPAddress = Annotated[StrictStr, AfterValidator(_address), Shown("an IP address", "10.96.20.49", {"pattern": r"^[\w.:%]+$"})]
Network = Annotated[StrictStr, AfterValidator(_network), Shown("a network", "10.0.0.0/16", {"pattern": r"^[\w.:%]+(/[\d.]+)?$"})]
ExportPath = Annotated[
    StrictStr, AfterValidator(Matching(r'/[^\s,\\"#]*', "an absolute path on the NFS server, such as /export/data", 1024, "/export/data"))
]
MountOption = Annotated[
    StrictStr, AfterValidator(Matching(r"[a-z0-9_]+(=[\w.:/-]+)?", "one mount option, such as nfsvers=4.1", 100, "nfsvers=4.1"))
]
Days = Annotated[Whole, Field(ge=0), AfterValidator(AtMost(3650))]


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
    """Host name or IP address of the server."""
    path: ExportPath
    """Path of the export on the server."""
    options: tuple[MountOption, ...] = ()
    """Mount options."""


class Disk(Model):
    """A disk of one pod (ReadWriteOnce)."""

    storage_class: ObjectName | None = None
    """StorageClass of the disk. Default: the Kubernetes cluster's own default class."""
    size: Size = "5Gi"
    """Size of the disk."""


class Source(Model):
    """Where a shared volume comes from: exactly one of the six, and with `storageClass` a `size`."""

    host_path: AbsolutePath | None = None
    """A folder on every node. It is shared only if something else shares it, or if there is only one machine."""
    claim: ObjectName | None = Field(default=None, examples=["shared-data"])
    """Name of an existing PersistentVolumeClaim in the cluster's namespace."""
    storage_class: ObjectName | None = None
    """A StorageClass that offers ReadWriteMany; Slipway makes a claim of it, of the `size` given."""
    size: Size | None = None
    """Size of the volume of `storageClass`; the other sources take none."""
    nfs: Nfs | None = None
    """An export of an NFS server that exists already."""
    nfs_server: Flag = False
    """True: a folder of its own on the NFS server that `storage.nfsServer` declares."""
    disk: Disk | None = None
    """A disk that one machine at a time can mount (ReadWriteOnce): for clusters whose pods are all on one machine."""

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
    """Name of the mount; node sets refer to it."""
    mount_path: AbsolutePath
    """Where login pods, workers and jobs have it."""
    read_only: Flag = False
    """True: nobody can write to it."""


class NfsServer(Model):
    """An NFS server in the cluster, for those without a shared file system: one pod on one disk, which every `nfsServer: true` shares."""

    storage_class: ObjectName | None = None
    """StorageClass of the server's disk. Default: the Kubernetes cluster's own default class."""
    size: Size
    """Size of the server's disk."""
    cluster_ip: IPAddress
    """A free address of the Kubernetes cluster's service range: the nodes mount the exports by it."""
    options: tuple[MountOption, ...] = SERVER_OPTIONS
    """Mount options of the nodes, in place of the default ones."""
    networks: tuple[Network, ...] = ()
    """Networks that the nodes mount from; all others are refused. Default: every network, from ports that only root may use."""


class RootTar(Model):
    """A tar of a root file system: plain, or compressed with gzip, xz or zstd."""

    url: TarUrl
    """Where the tar is: https://, http://, or file:///shared/... for a file on the shared volume."""
    sha256: Sha256
    """SHA-256 digest of the file as it is downloaded, as sha256sum prints it."""


class RootVersion(Model):
    """One version of the root that jobs and logins see; filled once, from an image or a tar, and never again."""

    name: RootVersionName
    """Name of the version, as in `srun --root-version`."""
    image: ImageReference | None = None
    """Image that it is filled from, with the same release of Debian and Slurm as the image of the Slurm roles. Default: that image,
    unless `tar` is set."""
    tar: RootTar | None = None
    """Tar that it is filled from, in place of an image."""
    carry_from: Name | None = Field(default=None, examples=["2025-12"])
    """Version whose later changes are carried over when this one is filled: packages, files and system users that were added to it.
    Default: none."""


class Root(Model):
    """The versioned root: jobs and logins see one version of it as `/`, instead of their pod's image."""

    versions: tuple[RootVersion, ...] = Field(default=(), examples=[[{"name": "2026-01", "image": "registry.example/root:2026-01"}]])
    """The versions that exist side by side. Default: one, filled from the image of the Slurm roles and named after its tag."""
    current: RootVersionName | None = None
    """Version that new jobs and sessions get; running jobs keep theirs. Default: the last of `versions`."""
    keep_days: Days = Field(default=7, examples=[14])
    """Days that a version stays after it is no longer declared, or longer while a job uses it. Older sessions lose their root."""


class Storage(Model):
    """All storage of the cluster."""

    shared_root: Source
    """The shared volume, at /shared in the login pods and workers; the versions of `root` are on it."""
    root: Root | None = Field(default=None, examples=[{"keepDays": 14}])
    """The versioned root file system of jobs and logins. Default: none; jobs and logins see their pod's image, and /shared."""
    home: Source
    """Homes of the users, at /home."""
    mounts: tuple[Mount, ...] = Field(default=(), examples=[[{"name": "datasets", "mountPath": "/data", "claim": "fsx-datasets"}]])
    """Further shared volumes."""
    nfs_server: NfsServer | None = None
    """An NFS server in the cluster, for sources that say `nfsServer: true`. Default: none."""
    state: Disk = Disk()
    """Disk of slurmctld, which holds its state: the queue lives here."""
