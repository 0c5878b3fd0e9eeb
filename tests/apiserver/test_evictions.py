"""Evictions against the budget of a node set, judged by Kubernetes itself: the API server and its disruption controller, no kubelet."""

import json
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec
import pytest

from controllers.nodeset.pods import build_disruption_budget, build_pod
from controllers.nodeset.structs import NodeSetObject
from names import labels, writers
from tests.support.apiserver.server import ApiServer, run_process
from tests.support.patience import patience
from tests.support.slurm.image_pods import wait_for

NAMESPACES = count()
SETS = "/apis/slipway.dev/v1alpha1/namespaces/{}/nodesets"
BUDGETS = "/apis/policy/v1/namespaces/{}/poddisruptionbudgets"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


class Workers:
    """A node set in a namespace of its own, and its pods: what the controller would have made."""

    def __init__(self, server: ApiServer, **size: int) -> None:
        self.server, self.namespace = server, f"evictions-{next(NAMESPACES)}"
        server.make_namespace(self.namespace)
        spec = {"cluster": "dev", "template": {"spec": {"containers": [{"name": "slurmd", "image": "a"}]}}, **size}
        about = {"apiVersion": "slipway.dev/v1alpha1", "kind": "NodeSet", "metadata": {"name": "gpu"}}
        self.nodeset = msgspec.convert(server.post(SETS.format(self.namespace), {**about, "spec": spec}), NodeSetObject)

    def start(self, ordinal: int, busy: bool = True, status: dict[str, Any] = READY) -> None:
        pods, manifest = f"/api/v1/namespaces/{self.namespace}/pods", build_pod(self.nodeset, ordinal)
        manifest["metadata"]["labels"][labels.BUSY] = "true" if busy else "false"
        name = self.server.post(pods, manifest)["metadata"]["name"]
        self._patch(f"{pods}/{name}/status", {"status": status})

    def scale(self, replicas: int) -> None:
        self._patch(f"{SETS.format(self.namespace)}/gpu/scale", {"spec": {"replicas": replicas}})

    def protect(self, manifest: dict[str, Any]) -> None:
        """Applied as the controller does, then waits until the disruption controller has counted what there is."""
        with self.server.client() as client:
            asked = {"fieldManager": writers.SLIPWAY, "force": "true"}
            kind = {"Content-Type": "application/apply-patch+yaml"}
            path = f"{BUDGETS.format(self.namespace)}/gpu"
            answer = client.patch(path, params=asked, headers=kind, content=json.dumps(manifest))
            assert answer.status_code < 300, answer.text
            began = time.monotonic()
            while not _is_counted(budget := client.get(path).json()):
                assert time.monotonic() - began < 120 * patience(), budget
                time.sleep(0.05)

    def budget(self) -> dict[str, Any]:
        with self.server.client() as client:
            return client.get(f"{BUDGETS.format(self.namespace)}/gpu").json()

    def evicted(self, ordinal: int) -> bool:
        """True when an eviction, which is only tried, would be done."""
        pod = f"gpu-{ordinal}"
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}, "deleteOptions": {"dryRun": ["All"]}}
        with self.server.client() as client:
            answer = client.post(f"/api/v1/namespaces/{self.namespace}/pods/{pod}/eviction", json=body)
        assert answer.status_code in (201, 429), answer.text
        return answer.status_code == 201

    def _patch(self, path: str, change: dict[str, Any]) -> None:
        with self.server.client() as client:
            kind = {"Content-Type": "application/merge-patch+json"}
            answer = client.patch(path, headers=kind, content=json.dumps(change))
        assert answer.status_code < 300, answer.text


def _is_counted(budget: dict[str, Any]) -> bool:
    said = budget.get("status", {})
    return said.get("observedGeneration") == budget["metadata"]["generation"] and bool(said.get("conditions"))


@pytest.fixture(scope="module")
def judged(server: ApiServer) -> Iterator[ApiServer]:
    """The server, with Kubernetes' disruption controller."""
    program = str(server.programs["kube-controller-manager"])
    options = ("--controllers=disruption", "--leader-elect=false", "--secure-port=0")
    command = [program, "--kubeconfig", str(server.kubeconfig()), *options]
    with run_process("kube-controller-manager", command, server.folder):
        yield server


@pytest.mark.parametrize("silent", [False, True], ids=["slurm-answers", "slurm-is-silent"])
def test_busy_workers_of_a_set_that_is_scaled_in_stay(judged: ApiServer, silent: bool) -> None:
    workers = Workers(judged, replicas=2, ordinals=2)
    workers.start(0)
    workers.start(1)
    workers.scale(1)
    workers.protect(build_disruption_budget(workers.nodeset, silent))
    assert [workers.evicted(0), workers.evicted(1)] == [False, False]


def test_busy_worker_of_an_elastic_set_stays_and_kubernetes_can_count_it(judged: ApiServer) -> None:
    workers = Workers(judged, min=0, max=2)
    workers.start(0)
    workers.protect(build_disruption_budget(workers.nodeset, False))
    assert not workers.evicted(0)
    wait_for("a count with the pod's readiness, which comes by another watch", lambda: workers.budget()["status"]["currentHealthy"] == 1)
    assert workers.budget()["status"]["conditions"][0]["reason"] == "InsufficientPods"


def test_busy_worker_that_is_not_ready_stays(judged: ApiServer) -> None:
    workers = Workers(judged, replicas=2, ordinals=2)
    workers.start(0)
    workers.start(1, status={"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]})
    workers.scale(1)
    workers.protect(build_disruption_budget(workers.nodeset, False))
    assert not workers.evicted(1)


@pytest.mark.parametrize("silent", [False, True], ids=["slurm-answers", "slurm-is-silent"])
def test_idle_worker_may_go_unless_slurm_is_silent(judged: ApiServer, silent: bool) -> None:
    workers = Workers(judged, replicas=2, ordinals=2)
    workers.start(0)
    workers.start(1, busy=False)
    workers.protect(build_disruption_budget(workers.nodeset, silent))
    assert workers.evicted(1) is not silent


def test_budget_of_an_earlier_release_loses_its_other_rule(judged: ApiServer) -> None:
    workers = Workers(judged, replicas=1, ordinals=1)
    workers.start(0)
    manifest = build_disruption_budget(workers.nodeset, False)
    earlier = {"maxUnavailable": 0, "selector": manifest["spec"]["selector"]}
    workers.protect({**manifest, "spec": earlier})
    assert workers.budget()["spec"]["maxUnavailable"] == 0
    workers.protect(manifest)
    assert "maxUnavailable" not in workers.budget()["spec"]
    assert not workers.evicted(0)
