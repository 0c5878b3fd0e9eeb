"""Config of storage: the shared volume, homes, further mounts, and the disks of slurmctld and the accounting database."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictStr

from configs.faults import quoted
from configs.models.fields import (
    AbsolutePath,
    Flag,
    Host,
    Matching,
    Model,
    ObjectName,
    Size,
    dns_label,
    refuse,
)
from configs.models.nfs_server import MountOption, NfsServer
from configs.models.shared_root import Root
from names import paths


def _straight(value: str) -> str:
    if {".", ".."} & set(value.split("/")):
        raise refuse(f"{quoted(value)} holds `.` or `..`, which servers resolve each in its own way. Write the path as it is.")
    return value


MountName = Annotated[StrictStr, AfterValidator(dns_label(40, "datasets"))]
"""A volume of the pods is called `mount-<name>`, and its name may have 63 characters."""
ExportPath = Annotated[
    StrictStr,
    AfterValidator(Matching(r'/[^\s,\\"#]*', "an absolute path on the NFS server, such as /export/data", 1024, "/export/data")),
    AfterValidator(_straight),
]


SourceKind = Literal["hostPath", "claim", "storageClass", "nfs", "nfsServer", "disk"]


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
    """StorageClass of the disk. A daemon's disk that exists keeps its class, and the preview reports that. Default: the
    Kubernetes cluster's own default class."""
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
        """The sources that are given, by their key. A checked config has exactly one."""
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
    projects: AbsolutePath = Field(default=paths.PROJECTS, examples=["/data/projects"])
    """Where the folders of accounts with `folder: true` are: a folder directly below /shared or below one of `mounts`, or such a mount
    itself."""
    nfs_server: NfsServer | None = None
    """An NFS server in the cluster, for sources that say `nfsServer: true`. Default: none."""
    state: Disk = Disk()
    """Disk of slurmctld, which holds its state: the queue lives here."""
