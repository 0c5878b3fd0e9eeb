"""The settings of health checks' programs, and the script that slurmd runs beside jobs: as HealthCheckProgram, Prolog and Epilog.

slurmctld sends the script to all nodes with slurm.conf, so nodes always have both in the same version.
"""

import json
from collections.abc import Mapping
from typing import Any, get_args

from configs.models.cluster import Cluster
from configs.models.health_checks import HealthCheck, NodeState, looks_at
from configs.models.node_set import NodeSet
from configs.render.check_facts import check_settings, most_drained
from configs.render.wording import template
from names import paths, ports
from programs.node_checks.kinds import KINDS, Context
from slurm import prologs
from slurm.conf import known, number_of
from slurm.people import ACCOUNTS

SCRIPT_PATH = f"{paths.CACHED}/{prologs.CHECKS}"
"""Where nodes have it; HealthCheckProgram wants a path."""
INTERVAL_S = 60
"""Seconds between two runs on a node, unless checks may take longer."""
_SLACK_S = 15
_BESIDE: tuple[Context, ...] = ("interval", "prolog", "epilog")
_SCRIPT_CONTEXTS: Mapping[Context, str] = {"interval": "interval", "prolog": "prolog_slurmd", "epilog": "epilog_slurmd"}
"""What SLURM_SCRIPT_CONTEXT says; a HealthCheckProgram has none."""


def is_told_again(cluster: Cluster, check: HealthCheck) -> bool:
    """True if an interval check reports all nodes' results again, so that silence means that it does not run. A check that looks only at
    free or only at busy nodes may have nothing to report for hours."""
    looks_always = {*check.node_states} == {*get_args(NodeState)}
    replaced = {known(key, SETTINGS) for key in cluster.slurm.settings}
    return "interval" in check.contexts and looks_always and "HealthCheckNodeState" not in replaced


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
    """Keys of slurm.conf for interval checks, which `slurm.settings` may replace: nodes in every state, and not all at once."""
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
            "causeKind": check.cause or KINDS[check.check].cause,
            # None for a wish of none: workers of an older image do not tell their wish.
            "maxDrained": most_drained(check, node_set) if check.wish != "none" else 0,
            "passes": check.passes,
            **({"wish": check.wish} if check.wish != "drain" else {}),
            **({"nodeStates": list(check.node_states)} if {*check.node_states} != {*get_args(NodeState)} else {}),
            "settings": {**check_settings(cluster, check, node_set), **KINDS[check.check].beside_jobs},
        }
        for check in checks_beside_jobs(cluster)
        if looks_at(check, node_set)
    ]
