"""The kind NodeSet as a real API server serves it: bad objects are refused with their reason, good ones get their defaults."""

import copy
import re
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from components.node_set import build_node_set
from tests.support.apiserver.server import ApiServer
from tests.support.components.examples import PODS
from tests.support.components.stacks import DEV, H100

PATH = "/apis/slipway.dev/v1alpha1/namespaces/default/nodesets"
TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "slurmd", "image": "slurm"}]}}
GONE = object()
"""As a value of a change: the field goes."""
META = {"metadata": {"name": "gpu", "namespace": "default"}}


def node_set(name: str = "gpu", /, **changed: Any) -> dict[str, Any]:
    """A fixed set of two nodes; `spec.min=1` and the like by double underscore: `updateStrategy__type="OnDelete"`."""
    made: dict[str, Any] = {
        "apiVersion": "slipway.dev/v1alpha1",
        "kind": "NodeSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"cluster": "dev", "replicas": 2, "template": copy.deepcopy(TEMPLATE)},
    }
    for path, value in changed.items():
        parent, *rest = made["spec"], *path.split("__")
        for part in rest[:-1]:
            parent = parent.setdefault(part, {})
        if value is GONE:
            del parent[rest[-1]]
        else:
            parent[rest[-1]] = value
    return made


def claim(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def tried(server: ApiServer, body: Mapping[str, Any]) -> httpx2.Response:
    """What the server says to the object; nothing is stored."""
    with server.client() as client:
        return client.post(PATH, params={"dryRun": "All", "fieldValidation": "Strict"}, json=dict(body))


ELASTIC: dict[str, Any] = {"replicas": GONE, "min": 0, "max": 8}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(node_set(**{**ELASTIC, "min": 9}), "min is more than max.", id="min-over-max"),
        pytest.param(node_set(min=0, max=8), "Say either replicas (a fixed set) or min and max (an elastic one).", id="both"),
        pytest.param(node_set(max=8), "Say either replicas (a fixed set) or min and max (an elastic one).", id="replicas-and-max"),
        pytest.param(node_set(replicas=GONE), "Say either replicas (a fixed set) or min and max (an elastic one).", id="neither"),
        pytest.param(node_set(replicas=GONE, max=8), "An elastic set needs both min and max.", id="max-alone"),
        pytest.param(node_set(replicas=GONE, min=1), "An elastic set needs both min and max.", id="min-alone"),
        pytest.param(node_set(**{**ELASTIC, "max": 0}), "spec.max in body should be greater than or equal to 1", id="no-nodes"),
        pytest.param(node_set(replicas=-1), "spec.replicas in body should be greater than or equal to 0", id="negative"),
        pytest.param(node_set(ordinals=1), "replicas is more than ordinals", id="replicas-over-ordinals"),
        pytest.param(node_set(**ELASTIC, ordinals=7), "max is more than ordinals", id="max-over-ordinals"),
        pytest.param(node_set("a" * 31), "metadata.name has more than 30 characters", id="name-too-long-for-hosts"),
        pytest.param(node_set("gpu.large"), "metadata.name is not a host name", id="name-with-a-dot"),
        pytest.param(node_set("1gpu"), "metadata.name is not a host name", id="name-that-starts-with-a-digit"),
        pytest.param(node_set(cluster=GONE), "spec.cluster: Required value", id="no-cluster"),
        pytest.param(node_set(cluster=""), "spec.cluster in body should be at least 1 chars long", id="empty-cluster"),
        pytest.param(node_set(template=GONE), "spec.template: Required value", id="no-template"),
        pytest.param(node_set(template__spec={"containers": [{"name": "sshd"}]}), "No container is called slurmd.", id="no-slurmd"),
        pytest.param(
            node_set(template__spec={"containers": [{"name": "sshd"}], "initContainers": [{"name": "slurmd"}]}),
            "No container is called slurmd.",
            id="slurmd-among-init-containers",
        ),
        pytest.param(node_set(template__spec={"containers": []}), "should have at least 1 items", id="no-container"),
        pytest.param(node_set(updateStrategy__maxUnavailable=0), "maxUnavailable is neither a number of at least 1", id="none-unavailable"),
        pytest.param(node_set(updateStrategy__maxUnavailable="0%"), "nor a percentage from 1% to 100%", id="no-percent-unavailable"),
        pytest.param(node_set(updateStrategy__maxUnavailable="101%"), "nor a percentage from 1% to 100%", id="over-100-percent"),
        pytest.param(node_set(updateStrategy__maxUnavailable="2"), "nor a percentage from 1% to 100%", id="number-as-text"),
        pytest.param(node_set(updateStrategy__maxUnavailable=True), "Invalid value", id="neither-number-nor-text"),
        pytest.param(node_set(updateStrategy__type="Maintenance"), "Type Maintenance needs a reservation.", id="no-reservation"),
        pytest.param(node_set(updateStrategy__type="Recreate"), 'supported values: "RollingUpdate", "OnDelete", "Maintenance"', id="type"),
        pytest.param(node_set(drain__action="Cancel"), "Requeue and Cancel need deadlineSeconds.", id="cancel-without-a-deadline"),
        pytest.param(node_set(drain__action="Kill", drain__deadlineSeconds=1), '"Wait", "Requeue", "Cancel"', id="drain-action"),
        pytest.param(node_set(drain__deadlineSeconds=9), "Wait is for ever: deadlineSeconds needs", id="wait-with-a-deadline"),
        pytest.param(node_set(drain__deadlineSeconds=0), "deadlineSeconds in body should be greater than or equal to 1", id="no-deadline"),
        pytest.param(node_set(placement="Spread"), 'supported values: "Any", "Pinned"', id="placement"),
        pytest.param(node_set(maxPodsInFlight=0), "maxPodsInFlight in body should be greater than or equal to 1", id="none-in-flight"),
        pytest.param(node_set(resumeTimeoutSeconds=0), "resumeTimeoutSeconds in body should be greater than or equal to 1", id="at-once"),
        pytest.param(node_set(volumeClaimTemplates=[{"metadata": {"name": "a"}}]), "volumeClaimTemplates[0].spec: Required", id="no-claim"),
        pytest.param(node_set(volumeClaimTemplates=[claim("A")]), "volumeClaimTemplates[0].metadata.name", id="claim-name"),
        pytest.param(node_set(volumeClaimTemplates=[claim("a"), claim("a")]), "claim templates have the same name.", id="one-name-twice"),
        pytest.param(node_set(volumeClaimRetention__whenScaled="Recycle"), 'supported values: "Retain", "Delete"', id="retention"),
        pytest.param(node_set(size=2), 'unknown field "spec.size"', id="unknown-field"),
    ],
)
def test_bad_object_is_refused_with_its_reason(server: ApiServer, body: dict[str, Any], reason: str) -> None:
    answer = tried(server, body)
    assert answer.status_code in (400, 422), answer.text
    assert reason in answer.json()["message"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(node_set(), id="fixed"),
        pytest.param(node_set(replicas=0, ordinals=0), id="empty"),
        pytest.param(node_set(replicas=1, ordinals=4), id="shrunk-before-slurm-conf"),
        pytest.param(node_set(**ELASTIC), id="elastic"),
        pytest.param(node_set(**ELASTIC, ordinals=16), id="elastic-below-slurm-conf"),
        pytest.param(node_set(replicas=65536), id="largest"),
        pytest.param(node_set("a" * 30), id="longest-name"),
        pytest.param(node_set(updateStrategy__maxUnavailable=1), id="one-unavailable"),
        pytest.param(node_set(updateStrategy__maxUnavailable="100%"), id="all-unavailable"),
        pytest.param(node_set(updateStrategy={"type": "Maintenance", "reservation": "night"}), id="maintenance"),
        pytest.param(node_set(drain={"action": "Requeue", "deadlineSeconds": 60}), id="requeue"),
        pytest.param(node_set(volumeClaimTemplates=[claim("a"), claim("b")]), id="two-claims"),
        pytest.param(build_node_set(DEV, PODS, DEV.node_set("burst")) | META, id="elastic-one-of-the-component"),
        pytest.param(build_node_set(H100, PODS, H100.node_set("h100")) | META, id="fixed-one-of-the-component"),
    ],
)
def test_good_object_is_accepted(server: ApiServer, body: dict[str, Any]) -> None:
    answer = tried(server, body)
    assert answer.status_code == 201, answer.text


def test_what_is_left_out_has_its_default(server: ApiServer) -> None:
    spec = tried(server, node_set(updateStrategy__maxUnavailable=4)).json()["spec"]
    assert {key: value for key, value in spec.items() if key not in ("cluster", "template", "replicas")} == {
        "updateStrategy": {"type": "RollingUpdate", "maxUnavailable": 4, "minReadySeconds": 0},
        "drain": {"action": "Wait"},
        "placement": "Any",
        "volumeClaimRetention": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "maxPodsInFlight": 500,
        "resumeTimeoutSeconds": 600,
    }


def test_pod_template_is_kept_as_it_is_said(server: ApiServer) -> None:
    body = build_node_set(DEV, PODS, DEV.node_set("gpu")) | META
    assert tried(server, body).json()["spec"]["template"] == body["spec"]["template"]


def test_cluster_never_changes_and_the_rest_does(server: ApiServer) -> None:
    server.make_namespace("crd-update")
    path = PATH.replace("/default/", "/crd-update/")
    made = server.post(path, {**node_set(), "metadata": {"name": "gpu"}})
    with server.client() as client:
        said = client.put(f"{path}/gpu", json={**made, "spec": {**made["spec"], "cluster": "other"}})
        assert "cluster cannot change: make a new NodeSet." in said.json()["message"]
        elastic = {key: value for key, value in made["spec"].items() if key != "replicas"} | {"min": 0, "max": 4}
        assert client.put(f"{path}/gpu", json={**made, "spec": elastic}).status_code == 200


def test_fixed_set_scales_by_kubectl_and_an_elastic_one_says_why_not(server: ApiServer) -> None:
    server.make_namespace("crd-scale")
    path = PATH.replace("/default/", "/crd-scale/")
    server.post(path, {**node_set(), "metadata": {"name": "fixed"}})
    server.post(path, {**node_set(**ELASTIC), "metadata": {"name": "elastic"}})
    server.run_kubectl("-n", "crd-scale", "scale", "nset/fixed", "--replicas=5")
    assert server.run_kubectl("-n", "crd-scale", "get", "nset/fixed", "-o", "jsonpath={.spec.replicas}") == "5"
    said = server.run_kubectl("-n", "crd-scale", "scale", "nset/elastic", "--replicas=5", check=False)
    assert "Say either replicas" in said


def test_columns_show_the_state_and_why(server: ApiServer) -> None:
    server.make_namespace("crd-columns")
    path = PATH.replace("/default/", "/crd-columns/")
    made = server.post(path, {**node_set(), "metadata": {"name": "gpu"}})
    status = {"phase": "Draining", "wanted": 1, "ready": 2, "idle": 1, "allocated": 1, "drained": 0, "down": 0, "why": "gpu-1 leaving"}
    with server.client() as client:
        answer = client.put(f"{path}/gpu/status", json={**made, "status": status})
    assert answer.status_code == 200, answer.text
    head, row = server.run_kubectl("-n", "crd-columns", "get", "nset").splitlines()
    assert head.split() == ["NAME", "PHASE", "WANTED", "READY", "IDLE", "ALLOCATED", "DRAINED", "DOWN", "AGE", "WHY"]
    cells = re.split(r" {2,}", row)
    assert [*cells[:8], cells[9]] == ["gpu", "Draining", "1", "2", "1", "1", "0", "0", "gpu-1 leaving"]


def test_status_is_written_apart_from_the_spec(server: ApiServer) -> None:
    server.make_namespace("crd-status")
    path = PATH.replace("/default/", "/crd-status/")
    made = server.post(path, {**node_set(), "metadata": {"name": "gpu"}, "status": {"phase": "Ready"}})
    assert "status" not in made
    with server.client() as client:
        changed = client.put(f"{path}/gpu/status", json={**made, "spec": {**made["spec"], "replicas": 9}, "status": {"phase": "Ready"}})
    assert changed.json()["status"]["phase"] == "Ready"
    assert changed.json()["spec"]["replicas"] == 2
    assert changed.json()["metadata"]["generation"] == 1
