"""The program for users from LDAP."""

import json
from typing import Any

import pytest

from components.labels import Manifest
from components.ldap import IdentityArgs, build_deployment, build_network_policy, build_settings, ports_of
from components.shared_mounts import SharedMountArgs
from tests.unit.components.examples import PODS
from tests.unit.components.structure import structural_faults

CLAIM: SharedMountArgs = {"name": "shared-root", "mount_path": "/shared", "storage_class": "efs", "size": "1Ti"}
ARGS: IdentityArgs = {
    "pods": PODS,
    "ldap": {
        "uris": ["ldaps://one", "ldap://two", "ldaps://three:1636"],
        "start_tls": False,
        "ca_secret": "ldap-ca",
        "user_base_dn": "ou=people,dc=x",
        "group_base_dn": "dc=x",
        "user_filter": "(objectClass=posixAccount)",
        "group_filter": "(objectClass=posixGroup)",
        "bind_dn": "cn=reader,dc=x",
        "bind_secret": "ldap-reader",
        "key_attribute": "sshPublicKey",
        "refresh_s": 20,
        "min_uid": 1000,
        "min_gid": 1000,
        "max_removed_percent": 50,
    },
    "volume": CLAIM,
    "users": "dev-users",
    "user_keys": "dev-user-keys",
}
DEPLOYMENT = build_deployment(ARGS)
POD: dict[str, Any] = DEPLOYMENT["spec"]["template"]["spec"]
[PREPARE], [PROGRAM] = POD["initContainers"], POD["containers"]


def volumes(pod: Manifest) -> dict[str, Any]:
    return {each["name"]: each for each in pod["volumes"]}


def mounts(container: Manifest) -> dict[str, Any]:
    return {each["mountPath"]: each for each in container["volumeMounts"]}


@pytest.mark.parametrize(
    "manifest", [pytest.param(DEPLOYMENT, id="deployment"), pytest.param(build_network_policy(ARGS), id="network-policy")]
)
def test_structure_is_kubernetes_own(manifest: Manifest) -> None:
    assert structural_faults(manifest) == []


def test_never_two_at_once() -> None:
    assert (DEPLOYMENT["spec"]["replicas"], DEPLOYMENT["spec"]["strategy"]) == (1, {"type": "Recreate"})


def test_program_has_no_rights_and_of_the_shared_volume_its_own_folder_only() -> None:
    context = PROGRAM["securityContext"]
    assert (context["runAsUser"], context["readOnlyRootFilesystem"], context["capabilities"]) == (405, True, {"drop": ["ALL"]})
    shared = [each for each in PROGRAM["volumeMounts"] if each["name"] == "shared-root"]
    assert shared == [{"name": "shared-root", "mountPath": "/identity", "subPath": "identity"}]
    assert POD["automountServiceAccountToken"] is False


def test_no_fs_group_re_owns_the_shared_volume() -> None:
    assert "securityContext" not in POD


def test_password_and_authority_are_files_of_their_own_and_stand_nowhere_else() -> None:
    assert volumes(POD)["password"]["secret"]["items"] == [{"key": "password", "path": "password"}]
    assert volumes(POD)["ca"]["secret"]["items"] == [{"key": "ca.crt", "path": "ca.crt"}]
    said = json.loads(PROGRAM["command"][-1])
    assert (said["passwordFile"], said["caFile"]) == ("/etc/slipway/ldap-password/password", "/etc/slipway/ldap-ca/ca.crt")
    assert {"/etc/slipway/ldap-password", "/etc/slipway/ldap-ca"} <= {*mounts(PROGRAM)}
    assert not {"/etc/slipway/ldap-password", "/etc/slipway/ldap-ca"} & {*mounts(PREPARE)}


def test_anonymous_reader_with_the_authorities_of_the_image_needs_no_secret() -> None:
    ldap = {key: value for key, value in ARGS["ldap"].items() if key not in ("bind_dn", "bind_secret", "ca_secret")}
    anonymous: Any = {**ARGS, "ldap": ldap}
    pod = build_deployment(anonymous)["spec"]["template"]["spec"]
    assert not {"password", "ca"} & {*volumes(pod)}
    assert not {"bindDn", "passwordFile", "caFile"} & {*json.loads(build_settings(anonymous["ldap"]))}


def test_network_policy_lets_out_names_and_ldap_only() -> None:
    spec = build_network_policy(ARGS)["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in spec
    assert [port["port"] for rule in spec["egress"] for port in rule["ports"]] == [53, 53, 389, 636, 1636]


def test_ports_are_those_of_the_uris() -> None:
    assert ports_of(["ldaps://a", "ldaps://b", "ldap://[2001:db8::1]:3389"]) == [636, 3389]
