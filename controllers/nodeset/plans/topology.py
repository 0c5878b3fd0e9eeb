"""Where nodes are in Slurm's topologies, and which features they have by the labels of their machines. Pure; part of `plan`.

A changed place affects no running job. A node of a fixed set keeps its place while its pod is away, as the pod mostly returns to the same
machine. A node that is off has no place, as it may wake anywhere.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controllers.nodeset.observed import Observed
from controllers.nodeset.structs import NodeSetObject, NodeSetSpec, Topology
from controllers.nodeset.workers import Machine, Worker
from slurm.topology import address, block_name, block_place, places_of, tree_place


@dataclass(frozen=True)
class Placement:
    """An update of nodes in Slurm; None for a value that is right already."""

    topology: str | None
    features: tuple[str, ...] | None


@dataclass(frozen=True)
class Topologies:
    """What to tell Slurm and the workers' pods of places."""

    place: Mapping[Placement, tuple[int, ...]] = field(default_factory=dict[Placement, tuple[int, ...]])
    """Ordinals by the update that Slurm needs for them."""
    addresses: Mapping[int, str] = field(default_factory=dict[int, str])
    """Pods whose annotation with their node's address is another now."""
    unplaced: Mapping[int, str] = field(default_factory=dict[int, str])
    """Why a node whose machine is known has no place, in words that say what to do."""

    @property
    def writes_to_slurm(self) -> bool:
        """True when Slurm needs an update."""
        return bool(self.place)


def plan_topologies(nodeset: NodeSetObject, observed: Observed) -> Topologies:
    """The places and features that nodes should have and do not have."""
    spec = nodeset.spec
    if observed.nodes is None or not (spec.topologies or spec.label_features):
        return Topologies()
    place: dict[Placement, list[int]] = {}
    addresses: dict[int, str] = {}
    unplaced: dict[int, str] = {}
    for worker in observed.workers():
        machine = observed.machine_of(worker)
        if worker.node is None or (machine is None and not worker.is_powered_down):
            continue
        places = [_find_place(topology, machine, observed.blocks) for topology in spec.topologies]
        if machine is not None and (why := next((why for _, why in places if why), "")):
            unplaced[worker.ordinal] = f"{worker.pod.machine if worker.pod else ''} {why}"
        if (placement := _compare(spec, worker, machine, [text for text, _ in places])) is not None:
            place.setdefault(placement, []).append(worker.ordinal)
        if (
            spec.topologies
            and worker.pod is not None
            and machine is not None
            and worker.pod.address != (node_address := address(places[0][0]))
        ):
            addresses[worker.ordinal] = node_address
    return Topologies({placement: tuple(ordinals) for placement, ordinals in place.items()}, addresses, unplaced)


def _compare(spec: NodeSetSpec, worker: Worker, machine: Machine | None, places: Iterable[str]) -> Placement | None:
    """The update that Slurm needs for a node; None where it needs none."""
    assert worker.node is not None
    wanted = ",".join(places)
    # Without a text of its own, a node is where topology.yaml has all nodes: unplaced.
    present = worker.node.topology or ",".join(_unplaced(topology) for topology in spec.topologies)
    features = features_of(spec, machine) if spec.label_features else None
    placement = Placement(
        wanted if wanted != present else None,
        features if features is not None and sorted(features) != sorted(worker.node.features) else None,
    )
    return placement if placement != Placement(None, None) else None


def _find_place(topology: Topology, machine: Machine | None, blocks: Mapping[str, Mapping[str, int]]) -> tuple[str, str]:
    """A node's place in a topology, and why it has none where that could be mended."""
    if machine is None:
        return _unplaced(topology), ""
    values = [machine.labels.get(label, "") for label in topology.labels]
    if missing := [label for label, value in zip(topology.labels, values, strict=True) if not value]:
        return _unplaced(topology), f"has no label {missing[0]}"
    if topology.blocks is None:
        return tree_place(topology.name, values), ""
    number = blocks.get(topology.name, {}).get(values[0])
    if number is None:
        return _unplaced(
            topology
        ), f"is in group {values[0]}, and all {topology.blocks} blocks of {topology.name} are taken: raise its count"
    return block_place(topology.name, block_name(topology.name, number)), ""


def _unplaced(topology: Topology) -> str:
    return tree_place(topology.name, None) if topology.blocks is None else block_place(topology.name, None)


def features_of(spec: NodeSetSpec, machine: Machine | None) -> tuple[str, ...]:
    """The features of a node: those of the set, then one for each label of its machine that is neither empty nor `false`."""
    features = list(spec.features)
    for label in spec.label_features:
        name, value = label.rpartition("/")[2], machine.labels.get(label, "") if machine is not None else ""
        if value == "true":
            features.append(name)
        elif value not in ("", "false"):
            # Slurm reads a digit at the beginning of a constraint as a count.
            features.append(value if value[0].isalpha() else f"{name}-{value}")
    return tuple(dict.fromkeys(features))


def assign_blocks(topology: Topology, nodes: Iterable[tuple[str, str]], known: Mapping[str, int]) -> dict[str, int]:
    """The number of the block of each group of machines, a group without a free block left out.

    `nodes` are the label value of each node's machine, and the node's text in Slurm; `known` is what this gave before. A group keeps its
    block; a process that begins finds it in Slurm, where most of the group's nodes are.
    """
    nodes = list(nodes)
    groups = {group for group, _ in nodes}
    numbers = {block_place(topology.name, block_name(topology.name, number)): number for number in range(topology.blocks or 0)}
    assigned = {group: number for group, number in known.items() if group in groups and 0 <= number < (topology.blocks or 0)}
    used = set(assigned.values())
    counted = Counter((group, numbers[place]) for group, text in nodes if (place := places_of(text).get(topology.name, "")) in numbers)
    for (group, number), _ in sorted(counted.items(), key=lambda entry: (-entry[1], entry[0])):
        if group not in assigned and number not in used:
            assigned[group] = number
            used.add(number)
    free = iter(sorted(set(numbers.values()) - used))
    for group in sorted(groups - assigned.keys()):
        if (number := next(free, None)) is not None:
            assigned[group] = number
    return assigned
