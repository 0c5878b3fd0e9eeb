"""Health checks of Slurm nodes: one CronJob for each check. programs/node_checks runs them.

A run logs one JSON line for each node, and the last one is in the node's `Extra` in Slurm, under the key `slipway`. A failure drains the
node with the reason `slipway: check <name>: ...`, and the NodeSet controller resumes it once no check fails there. Suspending a CronJob
stops its check; drains stay until it passes or is no longer declared.
"""

import math
from collections.abc import Sequence

import pulumi

from components.labels import Manifest, slurm_config_name
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
    program_command,
    program_mounts,
    program_volumes,
)
from components.workloads import cron_job
from configs.models.cluster import Cluster
from configs.models.health_checks import HealthCheck, per_of
from configs.models.shapes import shape_of
from configs.render.check_facts import check_settings, checked_sets, most_drained
from configs.render.health_checks import checks_in
from names import paths
from programs.node_checks.kinds import KINDS
from programs.node_checks.settings import CheckedSet, CheckSpec, to_json

_PARALLEL = 16
"""Nodes that one run checks at a time."""
_SLACK_S = 120
_NAMING_ROUNDS = 3
"""PROOF of programs/node_checks/pairs.py, and a round for nodes that are already drained."""
_LATEST_START_S = 300
_HOSTNAME = "localhost"
"""The host name that srun gives slurmctld for its messages. A Job's pod has no DNS name. slurmctld tries to resolve a name ten times, a
second each, with its locks held (measured on 26.05). Slurm would stall that long for each check that a job preempts. With this name,
slurmctld's messages reach no srun, but fail at once. srun learns the end of its job from a message to its address."""


class HealthChecks(pulumi.ComponentResource):
    """The CronJobs that check idle Slurm nodes. A changed check takes effect at its next run. Findings of a removed check no longer drain
    nodes."""

    cron_jobs: pulumi.Output[list[str]]
    """Names of the CronJobs, one for each check."""

    def __init__(self, name: str, cluster: Cluster, pods: PodDefaults, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:HealthChecks", name, {}, opts)
        manifests = [build_cron_job(cluster, pods, check) for check in checks_in(cluster, "job")]
        for manifest in manifests:
            declare(manifest, pulumi.ResourceOptions(parent=self))
        self.cron_jobs = pulumi.Output.from_input([manifest["metadata"]["name"] for manifest in manifests])
        self.register_outputs({"cron_jobs": self.cron_jobs})


def build_cron_job(cluster: Cluster, pods: PodDefaults, check: HealthCheck) -> Manifest:
    """The CronJob of one check. Its runs never overlap, as they would lift each other's drains. A run that the NodeSet controller starts
    may be concurrent, and neither touches the other's reservations."""
    spec = build_spec(cluster, check)
    return cron_job(
        pods,
        "health-check",
        _pod(pods, spec),
        check.schedule,
        spec.longest_s,
        name=f"check-{check.name}",
        startingDeadlineSeconds=_LATEST_START_S,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=3,
    )


def build_spec(cluster: Cluster, check: HealthCheck) -> CheckSpec:
    """The argument of the check's program. A run starts no node after its deadline, and is ended after `longest_s`. By then, each node has
    had time for two more attempts with their waits."""
    kind = KINDS[check.check]
    sets = tuple(
        CheckedSet(
            name=node_set.name,
            size=node_set.ordinals,
            gpus=shape_of(cluster, node_set).gres_count if kind.vendors or check.check == "command" else 0,
            max_drained=most_drained(check, node_set),
            settings=check_settings(cluster, check, node_set),
        )
        for node_set in checked_sets(cluster, check)
    )
    deadline_s = _deadline_s(check, sets)
    return CheckSpec(
        name=check.name,
        check=check.check,
        timeout_s=check.timeout_s,
        parallel=_PARALLEL,
        deadline_s=deadline_s,
        cause=check.cause or kind.cause,
        node_sets=sets,
        wish=check.wish,
        per=per_of(check),
        after=check.after,
        budget_node_minutes=check.budget_node_minutes,
        longest_s=deadline_s + 2 * (check.timeout_s + _SLACK_S),
    )


def _deadline_s(check: HealthCheck, sets: Sequence[CheckedSet]) -> int:
    """Time for all nodes if each needs its whole limit."""
    nodes = sum(checked_set.size for checked_set in sets)
    if per_of(check) != "node":
        # Pairs run in parallel, in the rounds of the tournament and in those that find the faulty node.
        rounds = max((checked_set.settings.get("rounds", 1) for checked_set in sets), default=1) + _NAMING_ROUNDS
        return math.ceil(nodes / 2 / _PARALLEL) * rounds * check.timeout_s + _SLACK_S
    return math.ceil(nodes / _PARALLEL) * check.timeout_s + _SLACK_S


def _pod(pods: PodDefaults, spec: CheckSpec) -> Manifest:
    program = container(
        pods,
        "check",
        "",
        [
            *program_mounts("node_checks"),
            mount("slurm-config", paths.SLURM, read_only=True),
            *(mount("tmp", "/tmp"), *MUNGE_SOCKET),  # noqa: S108 - a mount of the pod's own
        ],
        command=program_command("node_checks", to_json(spec), module="run" if spec.per == "node" else "groups"),
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
            *(*program_volumes(pods, "munged", "node_checks"), config_volume("slurm-config", slurm_config_name(pods["cluster"]))),
            *(empty_volume("tmp"), *munge_volumes(pods)),
        ],
    }
