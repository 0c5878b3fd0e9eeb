"""The hidden partition of health checks' jobs, which users' jobs preempt at once. Pure.

Without a PreemptType of the user's, partitions decide (preempt/partition_prio), and PreemptMode=OFF protects users' jobs from each other.
If the user's choice leaves no room for it, checks run in users' partitions, as jobs that nothing preempts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from configs.models.cluster import Cluster
from configs.models.node_set import NodeSet
from configs.render.check_facts import checked_sets
from configs.render.health_checks import checks_in
from slurm.conf import CHECKS_PARTITION, known, pairs_of

_BY_PARTITION, _NONE = "preempt/partition_prio", "preempt/none"
PREEMPTION = ("PreemptType", "PreemptMode")
"""Keys of the whole cluster, which users may set as before."""
_TIER = 0


@dataclass(frozen=True)
class ChecksPartition:
    """What slurm.conf needs so that users' jobs preempt checks."""

    node_sets: tuple[NodeSet, ...] = ()
    """The sets whose nodes are in the partition; none where there is no partition."""
    hindrance: str = ""
    """Why checks have no partition although they run as jobs, in words for a comment of slurm.conf."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """Keys of the whole cluster."""
    users: Mapping[str, str] = field(default_factory=dict[str, str])
    """Keys of each partition of users."""


def checks_partition(cluster: Cluster) -> ChecksPartition:
    """The partition of the checks that run as jobs."""
    names = {node_set.name for check in checks_in(cluster, "job") for node_set in checked_sets(cluster, check)}
    node_sets = tuple(node_set for node_set in cluster.node_sets if node_set.name in names and node_set.ordinals)
    if not node_sets:
        return ChecksPartition()
    raw = [pairs for line in cluster.slurm.raw if (pairs := pairs_of(line))]
    preemption = {name: value for pairs in raw if len(pairs) == 1 and (name := known(pairs[0][0], PREEMPTION)) for _, value in pairs}
    preemption |= {name: value for key, value in cluster.slurm.settings.items() if (name := known(key, PREEMPTION))}
    kind = preemption.get("PreemptType", _NONE).lower()
    if any(partition.priority_tier <= _TIER for partition in cluster.partitions):
        return ChecksPartition(hindrance="a partition has priorityTier 0, and none is below it")
    if kind == _BY_PARTITION:
        return ChecksPartition(node_sets)
    if kind != _NONE or "PreemptMode" in preemption:
        return ChecksPartition(hindrance=f"preemption goes by {kind}, and not by partitions")
    if any(known(pairs[0][0], ("PartitionName",)) for pairs in raw):
        return ChecksPartition(hindrance="slurm.raw has partitions, whose jobs could preempt each other then")
    return ChecksPartition(node_sets, settings={"PreemptMode": "CANCEL", "PreemptType": _BY_PARTITION}, users={"PreemptMode": "OFF"})


def partition_keys(nodes: str, stays_up: bool) -> dict[str, object]:
    """The keys of the partition's line. With RootOnly, only root and Slurm's own user can submit there; checks run as the latter."""
    return {
        "PartitionName": CHECKS_PARTITION,
        "Nodes": nodes,
        "Default": "NO",
        "Hidden": "YES",
        "RootOnly": "YES",
        "PriorityTier": _TIER,
        "PreemptMode": "CANCEL",
        "GraceTime": 0,
        "MaxTime": "UNLIMITED",
        **({"SuspendTime": "INFINITE"} if stays_up else {}),
    }
