"""Metrics, alerts and dashboards of one cluster: its own Prometheus and Alertmanager, or objects of the Prometheus Operator. Grafana is not
included.

scrapes.py has the targets, configs/render the rules, receivers and dashboards, and images/observability the programs.
"""

from collections.abc import Iterable
from typing import Any

import pulumi
import yaml

from components import network
from components.claims import claim_retention, claim_template
from components.labels import Manifest, labels, metadata, object_name
from components.objects import CLAIMS, declare, immutable_config_map
from components.pods import (
    DAEMON_MEMORY,
    PROGRAM_MEMORY,
    PodDefaults,
    config_volume,
    confined,
    empty_volume,
    http_probe,
    lost_node_tolerations,
    mount,
    resources,
    secret_volume,
    service,
)
from components.scrapes import build_monitors, scrape_configs, targets
from components.workloads import stateful_set
from configs.models.cluster import Cluster
from configs.models.monitoring import Monitoring
from configs.render import alertmanager
from configs.render.alerts import build_alerts
from configs.render.dashboards import build_dashboards
from names import paths, ports

COMPONENT = "prometheus"
"""Tail of its objects' names: `<cluster>-prometheus`."""
PROMETHEUS_UID = 65532
"""The user in the image."""
_DATA_PATH = "/data"
_MEBIBYTES = {"Mi": 1, "Gi": 1024, "Ti": 1024**2, "M": 1e6 / 2**20, "G": 1e9 / 2**20, "T": 1e12 / 2**20}
_METRICS_SHARE = 0.8
"""Share of the disk for metrics: compaction needs free space."""


class Observability(pulumi.ComponentResource):
    """Prometheus with alerts, and dashboards. A change of its rules restarts Prometheus, which loses only the metrics of some seconds."""

    prometheus_url: pulumi.Output[str]
    """URL of the cluster's own Prometheus inside the Kubernetes cluster; empty for the Prometheus Operator."""

    def __init__(
        self, name: str, cluster: Cluster, pods: PodDefaults, monitoring: Monitoring, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("slipway:index:Observability", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        declare(build_dashboards_map(cluster, monitoring), child)
        url = ""
        if monitoring.prometheus == "Operator":
            for manifest in build_operator_objects(cluster, monitoring):
                declare(manifest, child, f"{manifest['metadata']['name']}-{manifest['kind'].lower()}")
        else:
            files = build_config(cluster, monitoring)
            needs = [declare(part, child) for part in (files, build_network_policy(cluster, monitoring), *build_services(cluster, pods))]
            protected = cluster.deletion_protection
            last = pulumi.ResourceOptions(parent=self, depends_on=needs, ignore_changes=[CLAIMS], protect=protected)
            declare(build_server(cluster, pods, monitoring, files["metadata"]["name"]), last)
            url = f"http://{object_name(cluster.name, COMPONENT)}.{cluster.namespace}:{ports.PROMETHEUS}"
        self.prometheus_url = pulumi.Output.from_input(url)
        self.register_outputs({"prometheus_url": self.prometheus_url})


def build_dashboards_map(cluster: Cluster, monitoring: Monitoring) -> Manifest:
    """The ConfigMap with the dashboards, which Grafana's sidecar finds by the labels in the config."""
    about = metadata(
        object_name(cluster.name, "dashboards"),
        cluster.namespace,
        {**labels(cluster.name, "dashboards"), **monitoring.dashboards.labels},
        {"grafana_folder": monitoring.dashboards.folder},
    )
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": build_dashboards()}


def mebibytes(size: str) -> float:
    """A size of a disk in MiB: `20Gi` is 20480."""
    number = size.rstrip("MGTi")
    return int(number) * _MEBIBYTES[size.removeprefix(number)]


def build_files(cluster: Cluster, monitoring: Monitoring) -> dict[str, str]:
    """The files of Prometheus and Alertmanager."""
    config: dict[str, Any] = {
        "global": {
            "scrape_interval": f"{monitoring.scrape_interval_s}s",
            "scrape_timeout": f"{min(10, monitoring.scrape_interval_s)}s",
            "evaluation_interval": f"{monitoring.scrape_interval_s}s",
        },
        "rule_files": ["alerts.yml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"localhost:{ports.ALERTMANAGER}"]}]}]},
        "scrape_configs": scrape_configs(cluster),
    }
    return {
        "prometheus.yml": _yaml(config),
        "alerts.yml": _yaml({"groups": build_alerts(cluster, monitoring)}),
        "alertmanager.yml": alertmanager.render(cluster, monitoring),
    }


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, width=1000, allow_unicode=True)


def receiver_secrets(cluster: Cluster, monitoring: Monitoring) -> dict[str, str]:
    """The Secrets that Alertmanager reads, by the folders of their mounts."""
    secrets = {receiver.name: receiver.url_secret for receiver in monitoring.receivers if receiver.url_secret is not None}
    smtp = cluster.notifications.smtp
    if smtp is not None and any(receiver.kind == "mail" for receiver in monitoring.receivers):
        secrets |= {alertmanager.RELAY_CREDENTIALS: smtp.credentials_secret} if smtp.credentials_secret else {}
        secrets |= {alertmanager.RELAY_CA: smtp.ca_secret} if smtp.ca_secret else {}
    return secrets


def build_operator_objects(cluster: Cluster, monitoring: Monitoring) -> list[Manifest]:
    """The objects of the Prometheus Operator: the monitors and the rules."""
    about = metadata(object_name(cluster.name, "alerts"), cluster.namespace, {**labels(cluster.name, "alerts"), **monitoring.labels})
    rules: Manifest = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": about,
        "spec": {"groups": build_alerts(cluster, monitoring)},
    }
    return [*build_monitors(cluster, monitoring.labels, monitoring.scrape_interval_s), rules]


def build_config(cluster: Cluster, monitoring: Monitoring) -> Manifest:
    """The files, in a ConfigMap named by its content: neither program reloads its files, so a change needs a new pod."""
    files = build_files(cluster, monitoring)
    return immutable_config_map(object_name(cluster.name, COMPONENT), cluster.namespace, labels(cluster.name, COMPONENT), files)


def build_services(cluster: Cluster, pods: PodDefaults) -> list[Manifest]:
    """The Service of Prometheus, and a headless one for each component whose pods are scraped separately."""
    services = [service(pods, COMPONENT, ports.PROMETHEUS)]
    for target in targets(cluster):
        if not target.replicas:
            continue
        service_ports = [{"name": "metrics", "port": target.port, "targetPort": target.port}]
        services.append(service(pods, target.component, target.port, headless=True, ports=service_ports))
    return services


def build_network_policy(cluster: Cluster, monitoring: Monitoring) -> Manifest:
    """Ingress to Prometheus' port from the namespaces of its readers. Egress is not limited: receivers may be anywhere."""
    sources = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}} for name in monitoring.readers]
    ingress = [{"from": sources, "ports": [network.port(ports.PROMETHEUS)]}] if sources else []
    return network.build_policy(cluster.name, cluster.namespace, COMPONENT, ingress)


def build_server(cluster: Cluster, pods: PodDefaults, monitoring: Monitoring, files: str) -> Manifest:
    """The StatefulSet: one pod with both programs on one disk. `files` is the name of the ConfigMap of `build_config`."""
    secrets = receiver_secrets(cluster, monitoring)
    receivers = [secret_volume(f"receiver-{folder}", secret) for folder, secret in secrets.items()]
    pod: Manifest = {
        "terminationGracePeriodSeconds": 60,
        "tolerations": [*pods["tolerations"], *lost_node_tolerations()],
        "securityContext": {"fsGroup": PROMETHEUS_UID, "fsGroupChangePolicy": "OnRootMismatch"},
        "containers": [_prometheus(pods, monitoring), _alertmanager(pods, secrets)],
        "volumes": [config_volume("config", files), empty_volume("tmp"), *receivers],
    }
    return stateful_set(
        pods,
        COMPONENT,
        pod,
        volumeClaimTemplates=[claim_template("data", monitoring.storage)],
        persistentVolumeClaimRetentionPolicy=claim_retention(cluster.deletion_protection),
    )


def _prometheus(pods: PodDefaults, monitoring: Monitoring) -> Manifest:
    retention_mib = max(1, int(mebibytes(monitoring.storage.size) * _METRICS_SHARE))
    return {
        "name": "prometheus",
        "image": pods["image"],
        "imagePullPolicy": pods["pull_policy"],
        "command": [
            "prometheus",
            f"--config.file={paths.PROMETHEUS}/prometheus.yml",
            f"--storage.tsdb.path={_DATA_PATH}/prometheus",
            f"--storage.tsdb.retention.time={monitoring.retention_days}d",
            f"--storage.tsdb.retention.size={retention_mib}MB",  # Prometheus' MB are MiB
            f"--web.listen-address=:{ports.PROMETHEUS}",
            "--log.format=json",
        ],
        "workingDir": _DATA_PATH,
        "resources": resources(("50m", "128Mi"), DAEMON_MEMORY),
        "ports": [{"name": "prometheus", "containerPort": ports.PROMETHEUS}],
        "securityContext": confined(PROMETHEUS_UID),
        "startupProbe": http_probe(ports.PROMETHEUS, "/-/ready", periodSeconds=1, failureThreshold=600),  # first it reads its disk
        "livenessProbe": http_probe(ports.PROMETHEUS, "/-/healthy", periodSeconds=10, timeoutSeconds=5, failureThreshold=6),
        "readinessProbe": http_probe(ports.PROMETHEUS, "/-/ready", periodSeconds=5, timeoutSeconds=5),
        "volumeMounts": [mount("config", paths.PROMETHEUS, read_only=True), mount("data", _DATA_PATH)],
    }


def _alertmanager(pods: PodDefaults, folders: Iterable[str]) -> Manifest:
    """Mounts one Secret for each of `folders` (`receiver_secrets`)."""
    receivers = [mount(f"receiver-{folder}", f"{alertmanager.SECRETS_PATH}/{folder}", read_only=True) for folder in folders]
    return {
        "name": "alertmanager",
        "image": pods["image"],
        "imagePullPolicy": pods["pull_policy"],
        "command": [
            "slipway-alertmanager",
            f"--storage.path={_DATA_PATH}/alertmanager",
            # On loopback, so that only the pod and a port-forward can silence alerts.
            f"--web.listen-address=127.0.0.1:{ports.ALERTMANAGER}",
            "--cluster.listen-address=",  # it has no peers
            "--log.format=json",
        ],
        "workingDir": _DATA_PATH,
        "resources": resources(("10m", "32Mi"), PROGRAM_MEMORY),
        "securityContext": confined(PROMETHEUS_UID),
        "volumeMounts": [
            *(mount("config", paths.PROMETHEUS, read_only=True), mount("data", _DATA_PATH), mount("tmp", "/tmp")),  # noqa: S108 - the pod's own
            *receivers,
        ],
    }
