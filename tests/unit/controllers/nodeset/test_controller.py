"""The controller as a whole, with its lease, queue and informers: what it hears of, it acts on at once and not at the next sweep."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from controllers.nodeset import reconcile
from controllers.nodeset.controller import Controller
from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import Plan, plan_nodeset
from controllers.nodeset.schedule import Next
from controllers.nodeset.settings import Settings
from controllers.nodeset.structs import NODESETS, SLURM_NODES, NodeSetObject
from controllers.runtime.api import connect
from controllers.runtime.clock import Clock
from controllers.runtime.structs import CLAIMS, LEASES, PODS, Key
from tests.support.controllers.nodeset.memory_cluster import Cluster, disks
from tests.support.fakes.clock import eventually
from tests.support.fakes.requests import Failure
from tests.support.patience import patience

CLAIM, POD = ("slurm", "disk-gpu-0"), ("slurm", "gpu-0")


def rounds() -> float:
    """Rounds that are over, of all controllers of this process."""
    return REGISTRY.get_sample_value("slipway_reconcile_seconds_count") or 0


@pytest.fixture
async def controller(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Controller]:
    """Leads, and follows the cluster by itself."""
    settings = Settings(cluster="dev", namespace="slurm", slurmrestd="", jwt_key=tmp_path, identity="test", port=0, probe_port=0)
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
    await eventually(lambda: controller.claims.get(CLAIM) is not None and not controller.is_slurm_silent)
    cluster.declare(replicas=1, **disks("Retain", "Retain"))
    await eventually(lambda: bool(seen) and "disk is still being deleted" in seen[-1])  # nothing is left to be done before the next sweep
    assert POD not in cluster.server.keys(PODS)
    cluster.server.patch(CLAIMS, CLAIM, {"metadata": {"finalizers": None}})
    await eventually(lambda: POD in cluster.server.keys(PODS), within_s=5)
    assert cluster.disks() == {CLAIM[1]}
    assert rounds() >= len(seen)


@pytest.mark.anyio
async def test_lease_is_renewed_during_a_plan_of_any_length(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan goes on until two renewals have been granted. What it decides is carried out then, as the lease is still held."""
    pace = max(1.0, 8 / patience())  # a renewal has to come in time on a slow machine, too
    clock = Clock(now=lambda: pace * time.monotonic(), sleep=lambda seconds: asyncio.sleep(seconds / pace))
    settings = Settings(cluster="dev", namespace="slurm", slurmrestd="", jwt_key=tmp_path, identity="test", port=0)
    controller, stop = Controller(settings, connect(cluster.server.config()), cluster.slurm, clock), asyncio.Event()
    renewals: list[int] = []

    def renewed_at() -> str:
        [key] = cluster.server.keys(LEASES)
        return cluster.server.get(LEASES, key)["spec"]["renewTime"]

    def plan_for_long(nodeset: NodeSetObject, observed: Observed) -> Plan:
        seen, deadline = {renewed_at()}, time.monotonic() + 8 * patience()
        while len(seen) < 3 and time.monotonic() < deadline:
            seen.add(renewed_at())
        renewals.append(len(seen) - 1)
        return plan_nodeset(nodeset, observed)

    monkeypatch.setattr(reconcile, "plan_nodeset", plan_for_long)
    cluster.declare(replicas=1)
    running = asyncio.create_task(controller.run(stop))
    await eventually(lambda: POD in cluster.server.keys(PODS) or running.done(), within_s=20)
    assert (renewals[0], controller.election.is_held()) == (2, True)
    stop.set()
    assert await running == 0


@pytest.mark.anyio
@pytest.mark.parametrize("ahead_s", [-7200.0, 7200.0])
async def test_clock_that_is_wrong_makes_no_more_pods_than_may_be_in_flight(cluster: Cluster, tmp_path: Path, ahead_s: float) -> None:
    """No kubelet starts the pods. They are young by the clock of the API server, which gave them their time."""
    clock = Clock(wall=lambda: time.time() + ahead_s)
    settings = Settings(cluster="dev", namespace="slurm", slurmrestd="", jwt_key=tmp_path, identity="test", port=0)
    controller, stop = Controller(settings, connect(cluster.server.config()), cluster.slurm, clock), asyncio.Event()
    running = asyncio.create_task(controller.run(stop))
    cluster.declare(nodes=6, replicas=6, maxPodsInFlight=2)
    await eventually(lambda: len(cluster.server.keys(PODS)) >= 2)
    for look in range(3):
        before = rounds()
        cluster.declare(nodes=6, replicas=6, maxPodsInFlight=2, ordinals=6 + look)
        await eventually(lambda before=before: rounds() > before)
    assert len(cluster.server.keys(PODS)) == 2
    stop.set()
    assert await running == 0


@pytest.mark.anyio
@pytest.mark.usefixtures("controller")
@pytest.mark.parametrize("words", ["MIXED CLOUD POWERED_DOWN", "MIXED CLOUD NOT_RESPONDING POWERING_UP"])
async def test_time_from_wake_to_pod_is_counted_however_early_the_wake_is_seen(cluster: Cluster, words: str) -> None:
    """Slurm shows a job's node POWERED_DOWN for a moment before it shows POWERING_UP."""
    counted = REGISTRY.get_sample_value("slipway_nodeset_power_up_seconds_count") or 0
    cluster.declare(min=0, max=4)
    cluster.slurm.words["gpu-0"] = {"IDLE", "CLOUD", "POWERED_DOWN"}
    await eventually(lambda: cluster.status().get("phase") == "Ready")
    assert POD not in cluster.server.keys(PODS)
    cluster.slurm.words["gpu-0"] = set(words.split())
    await eventually(lambda: POD in cluster.server.keys(PODS))
    await eventually(lambda: REGISTRY.get_sample_value("slipway_nodeset_power_up_seconds_count") == counted + 1)


@pytest.mark.anyio
async def test_set_that_nobody_thought_of_ends_no_other_and_says_so(
    cluster: Cluster, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.declare(replicas=1)
    await eventually(lambda: POD in cluster.server.keys(PODS))

    async def fail(key: Key) -> Next:
        raise TypeError(f"{key[1]} is odd")

    monkeypatch.setattr(controller.reconciler, "reconcile", fail)
    cluster.declare(replicas=2)
    await eventually(lambda: "TypeError: gpu is odd" in str(cluster.status().get("conditions", "")))
    assert cluster.status()["phase"] == "Degraded"


@pytest.mark.anyio
async def test_set_that_was_never_readable_says_so_and_others_go_on(cluster: Cluster, controller: Controller) -> None:
    odd = ("slurm", "odd")
    spec: dict[str, Any] = {"cluster": "dev", "replicas": "four", "template": {"spec": {"containers": []}}}
    cluster.server.put(NODESETS, {"metadata": {"namespace": "slurm", "name": "odd", "generation": 1}, "spec": spec})
    another = {"metadata": {"namespace": "slurm", "name": "theirs"}, "spec": {**spec, "cluster": "another"}}
    cluster.server.put(NODESETS, another)
    cluster.declare(replicas=1)
    await eventually(lambda: POD in cluster.server.keys(PODS) and "status" in cluster.server.get(NODESETS, odd))
    said = cluster.server.get(NODESETS, odd)["status"]
    assert said["phase"] == "Degraded"
    assert "Expected `int | null`, got `str` - at `$.spec.replicas`" in said["why"]
    assert "Nothing is done to this set until then" in said["why"]
    written = cluster.server.get(NODESETS, odd)["metadata"]["resourceVersion"]
    cluster.declare(replicas=2)
    await eventually(lambda: ("slurm", "gpu-1") in cluster.server.keys(PODS))
    assert cluster.server.get(NODESETS, odd)["metadata"]["resourceVersion"] == written, "the news of that write brings no other"
    assert "status" not in cluster.server.get(NODESETS, ("slurm", "theirs"))
    cluster.server.patch(NODESETS, odd, {"spec": {"replicas": 1}})
    await eventually(lambda: ("slurm", "odd-0") in cluster.server.keys(PODS))


@pytest.mark.anyio
async def test_cordon_drains_ten_nodes_within_a_second_and_uncordon_lifts(cluster: Cluster, controller: Controller) -> None:
    cluster.machine("machine")
    cluster.declare(nodes=10, replicas=10)

    def all_up() -> bool:
        cluster.kubelets()
        return cluster.status().get("ready") == 10

    await eventually(all_up, within_s=20)
    cluster.machine("machine", cordoned=True, words="new fans")
    await eventually(lambda: all("DRAIN" in words for words in cluster.slurm.words.values()), within_s=1)
    assert set(cluster.slurm.reasons.values()) == {"slipway: cordon machine: new fans"}
    cluster.machine("machine")
    await eventually(lambda: not any("DRAIN" in words for words in cluster.slurm.words.values()), within_s=1)


@pytest.mark.anyio
async def test_slurm_is_asked_less_often_only_while_no_set_wants_anything(cluster: Cluster, controller: Controller) -> None:
    def settle(ready: int) -> Callable[[], bool]:
        def is_settled() -> bool:
            cluster.kubelets()
            return cluster.status().get("ready") == ready and controller.poller.is_at_rest()

        return is_settled

    cluster.declare(nodes=4, replicas=2)
    await eventually(settle(2), within_s=20)
    cluster.declare(nodes=4, replicas=3)
    await eventually(lambda: not controller.poller.is_at_rest())
    await eventually(settle(3), within_s=20)
    cluster.declare(nodes=4, min=0, max=4, ordinals=4)  # elastic: a job may wake a node at any time
    await eventually(lambda: not controller.poller.is_at_rest())
    rounds = controller.reconciler.reconcile
    await rounds(("slurm", "gpu"))
    assert not controller.poller.is_at_rest()


@pytest.mark.anyio
async def test_news_of_an_object_of_a_slurm_node_brings_no_round(
    cluster: Cluster, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.declare(nodes=1, replicas=1)
    cluster.slurm.words["gpu-0"].add("DRAIN")
    cluster.slurm.reasons["gpu-0"] = "fan is loud"
    await eventually(lambda: controller.slurm_nodes.get(POD) is not None and POD in cluster.server.keys(PODS))
    await eventually(lambda: controller.nodesets.get(("slurm", "gpu")) is not None and len(controller.queue) == 0)
    added: list[Key] = []

    def note(key: Key, _: float) -> None:
        added.append(key)

    monkeypatch.setattr(controller.queue, "add", added.append)
    monkeypatch.setattr(controller.queue, "add_after", note)

    async def heard_of(ticket: str) -> bool:
        """Whether the object's news alone brought a round."""
        added.clear()
        cluster.server.patch(SLURM_NODES, POD, {"metadata": {"annotations": {"ticket": ticket}}})

        def has_heard() -> bool:
            known = controller.slurm_nodes.get(POD)
            return known is not None and known.metadata.annotations == {"ticket": ticket}

        await eventually(has_heard)
        return added != []

    # The round before may end meanwhile, and plan the next one.
    assert not all([await heard_of(str(ticket)) for ticket in range(5)])


@pytest.mark.anyio
async def test_pods_are_made_where_the_kind_of_slurm_nodes_is_not_known(cluster: Cluster, tmp_path: Path) -> None:
    cluster.server.fail(Failure("status", 404, reason="NotFound", plural="slurmnodes", times=1_000))
    settings = Settings(cluster="dev", namespace="slurm", slurmrestd="", jwt_key=tmp_path, identity="test", port=0, probe_port=0)
    made, stop = Controller(settings, connect(cluster.server.config()), cluster.slurm), asyncio.Event()
    running = asyncio.create_task(made.run(stop))
    cluster.declare(replicas=1)
    cluster.slurm.words["gpu-1"].add("DRAIN")
    cluster.slurm.reasons["gpu-1"] = "fan is loud"
    await eventually(lambda: POD in cluster.server.keys(PODS) and "Undrained" in str(cluster.status()))
    assert not [request for request in cluster.server.writes() if request.plural == SLURM_NODES.plural]
    assert not made.slurm_nodes.synced.is_set()
    stop.set()
    assert await running == 0
