"""The objects of the program for EC2: its role in AWS, its rights in Kubernetes, who reaches it, and the token that it shares with the
NodeSet controller."""

from typing import Any

import pytest

from components import controllers, ec2
from components.labels import Manifest, selector
from configs.models.ec2 import Ec2
from configs.models.node_set import Remedies
from controllers.ec2.settings import Settings, read_settings
from controllers.nodeset.settings import read_settings as read_controller_settings
from controllers.runtime.environment import SettingsError
from slurm.causes import EC2_CONDITIONS
from tests.support.components.examples import CONTROLLERS_PODS
from tests.support.components.stacks import DEV, repairing
from tests.unit.components.structure import structural_faults

ROLE = "arn:aws:iam::123456789012:role/slipway-ec2"
CONFIG = Ec2(region="eu-west-1", role_arn=ROLE)
CLUSTER = repairing(Remedies(steps=("RebootMachine",), machines="EC2"), ec2=CONFIG)
DEPLOYMENT = ec2.build_deployment(CLUSTER, CONTROLLERS_PODS, CONFIG)
ROLES = {each["kind"]: each for each in ec2.build_roles(CONTROLLERS_PODS)}
ALL: dict[str, Manifest] = {
    **ROLES,
    "ServiceAccount": ec2.build_service_account(CONTROLLERS_PODS, CONFIG),
    "NetworkPolicy": ec2.build_network_policy(CONTROLLERS_PODS),
    "Service": ec2.build_service(CONTROLLERS_PODS),
    "Deployment": DEPLOYMENT,
}
ASKING = controllers.build_deployment(CLUSTER, CONTROLLERS_PODS)


def pod(deployment: Manifest = DEPLOYMENT) -> dict[str, Any]:
    return deployment["spec"]["template"]["spec"]


def environment(deployment: Manifest) -> dict[str, str]:
    [container] = pod(deployment)["containers"]
    return {each["name"]: each.get("value", "pod") for each in container["env"]}


@pytest.mark.parametrize("manifest", ALL.values(), ids=ALL)
def test_structure_is_kubernetes_own(manifest: Manifest) -> None:
    assert structural_faults(manifest) == []


def test_iam_role_is_that_of_its_service_account_and_of_no_other() -> None:
    assert ALL["ServiceAccount"]["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": ROLE}
    assert pod()["serviceAccountName"] == ALL["ServiceAccount"]["metadata"]["name"] == "dev-ec2"
    without = ec2.build_service_account(CONTROLLERS_PODS, Ec2(region="eu-west-1"))
    assert "annotations" not in without["metadata"]
    assert "annotations" not in controllers.build_service_account(CONTROLLERS_PODS)["metadata"]


def test_only_the_record_is_read_and_changed_of_all_config_maps() -> None:
    rules = [rule for rule in ROLES["Role"]["rules"] if rule["resources"] == ["configmaps"]]
    assert [(rule["verbs"], rule.get("resourceNames")) for rule in rules] == [(["create"], None), (["get", "patch"], ["dev-ec2-requests"])]
    outside = {resource: rule["verbs"] for rule in ROLES["ClusterRole"]["rules"] for resource in rule["resources"]}
    assert outside == {"nodes": ["get", "list", "watch"], "nodes/status": ["patch"]}, "no label, no taint and no node of others"


def test_program_understands_its_environment() -> None:
    assert read_settings(environment(DEPLOYMENT)) == Settings(
        cluster="dev",
        namespace="slurm",
        region="eu-west-1",
        token=read_settings(environment(DEPLOYMENT)).token,
        steps=("RebootMachine",),
    )
    assert environment(DEPLOYMENT)["AWS_EC2_METADATA_DISABLED"] == "true", "the role of the machine is not taken instead"


def test_controller_finds_the_service_and_its_token() -> None:
    program = read_controller_settings(environment(ASKING)).ec2
    assert program is not None
    port, _ = ALL["Service"]["spec"]["ports"]
    assert program.url == f"http://{ALL['Service']['metadata']['name']}.slurm:{port['port']}/steps"
    secrets = {each["name"]: each["secret"] for each in pod(ASKING)["volumes"] if "secret" in each}
    assert secrets["ec2"] == {"secretName": "dev-ec2-token", "defaultMode": 0o440, "optional": True}, "no controller waits for it"
    assert {each["secret"]["secretName"] for each in pod()["volumes"] if "secret" in each} == {"dev-ec2-token"}
    [container] = pod(ASKING)["containers"]
    paths = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert str(program.token) == f"{paths['ec2']}/token"


@pytest.mark.parametrize("name", ["SLIPWAY_EC2", "SLIPWAY_EC2_TOKEN"])
def test_half_of_the_way_to_the_program_is_a_fault(name: str) -> None:
    half = {key: value for key, value in environment(ASKING).items() if key != name}
    with pytest.raises(SettingsError, match="SLIPWAY_EC2 and SLIPWAY_EC2_TOKEN go together"):
        read_controller_settings(half)


def test_stack_without_ec2_has_none_of_it() -> None:
    assert read_controller_settings(environment(controllers.build_deployment(DEV, CONTROLLERS_PODS))).ec2 is None
    assert "ec2" not in {each["name"] for each in pod(controllers.build_deployment(DEV, CONTROLLERS_PODS))["volumes"]}


def test_network_lets_only_the_controller_ask_for_steps() -> None:
    _, steps = ALL["NetworkPolicy"]["spec"]["ingress"]
    assert [each["port"] for each in steps["ports"]] == [8081]
    assert steps["from"] == [{"podSelector": {"matchLabels": ASKING["spec"]["selector"]["matchLabels"]}}]
    out = controllers.build_network_policy(CLUSTER, CONTROLLERS_PODS)["spec"]["egress"]
    assert {"to": [{"podSelector": {"matchLabels": selector("dev", "ec2")}}], "ports": [{"port": 8081, "protocol": "TCP"}]} in out
    assert out[:-1] == controllers.build_network_policy(DEV, CONTROLLERS_PODS)["spec"]["egress"]


@pytest.mark.parametrize(
    ("remedies", "steps"),
    [
        pytest.param(None, [], id="only-told"),
        pytest.param(Remedies(steps=("RecreatePod", "ReplaceMachine"), machines="EC2"), ["ReplaceMachine"], id="replaces"),
        pytest.param(Remedies(steps=("RebootMachine", "ReplaceMachine"), machines="EC2"), ["RebootMachine", "ReplaceMachine"], id="both"),
        pytest.param(Remedies(steps=("ReplaceMachine",), machines="DeleteNode"), [], id="otherwise"),
    ],
)
def test_program_may_take_the_steps_that_node_sets_have(remedies: Remedies | None, steps: list[str]) -> None:
    assert ec2.repair_steps(repairing(remedies, ec2=CONFIG)) == steps


def test_conditions_of_ec2_are_causes_only_in_clusters_that_ask_it() -> None:
    """Nobody takes them back after the program is gone, so what is left of them must not drain."""
    from components.machine_causes import build_machine_causes

    def wishes(asks: bool) -> dict[str, str]:
        rules = build_machine_causes(DEV.node_sets[0], asks)
        return {rule["condition"]: rule["wish"] for rule in rules if rule.get("condition") in EC2_CONDITIONS}

    assert wishes(False) == {}
    assert set(wishes(True)) == set(EC2_CONDITIONS)
    assert set(wishes(True).values()) == {"drain", "reboot", "replace"}
