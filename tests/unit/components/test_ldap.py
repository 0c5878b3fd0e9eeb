"""The program for users from LDAP."""

import json
from typing import Any

import pytest

from components.labels import Manifest
from components.ldap import build_deployment, build_network_policy, build_settings, ports_of
from configs.models.cluster import Cluster
from configs.models.ldap import Ldap
from programs.ldap_sync.settings import from_json, to_json
from tests.support.components.examples import PODS
from tests.support.configs.stacks import cluster
from tests.unit.components.structure import structural_faults

LOGIN = {
    "uris": ["ldaps://one", "ldaps://two", "ldaps://three:1636"],
    "caSecret": "ldap-ca",
    "baseDn": "dc=x",
    "userBaseDn": "ou=people,dc=x",
    "bindDn": "cn=reader,dc=x",
    "bindSecret": "ldap-reader",
}


def declared(**edits: Any) -> tuple[Cluster, Ldap]:
    """A stack with users from LDAP."""
    made = cluster("h100", {"login.ldap": {key: value for key, value in {**LOGIN, **edits}.items() if value is not None}})
    assert made.login.ldap is not None
    return made, made.login.ldap


CLUSTER, LDAP = declared()
ANONYMOUS = declared(bindDn=None, bindSecret=None, caSecret=None)
DEPLOYMENT = build_deployment(CLUSTER, PODS, LDAP)
POLICY = build_network_policy(PODS, LDAP)
POD: dict[str, Any] = DEPLOYMENT["spec"]["template"]["spec"]
[PREPARE], [PROGRAM] = POD["initContainers"], POD["containers"]


def volumes(pod: Manifest) -> dict[str, Any]:
    return {each["name"]: each for each in pod["volumes"]}


def mounts(container: Manifest) -> dict[str, Any]:
    return {each["mountPath"]: each for each in container["volumeMounts"]}


@pytest.mark.parametrize("manifest", [pytest.param(DEPLOYMENT, id="deployment"), pytest.param(POLICY, id="network-policy")])
def test_structure_is_kubernetes_own(manifest: Manifest) -> None:
    assert structural_faults(manifest) == []


def test_never_two_at_once() -> None:
    assert (DEPLOYMENT["spec"]["replicas"], DEPLOYMENT["spec"]["strategy"]) == (1, {"type": "Recreate"})


def test_program_has_no_rights_and_only_its_folder_of_the_shared_volume() -> None:
    context = PROGRAM["securityContext"]
    assert (context["runAsUser"], context["readOnlyRootFilesystem"], context["capabilities"]) == (405, True, {"drop": ["ALL"]})
    shared = [each for each in PROGRAM["volumeMounts"] if each["name"] == "shared-root"]
    assert shared == [{"name": "shared-root", "mountPath": "/identity", "subPath": "identity"}]
    assert POD["automountServiceAccountToken"] is False


def test_no_fs_group_re_owns_the_shared_volume() -> None:
    assert "securityContext" not in POD


def test_password_and_authority_are_separate_files_and_nowhere_else() -> None:
    assert volumes(POD)["password"]["secret"]["items"] == [{"key": "password", "path": "password"}]
    assert volumes(POD)["ca"]["secret"]["items"] == [{"key": "ca.crt", "path": "ca.crt"}]
    said = json.loads(PROGRAM["command"][-1])
    assert (said["passwordFile"], said["caFile"]) == ("/etc/slipway/ldap-password/password", "/etc/slipway/ldap-ca/ca.crt")
    assert {"/etc/slipway/ldap-password", "/etc/slipway/ldap-ca"} <= {*mounts(PROGRAM)}
    assert not {"/etc/slipway/ldap-password", "/etc/slipway/ldap-ca"} & {*mounts(PREPARE)}


def test_anonymous_reader_with_the_images_authorities_needs_no_secret() -> None:
    made, ldap = ANONYMOUS
    pod = build_deployment(made, PODS, ldap)["spec"]["template"]["spec"]
    assert not {"password", "ca"} & {*volumes(pod)}
    assert not {"bindDn", "passwordFile", "caFile"} & {*json.loads(to_json(build_settings(ldap)))}


@pytest.mark.parametrize("ldap", [pytest.param(LDAP, id="all-given"), pytest.param(ANONYMOUS[1], id="anonymous")])
def test_program_reads_what_the_component_writes(ldap: Ldap) -> None:
    settings = build_settings(ldap)
    assert from_json(to_json(settings)) == settings
    assert (settings.user_base, settings.group_base) == ("ou=people,dc=x", "dc=x")


def test_network_policy_lets_out_names_and_ldap_only() -> None:
    spec = POLICY["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in spec
    assert [port["port"] for rule in spec["egress"] for port in rule["ports"]] == [53, 53, 636, 1636]


def test_ports_are_those_of_the_uris() -> None:
    assert ports_of(["ldaps://a", "ldaps://b", "ldap://[2001:db8::1]:3389"]) == [636, 3389]
