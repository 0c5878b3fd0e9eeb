"""The collector of one cluster's metrics: one pod that asks slurmctld and slurmdbd, and serves Prometheus. What it does is in
programs/metrics; who scrapes it is not known here.
"""

import json
from collections.abc import Mapping
from typing import TypedDict

import pulumi

from components import network
from components.labels import Manifest, labels, metadata, object_name, selector
from components.objects import declare
from components.pods import (
    MUNGE_SOCKET,
    SLURM_UID,
    PodDefaults,
    config_volume,
    confined,
    container,
    http_probe,
    lost_node_tolerations,
    mount,
    munge_volumes,
    munged,
    pod_template,
    program_command,
    program_mounts,
    program_volumes,
    service,
)
from configs.models.cluster import Cluster
from configs.models.health_checks import HealthCheck, looks_at
from configs.models.monitoring import Monitoring
from configs.render.health_checks import collector_of, interval_s, is_told_again
from names import paths, ports
from slurm.retelling import unknown_after_s

COMPONENT = "metrics"
"""Tail of its objects' names, and name of its port: `<cluster>-metrics`."""
_INTERVAL_S = 15
_ACCOUNTING_INTERVAL_S = 60
"""Seconds between readings; a reading that is slow makes its own pause longer (programs/metrics/readings.py)."""
_MEMORY = "512Mi"
"""Many times what the collector and squeue take for 5,000 nodes and 50,000 jobs."""


class MetricsArgs(TypedDict):
    """What the collector needs to know."""

    pods: PodDefaults
    """What all pods of the cluster share."""
    slurm_config: str
    """Name of the ConfigMap with slurm.conf."""
    accounting: bool
    """True: slurmdbd has the jobs that ended."""
    accounts: int
    """So many accounts have series of their own; the others are summed up."""
    interval_s: float
    """Seconds between two readings of slurmctld."""
    accounting_interval_s: float
    """Seconds between two readings of slurmdbd."""
    checks: Mapping[str, Mapping[str, str]]
    """Names of the health checks by node set, each with what makes its results younger: `interval`, `job`, or nothing, as a pass before or
    after a job is told once. What others have found is history."""
    unknown_after_s: float
    """A check at an interval that has told nothing of a node for so many seconds is unknown there."""
    checks_collector: tuple[str, int]
    """Host and port of the program that notes what nodes find."""


def metrics_args(cluster: Cluster, pods: PodDefaults, monitoring: Monitoring) -> MetricsArgs:
    names = {
        node_set.name: {check.name: _told_again(cluster, check) for check in cluster.health_checks if looks_at(check, node_set)}
        for node_set in cluster.node_sets
    }
    return {
        "pods": pods,
        "slurm_config": object_name(cluster.name, "slurm-config"),
        "accounting": cluster.accounting.enabled,
        "accounts": monitoring.accounts,
        "interval_s": _INTERVAL_S,
        "accounting_interval_s": _ACCOUNTING_INTERVAL_S,
        "checks": {name: checks for name, checks in names.items() if checks},
        "unknown_after_s": unknown_after_s(interval_s(cluster)),
        "checks_collector": collector_of(cluster),
    }


def _told_again(cluster: Cluster, check: HealthCheck) -> str:
    return "interval" if is_told_again(cluster, check) else "job" if "job" in check.contexts else ""


class Metrics(pulumi.ComponentResource):
    """The collector and its Service. A change of anything here rolls this pod and no other, and its counters start at 0."""

    address: pulumi.Output[str]
    """Host and port of the metrics inside the Kubernetes cluster."""

    def __init__(self, name: str, args: MetricsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("slipway:index:Metrics", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        declare(build_network_policy(args), child)
        declare(service(args["pods"], COMPONENT, ports.METRICS), child)
        declare(build_deployment(args), child)
        self.address = pulumi.Output.from_input(
            f"{object_name(args['pods']['cluster'], COMPONENT)}.{args['pods']['namespace']}:{ports.METRICS}"
        )
        self.register_outputs({"address": self.address})


def build_settings(args: MetricsArgs) -> str:
    """Settings of the program, as JSON."""
    return json.dumps(
        {
            "accounting": args["accounting"],
            "accounts": args["accounts"],
            "checks": args["checks"],
            "unknownAfterS": args["unknown_after_s"],
            "checksCollector": args["checks_collector"],
            "intervalS": args["interval_s"],
            "accountingIntervalS": args["accounting_interval_s"],
        },
        sort_keys=True,
    )


def build_network_policy(args: MetricsArgs) -> Manifest:
    """Out: names, slurmctld with the collector of checks beside it, and slurmdbd."""
    cluster = args["pods"]["cluster"]
    slurmctld = [ports.SLURMCTLD, args["checks_collector"][1]]
    slurmdbd = [network.egress_to(cluster, "slurmdbd", ports.SLURMDBD)] if args["accounting"] else []
    return network.policy(args["pods"], COMPONENT, [network.NAMES, network.egress_to(cluster, "slurmctld", *slurmctld), *slurmdbd])


def build_deployment(args: MetricsArgs) -> Manifest:
    """The Deployment: one replica, as two would ask Slurm twice and count each job twice. So the old pod goes first."""
    pods = args["pods"]
    cluster = pods["cluster"]
    spec: Manifest = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": selector(cluster, COMPONENT)},
        "template": pod_template(pods, COMPONENT, _pod(args)),
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _about(args), "spec": spec}


def _pod(args: MetricsArgs) -> Manifest:
    pods = args["pods"]
    collector = container(
        pods,
        "collector",
        "",
        [*program_mounts("metrics"), mount("slurm-config", paths.SLURM, read_only=True), *MUNGE_SOCKET],
        {"SLURM_CONF": paths.SLURM_CONF},
        requests=("20m", "64Mi"),
        limit=_MEMORY,
        command=program_command("metrics", build_settings(args)),
        workingDir=paths.PACKAGES,
        ports=[{"name": COMPONENT, "containerPort": ports.METRICS}],
        # SlurmUser: where PrivateData hides jobs, others do not see all of them.
        securityContext=confined(SLURM_UID),
        startupProbe=http_probe(ports.PROBE, "/healthz", periodSeconds=1, failureThreshold=60),
        livenessProbe=http_probe(ports.PROBE, "/healthz", periodSeconds=10, timeoutSeconds=5, failureThreshold=6),
        readinessProbe=http_probe(ports.PROBE, "/healthz", periodSeconds=5, timeoutSeconds=5),
    )
    return {
        "terminationGracePeriodSeconds": 5,  # it has nothing to save
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        "initContainers": [munged(pods)],
        "containers": [collector],
        "volumes": [
            *(*program_volumes(pods, "munged", "metrics"), config_volume("slurm-config", args["slurm_config"])),
            *munge_volumes(pods),
        ],
    }


def _about(args: MetricsArgs) -> Manifest:
    pods = args["pods"]
    return metadata(object_name(pods["cluster"], COMPONENT), pods["namespace"], labels(pods["cluster"], COMPONENT))
