"""Certificates and kubeconfigs of the local cluster, made by kubeadm's phases. Everything lies in the state folder, for root alone."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import rmtree
from typing import Any

import yaml

from local import layout
from local.commands import run
from local.layout import Node, Paths

PROXY = "kube-proxy.conf"


def kubelet_conf(node: Node) -> str:
    """Name of a node's kubeconfig in the PKI folder."""
    return f"kubelet-{node.name}.conf"


def render_kubeadm(paths: Paths, version: str, node: Node) -> str:
    """The part of kubeadm's configuration that certificates and kubeconfigs need, for one node's name."""
    init = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": str(layout.HOST), "bindPort": layout.API_PORT},
        "nodeRegistration": {"name": node.name, "criSocket": "unix:///run/containerd/containerd.sock"},
    }
    cluster = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "clusterName": layout.CONTEXT,
        "kubernetesVersion": version,
        "certificatesDir": str(paths.pki),
        "encryptionAlgorithm": "ECDSA-P256",
        "networking": {"serviceSubnet": str(layout.SERVICE_RANGE), "dnsDomain": layout.CLUSTER_DOMAIN},
        "etcd": {"local": {"dataDir": str(paths.etcd), "serverCertSANs": [str(layout.HOST)]}},
    }
    return yaml.safe_dump_all([init, cluster], sort_keys=False)


def render_kubeconfig(admin: Mapping[str, Any]) -> str:
    """kubeadm's admin kubeconfig with our context's name throughout."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": layout.CONTEXT, "cluster": admin["clusters"][0]["cluster"]}],
            "users": [{"name": layout.CONTEXT, "user": admin["users"][0]["user"]}],
            "contexts": [{"name": layout.CONTEXT, "context": {"cluster": layout.CONTEXT, "user": layout.CONTEXT}}],
            "current-context": layout.CONTEXT,
        },
        sort_keys=False,
    )


def make(paths: Paths, kubeadm: Path, version: str, nodes: tuple[Node, ...]) -> bool:
    """Makes all keys once; False when they are there. A half-made folder is thrown away and made again."""
    done = paths.pki / "complete"
    if done.exists():
        return False
    rmtree(paths.pki, ignore_errors=True)
    paths.pki.mkdir(parents=True, mode=0o700)
    configs = {node: paths.pki / f"kubeadm-{node.name}.yaml" for node in nodes}
    for node, file in configs.items():
        file.write_text(render_kubeadm(paths, version, node))
    system = str(configs[nodes[0]])
    run([str(kubeadm), "init", "phase", "certs", "all", "--config", system])

    def phase(name: str, config: Path, folder: Path) -> None:
        run([str(kubeadm), "init", "phase", "kubeconfig", name, "--config", str(config), "--kubeconfig-dir", str(folder)])

    def kubelet(node: Node) -> None:
        folder = paths.pki / node.name
        phase("kubelet", configs[node], folder)
        (folder / "kubelet.conf").rename(paths.pki / kubelet_conf(node))
        folder.rmdir()

    def proxy() -> None:
        text = run([str(kubeadm), "kubeconfig", "user", "--client-name", "system:kube-proxy", "--config", system])
        (paths.pki / PROXY).write_text(text)

    with ThreadPoolExecutor() as pool:
        tasks = [pool.submit(phase, name, configs[nodes[0]], paths.pki) for name in ("super-admin", "controller-manager", "scheduler")]
        tasks += [pool.submit(kubelet, node) for node in nodes]
        tasks.append(pool.submit(proxy))
        for task in tasks:
            task.result()
    done.touch()
    return True


def write_kubeconfig(paths: Paths) -> None:
    """The user's kubeconfig of the local cluster, at `.slipway/kubeconfig`."""
    text = render_kubeconfig(yaml.safe_load((paths.pki / "super-admin.conf").read_text()))
    paths.kubeconfig.touch(mode=0o600)
    paths.kubeconfig.write_text(text)
