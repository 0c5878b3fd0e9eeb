"""The network of the local cluster: one bridge on the host, one network namespace per node, and routes.

Slurm takes a node's address from its connection, so only packets that leave the machine are translated. Pods have routed point-to-point
links: service addresses work between two pods of a node without the bridge's netfilter.
"""

import socket
from dataclasses import dataclass
from pathlib import Path

from local import layout, mounts
from local.commands import run, succeeds
from local.layout import Node

NETNS = Path("/run/netns")
"""Where `ip` keeps namespaces by name: a file each, on which the namespace is mounted."""
SYSCTLS = {"net/ipv4/ip_forward": "1", "net/ipv4/conf/all/rp_filter": "0", "net/ipv4/conf/default/rp_filter": "0"}
"""Inside a node's network namespace."""

RULES_NEEDED = """
table ip probe {
  chain leaving {
    type nat hook postrouting priority 100;
    mark and 0x4000 == 0x4000 masquerade fully-random;
  }
  chain arriving {
    type nat hook prerouting priority -100;
    fib daddr type local ip daddr 192.0.2.1 dnat to numgen random mod 2 map { 0 : 192.0.2.2, 1 : 192.0.2.3 };
  }
}
"""
"""What kube-proxy's nftables mode asks of the kernel, in one ruleset."""


@dataclass(frozen=True)
class Existing:
    """What is there already: links on the host and network namespaces, by name."""

    links: frozenset[str]
    namespaces: frozenset[str]
    ghosts: frozenset[str] = frozenset()
    """Files of namespaces that are gone: a machine that started again may keep /run on its disk."""


def observe() -> Existing:
    """Reads links and namespaces of this machine."""
    files = frozenset(path.name for path in NETNS.iterdir()) if NETNS.is_dir() else frozenset[str]()
    ghosts = files - {Path(point).name for point in mounts.mounted() if Path(point).parent == NETNS}
    return Existing(frozenset(name for _, name in socket.if_nameindex()), files - ghosts, ghosts)


def plan_up(nodes: tuple[Node, ...], existing: Existing) -> list[str]:
    """The `ip` commands that complete the network from any half-made state. Repeating one is harmless."""
    commands: list[str] = []
    if layout.BRIDGE not in existing.links:
        commands.append(f"link add {layout.BRIDGE} type bridge")
    commands += [
        f"address replace {layout.HOST}/{layout.NODE_RANGE.prefixlen} dev {layout.BRIDGE}",
        f"link set {layout.BRIDGE} up",
    ]
    for node in nodes:
        if node.netns in existing.ghosts:
            commands.append(f"netns delete {node.netns}")
        if node.netns not in existing.namespaces:
            commands.append(f"netns add {node.netns}")
        if node.link not in existing.links:
            commands.append(f"link add {node.link} type veth peer name eth0 address {node.mac} netns {node.netns}")
        commands += [f"link set {node.link} master {layout.BRIDGE} up", f"route replace {node.pods} via {node.address}"]
    commands.append(f"route replace {layout.SERVICE_RANGE} via {nodes[0].address}")
    return commands


def plan_node(node: Node, nodes: tuple[Node, ...]) -> list[str]:
    """The `ip` commands in a node's namespace: its address, routes to other nodes' pods, and the default route through the host."""
    return [
        "link set lo up",
        f"address replace {node.address}/{layout.NODE_RANGE.prefixlen} dev eth0",
        "link set eth0 up",
        *(f"route replace {peer.pods} via {peer.address}" for peer in nodes if peer != node),
        # kube-proxy rewrites the destination; the route is only so that the node's own programs get that far.
        f"route replace {layout.SERVICE_RANGE} dev eth0",
        f"route replace default via {layout.HOST}",
    ]


def plan_down(nodes: tuple[Node, ...], existing: Existing) -> list[str]:
    """The `ip` commands that remove everything; the kernel removes routes with the bridge.

    Cables go first: the kernel removes those of a deleted namespace later, maybe after the next `up` has reused them.
    """
    return [
        *(f"link delete {node.link}" for node in nodes if node.link in existing.links),
        *(f"netns delete {node.netns}" for node in nodes if node.netns in existing.namespaces | existing.ghosts),
        *([f"link delete {layout.BRIDGE}"] if layout.BRIDGE in existing.links else []),
    ]


def up(nodes: tuple[Node, ...]) -> None:
    """Makes or completes the network. Raises LocalError with the words of `ip`."""
    run(["unshare", "--net", "nft", "-f", "-"], stdin=RULES_NEEDED)
    run(["ip", "-batch", "-"], stdin="\n".join(plan_up(nodes, observe())) + "\n")
    sysctls = "\n".join(f"echo {value} >/proc/sys/{name}" for name, value in SYSCTLS.items())
    for node in nodes:
        run(["ip", "-n", node.netns, "-batch", "-"], stdin="\n".join(plan_node(node, nodes)) + "\n")
        # /proc/sys/net is the reader's own namespace's, whichever mount of /proc it is read through.
        run(["nsenter", f"--net=/run/netns/{node.netns}", "sh", "-e"], stdin=sysctls)


def down(nodes: tuple[Node, ...]) -> None:
    """Removes the network, or the parts of it that are left."""
    for command in plan_down(nodes, observe()):
        succeeds(["ip", *command.split()])
