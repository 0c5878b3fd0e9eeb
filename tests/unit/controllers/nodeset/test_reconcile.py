"""Whole rounds against an API server and a Slurm in memory; volume claims are in test_disks, processes that end in test_killed."""

import asyncio
import time

import pytest

from controllers.nodeset.looks import STALE_S
from controllers.nodeset.plans.ghosts import GHOST_PAUSE_S, GHOST_S
from controllers.nodeset.rounds import DELETION_FRESH_S, SWEEP_S
from controllers.nodeset.schedule import SOON_S
from controllers.nodeset.structs import NODESETS
from controllers.nodeset.writes.pods import TAKEN_S
from controllers.runtime.structs import BUDGETS, CONFIG_MAPS, KUBE_NODES, PODS
from names import finalizers, labels
from slurm.reasons import RESUME_FAILED
from tests.support.controllers.nodeset.memory_cluster import KEY, Cluster
from tests.support.fakes.clock import eventually, settle


@pytest.mark.anyio
async def test_fixed_set_comes_up_and_says_ready(cluster: Cluster) -> None:
    cluster.declare(replicas=3)
    await cluster.rounds(4)
    assert set(cluster.pods()) == {"gpu-0", "gpu-1", "gpu-2"}
    said = cluster.status()
    assert (said["phase"], said["ready"], said["wanted"]) == ("Ready", 3, 3)
    assert finalizers.DRAIN in cluster.server.get(NODESETS, KEY)["metadata"]["finalizers"]
    assert cluster.server.get(BUDGETS, KEY)["spec"].keys() == {"minAvailable", "selector"}, "no rule that asks for the set's scale"


@pytest.mark.anyio
async def test_settled_set_is_not_written_to(cluster: Cluster) -> None:
    cluster.declare(replicas=3)
    await cluster.rounds(6)
    before = len(cluster.server.writes())
    await cluster.rounds(5)
    assert len(cluster.server.writes()) == before


@pytest.mark.anyio
async def test_waking_nodes_get_pods_and_sleeping_ones_lose_theirs(cluster: Cluster) -> None:
    cluster.declare(min=0, max=4)
    await cluster.rounds(2)
    assert cluster.pods() == {}
    cluster.slurm.words["gpu-2"] = {"MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"}
    await cluster.rounds(2)
    assert set(cluster.pods()) == {"gpu-2"}
    cluster.slurm.words["gpu-2"] = {"IDLE", "CLOUD", "POWERING_DOWN"}
    await cluster.rounds(2)
    assert cluster.pods() == {}


@pytest.mark.anyio
async def test_node_that_sleeps_may_be_woken_once_its_pod_is_gone(cluster: Cluster) -> None:
    """And not before, however often the set is looked at while the pod ends."""
    cluster.declare(min=0, max=4)
    cluster.slurm.words["gpu-2"] = {"MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"}
    await cluster.rounds(3)
    cluster.slurm.words["gpu-2"] = {"IDLE", "CLOUD", "POWERING_DOWN"}
    for _ in range(3):
        await cluster.process.round()
    assert cluster.server.get(PODS, ("slurm", "gpu-2"))["metadata"]["deletionTimestamp"]
    assert cluster.slurm.words["gpu-2"] == {"IDLE", "CLOUD", "POWERING_DOWN"}
    cluster.kubelets()
    await cluster.process.round()
    assert cluster.slurm.words["gpu-2"] == {"IDLE", "CLOUD", "POWERED_DOWN"}
    assert cluster.slurm.updates == [("RESUME", ("gpu-2",))]


@pytest.mark.anyio
async def test_pod_that_lost_its_label_is_named_and_taken_back_unchanged(cluster: Cluster) -> None:
    cluster.declare(replicas=2)
    await cluster.rounds(4)
    uid = cluster.server.get(PODS, ("slurm", "gpu-0"))["metadata"]["uid"]
    cluster.server.patch(PODS, ("slurm", "gpu-0"), {"metadata": {"labels": {labels.NODESET: None}}})
    await cluster.rounds(2)
    cluster.process.later_s += TAKEN_S
    await cluster.rounds(2)
    assert cluster.status()["phase"] == "Degraded"
    assert f"kubectl -n slurm label --overwrite pod gpu-0 {labels.CLUSTER}=dev {labels.NODESET}=gpu" in cluster.status()["why"]
    cluster.server.patch(PODS, ("slurm", "gpu-0"), {"metadata": {"labels": {labels.NODESET: "gpu"}}})
    await cluster.rounds(2)
    assert cluster.status()["phase"] == "Ready"
    assert cluster.server.get(PODS, ("slurm", "gpu-0"))["metadata"]["uid"] == uid


@pytest.mark.anyio
async def test_silent_slurm_freezes_everything_but_pods_that_are_missing(cluster: Cluster) -> None:
    cluster.declare(nodes=3, replicas=3)
    await cluster.rounds(5)
    cluster.slurm.is_silent = True
    cluster.declare(image="b", nodes=3, replicas=1)
    cluster.server.remove(PODS, ("slurm", "gpu-0"))
    await cluster.rounds(5)
    assert cluster.slurm.updates == []
    assert {"gpu-1", "gpu-2"} <= set(cluster.pods())
    assert cluster.status()["phase"] == "SlurmSilent"
    assert not cluster.server.get(BUDGETS, KEY)["spec"]["selector"].get("matchExpressions"), "every pod is protected"
    cluster.slurm.is_silent = False
    await cluster.rounds(12)
    assert len(cluster.pods()) == 1
    assert set(cluster.pods().values()) == {"b"}


@pytest.mark.anyio
async def test_pod_stays_when_a_job_came_after_the_last_poll(cluster: Cluster) -> None:
    """What hurts is only done from a reading that was asked for after the round began."""
    node = await _drained(cluster)
    cluster.slurm.words[node] = {"IDLE", "CLOUD"}
    cluster.slurm.start_job(node, 9)
    await cluster.process.reconciler.reconcile(KEY)
    assert set(cluster.pods()) == {"gpu-0", "gpu-1"}


@pytest.mark.anyio
async def test_reading_that_was_under_way_when_the_round_began_is_not_enough(cluster: Cluster) -> None:
    node = await _drained(cluster)
    answered, given = asyncio.Event(), asyncio.Event()

    async def dawdle() -> None:
        answered.set()
        await given.wait()

    cluster.slurm.after_reading = dawdle
    under_way = asyncio.create_task(cluster.process.poller.fresh())
    await answered.wait()
    cluster.slurm.after_reading = None
    cluster.slurm.words[node] = {"IDLE", "CLOUD"}
    cluster.slurm.start_job(node, 9)
    following = asyncio.create_task(cluster.process.reconciler.reconcile(KEY))
    await settle()
    given.set()
    await asyncio.gather(under_way, following)
    assert "DRAIN" in (await under_way).nodes[node].state.flags, "what it read would have let the pod go"
    assert set(cluster.pods()) == {"gpu-0", "gpu-1"}


async def _drained(cluster: Cluster) -> str:
    """A set of two that is to have one. Gives the node that may go, as the informers and the last poll have it."""
    cluster.declare(nodes=2, replicas=2)
    await cluster.rounds(4)
    cluster.declare(nodes=2, replicas=1)
    await cluster.rounds(1)
    [node] = [name for name, words in cluster.slurm.words.items() if "DRAIN" in words]
    await cluster.process.caught_up()
    await cluster.process.poller.fresh()
    return node


@pytest.mark.anyio
async def test_reading_that_is_too_old_is_no_reading(cluster: Cluster) -> None:
    cluster.declare(replicas=2)
    await cluster.rounds(4)
    process = cluster.process
    await process.poller.fresh()
    cluster.slurm.is_silent = True
    process.later_s += STALE_S - 5
    await process.reconciler.reconcile(KEY)
    await process.caught_up()
    assert cluster.status()["phase"] == "Ready"
    process.later_s += 6
    await process.reconciler.reconcile(KEY)
    assert cluster.status()["phase"] == "SlurmSilent"
    assert not cluster.server.get(BUDGETS, KEY)["spec"]["selector"].get("matchExpressions"), "every pod is protected"


@pytest.mark.anyio
async def test_on_delete_gives_a_pod_the_new_template_once_it_is_deleted(cluster: Cluster) -> None:
    cluster.declare(nodes=2, replicas=2, updateStrategy={"type": "OnDelete"})
    await cluster.rounds(4)
    cluster.declare(image="b", nodes=2, replicas=2, updateStrategy={"type": "OnDelete"})
    await cluster.rounds(6)
    assert cluster.pods() == {"gpu-0": "a", "gpu-1": "a"}
    assert cluster.slurm.updates == [], "nothing is drained"
    said = next(one for one in cluster.status()["conditions"] if one["type"] == "Updated")
    assert "kubectl delete pod gpu-0" in said["message"]
    for name in ("gpu-1", "gpu-0"):
        cluster.server.objects.delete(cluster.server.objects.kind("v1", "pods"), ("slurm", name))
        await cluster.rounds(4)
        assert cluster.pods() == {"gpu-0": "b" if name == "gpu-0" else "a", "gpu-1": "b"}
    assert cluster.status()["phase"] == "Ready"


@pytest.mark.anyio
async def test_pods_of_an_elastic_set_go_slowly_when_slurm_has_lost_its_state(cluster: Cluster) -> None:
    cluster.declare(min=0, max=4)
    for name in cluster.slurm.words:
        cluster.slurm.words[name] = {"IDLE", "CLOUD"}
    await cluster.rounds(4)
    assert len(cluster.pods()) == 4
    for number, name in enumerate(("gpu-0", "gpu-1", "gpu-2")):
        cluster.slurm.start_job(name, number + 1)
    await cluster.rounds(1)
    cluster.process.later_s += GHOST_S + 1
    cluster.slurm.jobs_on.clear()
    for name in cluster.slurm.words:
        cluster.slurm.words[name] = {"IDLE", "CLOUD", "POWERED_DOWN"}
    for left in (2, 1, 0):
        await cluster.rounds(4)
        assert len(cluster.pods()) == left, "the idle one goes at once, those that had jobs one after the other"
        cluster.process.later_s += GHOST_PAUSE_S


@pytest.mark.anyio
async def test_deleted_disruption_budget_is_back_at_the_next_sweep(cluster: Cluster) -> None:
    cluster.declare(replicas=1)
    await cluster.rounds(4)
    cluster.server.remove(BUDGETS, KEY)
    cluster.process.later_s += SWEEP_S
    await cluster.rounds(1)
    assert KEY in cluster.server.keys(BUDGETS)


@pytest.mark.anyio
async def test_pins_of_a_set_are_forgotten_when_it_is_pinned_no_more(cluster: Cluster) -> None:
    pins = ("slurm", "gpu-places")
    cluster.server.put(KUBE_NODES, {"metadata": {"name": "machine"}})
    cluster.declare(replicas=1, placement="Pinned")
    await cluster.rounds(4)
    assert cluster.server.get(CONFIG_MAPS, pins)["data"] == {"0": "machine"}
    cluster.declare(replicas=1)
    await cluster.rounds(2)
    assert not cluster.server.get(CONFIG_MAPS, pins).get("data")


@pytest.mark.anyio
async def test_empty_set_can_be_deleted_while_slurm_is_silent(cluster: Cluster) -> None:
    cluster.declare(min=0, max=4)
    await cluster.rounds(2)
    cluster.slurm.is_silent = True
    cluster.server.objects.delete(cluster.server.objects.kind("slipway.dev/v1alpha1", "nodesets"), KEY)
    await cluster.rounds(2)
    assert KEY not in cluster.server.keys(NODESETS)


@pytest.mark.anyio
async def test_all_pods_of_a_deleted_set_are_protected_while_slurm_is_silent(cluster: Cluster) -> None:
    cluster.declare(replicas=2)
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-1", 9)
    cluster.server.objects.delete(cluster.server.objects.kind("slipway.dev/v1alpha1", "nodesets"), KEY)
    await cluster.rounds(2)
    cluster.slurm.is_silent = True
    await cluster.rounds(2)
    assert "gpu-1" in cluster.pods()
    assert not cluster.server.get(BUDGETS, KEY)["spec"]["selector"].get("matchExpressions")


@pytest.mark.anyio
async def test_busy_label_follows_jobs(cluster: Cluster) -> None:
    cluster.declare(replicas=2)
    await cluster.rounds(4)

    def busy() -> dict[str, str]:
        return {key[1]: cluster.server.get(PODS, key)["metadata"]["labels"][labels.BUSY] for key in cluster.server.keys(PODS)}

    assert busy() == {"gpu-0": "false", "gpu-1": "false"}
    cluster.slurm.start_job("gpu-1", 7)
    await cluster.rounds(1)
    assert busy() == {"gpu-0": "false", "gpu-1": "true"}


@pytest.mark.anyio
async def test_deleted_set_drains_then_lets_its_finalizer_go(cluster: Cluster) -> None:
    cluster.declare(replicas=2)
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-1", 9)
    cluster.server.objects.delete(cluster.server.objects.kind("slipway.dev/v1alpha1", "nodesets"), KEY)
    await cluster.rounds(4)
    assert set(cluster.pods()) == {"gpu-1"}
    assert cluster.status()["phase"] == "Deleting"
    cluster.slurm.end_job("gpu-1")
    await cluster.rounds(4)
    assert KEY not in cluster.server.keys(NODESETS)
    assert cluster.ended_with_a_job == []


@pytest.mark.anyio
async def test_roll_takes_the_worker_whose_job_ends_first(cluster: Cluster) -> None:
    cluster.declare(nodes=3, replicas=3)
    await cluster.rounds(4)
    for ordinal, ends_s in enumerate((500, 100, 900)):
        cluster.slurm.start_job(f"gpu-{ordinal}", ordinal)
        cluster.slurm.ends_at[f"gpu-{ordinal}"] = time.time() + ends_s
    cluster.declare(image="b", nodes=3, replicas=3, updateStrategy={"type": "RollingUpdate", "maxUnavailable": 1})
    await cluster.rounds(3)
    assert {name for name, reason in cluster.slurm.reasons.items() if reason} == {"gpu-1"}


@pytest.mark.anyio
async def test_reading_that_failed_is_tried_again_at_once(cluster: Cluster) -> None:
    cluster.declare(replicas=2)
    await cluster.rounds(4)
    cluster.declare(replicas=1)
    await cluster.process.caught_up()
    await cluster.process.poller.fresh()
    cluster.slurm.is_silent = True
    assert (await cluster.process.reconciler.reconcile(KEY)).seconds == SOON_S
    assert len(cluster.pods()) == 2


@pytest.mark.anyio
async def test_reading_that_is_too_old_when_it_arrives_deletes_nothing(cluster: Cluster) -> None:
    cluster.declare(replicas=2)
    await cluster.rounds(4)
    cluster.declare(replicas=1)
    await cluster.rounds(1)

    async def dawdle() -> None:
        cluster.process.later_s += DELETION_FRESH_S + 1

    cluster.slurm.after_reading = dawdle
    following = await cluster.process.round()
    assert (len(cluster.pods()), following.seconds) == (2, SOON_S)
    cluster.slurm.after_reading = None
    await cluster.rounds(2)
    assert len(cluster.pods()) == 1


@pytest.mark.anyio
async def test_silence_is_no_new_failure_of_a_node_that_is_down(cluster: Cluster) -> None:
    cluster.declare(min=0, max=1)
    await cluster.rounds(1)
    cluster.slurm.words["gpu-0"] = {"DOWN", "CLOUD", "POWERED_DOWN"}
    cluster.slurm.reasons["gpu-0"] = RESUME_FAILED
    first = again = (await cluster.process.round()).seconds
    for _ in range(5):
        cluster.slurm.is_silent = True
        await cluster.process.round()
        cluster.slurm.is_silent = False
        again = (await cluster.process.round()).seconds
    assert again <= first


@pytest.mark.anyio
async def test_unreadable_set_is_reported_once_and_its_last_version_is_followed(cluster: Cluster) -> None:
    cluster.declare(nodes=3, replicas=2)
    await cluster.rounds(4)
    cluster.server.patch(NODESETS, KEY, {"spec": {"maxPodsInFlight": "many"}})
    await eventually(lambda: KEY in cluster.process.nodesets.unread)
    cluster.server.remove(PODS, ("slurm", "gpu-0"))

    async def look(rounds: int) -> None:
        for _ in range(rounds):
            await eventually(lambda: cluster.process.pods.store.keys() == cluster.server.keys(PODS))
            await cluster.process.poller.fresh()
            await cluster.process.reconciler.reconcile(KEY)
            cluster.kubelets()

    await look(4)
    assert set(cluster.pods()) == {"gpu-0", "gpu-1"}, "the version before it has two"
    said = cluster.status()
    assert said["phase"] == "Degraded"
    assert "Expected `int`, got `str` - at `$.spec.maxPodsInFlight`" in said["why"]
    assert "kubectl -n slurm edit nodeset gpu" in said["why"]
    assert "the version before it is followed" in said["why"]
    before = len(cluster.server.writes())
    cluster.process.later_s += 5
    await look(3)
    assert len(cluster.server.writes()) == before
    cluster.server.patch(NODESETS, KEY, {"spec": {"maxPodsInFlight": None, "replicas": 3}})
    await cluster.rounds(4)
    assert (cluster.status()["phase"], len(cluster.pods())) == ("Ready", 3)
