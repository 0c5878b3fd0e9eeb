"""Whole rounds against an API server and a Slurm in memory: killed after any write, with Slurm silent, the laws hold."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any

import pytest

from controllers.nodeset.controller import nodeset_of
from controllers.nodeset.reconcile import STALE_S, SWEEP_S, Next, Reconciler, World
from controllers.nodeset.structs import FINALIZER, LABEL_BUSY, NODESETS
from controllers.runtime.api import connect
from controllers.runtime.clock import Clock
from controllers.runtime.errors import ApiError
from controllers.runtime.expectations import Expectations
from controllers.runtime.informer import Informer
from controllers.runtime.structs import BUDGETS, CLAIMS, CONFIG_MAPS, KUBE_NODES, PODS, Key, Resource
from controllers.runtime.writer import Writer
from controllers.slurm.client import NodeUpdate, SlurmClient, SlurmRefused, SlurmUnreachable
from controllers.slurm.snapshot import Poller
from controllers.slurm.structs import Job, Jobs, Node, Nodes, Number, Reservations
from tests.fakes.clock import eventually, settle
from tests.fakes.kubernetes import Failure, FakeKubernetes, Request

KEY: Key = ("slurm", "gpu")
READY = [{"type": "Ready", "status": "True"}]


class MemorySlurm(SlurmClient):
    """Nodes by name, as their words and a reason; a job occupies a node until it ends."""

    def __init__(self) -> None:
        self.words: dict[str, set[str]] = {}
        self.reasons: dict[str, str] = {}
        self.jobs_on: dict[str, int] = {}
        self.is_silent = False
        self.on_write: Callable[[], Failure | None] | None = None
        """Asked before each write; a failure breaks the connection before or after it."""
        self.after_reading: Callable[[], Awaitable[object]] | None = None
        """Awaited when an answer has been put together, and before it is given."""
        self.requeued: list[int] = []
        self.not_batch: set[int] = set()
        self.updates: list[tuple[str, tuple[str, ...]]] = []

    async def nodes(self, since: float | None = None) -> Nodes | None:
        self._answer()
        found = tuple(Node(name, words=tuple(sorted(words)), reason=self.reasons.get(name, "")) for name, words in self.words.items())
        if self.after_reading is not None:
            await self.after_reading()
        return Nodes(nodes=found, last_update=Number(True, False, 1))

    async def jobs(self, since: float | None = None) -> Jobs | None:
        self._answer()
        return Jobs(
            jobs=tuple(Job(number, ("RUNNING",), name, batch_flag=number not in self.not_batch) for name, number in self.jobs_on.items()),
            last_update=Number(True, False, 1),
        )

    async def reservations(self) -> Reservations:
        self._answer()
        return Reservations()

    async def update_nodes(self, names: Iterable[str], state: NodeUpdate, reason: str | None = None) -> None:
        self._answer()
        with self._write():
            self._update(tuple(names), state, reason)

    def _update(self, names: tuple[str, ...], state: NodeUpdate, reason: str | None) -> None:
        self.updates.append((state, names))
        for name in names:
            if state == "DRAIN":
                self.words[name].add("DRAIN")
                self.reasons[name] = reason or ""
            else:
                self.words[name] -= {"DRAIN", "DOWN"}
                self.words[name] |= {"ALLOCATED"} if name in self.jobs_on else {"IDLE"}
                self.reasons[name] = ""

    async def requeue_jobs(self, ids: Iterable[int]) -> None:
        self._answer()
        with self._write():
            self.requeued.extend(ids)
            if refused := self.not_batch & set(self.requeued):
                raise SlurmRefused(f"Requeue JobId={min(refused)} failed (2039 Only batch jobs are accepted or processed)")
            for name in [name for name, number in self.jobs_on.items() if number in self.requeued]:
                self.end_job(name)

    @contextlib.contextmanager
    def _write(self) -> Iterator[None]:
        failure = self.on_write() if self.on_write is not None else None
        if failure is not None and failure.what == "cut":
            raise SlurmUnreachable("cut before it was done")
        yield
        if failure is not None:
            raise SlurmUnreachable("cut after it was done")

    def _answer(self) -> None:
        if self.is_silent:
            raise SlurmUnreachable("no answer within 10 s")

    def start_job(self, name: str, number: int) -> None:
        self.jobs_on[name] = number
        self.words[name] = (self.words[name] - {"IDLE"}) | {"ALLOCATED"}

    def end_job(self, name: str) -> None:
        del self.jobs_on[name]
        self.words[name] = (self.words[name] - {"ALLOCATED"}) | {"IDLE"}

    def register(self, name: str) -> None:
        """What a worker's start does: its own drains lifted, then slurmd registers."""
        if self.reasons.get(name, "").startswith("slipway: nodeset "):
            self.words[name].discard("DRAIN")
            self.reasons[name] = ""
        self.words[name] -= {"POWERED_DOWN", "POWERING_UP", "NOT_RESPONDING", "DOWN"}
        self.words[name] |= {"ALLOCATED"} if name in self.jobs_on else {"IDLE"}


class Process:
    """One controller process: its informers, what it remembers, and its reconciler."""

    def __init__(self, server: FakeKubernetes, slurm: MemorySlurm) -> None:
        self.later_s = 0.0
        """How much later it is than on the machine's clock."""
        clock = Clock(now=lambda: time.monotonic() + self.later_s)
        self.api = connect(server.config())
        self.server = server
        by_set = {"nodeset": nodeset_of}
        self.nodesets = Informer(self.api, NODESETS, namespace="slurm")
        self.pods = Informer(self.api, PODS, namespace="slurm", indexes=by_set)
        self.machines = Informer(self.api, KUBE_NODES)
        self.places = Informer(self.api, CONFIG_MAPS, namespace="slurm")
        self.claims = Informer(self.api, CLAIMS, namespace="slurm", indexes=by_set)
        self.informers = (self.nodesets, self.pods, self.machines, self.places, self.claims)
        self.expectations: Expectations[Key] = Expectations()
        self.pods.on_change(lambda old, new: self.expectations.seen(KEY, old, new))
        self.poller = Poller(slurm, clock.now)
        writer = Writer(self.api, rate_per_s=10_000, burst=10_000)
        self.reconciler = Reconciler(
            World(self.nodesets, self.pods, self.machines, self.places, self.claims, slurm, self.poller, writer, self.expectations, clock)
        )
        self.tasks = [asyncio.create_task(informer.run()) for informer in self.informers]

    async def caught_up(self) -> None:
        """Waits until the informers hold what the server has."""

        followed: list[tuple[Resource[Any], Informer[Any]]] = [
            *((NODESETS, self.nodesets), (PODS, self.pods), (KUBE_NODES, self.machines), (CONFIG_MAPS, self.places), (CLAIMS, self.claims))
        ]

        def held(informer: Informer[Any]) -> dict[Key, str]:
            return {item.metadata.key: item.metadata.resource_version for item in informer.store.values()}

        def stored(kind: Resource[Any]) -> dict[Key, str]:
            return {key: self.server.get(kind, key)["metadata"]["resourceVersion"] for key in self.server.keys(kind)}

        def same() -> bool:
            return all(held(informer) == stored(kind) for kind, informer in followed)

        await eventually(same)

    async def round(self) -> Next:
        await self.caught_up()
        try:
            await self.poller.fresh()
        except SlurmUnreachable:
            self.poller.snapshot = None
        return await self.reconciler.reconcile(KEY)

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.api.close()


class Cluster:
    """The set `gpu`, the kubelets, and a controller process that can be killed."""

    def __init__(self, server: FakeKubernetes) -> None:
        self.server = server
        self.slurm = MemorySlurm()
        self.process = Process(server, self.slurm)
        self.ended_with_a_job: list[str] = []

    def declare(self, image: str = "a", nodes: int = 4, **spec: Any) -> None:
        template = {"metadata": {"labels": {"app": "slurm"}}, "spec": {"containers": [{"name": "slurmd", "image": image}]}}
        labels = {"slipway.dev/cluster": "dev"}
        whole = {"cluster": "dev", "template": template, **spec}
        before = self.server.get(NODESETS, KEY) if KEY in self.server.keys(NODESETS) else {"metadata": {"generation": 0}}
        meta = {"namespace": "slurm", "name": "gpu", "labels": labels, "finalizers": before["metadata"].get("finalizers", [])}
        self.server.put(NODESETS, {"metadata": {**meta, "generation": before["metadata"].get("generation", 0) + 1}, "spec": whole})
        for ordinal in range(nodes):
            self.slurm.words.setdefault(f"gpu-{ordinal}", {"IDLE", "CLOUD", "POWERED_DOWN"})

    def kubelets(self) -> None:
        """Starts what is new, ends what is being deleted. A stop waits for jobs; none may have been left to it by the controller."""
        for key in sorted(self.server.keys(PODS)):
            pod = self.server.get(PODS, key)
            if pod["metadata"].get("deletionTimestamp"):
                if key[1] in self.slurm.jobs_on:
                    self.ended_with_a_job.append(key[1])
                self.server.remove(PODS, key)
            elif not pod.get("status", {}).get("conditions"):
                self.server.patch(PODS, key, {"spec": {"nodeName": "machine"}})
                self.server.patch(PODS, key, {"status": {"phase": "Running", "conditions": READY}}, "status")
                self.slurm.register(key[1])

    async def rounds(self, number: int) -> None:
        for _ in range(number):
            await self.process.round()
            self.kubelets()

    async def replace_process(self) -> None:
        await self.process.end()
        self.process = Process(self.server, self.slurm)

    def pods(self) -> dict[str, str]:
        """Images by pod, of those that are not being deleted."""
        found = {key[1]: self.server.get(PODS, key) for key in self.server.keys(PODS)}
        return {name: pod["spec"]["containers"][0]["image"] for name, pod in found.items() if not pod["metadata"].get("deletionTimestamp")}

    def disks(self) -> set[str]:
        """Names of the claims that are not on their way out."""
        found = {key[1]: self.server.get(CLAIMS, key) for key in self.server.keys(CLAIMS)}
        return {name for name, claim in found.items() if not claim["metadata"].get("deletionTimestamp")}

    def status(self) -> dict[str, Any]:
        return self.server.get(NODESETS, KEY).get("status", {})


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with FakeKubernetes() as server:
        made = Cluster(server)
        yield made
        await made.process.end()


@pytest.mark.anyio
async def test_fixed_set_comes_up_and_says_ready(cluster: Cluster) -> None:
    cluster.declare(replicas=3)
    await cluster.rounds(4)
    assert set(cluster.pods()) == {"gpu-0", "gpu-1", "gpu-2"}
    said = cluster.status()
    assert (said["phase"], said["ready"], said["wanted"]) == ("Ready", 3, 3)
    assert FINALIZER in cluster.server.get(NODESETS, KEY)["metadata"]["finalizers"]
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
async def test_silent_slurm_freezes_everything_but_pods_that_are_missing(cluster: Cluster) -> None:
    cluster.declare(replicas=3)
    await cluster.rounds(5)
    cluster.slurm.is_silent = True
    cluster.declare(image="b", replicas=1)
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
    cluster.declare(replicas=2)
    await cluster.rounds(4)
    cluster.declare(replicas=1)
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
async def test_with_on_delete_a_pod_gets_the_new_template_when_somebody_deletes_it(cluster: Cluster) -> None:
    cluster.declare(replicas=2, updateStrategy={"type": "OnDelete"})
    await cluster.rounds(4)
    cluster.declare(image="b", replicas=2, updateStrategy={"type": "OnDelete"})
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
async def test_disruption_budget_that_somebody_deleted_is_back_at_the_next_sweep(cluster: Cluster) -> None:
    cluster.declare(replicas=1)
    await cluster.rounds(4)
    cluster.server.remove(BUDGETS, KEY)
    cluster.process.later_s += SWEEP_S
    await cluster.rounds(1)
    assert KEY in cluster.server.keys(BUDGETS)


@pytest.mark.anyio
async def test_places_of_a_pinned_set_are_forgotten_when_it_is_pinned_no_more(cluster: Cluster) -> None:
    places = ("slurm", "gpu-places")
    cluster.server.put(KUBE_NODES, {"metadata": {"name": "machine"}})
    cluster.declare(replicas=1, placement="Pinned")
    await cluster.rounds(4)
    assert cluster.server.get(CONFIG_MAPS, places)["data"] == {"0": "machine"}
    cluster.declare(replicas=1)
    await cluster.rounds(2)
    assert not cluster.server.get(CONFIG_MAPS, places).get("data")


@pytest.mark.anyio
async def test_empty_set_can_be_deleted_while_slurm_is_silent(cluster: Cluster) -> None:
    cluster.declare(min=0, max=4)
    await cluster.rounds(2)
    cluster.slurm.is_silent = True
    cluster.server.objects.delete(cluster.server.objects.kind("slipway.dev/v1alpha1", "nodesets"), KEY)
    await cluster.rounds(2)
    assert KEY not in cluster.server.keys(NODESETS)


@pytest.mark.anyio
async def test_busy_label_follows_jobs(cluster: Cluster) -> None:
    cluster.declare(replicas=2)
    await cluster.rounds(4)

    def busy() -> dict[str, str]:
        return {key[1]: cluster.server.get(PODS, key)["metadata"]["labels"][LABEL_BUSY] for key in cluster.server.keys(PODS)}

    assert busy() == {"gpu-0": "false", "gpu-1": "false"}
    cluster.slurm.start_job("gpu-1", 7)
    await cluster.rounds(1)
    assert busy() == {"gpu-0": "false", "gpu-1": "true"}


@pytest.mark.anyio
async def test_requeue_comes_only_past_the_deadline(cluster: Cluster) -> None:
    cluster.declare(replicas=2, drain={"action": "Requeue", "deadlineSeconds": 3600})
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    cluster.slurm.start_job("gpu-1", 8)
    cluster.declare(replicas=1, drain={"action": "Requeue", "deadlineSeconds": 3600})
    # The fake gives no time to a reason, so it is as old as 1970: the deadline is over as soon as the node is drained.
    await cluster.rounds(6)
    assert len(cluster.slurm.requeued) == 1
    assert len(cluster.pods()) == 1


@pytest.mark.anyio
async def test_job_that_slurm_does_not_requeue_runs_on_and_is_told_of_once(cluster: Cluster) -> None:
    spec: dict[str, Any] = {"ordinals": 2, "drain": {"action": "Requeue", "deadlineSeconds": 3600}}
    cluster.declare(replicas=2, **spec)
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    cluster.slurm.start_job("gpu-1", 8)
    cluster.slurm.not_batch = {7, 8}
    cluster.declare(replicas=1, **spec)
    await cluster.rounds(4)
    said = next(one for one in cluster.status()["conditions"] if one["type"] == "DrainsEnd")
    assert (said["status"], "of srun or salloc" in said["message"]) == ("False", True)
    before = len(cluster.server.writes())
    following = [await cluster.process.round() for _ in range(3)]
    assert [one.seconds for one in following] == [SWEEP_S] * 3, "nothing to ask Slurm for, so no hurry"
    assert (cluster.slurm.requeued, len(cluster.server.writes()), len(cluster.pods())) == ([], before, 2)
    cluster.slurm.end_job("gpu-0")
    cluster.slurm.end_job("gpu-1")
    await cluster.rounds(6)
    assert len(cluster.pods()) == 1


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


DISK: dict[str, Any] = {"metadata": {"name": "disk"}, "spec": {"accessModes": ["ReadWriteOnce"]}}


def disks(when_scaled: str, when_deleted: str) -> dict[str, Any]:
    return {"volumeClaimTemplates": [DISK], "volumeClaimRetention": {"whenScaled": when_scaled, "whenDeleted": when_deleted}}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("when_scaled", "when_deleted", "kept"),
    [
        pytest.param("Delete", "Retain", {"disk-gpu-0", "disk-gpu-1"}, id="retained"),
        pytest.param("Delete", "Delete", set[str](), id="both-delete"),
        pytest.param("Retain", "Delete", set[str](), id="deleted"),
    ],
)
async def test_disks_of_a_set_that_is_deleted_go_or_stay_as_when_deleted_says(
    cluster: Cluster, when_scaled: str, when_deleted: str, kept: set[str]
) -> None:
    cluster.declare(replicas=2, ordinals=2, **disks(when_scaled, when_deleted))
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-1", 9)
    cluster.server.objects.delete(cluster.server.objects.kind("slipway.dev/v1alpha1", "nodesets"), KEY)
    await cluster.rounds(4)
    assert set(cluster.pods()) == {"gpu-1"}
    assert cluster.disks() == {"disk-gpu-0", "disk-gpu-1"}, "none goes before the last pod has"
    cluster.slurm.end_job("gpu-1")
    await cluster.rounds(4)
    assert KEY not in cluster.server.keys(NODESETS)
    assert cluster.disks() == kept


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("when_scaled", "kept"),
    [pytest.param("Delete", {"disk-gpu-1"}, id="delete"), pytest.param("Retain", {"disk-gpu-0", "disk-gpu-1"}, id="retain")],
)
async def test_disks_of_a_node_that_is_scaled_in_go_once_its_pod_has_gone(cluster: Cluster, when_scaled: str, kept: set[str]) -> None:
    cluster.declare(replicas=2, ordinals=2, **disks(when_scaled, "Retain"))
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-1", 9)
    cluster.declare(replicas=1, ordinals=2, **disks(when_scaled, "Retain"))
    await cluster.rounds(6)
    assert (set(cluster.pods()), cluster.disks()) == ({"gpu-1"}, kept)
    owned = [key for key in cluster.server.keys(CLAIMS) if "ownerReferences" in cluster.server.get(CLAIMS, key)["metadata"]]
    assert not owned, "the garbage collector would take them with the set"


@pytest.mark.anyio
async def test_node_that_lost_its_pod_keeps_its_disk_and_comes_back_to_it_although_a_lower_ordinal_is_free(cluster: Cluster) -> None:
    cluster.declare(replicas=2, ordinals=2, **disks("Delete", "Retain"))
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-1", 9)
    cluster.declare(replicas=1, ordinals=2, **disks("Delete", "Retain"))
    await cluster.rounds(6)
    cluster.slurm.end_job("gpu-1")
    cluster.server.remove(PODS, ("slurm", "gpu-1"))
    await cluster.rounds(3)
    assert (set(cluster.pods()), cluster.disks()) == ({"gpu-1"}, {"disk-gpu-1"})


@pytest.mark.anyio
async def test_elastic_node_that_sleeps_keeps_its_disk_until_max_shrinks_below_it(cluster: Cluster) -> None:
    cluster.declare(min=0, max=4, **disks("Delete", "Retain"))
    await cluster.rounds(2)
    for name in ("gpu-1", "gpu-3"):
        cluster.slurm.words[name] = {"MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"}
    await cluster.rounds(2)
    for name in ("gpu-1", "gpu-3"):
        cluster.slurm.words[name] = {"IDLE", "CLOUD", "POWERING_DOWN"}
    await cluster.rounds(4)
    assert (cluster.pods(), cluster.disks()) == ({}, {"disk-gpu-1", "disk-gpu-3"})
    cluster.declare(min=0, max=2, **disks("Delete", "Retain"))
    await cluster.rounds(3)
    assert cluster.disks() == {"disk-gpu-1"}


@pytest.mark.anyio
async def test_disks_of_a_template_that_is_gone_and_claims_of_others_are_left_alone(cluster: Cluster) -> None:
    labels = {"slipway.dev/cluster": "dev", "slipway.dev/nodeset": "gpu"}
    cluster.declare(replicas=1, ordinals=2, **disks("Delete", "Delete"))
    await cluster.rounds(4)
    for name in ("by-hand", "disk-gpu-x", "disk-cpu-7"):
        cluster.server.put(CLAIMS, {"metadata": {"namespace": "slurm", "name": name, "labels": labels}, "spec": {}})
    cluster.declare(replicas=1, volumeClaimTemplates=[], volumeClaimRetention={"whenScaled": "Delete", "whenDeleted": "Delete"})
    await cluster.rounds(6)
    assert cluster.disks() == {"disk-gpu-0", "by-hand", "disk-gpu-x", "disk-cpu-7"}
    cluster.server.objects.delete(cluster.server.objects.kind("slipway.dev/v1alpha1", "nodesets"), KEY)
    await cluster.rounds(4)
    assert cluster.disks() == {"by-hand", "disk-gpu-x", "disk-cpu-7"}


@pytest.mark.anyio
async def test_claim_that_is_still_going_holds_its_pod_back_and_the_status_says_so(cluster: Cluster) -> None:
    claim = ("slurm", "disk-gpu-1")
    cluster.declare(replicas=2, **disks("Retain", "Retain"))
    await cluster.rounds(4)
    cluster.server.patch(CLAIMS, claim, {"metadata": {"finalizers": ["kubernetes.io/pvc-protection"]}})
    cluster.server.objects.delete(cluster.server.objects.kind("v1", "persistentvolumeclaims"), claim)
    await cluster.rounds(2)
    assert set(cluster.pods()) == {"gpu-0", "gpu-1"}, "a pod that is there goes on"
    cluster.server.remove(PODS, ("slurm", "gpu-1"))
    await cluster.rounds(3)
    assert set(cluster.pods()) == {"gpu-0"}
    assert "gpu-1" in (said := cluster.status()["why"])
    assert "disk is still being deleted" in said
    before = len(cluster.server.writes())
    await cluster.rounds(2)
    assert len(cluster.server.writes()) == before
    cluster.server.patch(CLAIMS, claim, {"metadata": {"finalizers": None}})
    await cluster.rounds(3)
    assert (set(cluster.pods()), cluster.disks()) == ({"gpu-0", "gpu-1"}, {"disk-gpu-0", "disk-gpu-1"})
    assert cluster.status()["phase"] == "Ready"


@pytest.mark.anyio
async def test_pod_whose_claim_went_before_a_machine_was_found_gets_another(cluster: Cluster) -> None:
    cluster.declare(replicas=1, **disks("Retain", "Retain"))
    await cluster.process.round()
    cluster.server.remove(CLAIMS, ("slurm", "disk-gpu-0"))
    await cluster.process.round()
    assert (set(cluster.pods()), cluster.disks()) == ({"gpu-0"}, {"disk-gpu-0"})


class Killer:
    """Lets so many writes to the API server and to Slurm through, then the process gets no further."""

    def __init__(self, allowed: int) -> None:
        self.allowed, self.writes = allowed, 0

    def of_kubernetes(self, request: Request) -> Failure | None:
        return self._fate() if request.is_write else None

    def of_slurm(self) -> Failure | None:
        return self._fate()

    @property
    def has_struck(self) -> bool:
        return self.writes >= self.allowed

    def _fate(self) -> Failure | None:
        self.writes += 1
        if self.writes == self.allowed:
            return Failure("cut_after")  # it happened, and nobody has heard
        return Failure("cut") if self.writes > self.allowed else None


async def killed_at(cluster: Cluster, allowed: int, rounds: int, busy_for: int = 0) -> Killer:
    """Some rounds, in which the process ends at that write and is followed by another; the job on gpu-1 ends after `busy_for` of them."""
    killer = Killer(allowed)
    cluster.server.on_request, cluster.slurm.on_write = killer.of_kubernetes, killer.of_slurm
    for number in range(rounds):
        if busy_for and number == busy_for:
            cluster.slurm.end_job("gpu-1")
        try:
            await cluster.rounds(1)
        except ApiError:
            assert killer.has_struck
    cluster.server.on_request = cluster.slurm.on_write = None
    await cluster.replace_process()
    return killer


KILL_POINTS = 20


@pytest.mark.anyio
@pytest.mark.parametrize("allowed", range(KILL_POINTS))
async def test_process_killed_after_any_write_of_a_roll_is_followed_by_one_that_finishes_it(cluster: Cluster, allowed: int) -> None:
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
async def test_process_killed_after_any_write_of_a_scale_in_is_followed_by_one_that_finishes_it(cluster: Cluster, allowed: int) -> None:
    # The fake gives no time to a reason: the deadline is over as soon as a node is drained.
    spec: dict[str, Any] = {"ordinals": 3, "drain": {"action": "Requeue", "deadlineSeconds": 60}, **disks("Delete", "Retain")}
    cluster.declare(replicas=3, **spec)
    await cluster.rounds(5)
    cluster.slurm.start_job("gpu-0", 6)
    cluster.slurm.start_job("gpu-1", 7)
    await cluster.rounds(1)
    cluster.declare(replicas=1, **spec)
    killer = await killed_at(cluster, allowed, rounds=10)
    assert killer.has_struck or allowed > 10, f"only {killer.writes} writes"
    assert not killer.has_struck or allowed < KILL_POINTS - 1, "more writes than are tried"
    await cluster.rounds(10)
    assert (set(cluster.pods()), cluster.disks()) == ({"gpu-0"}, {"disk-gpu-0"})
    assert "DRAIN" not in cluster.slurm.words["gpu-0"]
    assert cluster.slurm.requeued == [7]
    assert cluster.ended_with_a_job == []


@pytest.mark.anyio
@pytest.mark.parametrize("allowed", range(KILL_POINTS))
async def test_process_killed_after_any_write_of_a_deletion_is_followed_by_one_that_finishes_it(cluster: Cluster, allowed: int) -> None:
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
