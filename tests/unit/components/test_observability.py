"""Monitoring: Kubernetes' own structure, no rights, and nobody reaches more than they must."""

from typing import Any

import pytest

from components import observability
from components.labels import Manifest
from configs.load import load_cluster
from configs.models.cluster import Cluster
from configs.models.monitoring import Monitoring
from tests.support.components.examples import PODS
from tests.support.configs.stacks import ROOT, edited
from tests.unit.components.structure import structural_faults

CHAT: dict[str, Any] = {"name": "chat", "kind": "slack", "urlSecret": "slack-ops"}


def monitored(**monitoring: Any) -> tuple[Cluster, Monitoring]:
    """The stack `dev` with this monitoring alone."""
    cluster: Cluster = load_cluster(edited("dev", {"monitoring": monitoring}), ROOT, "x")
    assert cluster.monitoring is not None
    return cluster, cluster.monitoring


CLUSTER, MONITORING = monitored(receivers=[CHAT], readers=["grafana"], storage={"size": "20Gi"})
SERVER = observability.build_server(CLUSTER, PODS, MONITORING, "dev-prometheus-1")
MANIFESTS: dict[str, Manifest] = {
    "dashboards": observability.build_dashboards_map(CLUSTER, MONITORING),
    "config": observability.build_config(CLUSTER, MONITORING),
    "policy": observability.build_network_policy(CLUSTER, MONITORING),
    "server": SERVER,
    **{f"service-{one['metadata']['name']}": one for one in observability.build_services(CLUSTER, PODS)},
}


@pytest.mark.parametrize("manifest", MANIFESTS.values(), ids=MANIFESTS)
def test_structure_is_kubernetes_own(manifest: Manifest) -> None:
    assert structural_faults(manifest) == []


def pod() -> dict[str, Any]:
    return SERVER["spec"]["template"]["spec"]


def test_prometheus_has_no_rights_and_writes_to_its_disk_alone() -> None:
    assert pod()["automountServiceAccountToken"] is False
    for container in pod()["containers"]:
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["runAsNonRoot"] is True
        assert [mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")] in (["data"], ["data", "tmp"])


def test_alertmanager_alone_has_the_secrets_and_listens_on_the_loopback() -> None:
    prometheus, alertmanager = pod()["containers"]
    assert [each["secret"]["secretName"] for each in pod()["volumes"] if "secret" in each] == ["slack-ops"]
    assert "receiver-chat" in [mount["name"] for mount in alertmanager["volumeMounts"]]
    assert "receiver-chat" not in [mount["name"] for mount in prometheus["volumeMounts"]]
    assert "--web.listen-address=127.0.0.1:9093" in alertmanager["command"]
    assert "ports" not in alertmanager


@pytest.mark.parametrize(("readers", "sources"), [pytest.param(["grafana"], ["grafana"], id="grafana"), pytest.param([], [], id="nobody")])
def test_only_readers_reach_prometheus(readers: list[str], sources: list[str]) -> None:
    rules = observability.build_network_policy(*monitored(readers=readers))["spec"]["ingress"]
    found = [one["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for rule in rules for one in rule["from"]]
    assert found == sources


def test_metrics_leave_room_on_the_disk() -> None:
    assert "--storage.tsdb.retention.size=16384MB" in pod()["containers"][0]["command"]
    assert SERVER["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"] == {"storage": "20Gi"}


def test_changed_rules_make_a_new_pod() -> None:
    before, after = (observability.build_config(*monitored(thresholds={"drainedMinutes": minutes})) for minutes in (15, 16))
    assert before["immutable"] is True
    assert before["metadata"]["name"] != after["metadata"]["name"]


def test_operator_has_its_own_kinds_and_no_pod() -> None:
    made = observability.build_operator_objects(*monitored(prometheus="Operator"))
    assert {one["kind"] for one in made} == {"ServiceMonitor", "PodMonitor", "PrometheusRule"}


def test_grafanas_sidecar_finds_the_dashboards() -> None:
    told = monitored(dashboards={"labels": {"grafana_dashboard": "yes"}, "folder": "HPC"})
    about = observability.build_dashboards_map(*told)["metadata"]
    assert about["labels"]["grafana_dashboard"] == "yes"
    assert about["annotations"] == {"grafana_folder": "HPC"}
