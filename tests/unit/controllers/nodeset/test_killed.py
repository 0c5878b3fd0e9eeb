"""A controller process that ends at any write, to the API server or to Slurm: the next one finishes what it began, and the laws hold."""

from typing import Any

import pytest

from controllers.nodeset.structs import NODESETS
from tests.support.controllers.nodeset.memory_cluster import KEY, Cluster, disks
from tests.unit.controllers.nodeset.killer import KILL_POINTS, killed_at


@pytest.mark.anyio
@pytest.mark.parametrize("allowed", range(KILL_POINTS))
async def test_next_process_finishes_a_roll_interrupted_at_any_write(cluster: Cluster, allowed: int) -> None:
    cluster.declare(replicas=3)
    await cluster.rounds(5)
    cluster.slurm.start_job("gpu-1", 7)
    cluster.slurm.words["gpu-2"].add("DRAIN")
    cluster.slurm.reasons["gpu-2"] = "fan is loud"
    await cluster.rounds(1)
    cluster.declare(image="b", replicas=4)
    killer = await killed_at(cluster, allowed, rounds=10)
    assert killer.has_struck or allowed > 10, f"only {killer.writes} writes"
    assert not killer.has_struck or allowed < KILL_POINTS - 1, "more writes than are tried"
    await cluster.rounds(10)
    assert cluster.pods() == {"gpu-0": "b", "gpu-1": "a", "gpu-2": "a", "gpu-3": "b"}
    assert (cluster.slurm.words["gpu-2"], cluster.slurm.reasons["gpu-2"]) == ({"IDLE", "CLOUD", "DRAIN"}, "fan is loud")
    cluster.slurm.end_job("gpu-1")
    await cluster.slurm.update_nodes(["gpu-2"], "UNDRAIN")
    await cluster.rounds(16)
    assert cluster.pods() == dict.fromkeys(["gpu-0", "gpu-1", "gpu-2", "gpu-3"], "b")
    assert all("DRAIN" not in words for words in cluster.slurm.words.values())
    assert cluster.ended_with_a_job == []


@pytest.mark.anyio
@pytest.mark.parametrize("allowed", range(KILL_POINTS))
async def test_next_process_finishes_a_scale_in_interrupted_at_any_write(cluster: Cluster, allowed: int) -> None:
    """The deadline is over a few rounds after the drain, for whichever process: the status says when that was."""
    spec: dict[str, Any] = {"ordinals": 3, "drain": {"action": "Requeue", "deadlineSeconds": 60}, **disks("Delete", "Retain")}
    cluster.declare(replicas=3, **spec)
    await cluster.rounds(5)
    cluster.slurm.start_job("gpu-0", 6)
    cluster.slurm.start_job("gpu-1", 7)
    await cluster.rounds(1)
    cluster.declare(replicas=1, **spec)
    killer = await killed_at(cluster, allowed, rounds=10, round_s=20)
    cluster.process.later_s += 20 * 10
    await cluster.rounds(4)
    cluster.process.later_s += 61
    assert killer.has_struck or allowed > 10, f"only {killer.writes} writes"
    assert not killer.has_struck or allowed < KILL_POINTS - 1, "more writes than are tried"
    await cluster.rounds(10)
    assert (set(cluster.pods()), cluster.disks()) == ({"gpu-0"}, {"disk-gpu-0"})
    assert "DRAIN" not in cluster.slurm.words["gpu-0"]
    assert cluster.slurm.requeued == ["7"]
    assert cluster.ended_with_a_job == []


@pytest.mark.anyio
@pytest.mark.parametrize("allowed", range(KILL_POINTS))
async def test_next_process_finishes_a_deletion_interrupted_at_any_write(cluster: Cluster, allowed: int) -> None:
    cluster.declare(replicas=2, **disks("Retain", "Delete"))
    await cluster.rounds(5)
    cluster.slurm.start_job("gpu-1", 7)
    await cluster.rounds(1)
    cluster.server.objects.delete(cluster.server.objects.kind("slipway.dev/v1alpha1", "nodesets"), KEY)
    killer = await killed_at(cluster, allowed, rounds=10, busy_for=5)
    assert killer.has_struck or allowed > 10, f"only {killer.writes} writes"
    assert not killer.has_struck or allowed < KILL_POINTS - 1, "more writes than are tried"
    await cluster.rounds(10)
    assert KEY not in cluster.server.keys(NODESETS)
    assert (cluster.pods(), cluster.disks()) == ({}, set())
    assert cluster.ended_with_a_job == []
