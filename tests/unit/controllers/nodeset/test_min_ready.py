"""A roll goes on only when the nodes that it has brought back have been up for `minReadySeconds`."""

import pytest

from controllers.nodeset.memory import SetMemory
from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.schedule import SOON_S
from controllers.nodeset.status import build_status
from controllers.nodeset.structs import NODESETS, UpdateStrategy
from controllers.nodeset.workers import WorkerNode, WorkerPod
from controllers.runtime.structs import PODS
from slurm.reasons import UPDATE
from tests.support.controllers.nodeset.examples import NOW, OLD, look, node, nodeset, pod
from tests.support.controllers.nodeset.memory_cluster import KEY, Cluster

WAITS = nodeset(replicas=2, update_strategy=UpdateStrategy(min_ready_seconds=60))


def seen(since: float, *workers: tuple[WorkerPod, WorkerNode]) -> Observed:
    return look(*workers, registered_since=dict.fromkeys(range(len(workers)), since))


@pytest.mark.parametrize(
    ("since", "drained", "left_s"),
    [
        pytest.param(NOW, (), 60, id="just-up"),
        pytest.param(NOW - 59, (), 1, id="nearly"),
        pytest.param(NOW - 60, (1,), float("inf"), id="long-enough"),
    ],
)
def test_roll_waits_until_the_new_node_is_up_for_long_enough(since: float, drained: tuple[int, ...], left_s: float) -> None:
    observed = look((pod(), node()), (OLD, node()), registered_since={0: since, 1: 0.0})
    made = plan_nodeset(WAITS, observed)
    assert made.drains.drain.get(UPDATE, ()) == drained
    assert (made.roll.unavailable, made.roll.settles_s) == (0 if drained else 1, left_s)
    said = next(each for each in build_status(WAITS, observed, made, None, "now").conditions if each.type == "Updated")
    assert ("gpu-0 up for less than 60 s" in said.message) == (not drained)


def test_without_the_setting_a_roll_waits_for_nothing_more() -> None:
    made = plan_nodeset(nodeset(replicas=2), seen(NOW, (pod(), node()), (OLD, node())))
    assert (made.drains.drain, made.roll.unavailable) == ({UPDATE: (1,)}, 0)


def test_set_without_a_roll_is_not_looked_at_for_it() -> None:
    assert plan_nodeset(WAITS, seen(NOW, (pod(), node()), (pod(), node()))).roll.settles_s == float("inf")


def test_time_counts_from_the_last_break() -> None:
    memory, up, away = SetMemory(), look((pod(), node())), look((pod(), node("IDLE NOT_RESPONDING")))
    for at, observed, since in ((100, away, None), (110, up, 110), (130, up, 110), (140, away, None), (150, up, 150)):
        memory.note_registered(observed.workers(), at)
        assert memory.registered_since.get(0) == since


@pytest.mark.parametrize(("ready_since", "since"), [pytest.param(40.0, 40.0, id="as-its-pod"), pytest.param(0.0, 0.0, id="long-ago")])
def test_process_that_begins_goes_by_what_kubernetes_says(ready_since: float, since: float) -> None:
    memory = SetMemory()
    memory.note_registered(look((pod(ready_since=ready_since), node())).workers(), 100)
    assert memory.registered_since == {0: since}


def test_new_pod_of_a_name_begins_anew() -> None:
    memory = SetMemory()
    memory.note_registered(look((pod(ready_since=40.0), node())).workers(), 100)
    memory.note_registered(look((pod(ready_since=105.0), node())).workers(), 110)
    assert memory.registered_since == {0: 105.0}


@pytest.mark.anyio
async def test_set_is_looked_at_again_when_the_wait_is_over(cluster: Cluster) -> None:
    strategy = {"type": "RollingUpdate", "maxUnavailable": 1, "minReadySeconds": 20}
    cluster.declare(nodes=2, replicas=2, updateStrategy=strategy)
    await cluster.rounds(4)
    cluster.process.later_s += 100
    cluster.declare(image="b", nodes=2, replicas=2, updateStrategy=strategy)
    await cluster.rounds(6)
    assert sorted(cluster.pods().values()) == ["a", "b"]
    assert SOON_S < (await cluster.process.round()).seconds <= 20


@pytest.mark.anyio
async def test_roll_of_pods_that_fail_soon_after_their_start_takes_one(cluster: Cluster) -> None:
    """They register for two seconds of each six."""
    strategy = {"type": "RollingUpdate", "maxUnavailable": 1, "minReadySeconds": 60}
    cluster.declare(nodes=3, replicas=3, updateStrategy=strategy)
    await cluster.rounds(4)
    cluster.process.later_s += 100
    cluster.declare(image="b", nodes=3, replicas=3, updateStrategy=strategy)
    for _ in range(30):
        await cluster.rounds(1)
        fresh = [name for name, image in cluster.pods().items() if image == "b"]
        for name in fresh:
            cluster.slurm.words[name] ^= {"NOT_RESPONDING"}
        cluster.process.later_s += 3
    assert sorted(cluster.pods().values()) == ["a", "a", "b"]
    for words in cluster.slurm.words.values():
        words.discard("NOT_RESPONDING")
    for _ in range(12):
        await cluster.rounds(3)
        cluster.process.later_s += 61
    assert sorted(cluster.pods().values()) == ["b", "b", "b"]
    assert cluster.server.get(NODESETS, KEY)["status"]["updated"] == 3
    assert len(cluster.server.keys(PODS)) == 3
