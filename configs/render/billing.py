"""Weights of GPUs in fair share: TRESBillingWeights of partitions, from the memory of their GPUs. Pure.

Without weights Slurm bills CPUs only (slurm.conf(5), TRESBillingWeights): a job with eight GPUs would cost as much as its CPUs.
"""

from configs.models.cluster import Cluster
from configs.models.node_set import NodeSet
from configs.models.partition import Partition
from configs.models.shapes import machine_of

KEY = "TRESBillingWeights"


def billing_weights(cluster: Cluster, partition: Partition) -> dict[str, str]:
    """The weights of a partition with GPUs: 1 for each CPU, and for each GPU its memory in GiB. Empty without GPUs or accounting.

    Memory follows the price of a GPU closely enough, MIG instances included. Raises KeyError for an unknown node set.
    """
    sets = [node_set for name in partition.node_sets if (node_set := cluster.node_set(name)).ordinals and node_set.gpus]
    if not sets or not cluster.accounting.enabled:
        return {}
    weights = {kind: gib for node_set in sets for kind, gib in _gib_by_type(cluster, node_set).items()}
    if len({*weights.values()}) == 1:
        weights = {"": next(iter(weights.values()))}
    gpus = [f"GRES/gpu{':' if kind else ''}{kind}={gib}" for kind, gib in weights.items()]
    return {KEY: ",".join(["CPU=1", *gpus])}


def gpu_gib(cluster: Cluster, node_set: NodeSet) -> int:
    """Memory of each GPU of a set, in GiB; 1 if the machine does not state it. Raises KeyError for an unknown pool."""
    gpus = machine_of(cluster.node_pool(node_set.pool)).gpus
    return max(1, round((gpus.memory_mib if gpus else 0) / 1024))


def _gib_by_type(cluster: Cluster, node_set: NodeSet) -> dict[str, int]:
    """Keyed by GRES type: the model of whole GPUs, or MIG profiles such as 1g.10gb, whose name contains their memory."""
    if node_set.gpus is None:
        return {}
    model = node_set.gpus.model
    profiles = {f"{model}_{instance.profile}": int(instance.profile.partition(".")[2].removesuffix("gb")) for instance in node_set.gpus.mig}
    return profiles or {model: gpu_gib(cluster, node_set)}
