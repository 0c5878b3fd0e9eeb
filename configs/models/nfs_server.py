"""Config of the cluster's own NFS server."""

import ipaddress
from typing import Annotated

from pydantic import AfterValidator, StrictStr

from configs.faults import quoted
from configs.models.fields import Matching, Model, ObjectName, Shown, Size, refuse


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


IPAddress = Annotated[StrictStr, AfterValidator(_address), Shown("an IP address", "10.96.20.49", {"pattern": r"^[\w.:%]+$"})]
Network = Annotated[StrictStr, AfterValidator(_network), Shown("a network", "10.0.0.0/16", {"pattern": r"^[\w.:%]+(/[\d.]+)?$"})]
MountOption = Annotated[
    StrictStr, AfterValidator(Matching(r"[a-z0-9_]+(=[\w.:/-]+)?", "one mount option, such as nfsvers=4.1", 100, "nfsvers=4.1"))
]
SERVER_OPTIONS = (
    "nfsvers=4.1",  # sessions: a request that is sent again is done once, and locks come back after a restart (RFC 8881, 2.10 and 8.4.2)
    "hard",  # a server that is away is waited for; "soft" may lose what was written (nfs(5))
    "timeo=100",  # tenths of a second. With retrans, a server that left without a word is given up after 30 s and dialled again. A slow
    "retrans=2",  # server answers TCP's own probes and is kept (xs_tcp_set_socket_timeouts in Linux' net/sunrpc/xprtsock.c)
    "nconnect=4",  # clouds bound one TCP connection, often to 5 Gbit/s, and not the machine; from Linux 5.3 (nfs(5))
)
"""How nodes mount what the cluster's own NFS server has. TCP is all it speaks; `noatime` means nothing to an NFS client (nfs(5))."""


class NfsServer(Model):
    """An NFS server in the cluster, for those without a shared file system: one pod on one disk, which every `nfsServer: true` shares."""

    storage_class: ObjectName | None = None
    """StorageClass of the server's disk. A disk that exists keeps its class, and the preview reports that. Default: the Kubernetes
    cluster's own default class."""
    size: Size
    """Size of the server's disk."""
    cluster_ip: IPAddress
    """A free address of the Kubernetes cluster's service range: the nodes mount the exports by it."""
    options: tuple[MountOption, ...] = SERVER_OPTIONS
    """Mount options of the nodes, in place of the default ones."""
    networks: tuple[Network, ...] = ()
    """Networks that the nodes mount from; all others are refused. Default: every network, from ports that only root may use."""
