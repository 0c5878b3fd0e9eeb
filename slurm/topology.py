"""Nodes' places in Slurm's topologies: names of switches and blocks, and the text that places a node in all of them. Pure.

The text: `fabric:fabric:sp1:sp1-leaf3,nvlink:nvlink-0`, a tree's path from the top switch, or a block. Slurm creates missing switches of a
path, but no top switch and no block (measured on 26.05). A node outside a topology gets no job there, so every text names them all.
"""

import re
from collections.abc import Iterable, Mapping

FILE = "topology.yaml"
EC2_LAYER = "topology.k8s.aws/network-node-layer-"
"""Labels of machines with their place in EC2's network, a number from 1 at the top follows. Source: EKS' user guide."""
UNPLACED = "unplaced"
"""The switch, or the block, of nodes whose place is not known."""
_LONGEST_NUMBER = 18
"""slurmctld crashes over a name with more than 19 digits in a row."""
_UNIT = re.compile(r"^ *- (topology|switch|block): (\S+)$", re.MULTILINE)


def switch_name(values: Iterable[str]) -> str:
    """The name of the switch that these label values lead to, from the top: `sp1-leaf3`.

    It includes the names above it: Slurm silently puts a node under a switch of the same name elsewhere. A dot separates switches in
    SLURM_TOPOLOGY_ADDR, so names have none.
    """
    name = "-".join(re.sub(r"[^A-Za-z0-9_-]", "_", value) for value in values)
    return re.sub(rf"(\d{{{_LONGEST_NUMBER}}})(?=\d)", r"\1-", name)


def tree_place(topology: str, values: Iterable[str] | None) -> str:
    """A node's place in a tree, by the label values of its machine from the top; None where it has none."""
    path = tuple(values) if values is not None else None
    names = [UNPLACED] if path is None else [switch_name(path[: depth + 1]) for depth in range(len(path))]
    return ":".join((topology, topology, *names))


def block_place(topology: str, block: str | None) -> str:
    """A node's place in a topology of blocks; None where it has none."""
    return f"{topology}:{block or UNPLACED}"


def block_name(topology: str, number: int) -> str:
    """The name of a block."""
    return f"{topology}-{number}"


def address(place: str) -> str:
    """What SLURM_TOPOLOGY_ADDR says before the node's name: `fabric.sp1.sp1-leaf3`."""
    return place.partition(":")[2].replace(":", ".")


def places_of(text: str) -> dict[str, str]:
    """The places in a node's text, by topology."""
    return {part.partition(":")[0]: part for part in text.split(",") if part}


def units_of(file: str) -> dict[str, frozenset[str]]:
    """The switches and blocks in a topology.yaml of ours, by topology."""
    by_topology: dict[str, set[str]] = {}
    units: set[str] = set()
    for kind, name in _UNIT.findall(file):
        if kind == "topology":
            units = by_topology.setdefault(name, set())
        else:
            units.add(name)
    return {topology: frozenset(names) for topology, names in by_topology.items()}


def fits(text: str, units: Mapping[str, frozenset[str]]) -> bool:
    """True if slurmctld accepts a node's text with a topology.yaml, and the node is in each topology. An empty text fits: the file places
    the node."""
    places = places_of(text)
    return not places or (
        places.keys() == units.keys()
        and all(place.split(":")[1:2] and place.split(":")[1] in units[name] for name, place in places.items())
    )
