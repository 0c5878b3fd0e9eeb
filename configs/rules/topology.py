"""Rules of topologies: each is one kind of network, and Slurm's own keys do not contradict it."""

from configs.faults import Fault, did_you_mean, quoted
from configs.models.cluster import Cluster
from configs.models.topology import Topology
from configs.rules.names import check_distinct, check_unique
from slurm.conf import known

_PATH = "cluster.topologies"


def check_topologies(cluster: Cluster) -> list[Fault]:
    """Faults of the topologies, of the partitions that name one, and of labels as features."""
    faults = check_unique(_PATH, "topology", [topology.name for topology in cluster.topologies])
    for at, topology in enumerate(cluster.topologies):
        faults += _check_topology(f"{_PATH}[{at}]", topology)
    names = {topology.name for topology in cluster.topologies}
    for at, partition in enumerate(cluster.partitions):
        if partition.topology is not None and partition.topology not in names:
            hint = did_you_mean(partition.topology, names) if names else "Add it to cluster.topologies."
            faults.append(
                Fault(f"cluster.partitions[{at}].topology", f"no topology is called {quoted(partition.topology)}. {hint}", (_PATH,))
            )
    if cluster.topologies:
        for key in cluster.slurm.settings:
            if known(key, ("TopologyPlugin",)):
                message = "is ignored by Slurm beside `topologies`, which say the kind of each. Leave it out."
                faults.append(Fault(f"cluster.slurm.settings.{key}", message, (_PATH,)))
    return faults + check_distinct("cluster.labelFeatures", cluster.label_features)


def _check_topology(path: str, topology: Topology) -> list[Fault]:
    kinds = [name for name in ("preset", "tree", "block") if getattr(topology, name) is not None]
    if not kinds:
        return [Fault(path, "does not describe a network yet. Set `preset`, `tree` or `block`.")]
    if len(kinds) > 1:
        return [Fault(f"{path}.{kinds[1]}", f"cannot be combined with {kinds[0]}. Make two topologies.")]
    if topology.tree is None:
        return []
    if not topology.tree.labels:
        return [Fault(f"{path}.tree.labels", "is empty: no node would have a place. Name at least the label of a machine's switch.")]
    return check_distinct(f"{path}.tree.labels", topology.tree.labels)
