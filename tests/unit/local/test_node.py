"""Configuration of a node's programs."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import layout, node, pki
from local.layout import NODES, SYSTEM, WORKERS, Node, find_paths

PATHS = find_paths(Path("/tree"), {"HOME": "/root"})
PAUSE = "localhost/slipway/pause:abc"


@pytest.mark.parametrize("each", NODES, ids=lambda each: each.name)
def test_containerd_uses_our_pause_image_and_the_nodes_own_network(each: Node) -> None:
    config = tomllib.loads(node.render_containerd(each, PATHS, PAUSE))
    cri = config["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["sandbox_image"] == PAUSE
    assert cri["restrict_oom_score_adj"] is True
    assert cri["cni"]["conf_dir"] == str(PATHS.node(each) / "net.d")


def test_nodes_pull_by_plain_http_from_the_bridge_and_from_nowhere_else() -> None:
    files = node.config_files(SYSTEM, PATHS, PAUSE)
    config = tomllib.loads(files[PATHS.node(SYSTEM) / "containerd.toml"])
    folder = Path(config["plugins"]["io.containerd.grpc.v1.cri"]["registry"]["config_path"])
    (hosts,) = [path for path in files if path.name == "hosts.toml"]
    assert hosts == folder / "198.18.0.1:5000" / "hosts.toml"
    url = "http://198.18.0.1:5000"
    assert tomllib.loads(files[hosts]) == {"server": url, "host": {url: {"capabilities": ["pull", "resolve"]}}}


@pytest.mark.parametrize("each", NODES, ids=lambda each: each.name)
def test_pods_keep_their_addresses(each: Node) -> None:
    (plugin,) = json.loads(node.render_cni(each))["plugins"]
    assert plugin["ipMasq"] is False
    assert plugin["ipam"]["ranges"] == [[{"subnet": str(each.pods)}]]
    proxy: Any = yaml.safe_load(node.render_proxy(each, PATHS))
    assert proxy["mode"] == "nftables"
    # What kube-proxy takes for pods must hold no node: only what comes from outside the pods may be masqueraded.
    assert proxy["clusterCIDR"] == str(layout.POD_RANGE)
    assert each.address not in layout.POD_RANGE


@pytest.mark.parametrize(
    ("each", "taints"),
    [
        pytest.param(SYSTEM, [], id="system"),
        *(pytest.param(w, [{"key": "slipway.dev/pool", "value": "workers", "effect": "NoSchedule"}], id=w.name) for w in WORKERS),
    ],
)
def test_kubelet_registers_with_the_pools_taint(each: Node, taints: list[Any]) -> None:
    config: Any = yaml.safe_load(node.render_kubelet(each, PATHS))
    assert config["registerWithTaints"] == taints
    assert config["cgroupRoot"] == f"/slipway/{each.name}"
    assert config["failCgroupV1"] is False
    assert config["syncFrequency"] == "10s"


def test_images_are_never_collected_and_a_full_disk_evicts_nobody() -> None:
    config: Any = yaml.safe_load(node.render_kubelet(SYSTEM, PATHS))
    assert config["imageGCHighThresholdPercent"] == 100
    assert set(config["evictionHard"].values()) == {"0%"}


def test_changed_configuration_restarts_the_program() -> None:
    files = node.config_files(SYSTEM, PATHS, PAUSE)
    other = node.config_files(SYSTEM, PATHS, "localhost/slipway/pause:def")
    assert node.containerd(SYSTEM, PATHS, files).digest != node.containerd(SYSTEM, PATHS, other).digest
    kubelet = Path("/kubelet")
    assert node.kubelet(SYSTEM, PATHS, files, kubelet).digest == node.kubelet(SYSTEM, PATHS, other, kubelet).digest


def test_programs_run_as_the_node() -> None:
    program = node.kubelet(WORKERS[0], PATHS, node.config_files(WORKERS[0], PATHS, PAUSE), Path("/cache/kubelet"))
    assert program.name == "kubelet-worker-0"
    assert program.argv[:4] == ("nsenter", "--mount=/run/slipway/mnt/worker-0", "--net=/run/netns/slipway-worker-0", "--")
    assert f"--kubeconfig=/tree/.slipway/pki/{pki.kubelet_conf(WORKERS[0])}" in program.argv
    assert f"--node-labels={layout.POOL_LABEL}=workers,{layout.SWITCH_LABEL}=local" in program.argv
    assert program.cgroup_procs[0].endswith("/slipway/worker-0/runtime/cgroup.procs")


def test_gpus_are_capacity_of_the_nodes_status() -> None:
    assert json.loads(node.capacity_patch(WORKERS[0])) == {"status": {"capacity": {"nvidia.com/gpu": "4"}}}


def test_certificates_are_for_the_bridge_and_each_node_alone() -> None:
    for each in NODES:
        init, cluster = yaml.safe_load_all(pki.render_kubeadm(PATHS, "v1.35.4", each))
        assert init["nodeRegistration"]["name"] == each.name
        assert init["localAPIEndpoint"]["advertiseAddress"] == str(layout.HOST)
        assert cluster["etcd"]["local"]["serverCertSANs"] == [str(layout.HOST)]


def test_kubeconfig_speaks_of_our_context_only() -> None:
    admin = {"clusters": [{"name": "k", "cluster": {"server": "https://a"}}], "users": [{"name": "u", "user": {"token": "t"}}]}
    config: Any = yaml.safe_load(pki.render_kubeconfig(admin))
    assert config["current-context"] == "slipway-local"
    assert config["contexts"] == [{"name": "slipway-local", "context": {"cluster": "slipway-local", "user": "slipway-local"}}]
    assert config["clusters"][0]["cluster"] == {"server": "https://a"}
