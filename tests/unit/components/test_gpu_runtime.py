"""The GPU Operator."""

from components import gpu_runtime
from components.gpu_runtime import GpuOperatorArgs, gpu_runtime_args
from tests.unit.components.stacks import DEV, H100

OPERATOR: GpuOperatorArgs = {
    "version": "v25.3.4",
    "driver": False,
    "toolkit": False,
    "tolerations": [
        {"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"},
        {"key": "slipway.dev/pool", "operator": "Equal", "value": "h100", "effect": "NoSchedule"},
    ],
    "has_mig": False,
}


def test_operator_never_replaces_a_driver_under_running_jobs() -> None:
    assert gpu_runtime.build_operator(OPERATOR)["values"]["driver"] == {"enabled": False, "upgradePolicy": {"autoUpgrade": False}}


def test_operator_runs_on_the_nodes_of_the_pools() -> None:
    values = gpu_runtime.build_operator(OPERATOR)["values"]
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, OPERATOR["tolerations"][1]]
    assert values["daemonsets"]["tolerations"] == tolerations
    assert values["node-feature-discovery"]["worker"]["tolerations"] == tolerations
    assert values["toolkit"] == {"enabled": False}


def test_operator_offers_whole_gpus_where_slurm_hands_out_their_instances() -> None:
    assert "mig" not in gpu_runtime.build_operator(OPERATOR)["values"]
    assert gpu_runtime.build_operator({**OPERATOR, "has_mig": True})["values"]["mig"] == {"strategy": "none"}


def test_operator_is_a_pinned_helm_release_in_a_namespace_of_its_own() -> None:
    made = gpu_runtime.build_operator(OPERATOR)
    assert (made["chart"], made["version"], made["namespace"]) == ("gpu-operator", "v25.3.4", "gpu-operator")


def test_gpu_operator_tolerates_every_pool_and_is_left_out_when_off() -> None:
    made = gpu_runtime_args(H100)
    assert "operator" in made
    assert {one["key"] for one in made["operator"]["tolerations"]} == {"nvidia.com/gpu", "slipway.dev/pool"}
    assert "operator" not in gpu_runtime_args(DEV)
