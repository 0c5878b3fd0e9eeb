"""A node set in memory: an API server on loopback, a Slurm of words and reasons, kubelets, and a controller process that can be ended."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Any

from controllers.nodeset.controller import CLAIM_INDEXES, nodeset_of
from controllers.nodeset.reconcile import Reconciler
from controllers.nodeset.rounds import World
from controllers.nodeset.schedule import Next
from controllers.nodeset.structs import NODESETS, SLURM_NODES
from controllers.runtime.api import connect
from controllers.runtime.clock import Clock
from controllers.runtime.expectations import Expectations
from controllers.runtime.informer import Informer
from controllers.runtime.structs import CLAIMS, CONFIG_MAPS, KUBE_NODES, PODS, Key, Resource
from controllers.runtime.writer import Writer
from controllers.slurm.client import NodeUpdate, SlurmClient, SlurmRefused, SlurmUnreachable
from controllers.slurm.snapshot import Poller
from controllers.slurm.structs import Job, Jobs, Node, Nodes, Number, Reservation, Reservations
from names import annotations
from slurm.reasons import BEFORE_JOBS, NOT_RESPONDING, is_drain_of_a_pod
from tests.support.fakes.clock import eventually
from tests.support.fakes.kubernetes import FakeKubernetes
from tests.support.fakes.requests import Failure
from tests.support.patience import patience

KEY: Key = ("slurm", "gpu")
READY = [{"type": "Ready", "status": "True"}]
RUNNING: list[dict[str, Any]] = [{"name": "slurmd", "ready": True, "state": {"running": {}}}]


class MemorySlurm(SlurmClient):
    """Nodes by name, as their words and a reason; a job occupies a node until it ends."""

    @property
    def can_requeue(self) -> bool:
        return True

    def __init__(self) -> None:
        self.words: dict[str, set[str]] = {}
        self.reasons: dict[str, str] = {}
        self.extras: dict[str, str] = {}
        """What health checks have written."""
        self.jobs_on: dict[str, int] = {}
        self.ends_at: dict[str, float] = {}
        """When the job on a node ends at the latest, where it has a limit."""
        self.is_silent = False
        self.has_no_jobs_list = False
        """It answers, and does not list its jobs."""
        self.on_write: Callable[[], Failure | None] | None = None
        """Asked before each write; a failure breaks the connection before or after it."""
        self.after_reading: Callable[[], Awaitable[object]] | None = None
        """Awaited when an answer has been put together, and before it is given."""
        self.requeued: list[str] = []
        self.cancelled: list[str] = []
        """Nodes whose jobs were cancelled."""
        self.lost: list[int] = []
        """Jobs that ended because their node was drained before it was up."""
        self.not_batch: set[int] = set()
        self.updates: list[tuple[str, tuple[str, ...]]] = []
        self.reserved: dict[str, tuple[str, int]] = {}
        """Node and begin of each reservation."""

    async def nodes(self, since: float | None = None) -> Nodes | None:
        self._answer()
        found = tuple(
            Node(
                name,
                words=tuple(sorted(words)),
                reason=self.reasons.get(name, ""),
                extra=self.extras.get(name, ""),
            )
            for name, words in self.words.items()
        )
        if self.after_reading is not None:
            await self.after_reading()
        return Nodes(nodes=found, last_update=Number(True, False, 1))

    async def jobs(self) -> Jobs:
        self._answer()
        if self.has_no_jobs_list:
            raise SlurmUnreachable("too many of them")
        return Jobs(
            jobs=tuple(
                Job(number, ("RUNNING",), name, self._end_of(name), batch_flag=number not in self.not_batch)
                for name, number in self.jobs_on.items()
            )
        )

    def _end_of(self, name: str) -> Number:
        return Number(name in self.ends_at, False, self.ends_at.get(name, 0))

    async def reservations(self) -> Reservations:
        self._answer()
        return Reservations(
            reservations=tuple(Reservation(name, Number(True, False, at), node_list=node) for name, (node, at) in self.reserved.items())
        )

    async def reserve(self, name: str, node: str, start: int, comment: str) -> None:
        self._answer()
        with self._write():
            if name in self.reserved and self.reserved[name][1] <= time.time():
                raise SlurmRefused(f"reservation {name} has started already")
            self.reserved[name] = node, start

    async def release(self, name: str) -> None:
        self._answer()
        with self._write():
            self.reserved.pop(name, None)

    async def update_nodes(self, names: Iterable[str], state: NodeUpdate, reason: str | None = None) -> None:
        self._answer()
        with self._write():
            self._update(tuple(names), state, reason)

    def _update(self, names: tuple[str, ...], state: NodeUpdate, reason: str | None) -> None:
        self.updates.append((state, names))
        for name in names:
            words = self.words[name]
            if state == "DRAIN":
                if name in self.jobs_on and words & {"POWERING_UP", "POWERED_DOWN"}:
                    self.lost.append(self.jobs_on.pop(name))  # NODE_FAIL for srun, --no-requeue and several nodes
                    self.words[name] = words = (words - {"ALLOCATED", "MIXED"}) | {"IDLE"}
                words.add("DRAIN")
                self.reasons[name] = reason or ""
            elif state == "RESUME" and "POWERING_DOWN" in self.words[name]:  # measured: a drain goes with it
                self.words[name] = (self.words[name] - {"DRAIN", "POWERING_DOWN"}) | {"POWERED_DOWN"}
                self.reasons[name] = ""
            elif state == "UNDRAIN":
                words -= {"DRAIN"}
                self.reasons[name] = self.reasons.get(name, "") if "DOWN" in words else ""
            elif state == "RESUME" and "POWERED_DOWN" in words:
                self.words[name], self.reasons[name] = {"IDLE", "CLOUD", "POWERED_DOWN"}, ""
            else:
                words -= {"DRAIN", "DOWN"}
                words |= {"ALLOCATED"} if name in self.jobs_on else {"IDLE"}
                self.reasons[name] = ""

    async def release_nodes(self, names: Iterable[str]) -> None:
        await self.update_nodes([name for name in names if "POWERING_DOWN" in self.words[name]], "RESUME")

    async def requeue_jobs(self, ids: Iterable[str]) -> None:
        self._answer()
        with self._write():
            self.requeued.extend(ids)
            if refused := {str(one) for one in self.not_batch} & set(self.requeued):
                raise SlurmRefused(f"Requeue JobId={min(refused)} failed (2039 Only batch jobs are accepted or processed)")
            for name in [name for name, number in self.jobs_on.items() if str(number) in self.requeued]:
                self.end_job(name)

    async def cancel_jobs(self, nodes: Iterable[str]) -> None:
        self._answer()
        with self._write():
            for name in nodes:
                self.cancelled.append(name)
                if name in self.jobs_on:
                    self.end_job(name)

    @contextlib.contextmanager
    def _write(self) -> Generator[None]:
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

    def wake(self, name: str, number: int) -> None:
        """A job is given a node that is powered down."""
        self.jobs_on[name] = number
        self.words[name] = {"MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"}

    def fall_silent(self, name: str) -> None:
        """The machine of a node dies, under a job or not: SlurmdTimeout later the node is down, SuspendTime later powered down."""
        self.jobs_on.pop(name, None)
        self.words[name] = {"DOWN", "CLOUD", "POWERED_DOWN"} | self.words[name] & {"DRAIN"}
        self.reasons[name] = f"{self.reasons[name]} : {NOT_RESPONDING}" if self.reasons.get(name) else NOT_RESPONDING

    def register(self, name: str, has_checks_before_jobs: bool = False) -> None:
        """What a worker's start does: the drains of its pod lifted, or one of its own made, then slurmd registers. From power saving that
        clears the reason, which the worker restores."""
        if has_checks_before_jobs:
            if "DRAIN" not in self.words[name] or is_drain_of_a_pod(self.reasons.get(name, "")):
                self.words[name].add("DRAIN")
                self.reasons[name] = BEFORE_JOBS
            reason = self.reasons[name]
            self.answer(name)
            self.reasons[name] = reason
            return
        if is_drain_of_a_pod(self.reasons.get(name, "")):
            self.words[name].discard("DRAIN")
            self.reasons[name] = ""
        self.answer(name)

    def answer(self, name: str) -> None:
        """slurmd registers."""
        if self.words[name] & {"POWERED_DOWN", "POWERING_UP", "DOWN"}:
            self.reasons[name] = ""
        self.words[name] -= {"POWERED_DOWN", "POWERING_UP", "NOT_RESPONDING", "DOWN", "MIXED"}
        self.words[name] |= {"ALLOCATED"} if name in self.jobs_on else {"IDLE"}


class Process:
    """One controller process: its informers, what it remembers, and its reconciler."""

    def __init__(self, server: FakeKubernetes, slurm: MemorySlurm) -> None:
        self.later_s = 0.0
        """How much later it is than on the machine's clock."""
        slow = patience()  # no reading of Slurm grows old because the machine is busy
        clock = Clock(now=lambda: time.monotonic() / slow + self.later_s, wall=lambda: time.time() + self.later_s)
        self.api = connect(server.config())
        self.server = server
        by_set = {"nodeset": nodeset_of}
        self.nodesets = Informer(self.api, NODESETS, namespace="slurm")
        self.pods = Informer(self.api, PODS, namespace="slurm", indexes=by_set)
        self.machines = Informer(self.api, KUBE_NODES)
        self.pins = Informer(self.api, CONFIG_MAPS, namespace="slurm")
        self.claims = Informer(self.api, CLAIMS, namespace="slurm", indexes=CLAIM_INDEXES)
        self.slurm_nodes = Informer(self.api, SLURM_NODES, namespace="slurm", indexes=by_set)
        self.informers = (self.nodesets, self.pods, self.machines, self.pins, self.claims, self.slurm_nodes)
        self.expectations: Expectations[Key] = Expectations()
        self.pods.on_change(lambda old, new: self.expectations.seen(KEY, old, new))
        self.poller = Poller(slurm, clock.now, wants_jobs=lambda: self.reconciler.wants_jobs, wants_reservations=lambda: True)
        self.leads = True
        writer = Writer(self.api, rate_per_s=10_000, burst=10_000, may_write=lambda: self.leads)
        world = slurm, self.poller, writer, self.expectations, clock
        self.world = World(*self.informers, *world, may_write=lambda: self.leads)
        self.reconciler = Reconciler(self.world)
        self.tasks = [asyncio.create_task(informer.run()) for informer in self.informers]

    async def caught_up(self) -> None:
        """Waits until the informers hold what the server has."""

        followed: list[tuple[Resource[Any], Informer[Any]]] = [
            *((NODESETS, self.nodesets), (PODS, self.pods), (KUBE_NODES, self.machines), (CONFIG_MAPS, self.pins), (CLAIMS, self.claims)),
            (SLURM_NODES, self.slurm_nodes),
        ]

        def held(informer: Informer[Any]) -> dict[Key, str]:
            return {item.metadata.key: item.metadata.resource_version for item in informer.store.values()}

        def stored(kind: Resource[Any]) -> dict[Key, str]:
            return {key: self.server.get(kind, key)["metadata"]["resourceVersion"] for key in self.server.keys(kind)}

        def same() -> bool:
            return all(informer.synced.is_set() and held(informer) == stored(kind) for kind, informer in followed)

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
        self.place = "machine"
        """Where pods go that ask for no machine."""
        self.refusing: set[str] = set()
        """Machines whose kubelets refuse every pod."""
        self.refusals = 0
        self.machine(self.place)

    def declare(self, image: str = "a", nodes: int = 4, **spec: Any) -> None:
        template = {"metadata": {"labels": {"app": "slurm"}}, "spec": {"containers": [{"name": "slurmd", "image": image}]}}
        labels = {"slipway.dev/cluster": "dev"}
        whole = {"cluster": "dev", "template": template, **spec}
        before = self.server.get(NODESETS, KEY) if KEY in self.server.keys(NODESETS) else {"metadata": {"generation": 0}}
        meta = {"namespace": "slurm", "name": "gpu", "labels": labels, "finalizers": before["metadata"].get("finalizers", [])}
        status = {"status": before["status"]} if "status" in before else {}
        self.server.put(
            NODESETS, {"metadata": {**meta, "generation": before["metadata"].get("generation", 0) + 1}, "spec": whole, **status}
        )
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
            elif not pod.get("status", {}).get("phase") and not pod.get("status", {}).get("conditions"):
                self.start(key, pod)

    def start(self, key: Key, pod: dict[str, Any]) -> None:
        """A pod that a scheduler takes: to the machine that it asks for, or to `place`; onto none that is cordoned. One may refuse it."""
        machine = self.place
        if required := pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution"):
            machine = required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]
        known = ("", machine) in self.server.keys(KUBE_NODES)
        if known and self.server.get(KUBE_NODES, ("", machine)).get("spec", {}).get("unschedulable"):
            return
        self.server.patch(PODS, key, {"spec": {"nodeName": machine}})
        if machine in self.refusing:
            refusal = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no free devices"}
            self.server.patch(PODS, key, {"status": refusal}, "status")
            self.refusals += 1
            return
        status: dict[str, Any] = {"phase": "Running", "conditions": READY, "containerStatuses": RUNNING}
        self.server.patch(PODS, key, {"status": status}, "status")
        self.slurm.register(key[1], pod["metadata"].get("annotations", {}).get("slipway.dev/checked-first") == "true")

    def machine(self, name: str, cordoned: bool = False, words: str = "", ready: bool = True, begins: str = "") -> None:
        """A Kubernetes node as it is now."""
        about = {annotations.REASON: words, annotations.MAINTENANCE_BEGINS: begins}
        about = {key: text for key, text in about.items() if text}
        conditions = [{"type": "Ready", "status": "True" if ready else "Unknown"}]
        self.server.put(
            KUBE_NODES,
            {
                "metadata": {"name": name, "annotations": about},
                "spec": {"unschedulable": cordoned},
                "status": {"conditions": conditions},
            },
        )

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


DISK: dict[str, Any] = {"metadata": {"name": "disk"}, "spec": {"accessModes": ["ReadWriteOnce"]}}


def disks(when_scaled: str, when_deleted: str) -> dict[str, Any]:
    return {"volumeClaimTemplates": [DISK], "volumeClaimRetention": {"whenScaled": when_scaled, "whenDeleted": when_deleted}}
