"""Node pools: what is looked for among nodes that are there, and what is asked of EKS, as Pulumi's mocks record it."""

import asyncio
from typing import Any, cast

import pulumi
import pytest
from pulumi.runtime import mocks

from components import node_pool
from components.node_pool import gpu_resource, node_selector
from configs.models.cluster import Cluster
from configs.models.machines import MACHINES
from configs.models.node_pool import EksNodes, ExistingNodes, NodePool, Taint
from programs.node_checks import pool_settings
from programs.node_checks.pool_settings import ExpectedNodes
from tests.support.components.examples import PODS
from tests.support.components.stacks import DEV, H100

POOL = DEV.node_pool("workers")
EXISTING = POOL.existing or pytest.fail("no existing nodes")
EKS_POOL = H100.node_pool("h100")
EKS = EKS_POOL.eks or pytest.fail("no nodes of EKS")


class Recorder(mocks.Mocks):
    """Answers as a provider would, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: dict[str, dict[str, Any]] = {}

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        inputs = cast(dict[str, Any], args.inputs)  # pyright: ignore[reportUnknownMemberType]
        self.asked[args.typ] = inputs
        made = {"latestVersion": 7} if args.typ == "aws:ec2/launchTemplate:LaunchTemplate" else {}
        return f"{args.name}-id", {**inputs, "name": f"{args.name}-name", **made}

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:
        raise AssertionError(f"the program asks {args.token}")


def deploy(config: Cluster, pool: NodePool) -> Recorder:
    recorder = Recorder()
    asyncio.set_event_loop(asyncio.new_event_loop())  # whichever test ran before, and closed its own
    pulumi.runtime.set_mocks(recorder, preview=False)
    make = cast(Any, pulumi.runtime).test(lambda: node_pool.GpuNodePool("dev-pool-workers", config, PODS, pool).pool)
    make()
    return recorder


def eks(**changes: Any) -> EksNodes:
    return EKS.model_copy(update=changes)


def template(pool: NodePool = EKS_POOL, **changes: Any) -> dict[str, Any]:
    return node_pool.build_launch_template("dev-pool-h100", "dev", pool, eks(**changes), None)


def job(existing: ExistingNodes = EXISTING) -> dict[str, Any]:
    return node_pool.build_pool_check(DEV, PODS, POOL, existing)[-1]


def test_job_that_finds_existing_nodes_may_only_list_nodes() -> None:
    account, role, binding, made = node_pool.build_pool_check(DEV, PODS, POOL, EXISTING)
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account["metadata"]["name"], "namespace": "slurm"}]
    pod = made["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    assert pod["automountServiceAccountToken"]
    assert pod["nodeSelector"] == PODS["node_selector"]


def test_cluster_wide_names_hold_the_namespace() -> None:
    _, role, binding, _ = node_pool.build_pool_check(DEV, PODS, POOL, EXISTING)
    assert role["metadata"]["name"] == binding["metadata"]["name"] == "slurm-dev-pool-workers"


def test_job_is_told_the_expectation() -> None:
    [container] = job()["spec"]["template"]["spec"]["containers"]
    assert container["command"][:3] == ["python3", "-EsSB", "-m"]
    assert container["command"][3] == "programs.node_checks.pool"
    assert pool_settings.from_json(container["command"][4]) == ExpectedNodes(
        pool="workers",
        labels={"slipway.dev/pool": "workers"},
        taints=(pool_settings.Taint("slipway.dev/pool", "workers", "NoSchedule"),),
        count=2,
        gpu_resource="nvidia.com/gpu",
        gpus=4,  # those of the pool's largest set
        wait_s=60,
    )
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_job_is_replaced_exactly_when_the_expectation_changes() -> None:
    assert job()["metadata"]["name"] == job()["metadata"]["name"]
    assert job()["metadata"]["name"] != job(EXISTING.model_copy(update={"count": 3}))["metadata"]["name"]


def test_failed_job_is_made_again_and_never_retried_by_itself() -> None:
    assert job()["metadata"]["annotations"] == {"pulumi.com/replaceUnready": "true"}
    assert job()["spec"]["backoffLimit"] == 0
    assert job()["spec"]["template"]["spec"]["restartPolicy"] == "Never"


def test_existing_pool_registers_rights_and_job_and_no_machine() -> None:
    recorder = deploy(DEV, POOL)
    assert set(recorder.asked) == {
        "slipway:index:GpuNodePool",
        "kubernetes:core/v1:ServiceAccount",
        "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole",
        "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding",
        "kubernetes:batch/v1:Job",
    }
    assert recorder.asked["kubernetes:batch/v1:Job"]["metadata"]["name"] == job()["metadata"]["name"]


def test_eks_pool_registers_placement_template_and_group() -> None:
    recorder = deploy(H100, EKS_POOL)
    assert set(recorder.asked) == {
        "slipway:index:GpuNodePool",
        "aws:ec2/placementGroup:PlacementGroup",
        "aws:ec2/launchTemplate:LaunchTemplate",
        "aws:eks/nodeGroup:NodeGroup",
    }
    assert recorder.asked["aws:ec2/placementGroup:PlacementGroup"]["strategy"] == "cluster"
    made = recorder.asked["aws:ec2/launchTemplate:LaunchTemplate"]
    assert made["placement"] == {"groupName": "dev-pool-workers-name"}
    assert made["instanceType"] == "p5.48xlarge"
    assert made["metadataOptions"] == {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 2}
    assert len(made["networkInterfaces"]) == 33
    group = recorder.asked["aws:eks/nodeGroup:NodeGroup"]
    assert group["launchTemplate"] == {"id": "dev-pool-workers-id", "version": "7"}
    assert group["scalingConfig"] == {"minSize": 64, "maxSize": 64, "desiredSize": 64}
    assert group["labels"] == {"slipway.dev/pool": "h100"}


def test_eks_pool_without_placement_group_makes_none() -> None:
    recorder = deploy(H100, H100.node_pool("cpu"))
    assert set(recorder.asked) == {"slipway:index:GpuNodePool", "aws:ec2/launchTemplate:LaunchTemplate", "aws:eks/nodeGroup:NodeGroup"}
    assert "placement" not in recorder.asked["aws:ec2/launchTemplate:LaunchTemplate"]


def test_group_leaves_to_the_template_what_eks_wants_there() -> None:
    """EKS refuses a group that names machine type, disk or remote access beside a launch template that does."""
    assert not {"instance_types", "disk_size", "remote_access"} & node_pool.build_node_group(EKS_POOL, EKS).keys()
    assert not {"iam_instance_profile", "image_id", "user_data", "instance_initiated_shutdown_behavior"} & template().keys()
    assert all("subnet_id" not in interface for interface in template()["network_interfaces"])


def test_taints_are_in_the_words_of_eks() -> None:
    taints = (
        Taint(key="nvidia.com/gpu", value="present"),
        Taint(key="spot", effect="PreferNoSchedule"),
        Taint(key="gone", value="x", effect="NoExecute"),
    )
    assert node_pool.build_node_group(EKS_POOL, eks(taints=taints))["taints"] == [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"},
        {"key": "spot", "value": "", "effect": "PREFER_NO_SCHEDULE"},
        {"key": "gone", "value": "x", "effect": "NO_EXECUTE"},
    ]


@pytest.mark.parametrize(
    ("capacity_type", "reservation", "market", "target"),
    [
        pytest.param("ON_DEMAND", None, None, None, id="on-demand"),
        pytest.param("SPOT", None, None, None, id="spot-is-said-by-the-group"),
        pytest.param("ON_DEMAND", "cr-1", None, "cr-1", id="reserved"),
        pytest.param("CAPACITY_BLOCK", "cr-1", "capacity-block", "cr-1", id="capacity-block"),
    ],
)
def test_capacity(capacity_type: str, reservation: str | None, market: str | None, target: str | None) -> None:
    said: dict[str, Any] = {"capacity_type": capacity_type, "capacity_reservation_id": reservation}
    made = template(**said)
    assert made.get("instance_market_options") == (market and {"market_type": market})
    specification = target and {"capacity_reservation_target": {"capacity_reservation_id": target}}
    assert made.get("capacity_reservation_specification") == specification
    assert node_pool.build_node_group(EKS_POOL, eks(**said))["capacity_type"] == capacity_type


@pytest.mark.parametrize(
    ("machine", "layout"),
    [
        pytest.param("g6e.24xlarge", [(0, 0, "interface"), (0, 1, "efa-only"), (1, 0, "efa-only")], id="every-card-has-efa"),
        pytest.param(
            "p6-b300.48xlarge",
            [(0, 0, "interface"), *((card, 0, "efa-only") for card in range(1, 17))],
            id="card-0-has-none",
        ),
        pytest.param(
            "p6e-gb200.36xlarge",
            [(0, 0, "interface"), *((card, 0, "efa-only") for card in (1, 3, 5, 7, 9, 11, 13, 15))],
            id="every-other-card",
        ),
    ],
)
def test_one_efa_a_card(machine: str, layout: list[tuple[int, int, str]]) -> None:
    made = node_pool.build_network_interfaces(MACHINES[machine].efa_cards, ())
    assert [(each["network_card_index"], each["device_index"], each["interface_type"]) for each in made] == layout


def test_efa_layouts_fit_the_catalogue() -> None:
    for machine in MACHINES.values():
        made = node_pool.build_network_interfaces(machine.efa_cards, ())
        assert len({(each["network_card_index"], each["device_index"]) for each in made}) == 1 + len(machine.efa_cards)


def test_security_groups_are_set_on_interfaces_or_the_machine_never_both() -> None:
    with_efa, without = template(security_group_ids=("sg-1",)), template(security_group_ids=("sg-1",), efa=False)
    assert all(each["security_groups"] == ["sg-1"] for each in with_efa["network_interfaces"])
    assert "vpc_security_group_ids" not in with_efa
    assert without["vpc_security_group_ids"] == ["sg-1"]
    assert "network_interfaces" not in without
    assert all("security_groups" not in each for each in template()["network_interfaces"])


@pytest.mark.parametrize(
    ("ami_type", "device"),
    [
        pytest.param("AL2023_x86_64_NVIDIA", "/dev/xvda", id="amazon-linux"),
        pytest.param("BOTTLEROCKET_x86_64_NVIDIA", "/dev/xvdb", id="bottlerocket-keeps-images-on-its-second-disk"),
    ],
)
def test_disk_is_where_the_image_has_it(ami_type: str, device: str) -> None:
    [mapping] = template(ami_type=ami_type)["block_device_mappings"]
    assert mapping["device_name"] == device
    assert mapping["ebs"]["volume_size"] == 500


def test_workers_of_existing_nodes_go_where_the_labels_say() -> None:
    assert (node_selector(POOL), gpu_resource(POOL)) == ({"slipway.dev/pool": "workers"}, "nvidia.com/gpu")


def test_workers_of_eks_nodes_go_to_their_node_group() -> None:
    wanted = {"slipway.dev/pool": "h100"}
    assert (node_selector(EKS_POOL), gpu_resource(EKS_POOL)) == (wanted, "nvidia.com/gpu")
    assert wanted.items() <= node_pool.build_node_group(EKS_POOL, EKS)["labels"].items()


def test_new_group_has_as_many_machines_as_are_desired_or_else_the_fewest() -> None:
    few, more = (node_pool.build_node_group(EKS_POOL, eks(min=2, desired=desired)) for desired in (None, 9))
    assert few["scaling_config"] == {"min_size": 2, "max_size": 64, "desired_size": 2}
    assert more["scaling_config"]["desired_size"] == 9


def test_machines_without_efa_have_the_interfaces_of_eks() -> None:
    on_machines_without = EKS_POOL.model_copy(update={"machine": "m7i.16xlarge"})
    assert "network_interfaces" in template()
    assert "network_interfaces" not in template(efa=False)
    assert "network_interfaces" not in template(on_machines_without)
