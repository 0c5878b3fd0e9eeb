"""Health checks of Slurm nodes: a CronJob a check. What a run does is in programs/node_checks.

Results are one JSON line a node in the log of the run's pod, and the last one in the node's `Extra` in Slurm, under the key `slipway`. A
failure drains the node with the reason `slipway: check <name>: ...`, and the NodeSet controller lifts that once no check fails there.
Suspending a CronJob stops its check; drains stay until it passes, or is no longer declared.
"""

import json
import math
from typing import Any, TypedDict

import pulumi

from components.labels import Manifest, labels, metadata, object_name
from components.objects import declare
from components.pods import (
    MUNGE_SOCKET,
    SLURM_UID,
    PodDefaults,
    config_volume,
    confined,
    container,
    empty_volume,
    mount,
    munge_volumes,
    munged,
    pod_template,
    program_command,
    program_mounts,
    program_volumes,
)
from configs.models.cluster import Cluster
from configs.models.health_checks import CAUSE_KINDS, GPU_CHECKS, CheckKind, CheckWish, FaultKind, HealthCheck, Per, per_of
from configs.models.node_set import NodeSet
from configs.models.shapes import shape_of
from configs.render.health_checks import check_settings, checked_sets, checks_in, most_drained
from names import paths

_PARALLEL = 16
"""Nodes that one run checks at a time."""
_SLACK_S = 120
_NAMING_ROUNDS = 3
"""PROOF of programs/node_checks/pairs.py, and a look at the nodes that are drained already."""
_LATEST_START_S = 300
_HOSTNAME = "localhost"
"""The name that srun gives slurmctld for its messages. DNS has none for a pod of a Job, and slurmctld looks for a name ten times, a second
each, with its locks held (measured on 26.05): so long Slurm would stand still for each check that a job preempts. With this name slurmctld
reaches nobody, at once; that the job is over, srun learns from a message to its address."""


class CheckedNodesArgs(TypedDict):
    """One node set as a check needs it."""

    name: str
    """Name of the set."""
    size: int
    """How many nodes it has."""
    gpus: int
    """GPUs of a node that the check's job asks for; 0 for checks of other things."""
    maxDrained: int
    """Nodes of this set that all checks together may hold drained when this one drains another."""
    settings: dict[str, Any]
    """Everything that the program of the check reads, limits and facts of the nodes."""


class HealthCheckArgs(TypedDict):
    """One check."""

    name: str
    """Name of the check, as in the drain reason."""
    check: CheckKind
    """What is checked: see HealthCheck."""
    cause: FaultKind
    """What is broken where it fails."""
    wish: CheckWish
    """What a failure asks for."""
    schedule: str
    """Cron's five fields."""
    timeout_s: int
    """After so many seconds on a node the check counts as unknown."""
    per: Per
    """How many nodes a job of the check has: one, two, or all that are idle."""
    after: list[str]
    """Checks that have to have passed on a node."""
    budget_node_minutes: int | None
    """Most node minutes of the check's jobs in 24 hours."""
    node_sets: list[CheckedNodesArgs]
    """The sets whose idle nodes are checked."""


class HealthChecksArgs(TypedDict):
    """What health checks need to know."""

    pods: PodDefaults
    """What all pods of the cluster share."""
    slurm_config: str
    """Name of the ConfigMap with slurm.conf."""
    checks: list[HealthCheckArgs]
    """The checks."""


def health_checks_args(cluster: Cluster, pods: PodDefaults) -> HealthChecksArgs:
    return {
        "pods": pods,
        "slurm_config": object_name(cluster.name, "slurm-config"),
        "checks": [_health_check(cluster, check, check.schedule) for check in checks_in(cluster, "job") if check.schedule is not None],
    }


def _health_check(cluster: Cluster, check: HealthCheck, schedule: str) -> HealthCheckArgs:
    return {
        "name": check.name,
        "check": check.check,
        "cause": check.cause or CAUSE_KINDS[check.check],
        "wish": check.wish,
        "schedule": schedule,
        "timeout_s": check.timeout_s,
        "per": per_of(check),
        "after": list(check.after),
        "budget_node_minutes": check.budget_node_minutes,
        "node_sets": [_checked_nodes(cluster, check, node_set) for node_set in checked_sets(cluster, check)],
    }


def _checked_nodes(cluster: Cluster, check: HealthCheck, node_set: NodeSet) -> CheckedNodesArgs:
    shape = shape_of(cluster, node_set)
    return {
        "name": node_set.name,
        "size": node_set.ordinals,
        "gpus": shape.gres_count if check.check in (*GPU_CHECKS, "command") else 0,
        "maxDrained": most_drained(check, node_set),
        "settings": check_settings(cluster, check, node_set),
    }


class HealthChecks(pulumi.ComponentResource):
    """The CronJobs that check idle Slurm nodes. A changed check takes effect at its next run. What a removed check has found holds no
    node any more."""

    cron_jobs: pulumi.Output[list[str]]
    """Names of the CronJobs, one a check."""

    def __init__(self, name: str, args: HealthChecksArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:HealthChecks", name, {}, opts)
        manifests = [build_cron_job(args, check) for check in args["checks"]]
        for manifest in manifests:
            declare(manifest, pulumi.ResourceOptions(parent=self))
        self.cron_jobs = pulumi.Output.from_input([manifest["metadata"]["name"] for manifest in manifests])
        self.register_outputs({"cron_jobs": self.cron_jobs})


def build_cron_job(args: HealthChecksArgs, check: HealthCheckArgs) -> Manifest:
    """The CronJob of one check. Its runs never overlap: they would lift each other's drains. A run that the NodeSet controller asks for may
    come beside one, and neither touches the other's reservations."""
    pods = args["pods"]
    name = object_name(pods["cluster"], f"check-{check['name']}")
    job = {
        "backoffLimit": 0,
        "activeDeadlineSeconds": build_longest(check),
        "template": pod_template(pods, "health-check", _pod(args, check)),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata(name, pods["namespace"], labels(pods["cluster"], "health-check")),
        "spec": {
            "schedule": check["schedule"],
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": _LATEST_START_S,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {"metadata": {"labels": labels(pods["cluster"], "health-check")}, "spec": job},
        },
    }


def build_deadline(check: HealthCheckArgs) -> int:
    """Seconds after which a run begins no further node: time for all of them, each at its slowest."""
    nodes = sum(each["size"] for each in check["node_sets"])
    if check["per"] != "node":
        # Pairs, side by side, in the rounds of the tournament and those that name who is at fault.
        rounds = max((each["settings"].get("rounds", 1) for each in check["node_sets"]), default=1) + _NAMING_ROUNDS
        return math.ceil(nodes / 2 / _PARALLEL) * rounds * check["timeout_s"] + _SLACK_S
    return math.ceil(nodes / _PARALLEL) * check["timeout_s"] + _SLACK_S


def build_longest(check: HealthCheckArgs) -> int:
    """Seconds after which a run is ended. Beyond the program's own deadline only what is under way ends: on each node at most two looks and
    their waiting."""
    return build_deadline(check) + 2 * (check["timeout_s"] + _SLACK_S)


def build_spec(check: HealthCheckArgs) -> str:
    """Settings of the program, as JSON."""
    return json.dumps(
        {
            "name": check["name"],
            "check": check["check"],
            "timeoutS": check["timeout_s"],
            "parallel": _PARALLEL,
            "deadlineS": build_deadline(check),
            "longestS": build_longest(check),
            "causeKind": check["cause"],
            **({"wish": check["wish"]} if check["wish"] != "drain" else {}),
            **({"per": check["per"]} if check["per"] != "node" else {}),
            **({"after": check["after"]} if check["after"] else {}),
            **({} if check["budget_node_minutes"] is None else {"budgetNodeMinutes": check["budget_node_minutes"]}),
            "nodeSets": check["node_sets"],
        },
        sort_keys=True,
    )


def _pod(args: HealthChecksArgs, check: HealthCheckArgs) -> Manifest:
    pods = args["pods"]
    program = container(
        pods,
        "check",
        "",
        [
            *program_mounts("node_checks"),
            mount("slurm-config", paths.SLURM, read_only=True),
            *(mount("tmp", "/tmp"), *MUNGE_SOCKET),  # noqa: S108 - a mount of the pod's own
        ],
        command=program_command("node_checks", build_spec(check), module="run" if check["per"] == "node" else "groups"),
        workingDir=paths.PACKAGES,
        # SlurmUser: only Slurm's own user and root may drain, resume and reserve.
        securityContext=confined(SLURM_UID),
        terminationMessagePolicy="FallbackToLogsOnError",
    )
    return {
        "restartPolicy": "Never",
        "hostname": _HOSTNAME,
        "initContainers": [munged(pods)],
        "containers": [program],
        "volumes": [
            *(*program_volumes(pods, "munged", "node_checks"), config_volume("slurm-config", args["slurm_config"])),
            *(empty_volume("tmp"), *munge_volumes(pods)),
        ],
    }
