"""The collector of one cluster's metrics (programs/metrics): one pod that reads slurmctld and slurmdbd, for any Prometheus."""

import pulumi

from components import network
from components.labels import Manifest, object_name, slurm_config_name
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
    program_command,
    program_mounts,
    program_volumes,
    service,
)
from components.workloads import deployment
from configs.models.cluster import Cluster
from configs.models.health_checks import HealthCheck, looks_at
from configs.models.monitoring import Monitoring
from configs.render.health_checks import collector_of, interval_s, is_told_again
from names import paths, ports
from programs.metrics.settings import Settings, to_json
from slurm.retelling import unknown_after_s

COMPONENT = "metrics"
"""Tail of its objects' names, and name of its port: `<cluster>-metrics`."""
_MEMORY = "512Mi"
"""Many times what the collector and squeue need for 5,000 nodes and 50,000 jobs."""


def build_settings(cluster: Cluster, monitoring: Monitoring) -> Settings:
    """The argument of the collector, from the config."""
    names = {
        node_set.name: {check.name: _told_again(cluster, check) for check in cluster.health_checks if looks_at(check, node_set)}
        for node_set in cluster.node_sets
    }
    return Settings(
        accounting=cluster.accounting.enabled,
        accounts=monitoring.accounts,
        checks={name: checks for name, checks in names.items() if checks},
        unknown_after_s=unknown_after_s(interval_s(cluster)),
        checks_collector=collector_of(cluster),
    )


def _told_again(cluster: Cluster, check: HealthCheck) -> str:
    return "interval" if is_told_again(cluster, check) else "job" if "job" in check.contexts else ""


class Metrics(pulumi.ComponentResource):
    """The collector and its Service. A change rolls only this pod, and its counters start at 0."""

    address: pulumi.Output[str]
    """Host and port of the metrics inside the Kubernetes cluster."""

    def __init__(
        self, name: str, cluster: Cluster, pods: PodDefaults, monitoring: Monitoring, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("slipway:index:Metrics", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        settings = build_settings(cluster, monitoring)
        declare(build_network_policy(pods, settings), child)
        declare(service(pods, COMPONENT, ports.METRICS), child)
        declare(build_deployment(pods, settings), child)
        self.address = pulumi.Output.from_input(f"{object_name(pods['cluster'], COMPONENT)}.{pods['namespace']}:{ports.METRICS}")
        self.register_outputs({"address": self.address})


def build_network_policy(pods: PodDefaults, settings: Settings) -> Manifest:
    """Egress to DNS, slurmctld, the collector of checks beside it, and slurmdbd."""
    cluster = pods["cluster"]
    slurmctld = [ports.SLURMCTLD, ports.CHECKS]
    slurmdbd = [network.egress_to(cluster, "slurmdbd", ports.SLURMDBD)] if settings.accounting else []
    return network.policy(pods, COMPONENT, [network.NAMES, network.egress_to(cluster, "slurmctld", *slurmctld), *slurmdbd])


def build_deployment(pods: PodDefaults, settings: Settings) -> Manifest:
    """The Deployment: one replica, and the old pod stops first, as two would ask Slurm twice and count each job twice."""
    return deployment(pods, COMPONENT, _pod(pods, settings), strategy={"type": "Recreate"})


def _pod(pods: PodDefaults, settings: Settings) -> Manifest:
    collector = container(
        pods,
        "collector",
        "",
        [*program_mounts("metrics"), mount("slurm-config", paths.SLURM, read_only=True), *MUNGE_SOCKET],
        {"SLURM_CONF": paths.SLURM_CONF},
        requests=("20m", "64Mi"),
        limit=_MEMORY,
        command=program_command("metrics", to_json(settings)),
        workingDir=paths.PACKAGES,
        ports=[{"name": COMPONENT, "containerPort": ports.METRICS}],
        # SlurmUser: if PrivateData hides jobs, others do not see all of them.
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
            *(*program_volumes(pods, "munged", "metrics"), config_volume("slurm-config", slurm_config_name(pods["cluster"]))),
            *munge_volumes(pods),
        ],
    }
