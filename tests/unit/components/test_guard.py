"""The guard: no more rights than the table says, none to delete or to grant, and the same kinds wherever they are listed."""

from typing import Any

import pytest

from changes import workloads
from components import deployed, guard
from components.labels import Manifest, selector
from controllers.guard import record
from tests.support.components.examples import CONTROLLERS_PODS
from tests.unit.components.structure import structural_faults

NAME = "dev-guard"
DEPLOYMENT = guard.build_deployment(CONTROLLERS_PODS)
ROLES = {each["kind"]: each for each in guard.build_roles(CONTROLLERS_PODS)}
FURTHER: dict[str, Manifest] = {
    **ROLES,
    "ServiceAccount": guard.build_service_account(CONTROLLERS_PODS),
    "NetworkPolicy": guard.build_network_policy(CONTROLLERS_PODS),
    "Deployment": DEPLOYMENT,
}


def pod() -> dict[str, Any]:
    return DEPLOYMENT["spec"]["template"]["spec"]


@pytest.mark.parametrize("manifest", FURTHER.values(), ids=FURTHER)
def test_structure_is_kubernetes_own(manifest: Manifest) -> None:
    assert structural_faults(manifest) == []


def test_role_is_the_table_and_nothing_else() -> None:
    granted = [(rule["apiGroups"], rule["resources"], rule["verbs"]) for rule in ROLES["Role"]["rules"]]
    assert granted == [([right["group"]], [right["resource"]], right["verbs"]) for right in guard.rights()]
    assert set(ROLES) == {"Role", "RoleBinding"}


def test_every_right_says_why_and_stands_in_the_table_once() -> None:
    table = guard.rights()
    assert [each for each in table if set(each) != {"group", "resource", "verbs", "why"} or not each["why"].endswith(".")] == []
    assert len({(each["group"], each["resource"]) for each in table}) == len(table)


def test_guard_may_delete_nothing_and_grant_nothing() -> None:
    assert {verb for right in guard.rights() for verb in right["verbs"]} == {"get", "list", "watch", "create", "patch"}
    groups = {right["group"] for right in guard.rights()}
    assert not {group for group in groups if "rbac" in group or "*" in group}
    assert not [right for right in guard.rights() if "/" in right["resource"] or "*" in right["resource"]]


def test_kinds_are_the_same_in_the_record_the_guard_and_the_table() -> None:
    assert len(set(deployed.GUARDED)) == len(deployed.GUARDED)
    assert set(deployed.GUARDED) == set(record.KINDS)
    watched = {(kind.api_version.rpartition("/")[0], kind.plural) for kind in record.KINDS.values()}
    writable = {(right["group"], right["resource"]) for right in guard.rights() if "patch" in right["verbs"]}
    assert writable == watched
    assert {(right["group"], right["resource"]) for right in guard.rights()} - writable == {("events.k8s.io", "events")}


def test_record_label_is_the_same_where_it_is_written_removed_and_read() -> None:
    [secret] = deployed.build_deployed("dev", "slurm", [])
    label, value = workloads.RECORD
    assert secret["metadata"]["labels"][label] == value == deployed.COMPONENT
    assert f"{label}={value}" == record.COMPONENT
    assert workloads.is_record(secret)


def test_binding_binds_the_role_to_the_account() -> None:
    binding = ROLES["RoleBinding"]
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ROLES["Role"]["metadata"]["name"]}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": NAME, "namespace": "slurm"}]


def test_only_its_pod_asks_for_the_token_of_its_account() -> None:
    assert FURTHER["ServiceAccount"]["automountServiceAccountToken"] is False
    assert pod()["automountServiceAccountToken"] is True
    assert pod()["serviceAccountName"] == FURTHER["ServiceAccount"]["metadata"]["name"] == NAME


def test_network_lets_out_names_and_the_api_server_only() -> None:
    policy = FURTHER["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == DEPLOYMENT["spec"]["selector"]["matchLabels"] == selector("dev", "guard")
    assert sorted(policy["policyTypes"]) == ["Egress", "Ingress"]
    opened = {(each["port"], each["protocol"]) for rule in policy["egress"] for each in rule["ports"]}
    assert opened == {(53, "UDP"), (53, "TCP"), (443, "TCP"), (6443, "TCP")}


def test_program_is_told_what_it_cannot_know() -> None:
    [container] = pod()["containers"]
    assert container["command"] == ["python", "-m", "controllers.guard"]
    assert container["image"] == "registry.example/controllers:1"
    said = {each["name"]: each.get("value") or each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"]}
    assert said == {"SLIPWAY_CLUSTER": "dev", "SLIPWAY_NAMESPACE": "slurm", "POD_NAME": "metadata.name"}
