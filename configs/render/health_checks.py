"""What the programs of health checks need to know, and the script that slurmd runs beside jobs: as HealthCheckProgram, Prolog and Epilog.

slurmctld sends the script to all nodes, with slurm.conf: so changed checks are live within seconds, and nodes never have one without the
other.
"""

import json
from collections.abc import Mapping
from typing import Any, get_args

from configs.models.cluster import Cluster
from configs.models.health_checks import (
    CAUSE_KINDS,
    CHECK_SETTINGS,
    COMMAND_CHECKS,
    CheckKind,
    Context,
    HealthCheck,
    NodeState,
    Per,
    looks_at,
    per_of,
)
from configs.models.node_pool import NodePool
from configs.models.node_set import NodeSet
from configs.models.shapes import machine_of, shape_of
from configs.render.shared_root import SPOOL, TMP
from configs.render.wording import template
from names import paths, ports
from slurm import prologs
from slurm.conf import known, number_of
from slurm.gpu_links import least_gb_per_s
from slurm.people import ACCOUNTS, LEAST_ID, TAKEN

SCRIPT_PATH = f"{paths.CACHED}/{prologs.CHECKS}"
"""Where nodes have it; HealthCheckProgram wants a path."""
INTERVAL_S = 60
"""Seconds between two runs on a node, unless checks may take longer."""
_SLACK_S = 15
_BESIDE: tuple[Context, ...] = ("interval", "prolog", "epilog")
_BESIDE_JOBS: Mapping[CheckKind, Mapping[str, Any]] = {
    "memory": {"minAvailablePercent": 0},
    "gpu": {"maxIdleMemoryMiB": 0},
}
"""Users' jobs need memory, too, also all of a GPU's: how much is in use says nothing beside them."""
_SCRIPT_CONTEXTS: Mapping[Context, str] = {"interval": "interval", "prolog": "prolog_slurmd", "epilog": "epilog_slurmd"}
"""What SLURM_SCRIPT_CONTEXT says; a HealthCheckProgram has none."""

_DRAINING_SHARE = 0.9
"""Of what slurm.gpu_links takes for the least of a machine in order: one p4d.24xlarge reached but 2 % more than that
(github.com/NVIDIA/nccl/issues/527). GPUs that reach each other by PCIe alone are at a tenth of it."""
_NETWORK_SHARE = 0.5
"""Of the network's bandwidth by the catalogue: an all-reduce over 4 p4d.24xlarge reached 60 % of theirs (the same place), and later
machines reach more."""


def share_of(said: int | str, total: int) -> int:
    """A number as it is; a percentage of the total, rounded down, at least one."""
    return said if isinstance(said, int) else max(1, total * int(said.rstrip("%")) // 100)


def checked_sets(cluster: Cluster, check: HealthCheck) -> list[NodeSet]:
    """The node sets that the check looks at, in its own order. Names that are not known are left out."""
    known = {node_set.name: node_set for node_set in cluster.node_sets}
    return [known[name] for name in check.node_sets if name in known and looks_at(check, known[name])]


def is_told_again(cluster: Cluster, check: HealthCheck) -> bool:
    """True where a check at an interval tells all nodes' results again, so that silence means that it does not run: one that looks at some
    nodes only, as they are free or busy, may have nothing to tell for hours."""
    looks_always = {*check.node_states} == {*get_args(NodeState)}
    replaced = {known(key, SETTINGS) for key in cluster.slurm.settings}
    return "interval" in check.contexts and looks_always and "HealthCheckNodeState" not in replaced


def most_drained(check: HealthCheck, node_set: NodeSet) -> int:
    """Nodes of a set that all checks together may hold drained when this one drains another."""
    return share_of(check.max_drained, node_set.ordinals)


def expected_bus_gbs(cluster: Cluster, check: HealthCheck) -> int:
    """The least bus bandwidth of an all-reduce between GPUs that a check of kind nccl wants where the user says none, GB/s; 0 where a
    machine is not in the catalogue, or nothing is known of it. Of several node sets the slowest counts."""
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


def check_settings(cluster: Cluster, check: HealthCheck, node_set: NodeSet) -> dict[str, Any]:
    """What a check's program reads on the nodes of a set: limits as the user set them, and the facts that it compares with."""
    shape = shape_of(cluster, node_set)
    facts: dict[str, Any] = {}
    if check.check == "disk":
        # A node's own folders, as its pod sees them: jobs of Slurm's user are outside a shared root. Draining nodes would not help against
        # a shared folder that fills up.
        facts = {"paths": ["/", TMP, SPOOL]}
    elif check.check == "memory":
        facts = {"configuredMiB": shape.memory_mib}
    elif check.check == "gpu":
        vendor = shape.gpus.vendor if shape.gpus else "nvidia"
        facts = {"vendor": vendor, "count": shape.gpu_count, "simulated": node_set.simulated_gpus}
        if check.other_drivers == "drain":
            facts["otherDrivers"] = most_drained(check, node_set)
    elif check.check == "mounts":
        facts = {"paths": [paths.HOMES, *(mount.mount_path for mount in cluster.mounts_of(node_set))]}
    elif check.check == "storage":
        facts = {"paths": list(check.folders or ("/tmp",))}  # noqa: S108 - a folder to look at
    elif check.check == "network":
        pool = cluster.node_pool(node_set.pool)
        facts = {"efaDevices": len(machine_of(pool).efa_cards) if pool.eks is not None and pool.eks.efa else 0}
    elif check.check == "kernel":
        facts = {"xids": list(check.xids), "ignoredXids": list(check.ignored_xids), "patterns": dict(check.patterns)}
    elif check.check == "shm":
        facts = {"leastUser": LEAST_ID, "accounts": sorted(TAKEN)}
    elif check.check in COMMAND_CHECKS:
        facts = {"command": list(check.command)}
    if check.check in ("nccl", "burn"):
        facts["gpus"] = shape.gpu_count
    defaults = {"minBusBandwidthGBs": expected_bus_gbs(cluster, check)} if check.check == "nccl" else {}
    return {**CHECK_SETTINGS[check.check], **defaults, **check.settings, **facts}


def checks_in(cluster: Cluster, *contexts: Context) -> list[HealthCheck]:
    """The checks that run in one of these contexts."""
    return [check for check in cluster.health_checks if {*contexts} & {*check.contexts}]


def checks_beside_jobs(cluster: Cluster) -> list[HealthCheck]:
    """The checks that slurmd runs."""
    return checks_in(cluster, *_BESIDE)


def collector_of(cluster: Cluster) -> tuple[str, int]:
    """Host and port of the program that takes what nodes found."""
    return f"{cluster.name}-slurmctld", ports.CHECKS


def slurm_settings(cluster: Cluster) -> Mapping[str, str]:
    """Keys of slurm.conf for checks at an interval, which `slurm.settings` may replace: nodes in every state, and not all at once."""
    checks = checks_in(cluster, "interval")
    if not checks:
        return {}
    timeout_s = max(check.timeout_s for check in checks) + _SLACK_S
    interval_s = max(INTERVAL_S, timeout_s + 1)
    return {"HealthCheckInterval": str(interval_s), "HealthCheckNodeState": "ANY,CYCLE", "HealthCheckTimeout": str(timeout_s)}


def interval_s(cluster: Cluster) -> int:
    """Seconds between two runs of the checks at an interval on a node; 0 where there are none."""
    settings = {known(key, SETTINGS): value for key, value in {**slurm_settings(cluster), **cluster.slurm.settings}.items()}
    return number_of(settings.get("HealthCheckInterval", "")) or 0


SETTINGS = ("HealthCheckInterval", "HealthCheckNodeState", "HealthCheckTimeout")
"""The keys of `slurm_settings`."""


def render(cluster: Cluster) -> dict[str, str]:
    """The script by its file's name; nothing where no check runs beside jobs."""
    if not checks_beside_jobs(cluster):
        return {}
    spec = {
        "collector": collector_of(cluster),
        "slurmUser": ACCOUNTS["slurm"],
        "nodeSets": {node_set.name: specs for node_set in cluster.node_sets if (specs := _specs(cluster, node_set))},
    }
    places = [
        f'"{_SCRIPT_CONTEXTS[context]} {node_set.name}"'
        for node_set in cluster.node_sets
        for context in _BESIDE
        if any(looks_at(check, node_set) for check in checks_in(cluster, context))
    ]
    return {prologs.CHECKS: template("slipway-checks.sh.j2").render(spec=json.dumps(spec, indent=1, sort_keys=True), places=places)}


def _specs(cluster: Cluster, node_set: NodeSet) -> list[dict[str, Any]]:
    return [
        {
            "name": check.name,
            "check": check.check,
            "contexts": [context for context in check.contexts if context in _BESIDE],
            "timeoutS": check.timeout_s,
            "causeKind": check.cause or CAUSE_KINDS[check.check],
            # None for a wish of none: workers of an older image do not tell their wish.
            "maxDrained": most_drained(check, node_set) if check.wish != "none" else 0,
            "passes": check.passes,
            **({"wish": check.wish} if check.wish != "drain" else {}),
            **({"nodeStates": list(check.node_states)} if {*check.node_states} != {*get_args(NodeState)} else {}),
            "settings": {**check_settings(cluster, check, node_set), **_BESIDE_JOBS.get(check.check, {})},
        }
        for check in checks_beside_jobs(cluster)
        if looks_at(check, node_set)
    ]
