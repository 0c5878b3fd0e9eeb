"""From config to the components' arguments, on the two example stacks."""

from typing import Any

import pytest

from components import arguments
from configs.load import load_cluster
from configs.models.cluster import Cluster
from configs.models.storage import Disk, Mount, Nfs, NfsServer, Source
from tests.unit.components.examples import PODS
from tests.unit.components.program import ROOT, stack_config


def cluster_of(stack: str, **changed: Any) -> Cluster:
    return load_cluster({**stack_config(stack), **changed}, ROOT, f"Pulumi.{stack}.yaml")


DEV, H100 = cluster_of("dev"), cluster_of("h100")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        pytest.param(Source(host_path="/srv"), {"host_path": "/srv"}, id="host-path"),
        pytest.param(Source(claim="homes"), {"claim": "homes"}, id="claim"),
        pytest.param(Source(disk=Disk(size="10Gi")), {"disk": {"size": "10Gi"}}, id="disk"),
        pytest.param(Source(storage_class="efs", size="1Ti"), {"storage_class": "efs", "size": "1Ti"}, id="storage-class"),
        pytest.param(
            Source(nfs=Nfs(server="nfs", path="/home", options=("nfsvers=4.1",))),
            {"nfs": {"server": "nfs", "path": "/home", "options": ["nfsvers=4.1"]}},
            id="nfs",
        ),
    ],
)
def test_source_is_passed_on_as_what_it_is(source: Source, said: dict[str, Any]) -> None:
    assert arguments.shared_mount("home", "/home", source) == {"name": "home", "mount_path": "/home", "read_only": False, **said}


def test_volume_on_the_clusters_own_server_is_nfs_from_an_address_that_is_known_before_anything_runs() -> None:
    server = NfsServer(size="1Ti", cluster_ip="10.96.20.49", options=("nfsvers=4.2",))
    made = arguments.shared_mount("mount-data", "/data", Source(nfs_server=True), server=server)
    assert made.get("nfs") == {"server": "10.96.20.49", "path": "/mount-data", "options": ["nfsvers=4.2"]}


def test_users_names_of_mounts_cannot_meet_names_of_volumes() -> None:
    further = (Mount(name="run", mount_path="/data/run", claim="run"),)
    assert [mount["name"] for mount in arguments.shared_mounts(DEV, further)] == ["shared-root", "home", "mount-run"]


def test_node_set_gets_its_own_mounts_only_and_login_all() -> None:
    def paths(mounts: list[Any]) -> list[str]:
        return [mount["mount_path"] for mount in mounts]

    cpu = arguments.node_set_args(H100, PODS, H100.node_set("cpu"))
    assert paths(cpu["mounts"]) == ["/shared", "/home", "/data"]
    assert paths(arguments.login_args(H100, PODS)["mounts"]) == ["/shared", "/home", "/data", "/scratch"]


@pytest.mark.parametrize(
    ("disk", "claim"),
    [
        pytest.param(Disk(size="5Gi"), {"size": "5Gi"}, id="default-class"),
        pytest.param(Disk(size="5Gi", storage_class="fast"), {"size": "5Gi", "storage_class": "fast"}, id="named-class"),
    ],
)
def test_disk_names_a_class_only_when_the_user_does(disk: Disk, claim: dict[str, str]) -> None:
    assert arguments.claim(disk) == claim


def test_whole_machine_requests_nearly_all_of_it() -> None:
    made = arguments.node_set_args(H100, PODS, H100.node_set("h100"))
    assert made["cpu_request"] == "172800m"
    assert made["memory_request_mib"] == made["memory_limit_mib"] < 2048 * 1024
    assert (made["gpus"], made["simulated_gpus"]) == (8, False)


def test_requests_may_be_smaller_than_what_slurm_hands_out() -> None:
    made = arguments.node_set_args(DEV, PODS, DEV.node_set("gpu"))
    assert (made["cpu_request"], made["memory_request_mib"]) == ("100m", 256)
    # All that Slurm may give to jobs, and room for slurmd beside it.
    assert made["memory_limit_mib"] == 2048 + 256


def test_workers_of_existing_nodes_go_where_the_labels_say() -> None:
    assert arguments.worker_pool(DEV.node_pool("workers")) == {
        "node_selector": {"slipway.dev/pool": "workers"},
        "tolerations": [{"key": "slipway.dev/pool", "operator": "Equal", "value": "workers", "effect": "NoSchedule"}],
        "gpu_resource": "nvidia.com/gpu",
    }


def test_workers_of_eks_nodes_go_to_their_node_group() -> None:
    assert arguments.worker_pool(H100.node_pool("h100")) == {
        "node_selector": {"slipway.dev/pool": "h100"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}],
        "gpu_resource": "nvidia.com/gpu",
        "runtime_class": "nvidia",
    }


def test_eks_nodes_carry_the_label_that_workers_look_for() -> None:
    made = arguments.node_pool_args(H100, PODS, H100.node_pool("h100"))
    assert "eks" in made
    assert made["eks"]["labels"]["slipway.dev/pool"] == "h100"
    assert (made["eks"]["machine"], made["eks"]["min"], made["eks"]["desired"], made["eks"]["max"]) == ("p5.48xlarge", 64, 64, 64)
    assert made["eks"]["efa_cards"] == list(range(32))


def test_machines_without_efa_asked_for_get_none() -> None:
    made = arguments.node_pool_args(H100, PODS, H100.node_pool("cpu"))
    assert "eks" in made
    assert made["eks"]["efa_cards"] == []
    assert "capacity_reservation_id" not in made["eks"]


def test_existing_nodes_must_offer_the_gpus_of_their_largest_set() -> None:
    made = arguments.node_pool_args(DEV, PODS, DEV.node_pool("workers"))
    assert "existing" in made
    assert (made["existing"]["count"], made["existing"]["gpus"]) == (2, 4)


def test_gpu_operator_tolerates_every_pool_and_is_left_out_when_off() -> None:
    made = arguments.gpu_runtime_args(H100)
    assert "operator" in made
    assert {one["key"] for one in made["operator"]["tolerations"]} == {"nvidia.com/gpu", "slipway.dev/pool"}
    assert "operator" not in arguments.gpu_runtime_args(DEV)


def test_runtime_classes_are_those_of_the_pools_less_the_one_that_the_operator_makes() -> None:
    without = H100.model_copy(update={"gpu_operator": H100.gpu_operator.model_copy(update={"enabled": False})})
    assert arguments.kinds_args(H100)["runtime_classes"] == []
    assert arguments.kinds_args(without) == {"cluster": "h100", "install_crds": True, "runtime_classes": ["nvidia"]}


def test_checks_know_the_limits_of_the_user_and_the_facts_of_the_nodes() -> None:
    checks = {check["name"]: check["node_sets"] for check in arguments.health_checks_args(DEV, PODS)["checks"]}
    assert checks["disk"][0]["settings"] == {"minFreeMiB": 512, "minFreePercent": 0, "paths": ["/tmp", "/var/spool/slurmd"]}
    assert checks["memory"][0]["settings"]["configuredMiB"] == 2048
    [gpu] = checks["gpu"]
    assert gpu["gpus"] == 4
    assert gpu["settings"].items() >= {"vendor": "nvidia", "count": 4, "simulated": True}.items()
    assert [each["gpus"] for name in ("disk", "memory", "clock") for each in checks[name]] == [0] * 6


def test_controllers_run_from_an_image_of_their_own() -> None:
    made = arguments.controllers_args(DEV, PODS, "controllers:1")
    assert made == {"pods": {**PODS, "image": "controllers:1"}, "jwt_secret": "dev-jwt"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("cpu", {"size": 2, "ordinals": 2}, id="fixed"),
        pytest.param("burst", {"min": 0, "max": 2, "ordinals": 2}, id="elastic"),
    ],
)
def test_set_is_fixed_or_elastic(name: str, said: dict[str, int]) -> None:
    made = arguments.node_set_args(DEV, PODS, DEV.node_set(name))
    assert {key: value for key, value in made.items() if key in ("size", "min", "max", "ordinals")} == said


def test_updates_drains_and_disks_are_passed_on() -> None:
    config = stack_config("h100")
    config["nodeSets"][0] |= {
        "update": {"type": "Maintenance", "maxUnavailable": 4, "reservation": "night"},
        "drain": {"action": "Requeue", "deadlineS": 3600},
        "placement": "Pinned",
        "volumeClaims": [{"name": "scratch", "mountPath": "/local", "size": "1Ti"}],
        "volumeClaimRetention": {"whenScaled": "Delete"},
        "maxPodsInFlight": 16,
    }
    cluster = load_cluster(config, ROOT, "Pulumi.h100.yaml")
    made = arguments.node_set_args(cluster, PODS, cluster.node_set("h100"))
    assert made["update"] == {"type": "Maintenance", "max_unavailable": "4", "reservation": "night"}
    assert made["drain"] == {"action": "Requeue", "deadline_s": 3600}
    assert (made["placement"], made["max_pods_in_flight"]) == ("Pinned", 16)
    assert made["volume_claims"] == [{"name": "scratch", "mount_path": "/local", "size": "1Ti"}]
    assert made["claim_retention"] == {"when_deleted": "Retain", "when_scaled": "Delete"}


def test_system_pods_go_to_system_nodes() -> None:
    made = arguments.pod_defaults(DEV, "image:1", "dev-scripts-1", {"slurm": "dev-slurm-1"})
    assert (made["image"], made["scripts"]) == ("image:1", "dev-scripts-1")
    assert made["node_selector"] == {"slipway.dev/pool": "system"}
    assert made["tolerations"] == []
