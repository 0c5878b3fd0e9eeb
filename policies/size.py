"""A stack stays small, whatever the number of nodes: fewer than 500 resources, and none per node. Counts names; compares nothing."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set

from names import labels
from policies.records import Fault, Resource, Rule, leaves

MOST_RESOURCES = 500
_PER_NODE = frozenset({"Node", "Pod", "CSINode"})
_SETS = frozenset({"NodeSet", "GpuNodePool"})
_FEW = 16
"""Resources that may differ by a number alone, such as the claims of mounts, in a stack of fewer node sets and pools than that."""
_REMEDY = "Declare a node set: the controller makes what its nodes need."


def check_count(resources: Sequence[Resource]) -> Iterator[Fault]:
    """A stack with too many resources."""
    if len(resources) >= MOST_RESOURCES:
        counted: dict[str, int] = defaultdict(int)
        for resource in resources:
            counted[resource.type] += 1
        most = sorted(counted.items(), key=lambda entry: -entry[1])[:3]
        listed = ", ".join(f"{count} {type_}" for type_, count in most)
        remedy = "Split it into several stacks."
        yield Fault(None, "", f"{len(resources)} resources are not fewer than {MOST_RESOURCES}; most are {listed}.", remedy)


def check_per_node(resources: Sequence[Resource]) -> Iterator[Fault]:
    """Resources of one node: by kind, by a node's name in their name or labels, or as one of many that differ by a number."""
    sets = [resource for resource in resources if resource.kind == "NodeSet"]
    users = {str(node_set.labels.get(labels.CLUSTER)) for node_set in sets} | {str(node_set.about.get("namespace")) for node_set in sets}
    names = "|".join(re.escape(str(node_set.about.get("name"))) for node_set in sets)
    node = re.compile(rf"(?:{names})-\d{{1,6}}" if names else "(?!)")
    for resource in resources:
        if resource.kind in _PER_NODE:
            yield Fault(resource, "", f"a {resource.kind} is a part of one node.", _REMEDY)
        elif resource.kind not in ("", "Namespace"):
            yield from _named_for_node(resource, node, users)
    most = max(_FEW, sum(resource.type.rpartition(":")[2] in _SETS for resource in resources if not resource.kind))
    for (type_, name), members in _numbered(resources).items():
        if len(members) > most and type_.rpartition(":")[2] not in _SETS:
            message = f"is the first of {len(members)} that differ by a number ({name}); {most} may."
            yield Fault(members[0], "", message, _REMEDY)


def _named_for_node(resource: Resource, node: re.Pattern[str], users: Set[str]) -> Iterator[Fault]:
    """At most one fault. Names that the user chose for a cluster or namespace may read like a node's name."""
    labels = {f"metadata.labels.{path}": str(value) for path, value, _ in leaves(resource.labels)}
    for path, text in {"name": resource.name, "metadata.name": str(resource.about.get("name", "")), **labels}.items():
        if node.fullmatch(text) and text not in users:
            yield Fault(resource, path, f'"{text}" is the name of a node.', _REMEDY)
            return


def _numbered(resources: Sequence[Resource]) -> dict[tuple[str, str], list[Resource]]:
    """The resources whose names end with a number, by their type and the name without it."""
    groups: dict[tuple[str, str], list[Resource]] = defaultdict(list)
    for resource in resources:
        if match := re.fullmatch(r"(.*-)\d{1,6}", resource.name):
            groups[resource.type, f"{match.group(1)}N"].append(resource)
    return groups


COUNT = Rule(
    "fewer-than-500-resources",
    f"A stack has fewer than {MOST_RESOURCES} resources.",
    "docs/explain/architecture.md: a preview stays quick and readable.",
    check_count,
    is_for_all=True,
)
PER_NODE = Rule(
    "nothing-per-node",
    "No resource belongs to one node: a stack is O(node sets), never O(nodes).",
    "docs/explain/architecture.md, Three sentences that decide everything.",
    check_per_node,
)
