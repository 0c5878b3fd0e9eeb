"""A Slurm that answers, but too slowly for a request to follow its answer: people are told, and it is asked less often."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from controllers.nodeset.rounds import SWEEP_S, TOO_LATE_S
from tests.support.controllers.nodeset.memory_cluster import Cluster

READING_S = 7.0


def reconciled(cluster: Cluster) -> dict[str, Any]:
    return next(one for one in cluster.status()["conditions"] if one["type"] == "Reconciled")


def answer_after(cluster: Cluster, seconds: float) -> Callable[[], Awaitable[None]]:
    async def dawdle() -> None:
        cluster.process.later_s += seconds

    return dawdle


@pytest.mark.anyio
async def test_slurm_too_slow_for_any_request_is_told_and_asked_less_often(cluster: Cluster) -> None:
    cluster.declare(nodes=2, replicas=2)
    await cluster.rounds(4)
    cluster.slurm.after_reading = answer_after(cluster, READING_S)
    cluster.declare(nodes=2, replicas=1)
    await cluster.rounds(1)
    assert reconciled(cluster)["status"] == "True", "it may be over in a moment"
    begin = cluster.process.later_s
    following = await cluster.process.round()
    while cluster.process.later_s - begin <= TOO_LATE_S + READING_S:
        following = await cluster.process.round()
    assert (following.seconds, following.has_failed) == (SWEEP_S, True)
    assert cluster.slurm.updates == [], "an old reading is no ground for a drain"
    said = reconciled(cluster)
    assert (said["status"], said["reason"]) == ("False", "SlurmTooSlow")
    assert "Slurm takes 7.0 s to list its nodes" in said["message"]
    assert "sdiag" in said["message"]
    assert cluster.status()["phase"] == "Degraded"
    cluster.slurm.after_reading = None
    await cluster.rounds(4)
    assert reconciled(cluster)["status"] == "True"
    assert len(cluster.pods()) == 1


@pytest.mark.anyio
async def test_slow_slurm_is_asked_once_a_round(cluster: Cluster) -> None:
    """A second reading in the same round is for a round that the API server has held up."""
    cluster.declare(nodes=2, replicas=2)
    await cluster.rounds(4)
    cluster.declare(nodes=2, replicas=1)
    readings = 0
    dawdle = answer_after(cluster, READING_S)

    async def count() -> None:
        nonlocal readings
        readings += 1
        await dawdle()

    cluster.slurm.after_reading = count
    await cluster.process.round()
    readings = 0
    await cluster.process.round()
    assert readings == 2, "one of the test's own, one of the round's"
