"""Rules of nodes that raw lines refer to: they are node sets' own, or of other raw lines. slurmctld leaves out what it does not find, or
does not start.
"""

import re

from configs.faults import Fault, did_you_mean, quoted
from configs.models.cluster import Cluster
from slurm.conf import known, pairs_of
from slurm.hostlists import HostlistError, expand


def node_names(text: str) -> list[str] | None:
    """The nodes that a raw line names; None for a text that Slurm and this check may read differently."""
    if re.fullmatch(r"[A-Za-z0-9._,\[\]-]+", text, re.ASCII) is None:
        return None
    try:
        return expand(text)
    except HostlistError:
        return None


def check_raw_references(path: str, first: str, pairs: list[tuple[str, str]], cluster: Cluster) -> list[Fault]:
    """Faults of the nodes that a line of DownNodes, NodeSet or PartitionName refers to."""
    references = {name: value for key, value in pairs if (name := known(key, ("DownNodes", "Nodes", "Feature")))}
    if first == "NodeSet" and not {"Nodes", "Feature"} & references.keys():
        return [Fault(path, "names no nodes. Add them, as in Nodes=old-[1-3] or Feature=h100.")]
    names = node_names(references.get("DownNodes" if first == "DownNodes" else "Nodes", "ALL"))
    if names is None or first == "NodeName":
        return []  # with operators and the like that only Slurm reads
    nodes, sets = _raw_names(cluster, "NodeName"), _raw_names(cluster, "NodeSet")
    if nodes is None or sets is None:
        return []
    named = nodes | (sets if first == "PartitionName" else set[str]())
    missing = [name for name in names if name.upper() != "ALL" and name not in named and not _is_of_a_set(name, cluster)]
    if not missing:
        return []
    hint = did_you_mean(missing[0], named) if named else "Add a line for it: NodeName=..."
    return [Fault(path, f"no node is called {quoted(missing[0])}. {hint}", ("cluster.slurm.raw", "cluster.nodeSets"))]


def _raw_names(cluster: Cluster, key: str) -> set[str] | None:
    """The names that raw lines of a kind declare; None if one of them cannot be read here."""
    first = [pairs[0] for line in cluster.slurm.raw if (pairs := pairs_of(line))]
    name_lists = [node_names(value) for line_key, value in first if known(line_key, (key,))]
    return None if None in name_lists else {name for names in name_lists for name in names or ()}


def _is_of_a_set(name: str, cluster: Cluster) -> bool:
    """True for a node within the set's current size."""
    base, _, number = name.rpartition("-")
    return number.isdecimal() and any(node_set.name == base and int(number) < node_set.ordinals for node_set in cluster.node_sets)
