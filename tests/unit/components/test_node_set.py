"""Workers: unknown is busy, and a set of any size is as many objects."""

from typing import Any

import pytest

from components import node_set
from components.node_set import NodeSetArgs
from tests.unit.components.examples import NODE_SET
from tests.unit.components.structure import structural_faults


def spec(args: NodeSetArgs = NODE_SET) -> dict[str, Any]:
    return node_set.build_stateful_set(args)["spec"]


def slurmd(args: NodeSetArgs = NODE_SET) -> dict[str, Any]:
    [container] = spec(args)["template"]["spec"]["containers"]
    return container


def test_pods_are_named_as_slurm_nodes_and_start_at_once() -> None:
    made = node_set.build_stateful_set(NODE_SET)
    assert made["metadata"]["name"] == "gpu"
    assert made["spec"]["podManagementPolicy"] == "Parallel"
    assert made["spec"]["serviceName"] == "dev-slurmd"


def test_changed_template_waits_until_a_pod_is_deleted() -> None:
    assert spec()["updateStrategy"] == {"type": "OnDelete"}


def test_deleted_pod_drains_and_has_time_for_its_jobs() -> None:
    assert slurmd()["lifecycle"]["preStop"]["exec"]["command"] == ["/opt/slipway/scripts/slurmd-prestop.sh"]
    assert spec()["template"]["spec"]["terminationGracePeriodSeconds"] == 3630
    assert {"name": "SLIPWAY_DRAIN_GRACE_S", "value": "3600"} in slurmd()["env"]


def test_nothing_but_slurmd_itself_restarts_its_container() -> None:
    assert "livenessProbe" not in slurmd()
    assert "startupProbe" not in slurmd()


def test_no_worker_may_be_evicted() -> None:
    made = node_set.build_disruption_budget(NODE_SET)
    assert made["spec"]["maxUnavailable"] == 0
    assert made["spec"]["selector"] == spec()["selector"]
    assert structural_faults(made) == []


def test_workers_go_to_their_pool_and_tolerate_its_taints_only() -> None:
    pod = spec()["template"]["spec"]
    assert pod["nodeSelector"] == {"slipway.dev/pool": "workers"}
    assert [toleration["key"] for toleration in pod["tolerations"]] == ["slipway.dev/pool"]
    assert pod["runtimeClassName"] == "nvidia"


def test_gpus_are_requested_and_limited_alike() -> None:
    made = node_set.build_resources(NODE_SET)
    assert made == {
        "requests": {"cpu": "500m", "memory": "1024Mi", "nvidia.com/gpu": "4"},
        "limits": {"memory": "2304Mi", "nvidia.com/gpu": "4"},
    }


def test_set_without_gpus_asks_for_none() -> None:
    assert "nvidia.com/gpu" not in node_set.build_resources({**NODE_SET, "gpus": 0})["limits"]


@pytest.mark.parametrize(
    ("simulated", "count"), [pytest.param(True, "4", id="stand-ins-asked-for"), pytest.param(False, "0", id="real-gpus")]
)
def test_stand_in_devices_are_made_only_when_asked_for(simulated: bool, count: str) -> None:
    assert {"name": "SLIPWAY_SIMULATED_GPUS", "value": count} in slurmd({**NODE_SET, "simulated_gpus": simulated})["env"]


@pytest.mark.parametrize(
    ("size", "annotations"),
    [
        pytest.param(2, {"pulumi.com/waitFor": "jsonpath={.status.readyReplicas}"}, id="first-node-is-waited-for"),
        pytest.param(0, {"pulumi.com/skipAwait": "true"}, id="empty-set-is-not"),
    ],
)
def test_deployment_waits_for_the_first_node(size: int, annotations: dict[str, str]) -> None:
    assert node_set.build_stateful_set({**NODE_SET, "size": size})["metadata"]["annotations"] == annotations


def test_ten_thousand_nodes_differ_from_ten_in_one_number() -> None:
    few, many = (node_set.build_stateful_set({**NODE_SET, "size": size}) for size in (10, 10_000))
    assert {**few, "spec": {**few["spec"], "replicas": 10_000}} == many


def test_shared_folders_are_seen_where_the_config_says() -> None:
    seen = {mount["mountPath"]: mount.get("readOnly", False) for mount in slurmd()["volumeMounts"]}
    assert {"/shared": False, "/home": False, "/data": True}.items() <= seen.items()
