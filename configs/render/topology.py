"""Renders topology.yaml(5): the topologies with their fixed parts, and all nodes as not placed yet. Pure.

The NodeSet controller places each node over REST by its machine's labels, so new machines need no reconfigure.
"""

from configs.models.cluster import Cluster
from configs.models.topology import Topology
from slurm.topology import FILE, UNPLACED, block_name


def render_topology(cluster: Cluster, nodes: list[str]) -> dict[str, str]:
    """The file by its name, for all nodes, given as hostlists. Empty without a topology or without nodes: slurmctld crashes on an empty
    file."""
    if not cluster.topologies or not nodes:
        return {}
    return {FILE: "".join(_topology(topology, ",".join(nodes), is_first=at == 0) for at, topology in enumerate(cluster.topologies))}


def _topology(topology: Topology, nodes: str, is_first: bool) -> str:
    lines = [f"- topology: {topology.name}", f"  cluster_default: {str(is_first).lower()}"]
    if topology.block is None:
        lines += ["  tree:", "    switches:", f"      - switch: {topology.name}", f"        children: {UNPLACED}"]
        lines += [f"      - switch: {UNPLACED}", f"        nodes: {nodes}"]
    else:
        lines += ["  block:", f"    block_sizes: [{topology.block.size}]", "    blocks:"]
        lines += [f"      - block: {block_name(topology.name, number)}" for number in range(topology.block.count)]
        lines += [f"      - block: {UNPLACED}", f"        nodes: {nodes}"]
    return "\n".join(lines) + "\n"
