"""`make up CONTEXT=name` on "a cluster of one's own": the local one under another name, with a registry in between. The dev stack beside it
goes on."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import layout
from tests.support.cluster.dev_stack import ROOT, STATE, UP_S, DevStack, eventually
from tests.support.patience import patience

LABEL = "slipway.dev/mini"
NAMESPACE = "slurm-mini"
OTHERS_KINDS = "OPTIONS=--config cluster.kubernetes.installCrds=false"
"""The dev stack has brought the kinds."""


class OwnCluster:
    """The local cluster as a user's own: a kubeconfig elsewhere, and a context of another name."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        shutil.copyfile(STATE / "kubeconfig", self.kubeconfig)
        self.kubectl("config", "rename-context", layout.CONTEXT, "mine")

    def run(self, *command: str, code: int = 0, timeout_s: float = 400) -> str:
        """A command of a user who has exported KUBECONFIG; all that it printed."""
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "KUBECTL": str(STATE / "bin" / "kubectl")}
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=timeout_s * patience(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def make_up(self, *variables: str, code: int = 0) -> str:
        """`make up CONTEXT=mine`."""
        return self.run("make", "--no-print-directory", "up", "CONTEXT=mine", *variables, code=code)

    def kubectl(self, *arguments: str) -> str:
        """kubectl as the user has it."""
        return self.run(str(STATE / "bin" / "kubectl"), *arguments, timeout_s=120)


@pytest.fixture
def own(shared_cluster: None, kube: str, tmp_path: Path) -> Iterator[OwnCluster]:
    """The cluster, given back as it was: the small stack destroyed, the label and the pulled images removed."""
    cluster = OwnCluster(tmp_path)
    try:
        eventually("the kinds", lambda: "nodesets" in cluster.kubectl("get", "crd", "nodesets.slipway.dev", "--ignore-not-found"), 180)
    except AssertionError:
        DevStack().slipway("up")  # nobody tests the dev stack beside this one
    yield cluster
    destroy = ("-m", "cli", "destroy", "--stack", "cluster", "--context", "mine", "--yes")
    cluster.run(str(ROOT / ".venv" / "bin" / "python"), *destroy)
    cluster.kubectl("label", "node", layout.SYSTEM.name, f"{LABEL}-")
    client = ("ctr", "--address", str(layout.find_paths(ROOT).socket(layout.SYSTEM)), "--namespace", "k8s.io", "images")
    listed = cluster.run(*client, "list", "--quiet").split()
    cluster.run(*client, "remove", *(name for name in listed if name.startswith(layout.REGISTRY)))
    eventually("the namespace gone", lambda: NAMESPACE not in cluster.kubectl("get", "namespaces", "-o", "name"))


@pytest.mark.timeout(1800)
def test_make_up_on_an_own_cluster_reports_what_is_missing_then_runs_jobs(own: OwnCluster, nodes_registry: str) -> None:
    said = own.make_up(code=2)
    assert "Nothing was changed: this cluster has nothing of the stack yet" in said
    assert 'context "mine", server https://198.18.0.1:6443' in said

    said = own.make_up("YES=1", OTHERS_KINDS, code=2)
    assert f"kubectl label node NAME {LABEL}=true" in said
    assert "python -m images push REGISTRY" in said
    assert NAMESPACE not in own.kubectl("get", "namespaces", "-o", "name")

    own.kubectl("label", "node", layout.SYSTEM.name, f"{LABEL}=true")
    patient = f"{OTHERS_KINDS} --timeout {UP_S * patience():.0f}"
    said = own.make_up("YES=1", f"REGISTRY={nodes_registry}", "PLAIN_HTTP=1", patient)
    assert "cpu-[0-1], each with a file in the home" in said
    assert re.search(r"✓ accounting +all \d jobs are recorded", said)
    assert re.search(r"✓ MPI over two nodes +", said)
    assert "port-forward service/mini-login" in said
    pods = json.loads(own.kubectl("get", "pods", "-n", NAMESPACE, "-o", "json"))["items"]
    images = {container["image"] for pod in pods for container in pod["spec"]["containers"]}
    assert images
    assert all(image.startswith(f"{nodes_registry}/slipway/") for image in images)
    assert {pod["spec"]["nodeName"] for pod in pods} == {layout.SYSTEM.name}

    # Jobs are in the root of the stack, on a disk that the provisioner had left open to everybody, and have their own /tmp.
    probe = 'echo >/tmp/mine; ls /tmp; test -n "$SLIPWAY_ROOT_VERSION" && command -v gcc'
    job = f"cd; export SLURM_CONF=/run/slurm/conf/slurm.conf; srun --nodelist=cpu-0 sh -c '{probe}'"
    login = ("exec", "-n", NAMESPACE, "deploy/mini-login", "-c", "login", "--", "su", "alice", "-c", job)
    assert own.kubectl(*login).split() == ["mine", "/usr/bin/gcc"]
    volume = ("exec", "-n", NAMESPACE, "cpu-0", "-c", "slurmd", "--", "stat", "-c", "%a %u", "/shared")
    assert own.kubectl(*volume).split() == ["755", "0"]
    assert "mine" not in own.kubectl("exec", "-n", NAMESPACE, "cpu-0", "-c", "slurmd", "--", "ls", "/tmp")
