"""The way in: host key, Service, sshd's pod."""

from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from components import host_keys, login
from tests.support.components.examples import CLUSTER, PODS, edited_example
from tests.unit.components.structure import structural_faults

SEED = bytes(range(32))
PEM = host_keys.host_key(SEED)


def test_host_key_is_the_ed25519_key_of_its_seed() -> None:
    key = serialization.load_pem_private_key(PEM.encode(), password=None)
    assert isinstance(key, Ed25519PrivateKey)
    assert key.private_bytes_raw() == SEED


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_seed_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        host_keys.host_key(bytes(length))


def test_node_port_is_fixed_and_not_waited_for() -> None:
    made = login.build_service(CLUSTER)
    assert made["spec"]["ports"] == [{"name": "ssh", "port": 22, "targetPort": 2222, "nodePort": 30022}]
    assert made["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    assert structural_faults(made) == []


def test_load_balancer_is_open_to_named_networks_only() -> None:
    service = {"type": "LoadBalancer", "annotations": {"cloud/scheme": "internal"}, "sourceRanges": ["203.0.113.0/24"]}
    made = login.build_service(edited_example({"login.service": service}))
    assert made["metadata"]["annotations"] == {"cloud/scheme": "internal", "pulumi.com/skipAwait": "true"}
    assert made["spec"]["loadBalancerSourceRanges"] == ["203.0.113.0/24"]
    assert structural_faults(made) == []


@pytest.mark.parametrize(
    ("service", "command"),
    [
        pytest.param({"type": "NodePort", "nodePort": 30022}, "ssh -p 30022 USER@NODE", id="node-port"),
        pytest.param({"type": "NodePort"}, "get service dev-login", id="node-port-that-kubernetes-chooses"),
        pytest.param({"type": "LoadBalancer"}, "status.loadBalancer", id="load-balancer"),
        pytest.param({}, "port-forward service/dev-login", id="cluster-ip"),
    ],
)
def test_way_in_is_told(service: dict[str, Any], command: str) -> None:
    assert command in login.ssh_command(edited_example({"login.service": service}))


def test_new_login_pod_is_ready_before_an_old_one_goes() -> None:
    spec = login.build_deployment(CLUSTER, PODS)["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}


def test_login_pods_prefer_different_machines() -> None:
    template = login.build_deployment(CLUSTER, PODS)["spec"]["template"]
    [spread] = template["spec"]["topologySpreadConstraints"]
    assert spread["topologyKey"] == "kubernetes.io/hostname"
    assert spread["labelSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()


def test_sshd_has_what_logins_need_and_not_more() -> None:
    [sshd] = login.build_deployment(CLUSTER, PODS)["spec"]["template"]["spec"]["containers"]
    context = sshd["securityContext"]
    assert "privileged" not in context
    assert context["allowPrivilegeEscalation"] is False
    assert {"SYS_ADMIN", "SYS_PTRACE", "NET_ADMIN", "NET_RAW", "MKNOD"}.isdisjoint(context["capabilities"]["add"])
    assert sshd["terminationMessagePath"].startswith("/root/")


def test_pod_that_goes_gives_its_sessions_their_time_and_a_little_more() -> None:
    spec = login.build_deployment(edited_example({"login.drainGraceS": 3600}), PODS)["spec"]["template"]["spec"]
    assert {"name": "SLIPWAY_DRAIN_GRACE_S", "value": "3600"} in spec["containers"][0]["env"]
    assert spec["terminationGracePeriodSeconds"] == 3630


def test_host_name_is_the_cluster_s_own_and_stays_when_pods_are_made_anew() -> None:
    spec = login.build_deployment(CLUSTER, PODS)["spec"]["template"]["spec"]
    assert spec["hostname"] == "dev-login"


def test_credentials_of_login_pods_name_the_address_of_their_service() -> None:
    [munged] = login.build_deployment(CLUSTER, PODS)["spec"]["template"]["spec"]["initContainers"]
    about = login.build_service(CLUSTER)["metadata"]
    assert {"name": "SLIPWAY_ORIGIN", "value": f"{about['name']}.{about['namespace']}.svc"} in munged["env"]


def test_changed_banner_and_limits_roll_no_pod() -> None:
    changed = edited_example({"login.banner": "New.", "login.limits": {"tasks": 100}})
    before, after = login.build_settings(CLUSTER), login.build_settings(changed)
    assert after["data"] == {"banner": "New.\n", "limits": "tasks=100\n"} != before["data"]
    assert after["metadata"] == before["metadata"]
    assert "immutable" not in after
    assert login.build_deployment(changed, PODS) == login.build_deployment(CLUSTER, PODS)


def test_login_pod_knows_the_workers_key_only_where_users_go_there() -> None:
    without = edited_example({"login.sshToNodes": False})
    for cluster, names in ((CLUSTER, {"node-host-keys"}), (without, set[str]())):
        spec = login.build_deployment(cluster, PODS)["spec"]["template"]["spec"]
        assert {one["name"] for one in spec["volumes"]} & {"node-host-keys"} == names
        assert {one["name"] for one in spec["containers"][0]["volumeMounts"]} & {"node-host-keys"} == names


@pytest.mark.parametrize("home_keys", [False, True])
def test_keys_in_homes_count_only_where_the_config_says_so(home_keys: bool) -> None:
    [sshd] = login.build_deployment(edited_example({"login.homeKeys": home_keys}), PODS)["spec"]["template"]["spec"]["containers"]
    said = {one["name"]: one["value"] for one in sshd["env"]}
    assert said.get("SLIPWAY_HOME_KEYS") == ("1" if home_keys else None)
