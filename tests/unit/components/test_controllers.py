"""The controllers: no more rights than the table says."""

from typing import Any

import pytest

from components import controllers
from components.labels import Manifest, selector
from configs.models.node_set import Remedies
from tests.support.components.examples import CONTROLLERS_PODS
from tests.support.components.stacks import DEV, repairing
from tests.unit.components.structure import structural_faults

NAME = "dev-nodeset-controller"
DELETING = Remedies(steps=("ReplaceMachine",), machines="DeleteNode")
DEPLOYMENT = controllers.build_deployment(DEV, CONTROLLERS_PODS)
ROLES = {one["kind"]: one for one in controllers.build_roles(DEV, CONTROLLERS_PODS)}
FURTHER: dict[str, Manifest] = {
    **ROLES,
    "ServiceAccount": controllers.build_service_account(CONTROLLERS_PODS),
    "NetworkPolicy": controllers.build_network_policy(DEV, CONTROLLERS_PODS),
    "PodDisruptionBudget": controllers.build_disruption_budget(CONTROLLERS_PODS),
}


def pod() -> dict[str, Any]:
    return DEPLOYMENT["spec"]["template"]["spec"]


def container() -> dict[str, Any]:
    [one] = pod()["containers"]
    return one


def rules(kind: str, remedies: Remedies | None) -> list[dict[str, Any]]:
    """Those of a role of the controllers, for a cluster whose node sets have these remedies."""
    return next(each for each in controllers.build_roles(repairing(remedies), CONTROLLERS_PODS) if each["kind"] == kind)["rules"]


@pytest.mark.parametrize("manifest", [pytest.param(manifest, id=kind) for kind, manifest in FURTHER.items()])
def test_structure_is_kubernetes_own(manifest: Manifest) -> None:
    assert structural_faults(manifest) == []


def test_one_of_two_acts_and_they_are_kept_apart() -> None:
    assert DEPLOYMENT["spec"]["replicas"] == 2
    [apart] = pod()["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert apart["podAffinityTerm"]["labelSelector"]["matchLabels"] == DEPLOYMENT["spec"]["selector"]["matchLabels"]
    assert FURTHER["PodDisruptionBudget"]["spec"] == {"maxUnavailable": 1, "selector": DEPLOYMENT["spec"]["selector"]}


def test_program_is_told_what_it_cannot_know() -> None:
    assert container()["command"] == ["python", "-m", "controllers.nodeset"]
    assert container()["image"] == "registry.example/controllers:1"
    said = {one["name"]: one.get("value") or one["valueFrom"]["fieldRef"]["fieldPath"] for one in container()["env"]}
    assert said == {
        "SLIPWAY_CLUSTER": "dev",
        "SLIPWAY_NAMESPACE": "slurm",
        "SLIPWAY_SLURMRESTD": "http://dev-slurmrestd.slurm:6820",
        "SLIPWAY_JWT_KEY": "/etc/slipway/jwt/jwt_hs256.key",
        "POD_NAME": "metadata.name",
    }


def test_probes_are_on_a_port_of_their_own() -> None:
    probes = {kind: container()[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {kind: probe["path"] for kind, probe in probes.items()} == {
        "startup": "/healthz",
        "liveness": "/healthz",
        "readiness": "/readyz",
    }
    assert {probe["port"] for probe in probes.values()} == {8082}


def test_network_lets_out_names_the_api_server_and_slurms_two_pods_only() -> None:
    policy = FURTHER["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == DEPLOYMENT["spec"]["selector"]["matchLabels"]
    assert sorted(policy["policyTypes"]) == ["Egress", "Ingress"]
    opened = {(one["port"], one["protocol"]) for rule in policy["egress"] for one in rule["ports"]}
    assert opened == {(53, "UDP"), (53, "TCP"), (443, "TCP"), (6443, "TCP"), (6820, "TCP"), (6821, "TCP"), (6822, "TCP")}
    [slurmrestd] = [rule for rule in policy["egress"] if rule["ports"][0]["port"] == 6820]
    assert slurmrestd["to"] == [{"podSelector": {"matchLabels": selector("dev", "slurmrestd")}}]
    [sidecar] = [rule for rule in policy["egress"] if rule["ports"][0]["port"] == 6822]
    assert sidecar["to"] == [{"podSelector": {"matchLabels": selector("dev", "slurmctld")}}]


def test_key_is_a_file_for_the_controllers_group() -> None:
    [volume] = [one for one in pod()["volumes"] if one["name"] == "jwt"]
    assert volume["secret"] == {"secretName": "dev-jwt", "defaultMode": 0o440}
    assert pod()["securityContext"]["fsGroup"] == container()["securityContext"]["runAsGroup"]


def test_only_its_pods_ask_for_the_token_of_its_account() -> None:
    assert FURTHER["ServiceAccount"]["automountServiceAccountToken"] is False
    assert pod()["automountServiceAccountToken"] is True
    assert pod()["serviceAccountName"] == FURTHER["ServiceAccount"]["metadata"]["name"] == NAME


def test_roles_are_the_table_and_nothing_else() -> None:
    granted = {
        (rule["apiGroups"][0], rule["resources"][0], kind): rule["verbs"]
        for kind in ("Role", "ClusterRole")
        for rule in ROLES[kind]["rules"]
    }
    scopes = {"namespace": "Role", "cluster": "ClusterRole"}
    assert granted == {
        (one["group"], one["resource"], scopes[one["scope"]]): one["verbs"]
        for one in controllers.rights(deletes_machines=False, starts_checks=False)
    }
    assert not any(
        "*" in (*rule["apiGroups"], *rule["resources"], *rule["verbs"]) for kind in scopes.values() for rule in ROLES[kind]["rules"]
    )


def test_every_right_says_why_and_stands_in_the_table_once() -> None:
    table = controllers.rights()
    words = {"group", "resource", "verbs", "scope", "why"}
    assert [one for one in table if set(one) - {"only"} != words or not one["why"].endswith(".")] == []
    assert len({(one["group"], one["resource"], one.get("only")) for one in table}) == len(table)


def test_only_a_set_that_says_so_lets_it_delete_machines() -> None:
    without, with_ = (rules("ClusterRole", remedies) for remedies in (None, DELETING))
    assert [rule for rule in with_ if rule not in without] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["delete"]}]


def test_only_a_set_with_remedies_lets_it_start_checks() -> None:
    without, with_ = (rules("Role", remedies) for remedies in (None, DELETING))
    assert [(rule["resources"], rule["verbs"]) for rule in with_ if rule not in without] == [
        (["cronjobs"], ["get"]),
        (["jobs"], ["create"]),
    ]


def test_only_reading_nodes_reaches_beyond_the_namespace() -> None:
    [rule] = ROLES["ClusterRole"]["rules"]
    assert (rule["resources"], set(rule["verbs"])) == (["nodes"], {"list", "watch"})


@pytest.mark.parametrize("kind", ["Role", "ClusterRole"])
def test_bindings_bind_the_role_to_the_account(kind: str) -> None:
    binding = ROLES[f"{kind}Binding"]
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": ROLES[kind]["metadata"]["name"]}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": NAME, "namespace": "slurm"}]


def test_what_has_no_namespace_carries_it_in_its_name() -> None:
    assert ROLES["ClusterRole"]["metadata"]["name"] == f"slurm-{NAME}"
    assert "namespace" not in ROLES["ClusterRole"]["metadata"]
