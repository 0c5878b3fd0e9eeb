"""Workers: unknown is busy, and a set of any size is one object."""

import json
from typing import Any

import pytest

from components import node_set
from components.check_jobs import CHECKS_BEFORE_JOBS
from components.labels import Manifest
from configs.models.cluster import Cluster
from configs.render.gpu_jobs import FOLDER, HOST_FOLDER
from tests.support.components.examples import PODS
from tests.support.components.stacks import DEV, H100
from tests.support.configs.stacks import cluster, example

ELASTIC = {"nodePools[0].max": 8, "nodeSets[2].min": 1, "nodeSets[2].max": 8}


def made(name: str = "gpu", config: Cluster = DEV) -> Manifest:
    return node_set.build_node_set(config, PODS, config.node_set(name))


def spec(name: str = "gpu", config: Cluster = DEV) -> dict[str, Any]:
    return made(name, config)["spec"]


def settings_spec(**settings: Any) -> dict[str, Any]:
    """The object's spec of a set with these keys in the stack file."""
    stack = example("h100")
    checks = [check for check in stack["healthChecks"] if check["check"] != "nccl"]  # which needs whole GPUs
    edits = {"healthChecks": checks, "nodeSets[0]": {**stack["nodeSets"][0], **settings}}
    return spec("h100", cluster("h100", edits))


def pod(name: str = "gpu", config: Cluster = DEV) -> dict[str, Any]:
    return spec(name, config)["template"]["spec"]


def slurmd(name: str = "gpu", config: Cluster = DEV) -> dict[str, Any]:
    [container] = pod(name, config)["containers"]
    return container


def test_object_is_named_as_the_set_so_that_pods_are_named_as_slurm_nodes() -> None:
    manifest = made()
    assert (manifest["apiVersion"], manifest["kind"]) == ("slipway.dev/v1alpha1", "NodeSet")
    assert manifest["metadata"]["name"] == "gpu"
    assert manifest["spec"]["cluster"] == "dev"


def test_only_a_set_with_checks_before_jobs_has_pods_that_wait_for_them() -> None:
    waiting = spec("gpu", cluster("dev", {"nodeSets[1].checksBeforeJobs": ["gpu"]}))
    assert {"disk", "gpu"} <= {*waiting["checkJobs"]}
    assert waiting["checksBeforeJobs"] == ["gpu"]
    assert waiting["template"]["metadata"]["annotations"] == CHECKS_BEFORE_JOBS
    [container] = waiting["template"]["spec"]["containers"]
    assert {"name": "SLIPWAY_CHECKED_FIRST", "value": "1"} in container["env"]
    assert "annotations" not in spec()["template"]["metadata"]
    assert "SLIPWAY_CHECKED_FIRST" not in {one["name"] for one in slurmd()["env"]}


def test_controller_may_start_only_the_checks_that_its_sets_ask_for() -> None:
    assert "checkJobs" not in settings_spec()
    asking = settings_spec(remedies={"steps": ["RecreatePod"], "verifiedBy": ["gpu"]})
    assert "gpu" in asking["checkJobs"]
    assert asking["remedies"]["verifiedBy"] == ["gpu"]


def test_no_job_reaches_the_file_of_a_pods_last_words() -> None:
    assert slurmd()["terminationMessagePath"].startswith("/root/")


def test_node_names_resolve_by_the_service_of_all_workers() -> None:
    assert pod()["subdomain"] == "dev-slurmd"
    assert "hostname" not in pod()  # each pod's own, and the controller's to set


@pytest.mark.parametrize(
    ("name", "edits", "said"),
    [
        pytest.param("gpu", {}, {"replicas": 2, "ordinals": 2}, id="fixed"),
        pytest.param("gpu", {"nodeSets[1].size": 0}, {"replicas": 0, "ordinals": 0}, id="empty"),
        pytest.param("burst", ELASTIC, {"min": 1, "max": 8, "ordinals": 8}, id="elastic"),
        pytest.param("burst", {}, {"min": 0, "max": 2, "ordinals": 2}, id="elastic-from-none"),
    ],
)
def test_set_says_either_its_size_or_its_bounds(name: str, edits: dict[str, int], said: dict[str, int]) -> None:
    found = spec(name, cluster("dev", edits))
    assert {key: value for key, value in found.items() if key in ("replicas", "min", "max", "ordinals")} == said


def test_workers_of_elastic_sets_know_it() -> None:
    assert {"name": "SLIPWAY_ELASTIC", "value": "1"} in slurmd("burst")["env"]
    assert "SLIPWAY_ELASTIC" not in {one["name"] for one in slurmd()["env"]}


def test_workers_know_their_machine() -> None:
    [found] = [each for each in slurmd()["env"] if each["name"] == "SLIPWAY_MACHINE"]
    assert found["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}


@pytest.mark.parametrize("limit", [pytest.param(3, id="number"), pytest.param("10%", id="percentage")])
def test_number_of_unavailable_nodes_is_a_number_or_a_percentage(limit: int | str) -> None:
    assert settings_spec(update={"type": "OnDelete", "maxUnavailable": limit})["updateStrategy"] == {
        "type": "OnDelete",
        "maxUnavailable": limit,
        "minReadySeconds": 0,
    }


def test_maintenance_names_its_reservation() -> None:
    assert settings_spec(update={"type": "Maintenance", "reservation": "night"})["updateStrategy"]["reservation"] == "night"


def test_what_happens_to_jobs_is_said_explicitly() -> None:
    assert settings_spec(drain={"action": "Requeue", "deadlineS": 600})["drain"] == {"action": "Requeue", "deadlineSeconds": 600}
    assert settings_spec()["drain"] == {"action": "Wait"}


def test_each_node_has_its_own_disks_where_jobs_see_them() -> None:
    claims = [{"name": "local", "mountPath": "/local", "size": "1Ti", "storageClass": "fast"}]
    edits = {"nodeSets[1].volumeClaims": claims, "nodeSets[1].volumeClaimRetention": {"whenScaled": "Delete"}}
    config = cluster("dev", edits)
    [claim] = spec("gpu", config)["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "local"
    assert claim["spec"]["storageClassName"] == "fast"
    assert {"name": "local", "mountPath": "/local"} in slurmd("gpu", config)["volumeMounts"]
    assert spec("gpu", config)["volumeClaimRetention"] == {"whenDeleted": "Retain", "whenScaled": "Delete"}
    assert "volumeClaimTemplates" not in spec()


def test_worker_starts_under_its_init_and_is_probed_once_it_can_listen() -> None:
    assert slurmd()["command"] == ["tini", "--", "python3", "-EsSB", "-m", "programs.worker.run"]
    assert slurmd()["readinessProbe"] == {"tcpSocket": {"port": 6818}, "initialDelaySeconds": 2, "periodSeconds": 5}


def test_deleted_pod_drains_and_has_time_for_its_jobs() -> None:
    assert slurmd()["lifecycle"]["preStop"]["exec"]["command"] == ["python3", "-EsSB", "-m", "programs.worker.stop"]
    assert slurmd()["workingDir"] == "/opt/slipway"
    assert pod()["terminationGracePeriodSeconds"] == 90
    assert {"name": "SLIPWAY_DRAIN_GRACE_S", "value": "60"} in slurmd()["env"]


def test_deleted_set_is_drained_before_its_pods_go() -> None:
    annotations = made()["metadata"]["annotations"]
    assert annotations["pulumi.com/deletionPropagationPolicy"] == "background"


def test_deployment_waits_for_the_controller_longer_than_slurm_for_a_node() -> None:
    manifest = made("gpu", cluster("dev", {"slurm.resumeTimeoutS": 900}))
    annotations = manifest["metadata"]["annotations"]
    assert annotations["pulumi.com/waitFor"] == "condition=Ready"
    assert int(annotations["pulumi.com/timeoutSeconds"]) > manifest["spec"]["resumeTimeoutSeconds"] == 900


def test_nothing_but_slurmd_itself_restarts_its_container() -> None:
    assert "livenessProbe" not in slurmd()
    assert "startupProbe" not in slurmd()


def test_workers_go_to_their_pool_and_tolerate_its_taints_only() -> None:
    assert pod()["nodeSelector"] == {"slipway.dev/pool": "workers"}
    taints = [one["key"] for one in pod()["tolerations"] if not one["key"].startswith("node.kubernetes.io/")]
    assert taints == ["slipway.dev/pool"]
    assert "runtimeClassName" not in pod()
    assert pod("h100", H100)["runtimeClassName"] == "nvidia"


def test_workers_stay_indefinitely_on_a_machine_that_kubernetes_lost() -> None:
    lost = [one for one in pod()["tolerations"] if one["key"].startswith("node.kubernetes.io/")]
    assert [(one["key"].rpartition("/")[2], one["effect"]) for one in lost] == [("not-ready", "NoExecute"), ("unreachable", "NoExecute")]
    assert not any("tolerationSeconds" in one for one in lost)


def test_simulated_gpus_have_metrics_in_the_workers_pod() -> None:
    assert {"name": "gpu-metrics", "containerPort": 9400} in slurmd()["ports"]
    assert {"name": "SLIPWAY_GPU_METRICS", "value": "1"} in slurmd()["env"]
    assert "gpu-jobs" not in [volume["name"] for volume in pod()["volumes"]]


def test_exporter_of_real_gpus_finds_their_jobs_on_the_machine() -> None:
    config = cluster("h100", {"monitoring": {}})
    assert {"name": "gpu-jobs", "hostPath": {"path": HOST_FOLDER, "type": "DirectoryOrCreate"}} in pod("h100", config)["volumes"]
    assert {"name": "gpu-jobs", "mountPath": FOLDER} in slurmd("h100", config)["volumeMounts"]
    assert "gpu-metrics" not in [port["name"] for port in slurmd("h100", config)["ports"]]


def test_gpus_are_requested_and_limited_alike() -> None:
    # The requests of the config are smaller than what Slurm hands out: the limit is all of that, and room for slurmd beside it.
    assert node_set.build_resources(DEV, DEV.node_set("gpu")) == {
        "requests": {"cpu": "100m", "memory": "256Mi", "nvidia.com/gpu": "4"},
        "limits": {"memory": f"{2048 + 256}Mi", "nvidia.com/gpu": "4"},
    }


def test_set_without_gpus_asks_for_none() -> None:
    assert "nvidia.com/gpu" not in node_set.build_resources(DEV, DEV.node_set("cpu"))["limits"]


@pytest.mark.parametrize(
    ("name", "config", "count"), [pytest.param("gpu", DEV, "4", id="stand-ins-asked-for"), pytest.param("h100", H100, "0", id="real-gpus")]
)
def test_stand_in_devices_are_made_only_when_asked_for(name: str, config: Cluster, count: str) -> None:
    assert {"name": "SLIPWAY_SIMULATED_GPUS", "value": count} in slurmd(name, config)["env"]


def test_ten_thousand_nodes_differ_from_ten_in_their_number() -> None:
    few, many = (made("gpu", cluster("dev", {"nodePools[0].max": 10_000, "nodeSets[1].size": size})) for size in (10, 10_000))
    assert {**few, "spec": {**few["spec"], "replicas": 10_000, "ordinals": 10_000}} == many


def test_shared_folders_are_seen_where_the_config_says() -> None:
    seen = {mount["mountPath"]: mount.get("readOnly", False) for mount in slurmd("cpu", H100)["volumeMounts"]}
    assert {"/shared": False, "/home": False, "/data": True}.items() <= seen.items()


def test_worker_has_sshd_s_keys_only_where_users_may_come() -> None:
    closed = cluster("dev", {"login.sshToNodes": False})
    volumes = {one["name"]: one for one in pod()["volumes"]}
    assert volumes["node-host-keys"]["secret"] == {"secretName": "dev-node-host-keys", "defaultMode": 0o400}
    mounts = {one["name"]: one for one in slurmd()["volumeMounts"]}
    assert {name: mounts[name]["mountPath"] for name in ("node-host-keys", "user-keys")} == {
        "node-host-keys": "/etc/slipway/node-host-keys",
        "user-keys": "/etc/slipway/keys",
    }
    assert mounts["node-host-keys"]["readOnly"]
    assert [one["containerPort"] for one in slurmd()["ports"][:2]] == [6818, 22]
    assert not {"node-host-keys", "user-keys"} & {one["name"] for one in pod("gpu", closed)["volumes"]}
    assert [one["containerPort"] for one in slurmd("cpu", closed)["ports"]] == [6818]


def test_whole_machine_requests_nearly_all_of_it() -> None:
    found = node_set.build_resources(H100, H100.node_set("h100"))
    assert found["requests"]["cpu"] == "172800m"
    assert found["requests"]["memory"] == found["limits"]["memory"]
    assert int(found["limits"]["memory"].removesuffix("Mi")) < 2048 * 1024
    assert found["limits"]["nvidia.com/gpu"] == "8"


def test_updates_and_drains_are_passed_on() -> None:
    settings = {
        "update": {"type": "Maintenance", "maxUnavailable": 4, "reservation": "night"},
        "drain": {"action": "Requeue", "deadlineS": 3600},
        "placement": "Pinned",
        "volumeClaimRetention": {"whenScaled": "Delete"},
        "maxPodsInFlight": 16,
    }
    expected = {
        "updateStrategy": {"type": "Maintenance", "maxUnavailable": 4, "minReadySeconds": 0, "reservation": "night"},
        "drain": {"action": "Requeue", "deadlineSeconds": 3600},
        "placement": "Pinned",
        "volumeClaimRetention": {"whenDeleted": "Retain", "whenScaled": "Delete"},
        "maxPodsInFlight": 16,
    }
    assert expected.items() <= settings_spec(**settings).items()


@pytest.mark.parametrize(
    ("settings", "declared"),
    [
        pytest.param(
            {},
            {"vendor": "nvidia", "model": "h100", "count": 8, "memoryMiB": 81920, "sockets": [0, 0, 0, 0, 1, 1, 1, 1]},
            id="as-the-catalogue-has-them",
        ),
        pytest.param(
            {"gpus": {"model": "h100", "count": 8, "driverName": "NVIDIA H100 80GB HBM3", "sockets": [1, 0] * 4}},
            {
                "vendor": "nvidia",
                "model": "h100",
                "count": 8,
                "memoryMiB": 81920,
                "driverName": "NVIDIA H100 80GB HBM3",
                "sockets": [1, 0] * 4,
            },
            id="as-given",
        ),
        pytest.param(
            {"cpus": 64, "gpus": {"model": "h100", "count": 8, "mig": [{"profile": "1g.10gb", "count": 7}]}},
            {"vendor": "nvidia", "model": "h100", "count": 8, "memoryMiB": 81920, "mig": [{"profile": "1g.10gb", "count": 7}]},
            id="divided",
        ),
        pytest.param({"cpus": 64}, {"vendor": "nvidia", "model": "h100", "count": 8, "memoryMiB": 81920}, id="part-of-a-machine"),
    ],
)
def test_worker_knows_which_gpus_are_declared(settings: dict[str, Any], declared: dict[str, Any]) -> None:
    [container] = settings_spec(**settings)["template"]["spec"]["containers"]
    [given] = [json.loads(each["value"]) for each in container["env"] if each["name"] == "SLIPWAY_DECLARED_GPUS"]
    assert given == declared
