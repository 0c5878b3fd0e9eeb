"""The targets of Prometheus: one table, for the cluster's own Prometheus and for the Prometheus Operator. Pure.

All targets are known from the stack or by DNS, so Prometheus needs no rights in Kubernetes.
"""

from dataclasses import dataclass
from typing import Any

from components.controllers import COMPONENT as NODESET_CONTROLLER
from components.ec2 import COMPONENT as EC2
from components.guard import COMPONENT as GUARD
from components.labels import Manifest, labels, metadata, object_name, selector
from components.pods import CLUSTER_DOMAIN
from configs.models.cluster import Cluster
from configs.render.slurm import private_data
from names import ports
from names.labels import NODESET

METRICS = "metrics"
"""The name of the collector, its Service and its port."""
CLUSTER_LABEL = "slurm_cluster"
"""A label of every metric, as a Prometheus may have several clusters."""
_SLURMCTLD_PATHS = ("jobs", "nodes", "partitions", "scheduler")
"""Not `jobs-users-accts`: it has thirty series for each user."""


@dataclass(frozen=True)
class Target:
    """One endpoint of the pods of one component."""

    job: str
    """The label `job`."""
    component: str
    """The component of the pods."""
    port: int
    """The port of the metrics."""
    port_name: str
    """The port's name in the pods and in the Service."""
    path: str = "/metrics"
    """The path of the metrics."""
    dropped: str = ""
    """A regular expression of metrics to drop."""
    is_service: bool = True
    """False: there is no Service by which the Operator finds the pods."""
    replicas: bool = False
    """True: there are several pods, and each is scraped."""
    nodes: tuple[tuple[str, int], ...] = ()
    """For workers: node sets, each with its number of nodes."""


def targets(cluster: Cluster) -> list[Target]:
    """All targets."""
    slurmctld = [
        # slurmctld has eleven series for each node, so they are dropped: the collector has the states of nodes.
        Target(
            f"slurmctld-{path}", "slurmctld", ports.SLURMCTLD, "slurmctld", f"/metrics/{path}", "slurm_node_.+" if path == "nodes" else ""
        )
        for path in (_SLURMCTLD_PATHS if not private_data(cluster) else ())  # with PrivateData slurmctld has no metrics (26.05.5: 401)
    ]
    controllers = [Target(NODESET_CONTROLLER, NODESET_CONTROLLER, ports.CONTROLLER, "metrics", is_service=False, replicas=True)]
    if cluster.kubernetes.guard:
        controllers.append(Target(GUARD, GUARD, ports.CONTROLLER, "metrics", is_service=False, replicas=True))
    if cluster.ec2 is not None:
        controllers.append(Target(EC2, EC2, ports.CONTROLLER, "metrics"))
    with_gpus = tuple((node_set.name, node_set.ordinals) for node_set in cluster.node_sets if node_set.gpus is not None)
    gpus = [Target("dcgm", "slurmd", ports.GPU_METRICS, "dcgm", is_service=False, nodes=with_gpus)] if with_gpus else []
    return [*slurmctld, Target(METRICS, METRICS, ports.METRICS, "metrics"), *controllers, *gpus]


def scrape_configs(cluster: Cluster) -> list[dict[str, Any]]:
    """The `scrape_configs` of prometheus.yml."""
    configs = [_scrape(cluster, target) for target in targets(cluster)]
    for job, port in (("prometheus", ports.PROMETHEUS), ("alertmanager", ports.ALERTMANAGER)):
        configs.append(
            {"job_name": job, "static_configs": [{"targets": [f"localhost:{port}"]}], "relabel_configs": [_cluster_label(cluster)]}
        )
    return configs


def _scrape(cluster: Cluster, target: Target) -> dict[str, Any]:
    service = f"{object_name(cluster.name, target.component)}.{cluster.namespace}.svc.{CLUSTER_DOMAIN}"
    discovery: dict[str, Any]
    relabelings: list[dict[str, Any]] = [_cluster_label(cluster)]
    if target.nodes:
        sets = [(name, [f"{name}-{ordinal}.{service}:{target.port}" for ordinal in range(nodes)]) for name, nodes in target.nodes]
        discovery = {"static_configs": [{"targets": names, "labels": {"nodeset": name}} for name, names in sets]}
        relabelings.append({"source_labels": ["__address__"], "regex": r"([^.]+)\..*", "target_label": "node"})
    elif target.replicas:
        discovery = {"dns_sd_configs": [{"names": [service], "type": "A", "port": target.port, "refresh_interval": "30s"}]}
    else:
        discovery = {"static_configs": [{"targets": [f"{service}:{target.port}"]}]}
    dropping = [{"source_labels": ["__name__"], "regex": target.dropped, "action": "drop"}] if target.dropped else []
    return {
        "job_name": target.job,
        "metrics_path": target.path,
        **discovery,
        "relabel_configs": relabelings,
        **({"metric_relabel_configs": dropping} if dropping else {}),
    }


def _cluster_label(cluster: Cluster) -> dict[str, Any]:
    return {"target_label": CLUSTER_LABEL, "replacement": cluster.name}


def build_monitors(cluster: Cluster, own_labels: dict[str, str], interval_s: int) -> list[Manifest]:
    """ServiceMonitor and PodMonitor objects, one for each component."""
    monitors: dict[str, Manifest] = {}
    for target in targets(cluster):
        name = object_name(cluster.name, target.component)
        about = metadata(name, cluster.namespace, {**labels(cluster.name, target.component), **own_labels})
        if target.component not in monitors:
            kind = "ServiceMonitor" if target.is_service else "PodMonitor"
            spec: Manifest = {"selector": _selected(cluster, target), "endpoints" if target.is_service else "podMetricsEndpoints": []}
            monitors[target.component] = {"apiVersion": "monitoring.coreos.com/v1", "kind": kind, "metadata": about, "spec": spec}
        endpoints: list[Manifest] = monitors[target.component]["spec"]["endpoints" if target.is_service else "podMetricsEndpoints"]
        endpoints.append(_endpoint(cluster, target, interval_s))
    return list(monitors.values())


def _selected(cluster: Cluster, target: Target) -> Manifest:
    pod_selector: Manifest = {"matchLabels": selector(cluster.name, target.component)}
    if target.nodes:
        pod_selector["matchExpressions"] = [{"key": NODESET, "operator": "In", "values": [name for name, _ in target.nodes]}]
    return pod_selector


def _endpoint(cluster: Cluster, target: Target, interval_s: int) -> Manifest:
    relabelings: list[Manifest] = [
        {"targetLabel": CLUSTER_LABEL, "replacement": cluster.name},
        {"targetLabel": "job", "replacement": target.job},
    ]
    address: Manifest = {"port": target.port_name}
    if target.nodes:  # the pod may not declare the exporter's port, so the address is built from the pod's
        address = {}
        relabelings += [
            {"sourceLabels": ["__meta_kubernetes_pod_container_name"], "regex": "slurmd", "action": "keep"},
            {"sourceLabels": ["__meta_kubernetes_pod_ip"], "targetLabel": "__address__", "replacement": f"${{1}}:{target.port}"},
            {"sourceLabels": ["__meta_kubernetes_pod_name"], "targetLabel": "node"},
            {"sourceLabels": ["__meta_kubernetes_pod_label_slipway_dev_nodeset"], "targetLabel": "nodeset"},
        ]
    dropping = [{"sourceLabels": ["__name__"], "regex": target.dropped, "action": "drop"}] if target.dropped else []
    return {
        **address,
        "path": target.path,
        "interval": f"{interval_s}s",
        "relabelings": relabelings,
        **({"metricRelabelings": dropping} if dropping else {}),
    }
