"""When a node or a deployment counts as ready, and what is applied."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import api
from local.layout import SYSTEM, WORKERS, Node, find_paths
from local.rootfs import Recipe

STARTED = datetime(2026, 1, 2, 3, 4, 5, 600000, tzinfo=UTC)


def node(status: str = "True", heartbeat: str = "2026-01-02T03:04:05Z", **capacity: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": "Ready", "status": status, "lastHeartbeatTime": heartbeat}], "capacity": capacity}}


@pytest.mark.parametrize(
    ("item", "since", "ready"),
    [
        pytest.param(node(), None, True, id="Ready"),
        pytest.param(node(), STARTED, True, id="reported within the second of its start"),
        pytest.param(node(heartbeat="2026-01-02T03:04:04Z"), STARTED, False, id="the report is of the kubelet before"),
        pytest.param(node(heartbeat="2026-01-02T03:04:04Z"), None, True, id="old report of a kubelet that runs on"),
        pytest.param(node("False"), None, False, id="not Ready"),
        pytest.param(node("Unknown"), None, False, id="silent"),
        pytest.param({"status": {}}, None, False, id="just registered"),
    ],
)
def test_node_is_ready_by_its_kubelets_own_report(item: dict[str, Any], since: datetime | None, ready: bool) -> None:
    assert api.is_node_ready(item, since) is ready


@pytest.mark.parametrize(
    ("wanted", "item", "lacks"),
    [
        pytest.param(WORKERS[0], node(), True, id="worker without"),
        pytest.param(WORKERS[0], node(**{"nvidia.com/gpu": "0"}), True, id="worker whose kubelet took them away"),
        pytest.param(WORKERS[0], node(**{"nvidia.com/gpu": "4"}), False, id="worker with"),
        pytest.param(SYSTEM, node(), False, id="system"),
    ],
)
def test_gpus_are_given_where_they_lack(wanted: Node, item: dict[str, Any], lacks: bool) -> None:
    assert api.lacks_gpus(wanted, item) is lacks


def deployment(generation: int, **status: int) -> dict[str, Any]:
    return {"metadata": {"generation": generation}, "spec": {"replicas": 1}, "status": status}


@pytest.mark.parametrize(
    ("item", "ready"),
    [
        pytest.param(deployment(2, observedGeneration=2, updatedReplicas=1, availableReplicas=1), True, id="available"),
        pytest.param(deployment(2, observedGeneration=1, updatedReplicas=1, availableReplicas=1), False, id="change not seen yet"),
        pytest.param(deployment(2, observedGeneration=2, availableReplicas=1), False, id="only the old pod is available"),
        pytest.param(deployment(1), False, id="new"),
    ],
)
def test_deployment_is_ready_in_its_newest_version(item: dict[str, Any], ready: bool) -> None:
    assert api.is_deployment_ready(item) is ready


def test_manifests_are_complete_and_of_our_images_only() -> None:
    names = ("pause", "busybox", "coredns", "local-path-provisioner")
    recipes = {name: Recipe(name, "1", {name: Path("/p")}, ("/p",), {}) for name in names}
    text = api.render_manifests(find_paths(Path("/tree")), recipes, ["192.0.2.53"])
    assert not re.search(r"\$\{", text)
    assert '"$VOL_DIR"' in text
    items: list[Any] = list(yaml.safe_load_all(text))
    assert {item["kind"] for item in items} >= {"Deployment", "StorageClass", "Service", "ClusterRoleBinding"}
    images = re.findall(r"image: (\S+)", text)
    assert len(images) == 3
    assert all(image.startswith("localhost/slipway/") for image in images)
    (storage_class,) = [item for item in items if item["kind"] == "StorageClass"]
    assert storage_class["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
    assert storage_class["volumeBindingMode"] == "WaitForFirstConsumer"
    assert "/tree/.slipway/volumes" in text
