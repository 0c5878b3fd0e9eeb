"""What runs on a node: configuration and command lines of containerd, kubelet and kube-proxy. Nothing is started or written here."""

import json
from pathlib import Path
from typing import Any

import yaml

from local import cgroups, layout, mounts, pki
from local.layout import Node, Paths
from local.processes import Program

CONTAINERD = """# Made by `python -m local up`.
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.internal.v1.tracing",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
address = "/run/containerd/containerd.sock"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
# Without CAP_SYS_RESOURCE no process may lower its oom_score_adj, and runc then starts nothing.
restrict_oom_score_adj = true
tolerate_missing_hugetlb_controller = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{cni}"

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{registries}"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
discard_unpacked_layers = true
"""


def render_containerd(node: Node, paths: Paths, pause: str) -> str:
    """containerd's configuration (version 2, read by containerd 1.6 and later)."""
    return CONTAINERD.format(pause=pause, cni=cni_folder(node, paths), registries=registries_folder(node, paths))


def render_registry() -> str:
    """How containerd talks to the registry on the bridge: a hosts.toml, read at each pull."""
    url = f"http://{layout.REGISTRY}"
    return f'server = "{url}"\n\n[host."{url}"]\ncapabilities = ["pull", "resolve"]\n'


def render_cni(node: Node) -> str:
    """The pods' network: routed point-to-point links, addresses from the node's range, no masquerading."""
    ipam = {
        "type": "host-local",
        "dataDir": "/run/cni/addresses",
        "ranges": [[{"subnet": str(node.pods)}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    ptp = {"type": "ptp", "ipMasq": False, "mtu": 1500, "ipam": ipam}
    return json.dumps({"cniVersion": "0.4.0", "name": "slipway", "plugins": [ptp]}, indent=2) + "\n"


def render_kubelet(node: Node, paths: Paths) -> str:
    """The kubelet's configuration."""
    taints = [{"key": layout.POOL_LABEL, "value": node.pool, "effect": "NoSchedule"}] if node.is_worker else []
    config: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": str(node.address),
        "healthzBindAddress": "127.0.0.1",
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(paths.pki / "ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "clusterDNS": [str(layout.DNS)],
        "clusterDomain": layout.CLUSTER_DOMAIN,
        # Pods ask the cluster's DNS alone: a search domain of the host would only lead out.
        "resolvConf": "",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": node.cgroup,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        # How soon a changed ConfigMap reaches the pods that mount it.
        "syncFrequency": "10s",
        # No image can be pulled again, so none may be collected; the disk is the host's own, so no pod is evicted when it fills.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {f"{what}.{of}": "0%" for what in ("nodefs", "imagefs") for of in ("available", "inodesFree")},
        "makeIPTablesUtilChains": False,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "nodeStatusReportFrequency": "1m",
        "registerWithTaints": taints,
        "registryPullQPS": 0,
        "kubeAPIQPS": 100,
        "kubeAPIBurst": 200,
    }
    return yaml.safe_dump(config, sort_keys=False)


def render_proxy(node: Node, paths: Paths) -> str:
    """kube-proxy's configuration: nftables, and masquerading only for what comes from outside the pods."""
    config: dict[str, Any] = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "bindAddress": "0.0.0.0",  # noqa: S104 (inside the node's own network namespace)
        "hostnameOverride": node.name,
        "clientConnection": {"kubeconfig": str(paths.pki / pki.PROXY)},
        "clusterCIDR": str(layout.POD_RANGE),
        "nftables": {"minSyncPeriod": "200ms", "syncPeriod": "1m"},
        # These limits are the machine's, not the namespace's, and cannot be set from within one.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    return yaml.safe_dump(config, sort_keys=False)


def cni_folder(node: Node, paths: Paths) -> Path:
    """Where containerd finds the node's CNI configuration."""
    return paths.node(node) / "net.d"


def registries_folder(node: Node, paths: Paths) -> Path:
    """Where containerd looks up how to reach a registry: a folder each."""
    return paths.node(node) / "certs.d"


def config_files(node: Node, paths: Paths, pause: str) -> dict[Path, str]:
    """Every configuration file of a node, with its content."""
    home = paths.node(node)
    return {
        home / "containerd.toml": render_containerd(node, paths, pause),
        registries_folder(node, paths) / layout.REGISTRY / "hosts.toml": render_registry(),
        home / "kubelet.yaml": render_kubelet(node, paths),
        home / "kube-proxy.yaml": render_proxy(node, paths),
        cni_folder(node, paths) / "10-slipway.conflist": render_cni(node),
    }


def containerd(node: Node, paths: Paths, files: dict[Path, str]) -> Program:
    """The node's containerd; its shims, and so all pods, stay in the node's control group."""
    config = paths.node(node) / "containerd.toml"
    return _program(node, paths, files[config], "containerd", "/usr/bin/containerd", "--config", str(config), "--log-level", "warn")


def kubelet(node: Node, paths: Paths, files: dict[Path, str], binary: Path) -> Program:
    """The node's kubelet, registering with the pool's label and taint."""
    config = paths.node(node) / "kubelet.yaml"
    return _program(
        node,
        paths,
        files[config],
        "kubelet",
        str(binary),
        f"--config={config}",
        f"--kubeconfig={paths.pki / pki.kubelet_conf(node)}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        f"--node-labels={layout.POOL_LABEL}={node.pool},{layout.SWITCH_LABEL}=local",
    )


def proxy(node: Node, paths: Paths, files: dict[Path, str], binary: Path) -> Program:
    """The node's kube-proxy."""
    config = paths.node(node) / "kube-proxy.yaml"
    return _program(node, paths, files[config], "kube-proxy", str(binary), f"--config={config}")


def capacity_patch(node: Node) -> str:
    """The patch of a node's status that adds its simulated GPUs; the scheduler and the kubelet honour it."""
    return json.dumps({"status": {"capacity": {layout.GPU_RESOURCE: str(node.gpus)}}})


def _program(node: Node, paths: Paths, watched: str, name: str, *argv: str) -> Program:
    procs = cgroups.procs_file(f"{node.cgroup}/runtime")
    return Program(f"{name}-{node.name}", (*mounts.enter(node, paths), *argv), (procs,), watched)
