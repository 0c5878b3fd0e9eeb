"""ganesha.conf of the cluster's own NFS server, from the volumes that are on it. The wording is in templates/ganesha.conf.j2.

Clients know an export by its number and its file system's. Both are made from its name alone, so that file handles stay good whatever
else the stack file gains or loses.
"""

import hashlib
import re
from dataclasses import dataclass

from configs.models.cluster import Cluster
from configs.render.wording import template
from names import paths

DATA = paths.NFS_DATA
"""Where the server's pod has its disk; each export is a folder of it, and `.ganesha` is what the server remembers of its clients."""
VERSIONS = ("4.1", "4.2")
VERSION_OPTION = re.compile(r"(?:nfs)?vers=(.+)")
LEASE_S = 20
"""A client that is silent for longer may lose its locks. A live client renews its lease well before that, so it soon notices a restart."""
GRACE_S = 30
"""Seconds after a start in which clients can take back earlier locks, and no others are given: over a lease (RFC 8881, 8.4.2.1). It ends
at once where all earlier clients are back, or there were none."""


@dataclass(frozen=True)
class Export:
    """One folder that the server gives out."""

    name: str
    """Name of its volume, and of its folder."""
    mode: int
    """The folder's permission bits when it is made."""
    squash: bool
    """True: root of a client is nobody here."""
    read_only: bool = False

    @property
    def id(self) -> int:
        """Its number among the server's exports, 1 to 65535: part of every file handle."""
        return int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:4]) % 65_535 + 1


def exports(cluster: Cluster) -> list[Export]:
    """The folders that are on the server. Users install in the shared root as root. The server itself makes the homes. At the top of
    a further mount everyone may make something, and remove only that."""
    storage = cluster.storage
    return [
        *([Export("shared-root", 0o755, squash=False)] if storage.shared_root.nfs_server else []),
        *([Export("home", 0o755, squash=True)] if storage.home.nfs_server else []),
        *(Export(f"mount-{mount.name}", 0o1777, True, mount.read_only) for mount in storage.mounts if mount.nfs_server),
    ]


def render(cluster: Cluster) -> str:
    """Text of ganesha.conf. Only for a cluster with a server."""
    server = cluster.storage.nfs_server
    networks = server.networks if server else ()
    made = exports(cluster)
    return template("ganesha.conf.j2").render(
        data=DATA, exports=made, networks=networks, lease_s=LEASE_S, grace_s=GRACE_S, minors=[each.partition(".")[2] for each in VERSIONS]
    )
