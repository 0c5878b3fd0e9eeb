"""The controller as a whole, with its lease, queue and informers: what it hears of, it acts on at once and not at the next sweep."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from controllers.nodeset.controller import Controller
from controllers.nodeset.reconcile import Next
from controllers.nodeset.settings import Settings
from controllers.runtime.api import connect
from controllers.runtime.structs import CLAIMS, PODS, Key
from tests.fakes.clock import eventually
from tests.unit.controllers.nodeset.memory_cluster import Cluster, disks

CLAIM, POD = ("slurm", "disk-gpu-0"), ("slurm", "gpu-0")


@pytest.fixture
async def controller(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Controller]:
    """Leads, and follows the cluster by itself."""
    settings = Settings("dev", "slurm", "", tmp_path, "test", port=0)
    made, stop = Controller(settings, connect(cluster.server.config()), cluster.slurm), asyncio.Event()
    running = asyncio.create_task(made.run(stop))
    yield made
    stop.set()
    assert await running == 0


@pytest.mark.anyio
async def test_pod_is_made_as_soon_as_the_claim_that_held_it_back_is_gone(
    cluster: Cluster, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    """What the status said before each round that is over."""
    work = controller.reconciler.reconcile

    async def reconcile(key: Key) -> Next:
        nodeset = controller.nodesets.get(key)
        following = await work(key)
        seen.append(nodeset.status.why if nodeset is not None else "")
        return following

    monkeypatch.setattr(controller.reconciler, "reconcile", reconcile)
    meta = {"namespace": "slurm", "name": CLAIM[1], "finalizers": ["kubernetes.io/pvc-protection"]}
    labels = {"slipway.dev/cluster": "dev", "slipway.dev/nodeset": "gpu"}
    cluster.server.put(CLAIMS, {"metadata": {**meta, "labels": labels}, "spec": {}})
    cluster.server.objects.delete(cluster.server.objects.kind("v1", "persistentvolumeclaims"), CLAIM)
    await eventually(lambda: controller.claims.get(CLAIM) is not None and _has_noted_slurm())
    cluster.declare(replicas=1, **disks("Retain", "Retain"))
    await eventually(lambda: bool(seen) and "disk is still being deleted" in seen[-1])  # nothing is left to be done before the next sweep
    assert POD not in cluster.server.keys(PODS)
    cluster.server.patch(CLAIMS, CLAIM, {"metadata": {"finalizers": None}})
    await eventually(lambda: POD in cluster.server.keys(PODS), within_s=5)
    assert cluster.disks() == {CLAIM[1]}


def _has_noted_slurm() -> bool:
    """True once the controller has seen that Slurm answers, which makes it look at every set."""
    return 0 < (REGISTRY.get_sample_value("slipway_slurm_reading_age_seconds") or 0) < float("inf")
