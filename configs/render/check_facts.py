"""Facts of a node set that the program of a health check compares with: programs/node_checks/kinds.py names those that each kind reads."""

from collections.abc import Callable, Mapping
from typing import Any

from configs.models.cluster import Cluster
from configs.models.health_checks import HealthCheck, looks_at, per_of
from configs.models.node_pool import NodePool
from configs.models.node_set import NodeSet
from configs.models.shapes import machine_of, shape_of
from configs.render.shared_root import SPOOL, TMP
from names import paths
from programs.node_checks.kinds import KINDS, Per
from slurm.gpu_links import least_gb_per_s
from slurm.people import LEAST_ID, TAKEN

_DRAINING_SHARE = 0.9
"""A node fails below this share of the least bandwidth that slurm.gpu_links expects of a healthy machine. One p4d.24xlarge reached only
2 % more than that least (github.com/NVIDIA/nccl/issues/527). GPUs that reach each other only by PCIe reach a tenth of it."""
_NETWORK_SHARE = 0.5
"""The same share of the network's bandwidth in the catalogue. An all-reduce over 4 p4d.24xlarge reached 60 % of theirs (same source), and
later machines reach more."""


def checked_sets(cluster: Cluster, check: HealthCheck) -> list[NodeSet]:
    """The node sets that the check looks at, in its own order. Names that are not known are left out."""
    known = {node_set.name: node_set for node_set in cluster.node_sets}
    return [known[name] for name in check.node_sets if name in known and looks_at(check, known[name])]


def share_of(share: int | str, total: int) -> int:
    """A number as it is; a percentage of the total, rounded down, at least 1."""
    return share if isinstance(share, int) else max(1, total * int(share.rstrip("%")) // 100)


def most_drained(check: HealthCheck, node_set: NodeSet) -> int:
    """Nodes of a set that all checks together may hold drained when this one drains another."""
    return share_of(check.max_drained, node_set.ordinals)


def expected_bus_gbs(cluster: Cluster, check: HealthCheck) -> int:
    """The default limit of an nccl check: the least bus bandwidth of an all-reduce between GPUs, GB/s, of the slowest node set. 0 if the
    catalogue does not know it."""
    pools = [cluster.node_pool(node_set.pool) for node_set in checked_sets(cluster, check)]
    return min((_least_gbs(pool, per_of(check)) for pool in pools), default=0)


def _least_gbs(pool: NodePool, per: Per) -> int:
    if pool.hardware is not None:  # the same model may have NVLink or not
        return 0
    machine = machine_of(pool)
    if per == "node":
        least = least_gb_per_s(machine.gpus.model) if machine.gpus is not None and machine.gpus.count > 1 else None
        return int((least or 0) * _DRAINING_SHARE)
    # Without EFA NCCL has one card, and TCP.
    return int(machine.network_gbps / 8 * _NETWORK_SHARE) if pool.eks is not None and pool.eks.efa else 0


def _vendor(cluster: Cluster, _check: HealthCheck, node_set: NodeSet) -> str:
    gpus = shape_of(cluster, node_set).gpus
    return gpus.vendor if gpus else "nvidia"


def _drained_for_drivers(_cluster: Cluster, check: HealthCheck, node_set: NodeSet) -> int | None:
    return most_drained(check, node_set) if check.other_drivers == "drain" else None


def _efa_devices(cluster: Cluster, _check: HealthCheck, node_set: NodeSet) -> int:
    pool = cluster.node_pool(node_set.pool)
    return len(machine_of(pool).efa_cards) if pool.eks is not None and pool.eks.efa else 0


FACTS: Mapping[str, Callable[[Cluster, HealthCheck, NodeSet], Any]] = {
    # A node's own folders, as its pod sees them: jobs of Slurm's user are outside a shared root. Draining nodes would not help against a
    # shared folder that fills up.
    "own folders": lambda _cluster, _check, _node_set: ["/", TMP, SPOOL],
    "mounts": lambda cluster, _check, node_set: [paths.HOMES, *(mount.mount_path for mount in cluster.mounts_of(node_set))],
    "folders": lambda _cluster, check, _node_set: list(check.folders or ("/tmp",)),  # noqa: S108 - a folder to look at
    "memory MiB": lambda cluster, _check, node_set: shape_of(cluster, node_set).memory_mib,
    "GPUs": lambda cluster, _check, node_set: shape_of(cluster, node_set).gpu_count,
    "vendor": _vendor,
    "simulated GPUs": lambda _cluster, _check, node_set: node_set.simulated_gpus,
    "nodes drained for drivers": _drained_for_drivers,
    "least bus GB/s": lambda cluster, check, _node_set: expected_bus_gbs(cluster, check),
    "EFA devices": _efa_devices,
    "xids": lambda _cluster, check, _node_set: list(check.xids),
    "ignored xids": lambda _cluster, check, _node_set: list(check.ignored_xids),
    "patterns": lambda _cluster, check, _node_set: dict(check.patterns),
    "least user": lambda _cluster, _check, _node_set: LEAST_ID,
    "accounts": lambda _cluster, _check, _node_set: sorted(TAKEN),
}
"""By name. None is left out of what the program reads."""


def check_settings(cluster: Cluster, check: HealthCheck, node_set: NodeSet) -> dict[str, Any]:
    """The settings that a check's program reads on the nodes of a set: the user's limits and the facts to compare with."""
    kind = KINDS[check.check]
    facts = {key: FACTS[fact](cluster, check, node_set) for key, fact in kind.facts.items()}
    command = {"command": list(check.command)} if kind.takes_command else {}
    return {**kind.limits, **{key: fact for key, fact in facts.items() if fact is not None}, **command, **check.settings}
