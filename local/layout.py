"""The nodes, addresses and folders of the local cluster. Facts only: reads and touches nothing.

All addresses are in 198.18.0.0/15, reserved for benchmarks (RFC 2544), so they belong to no other machine.
"""

import os
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

CONTEXT = "slipway-local"
CLUSTER_DOMAIN = "cluster.local"

WHOLE_RANGE = IPv4Network("198.18.0.0/15")
NODE_RANGE = IPv4Network("198.18.0.0/24")
POD_RANGE = IPv4Network("198.18.128.0/17")
SERVICE_RANGE = IPv4Network("198.19.0.0/16")

BRIDGE = "slipway0"
HOST = IPv4Address("198.18.0.1")
DNS = IPv4Address("198.19.0.10")
API_PORT = 6443
ETCD_PORT = 2379
ETCD_PEER_PORT = 2380
CONTROLLER_MANAGER_PORT = 10257
SCHEDULER_PORT = 10259
PORTS = (API_PORT, ETCD_PORT, ETCD_PEER_PORT, CONTROLLER_MANAGER_PORT, SCHEDULER_PORT)
"""Of the control plane, on the bridge's address only."""
API_URL = f"https://{HOST}:{API_PORT}"

REGISTRY = f"{HOST}:5000"
"""Where nodes pull images from by plain HTTP, if something listens there; the only registry that they can reach."""

POOL_LABEL = "slipway.dev/pool"
SWITCH_LABEL = "slipway.dev/switch"
"""Where a node is in the network: all are on one switch."""
GPU_RESOURCE = "nvidia.com/gpu"


@dataclass(frozen=True)
class Node:
    """One Kubernetes node: containerd, kubelet and kube-proxy in their own network and mount namespaces."""

    name: str
    index: int
    pool: str
    gpus: int = 0

    @property
    def address(self) -> IPv4Address:
        """The node's address on the bridge: 198.18.0.10 and up."""
        return NODE_RANGE[10 + self.index]

    @property
    def pods(self) -> IPv4Network:
        """The range of the node's pods, a /24."""
        return list(POD_RANGE.subnets(new_prefix=24))[1 + self.index]

    @property
    def netns(self) -> str:
        """Name of the network namespace, as `ip netns` shows it."""
        return f"slipway-{self.name}"

    @property
    def link(self) -> str:
        """The host's end of the node's cable, a port of the bridge (at most 15 characters)."""
        return f"slw-{self.index}"

    @property
    def mac(self) -> str:
        """The hardware address of the node's end, derived from its address, so that neighbours know a recreated cable at once."""
        return "02:00:" + self.address.packed.hex(":")

    @property
    def cgroup(self) -> str:
        """Where the node's pods are, as a path below each hierarchy's root."""
        return f"/slipway/{self.name}"

    @property
    def is_worker(self) -> bool:
        """True for nodes that only tolerating pods may use."""
        return self.pool == "workers"


SYSTEM = Node("system", 0, "system")
WORKERS = (Node("worker-0", 1, "workers", gpus=4), Node("worker-1", 2, "workers", gpus=4))
NODES = (SYSTEM, *WORKERS)


@dataclass(frozen=True)
class Paths:
    """Every folder and file of one local cluster. `state` is git-ignored and belongs to a checkout; `cache` outlives it."""

    state: Path
    cache: Path
    runtime: Path = Path("/run/slipway")
    """Sockets and pins of namespaces; short, since a socket's path may have 107 bytes at most."""

    @property
    def kubeconfig(self) -> Path:
        return self.state / "kubeconfig"

    @property
    def bin(self) -> Path:
        """Links to the built programs, so that people find `kubectl` here."""
        return self.state / "bin"

    @property
    def logs(self) -> Path:
        return self.state / "logs"

    @property
    def records(self) -> Path:
        """One file a process that we started."""
        return self.state / "processes"

    @property
    def made_folders(self) -> Path:
        """List of the mount points that had to be made outside our own folders."""
        return self.state / "made-folders"

    @property
    def pki(self) -> Path:
        return self.state / "pki"

    @property
    def etcd(self) -> Path:
        return self.state / "etcd"

    @property
    def volumes(self) -> Path:
        """Data of the default StorageClass, `local-path`."""
        return self.state / "volumes"

    @property
    def tunables(self) -> Path:
        """The machine's own kernel settings, to be given back."""
        return self.state / "sysctl.json"

    @property
    def applied(self) -> Path:
        """Digest of the manifests that were applied last."""
        return self.state / "applied"

    @property
    def owner(self) -> Path:
        """Says which state folder the cluster on this machine belongs to: there can be only one."""
        return self.runtime / "owner"

    @property
    def lock(self) -> Path:
        return self.state / "lock"

    @property
    def nodes(self) -> Path:
        return self.state / "nodes"

    def node(self, node: Node) -> Path:
        """A node's disk: its containerd, kubelet and CNI folders, bound to the usual places in its mount namespace."""
        return self.nodes / node.name

    def run(self, node: Node) -> Path:
        """What the node sees as /run."""
        return self.runtime / node.name

    def socket(self, node: Node) -> Path:
        """containerd's socket, as seen from outside the node."""
        return self.run(node) / "containerd" / "containerd.sock"

    def mount_pin(self, node: Node) -> Path:
        """File that keeps the node's mount namespace alive when no process is in it."""
        return self.runtime / "mnt" / node.name


def find_paths(root: Path, environ: dict[str, str] | None = None) -> Paths:
    """The paths for a checkout at `root`: state in `.slipway/`, cache in $XDG_CACHE_HOME or ~/.cache."""
    env = dict(os.environ) if environ is None else environ
    cache = Path(env["XDG_CACHE_HOME"]) if env.get("XDG_CACHE_HOME") else Path(env.get("HOME", "/root")) / ".cache"
    return Paths(state=(root / ".slipway").resolve(), cache=cache / "slipway")
