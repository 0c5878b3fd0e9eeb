"""The GPU Operator."""

from components.gpu_runtime import build_operator
from tests.support.components.stacks import H100
from tests.support.configs.stacks import cluster


def test_operator_never_replaces_a_driver_under_running_jobs() -> None:
    assert build_operator(H100)["values"]["driver"] == {"enabled": False, "upgradePolicy": {"autoUpgrade": False}}


def test_operator_runs_on_the_nodes_of_the_pools() -> None:
    values = build_operator(H100)["values"]
    tolerations = [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "slipway.dev/pool", "operator": "Equal", "value": "cpu", "effect": "NoSchedule"},
    ]
    assert values["daemonsets"]["tolerations"] == tolerations
    assert values["node-feature-discovery"]["worker"]["tolerations"] == tolerations
    assert values["toolkit"] == {"enabled": False}


def test_operator_offers_whole_gpus_where_slurm_hands_out_their_instances() -> None:
    assert "mig" not in build_operator(H100)["values"]
    divided = cluster("h100", {"nodeSets[0].gpus.mig": [{"profile": "1g.10gb", "count": 7}], "healthChecks": []})
    assert build_operator(divided)["values"]["mig"] == {"strategy": "none"}


def test_operator_is_a_pinned_helm_release_in_a_namespace_of_its_own() -> None:
    made = build_operator(H100)
    assert (made["chart"], made["version"], made["namespace"]) == ("gpu-operator", "v25.3.4", "gpu-operator")
