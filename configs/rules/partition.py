"""Rules of partitions: their node sets, times and settings."""

from configs.faults import Fault, quoted
from configs.models.cluster import Cluster
from configs.models.fields import seconds
from configs.models.partition import Partition
from configs.models.slurm_keys import OWN_PARTITION_KEYS, PARTITION_KEYS, allows_root_jobs
from configs.rules.names import RESERVED_BY_SLURM, Names, check_references, check_unique
from configs.rules.slurm_types import check_settings
from configs.rules.slurm_words import PARTITION_VALUES
from slurm.conf import CHECKS_PARTITION


def check_partitions(cluster: Cluster, names: Names) -> list[Fault]:
    """Faults of the partitions."""
    path = "cluster.partitions"
    if not cluster.partitions:
        return [Fault(path, "is empty: no job could be submitted. Add one with default: true.")]
    faults = check_unique(path, "partition", [partition.name for partition in cluster.partitions])
    defaults = [at for at, partition in enumerate(cluster.partitions) if partition.default]
    if not defaults:
        sources = tuple(f"{path}[{at}].default" for at in range(len(cluster.partitions)))
        faults.append(Fault(path, "none is the default, so sbatch without -p would fail. Set default: true in one.", sources))
    for at in defaults[1:]:
        faults.append(Fault(f"{path}[{at}].default", f"{path}[{defaults[0]}] is the default already; there can be one."))
    for at, partition in enumerate(cluster.partitions):
        faults += _check_partition(f"{path}[{at}]", partition, names)
        faults += _check_power(f"{path}[{at}].settings", partition, cluster)
    return faults


def _check_partition(path: str, partition: Partition, names: Names) -> list[Fault]:
    faults = check_references(f"{path}.nodeSets", "node set", partition.node_sets, names.node_sets)
    if partition.name.lower() in RESERVED_BY_SLURM:
        faults.append(Fault(f"{path}.name", f"{quoted(partition.name)} has a meaning of its own in Slurm. Take another."))
    if partition.name.lower() == CHECKS_PARTITION:
        faults.append(Fault(f"{path}.name", f"{quoted(partition.name)} is the partition of health checks' jobs. Take another name."))
    if not partition.node_sets:
        faults.append(Fault(f"{path}.nodeSets", "is empty: a partition needs at least one node set."))
    for key, time in (("maxTime", partition.max_time), ("defaultTime", partition.default_time)):
        if time is not None and seconds(time) == 0:
            faults.append(Fault(f"{path}.{key}", f"{quoted(time)} leaves jobs no time at all. Give a time, or UNLIMITED."))
    if partition.default_time and seconds(partition.default_time) > seconds(partition.max_time):
        message = f"{quoted(partition.default_time)} is longer than maxTime ({quoted(partition.max_time)})."
        faults.append(Fault(f"{path}.defaultTime", message, (f"{path}.maxTime",)))
    faults += check_settings(f"{path}.settings", "partition", partition.settings, PARTITION_KEYS, OWN_PARTITION_KEYS, PARTITION_VALUES)
    for key, value in partition.settings.items():
        if allows_root_jobs(key, value):
            message = (
                f"{key}={value} would let root of a login session submit jobs, and root in a job is root on the machine. Leave it out."
            )
            faults.append(Fault(f"{path}.settings.{key}", message))
    if {"defmempercpu", "defmempernode"} <= {key.lower() for key in partition.settings}:
        faults.append(Fault(f"{path}.settings", "has both DefMemPerCPU and DefMemPerNode, which exclude each other in Slurm. Keep one."))
    return faults


def _check_power(path: str, partition: Partition, cluster: Cluster) -> list[Fault]:
    """A fault if Slurm would power down nodes that should stay up: PowerDownOnIdle respects neither SuspendTime nor SuspendExcNodes."""
    key = next((key for key, value in partition.settings.items() if key.lower() == "powerdownonidle" and value.upper() == "YES"), None)
    stay = [
        node_set.name
        for node_set in cluster.node_sets
        if node_set.name in partition.node_sets and not (node_set.is_elastic and node_set.min == 0)
    ]
    if key is None or not stay:
        return []
    message = f"would power the nodes of {quoted(stay[0])} down after each job, and they should stay up. Leave it out."
    return [Fault(f"{path}.{key}", message, (f"{path.removesuffix('.settings')}.nodeSets", "cluster.nodeSets"))]
