"""The collector's pod: least privilege, one replica, and settings that its program reads."""

from dataclasses import replace
from typing import Any

import pytest

from components import metrics
from components.labels import Manifest
from components.pods import service
from configs.models.monitoring import Monitoring
from names import ports
from programs.metrics.settings import Settings, from_json, to_json
from tests.support.components.examples import PODS
from tests.support.components.stacks import DEV, H100
from tests.unit.components.structure import structural_faults

SETTINGS = metrics.build_settings(DEV, Monitoring())
DEPLOYMENT = metrics.build_deployment(PODS, SETTINGS)
POLICY = metrics.build_network_policy(PODS, SETTINGS)


def pod() -> dict[str, Any]:
    return DEPLOYMENT["spec"]["template"]["spec"]


@pytest.mark.parametrize("manifest", [DEPLOYMENT, POLICY, service(PODS, metrics.COMPONENT, ports.METRICS)], ids=lambda each: each["kind"])
def test_structure_is_kubernetes_own(manifest: Manifest) -> None:
    assert structural_faults(manifest) == []
    assert manifest["metadata"]["name"] == "dev-metrics"


def test_port_is_the_programs_and_has_the_name_that_monitors_use() -> None:
    [collector] = pod()["containers"]
    assert collector["ports"] == [{"name": "metrics", "containerPort": ports.METRICS}]
    assert service(PODS, metrics.COMPONENT, ports.METRICS)["spec"]["ports"] == [
        {"name": "metrics", "port": ports.METRICS, "targetPort": ports.METRICS}
    ]


def test_jobs_are_never_counted_twice_at_once() -> None:
    assert (DEPLOYMENT["spec"]["replicas"], DEPLOYMENT["spec"]["strategy"]) == (1, {"type": "Recreate"})


def test_collector_is_slurms_own_user_and_nothing_more() -> None:
    [collector] = pod()["containers"]
    assert collector["securityContext"]["runAsUser"] == 64030
    assert collector["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod()["automountServiceAccountToken"] is False
    assert "memory" in collector["resources"]["limits"]
    assert "munge-key" not in [mount["name"] for mount in collector["volumeMounts"]]


def test_program_reads_its_settings() -> None:
    assert from_json(to_json(SETTINGS)) == Settings(
        accounting=True,
        accounts=100,
        checks={
            node_set.name: {
                check.name: "interval" if "interval" in check.contexts else "job"
                for check in DEV.health_checks
                if node_set.name in check.node_sets
            }
            for node_set in DEV.node_sets
            if any(node_set.name in check.node_sets for check in DEV.health_checks)
        },
        checks_collector=("dev-slurmctld", 6823),
    )


@pytest.mark.parametrize(("accounting", "daemons"), [(True, {"slurmctld", "slurmdbd"}), (False, {"slurmctld"})])
def test_collector_reaches_names_and_slurm_alone(accounting: bool, daemons: set[str]) -> None:
    spec = metrics.build_network_policy(PODS, replace(SETTINGS, accounting=accounting))["spec"]
    named = {to["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for rule in spec["egress"] for to in rule.get("to", ())}
    assert named == daemons
    assert [rule["ports"] for rule in spec["egress"] if "to" not in rule] == [
        [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
    ]


def test_monitoring_is_off_unless_given() -> None:
    assert H100.monitoring is None


def test_collector_of_checks_is_asked() -> None:
    spec = metrics.build_network_policy(PODS, replace(SETTINGS, accounting=False))["spec"]
    assert [[port["port"] for port in rule["ports"]] for rule in spec["egress"] if "to" in rule] == [[6817, 6823]]
