"""The controller as a whole: informers and the poller fill the queue, the reconciler empties it. Only the holder of the lease acts."""

import asyncio
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

import structlog

from controllers.nodeset import metrics
from controllers.nodeset.reconcile import STALE_S, Reconciler, World
from controllers.nodeset.settings import Settings
from controllers.nodeset.structs import LABEL_CLUSTER, LABEL_NODESET, NODESETS, NodeSet
from controllers.runtime import program, serve
from controllers.runtime.api import Api
from controllers.runtime.clock import SYSTEM, Clock
from controllers.runtime.errors import ApiError
from controllers.runtime.expectations import Expectations
from controllers.runtime.informer import Informer
from controllers.runtime.lease import Election
from controllers.runtime.queue import WorkQueue
from controllers.runtime.structs import CLAIMS, CONFIG_MAPS, KUBE_NODES, PODS, Key, PartialObject, Pod
from controllers.runtime.writer import Writer
from controllers.slurm.client import SlurmClient
from controllers.slurm.snapshot import Poller

WORKERS = 4
"""Sets that are worked on side by side."""
GATHER_S = 0.02
"""News of pods is gathered for so many seconds: a thousand pods that start are not a thousand rounds."""
_DEAF_S = 300.0
"""An informer that has heard nothing for so long makes the process unhealthy: a new one may find the way."""

log = structlog.get_logger()


def nodeset_of(item: Pod | PartialObject) -> Iterable[Key]:
    """The set that an object belongs to, by its label."""
    name = item.metadata.labels.get(LABEL_NODESET)
    return [(item.metadata.namespace, name)] if name else []


class Controller:
    """All sets of one Slurm cluster."""

    def __init__(self, settings: Settings, api: Api, slurm: SlurmClient, clock: Clock = SYSTEM) -> None:
        self._settings, self._api, self._clock = settings, api, clock
        namespace, ours = settings.namespace, f"{LABEL_CLUSTER}={settings.cluster},{LABEL_NODESET}"
        by_set = {"nodeset": nodeset_of}
        self.election = Election(api, (namespace, f"{settings.cluster}-nodeset-controller"), f"{settings.identity}_{uuid4()}", clock=clock)
        self.queue: WorkQueue[Key] = WorkQueue("nodesets", clock=clock)
        self.nodesets = Informer(api, NODESETS, namespace=namespace, clock=clock)
        self.pods = Informer(api, PODS, namespace=namespace, labels=ours, indexes=by_set, clock=clock)
        self.machines = Informer(api, KUBE_NODES, clock=clock)
        self.places = Informer(api, CONFIG_MAPS, namespace=namespace, labels=ours, clock=clock)
        self.claims = Informer(api, CLAIMS, namespace=namespace, labels=ours, indexes=by_set, clock=clock)
        self.expectations: Expectations[Key] = Expectations(clock=clock)
        self.poller = Poller(slurm, clock.now, self._slurm_changed, lambda: self.reconciler.wants_jobs, self._wants_reservations)
        self.writer = Writer(
            api,
            rate_per_s=settings.writes_per_s,
            burst=int(2 * settings.writes_per_s),
            at_once=32,
            may_write=self.election.is_held,
            clock=clock,
        )
        self.reconciler = Reconciler(
            World(
                self.nodesets,
                self.pods,
                self.machines,
                self.places,
                self.claims,
                slurm,
                self.poller,
                self.writer,
                self.expectations,
                clock,
                settings.identity,
            )
        )
        self._informers = {
            "nodesets": self.nodesets,
            "pods": self.pods,
            "machines": self.machines,
            "places": self.places,
            "claims": self.claims,
        }
        self.nodesets.on_change(self._nodeset_changed)
        self.pods.on_change(self._pod_changed)
        self.claims.on_change(self._claim_changed)
        self.machines.on_change(lambda old, new: None if old and new else self._add_all())

    async def run(self, stop: asyncio.Event | None = None) -> int:
        """The process's exit code; see `program.run`."""
        live = {name: self._deafness(informer) for name, informer in self._informers.items()}
        ready = {name: self._unsynced(informer) for name, informer in self._informers.items()}
        server = await serve.start(self._settings.port, live=live, ready=ready)
        try:
            return await program.run(
                {f"informer of {name}": informer.run for name, informer in self._informers.items()},
                {"slurm": self.poller.run, "silence": self._watch_silence, "reconcile": self._reconcile_all},
                election=self.election,
                stop=stop,
            )
        finally:
            server.close()
            await self._api.close()

    def _nodeset_changed(self, old: NodeSet | None, new: NodeSet | None) -> None:
        item = new or old
        if item is not None and item.spec.cluster == self._settings.cluster:
            self.queue.add(item.metadata.key)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        for item in (new, old):
            for key in nodeset_of(item) if item is not None else ():
                self.expectations.seen(key, old, new)
                self.queue.add_after(key, GATHER_S)

    def _claim_changed(self, old: PartialObject | None, new: PartialObject | None) -> None:
        """A claim that is gone may have held a pod up."""
        if old is not None and new is None:
            for key in nodeset_of(old):
                self.queue.add_after(key, GATHER_S)

    def _slurm_changed(self, names: frozenset[str]) -> None:
        snapshot = self.poller.snapshot
        now = self._clock.now()
        for nodeset in {name.rpartition("-")[0] for name in names}:
            self._add((self._settings.namespace, nodeset))
        for name in names:
            node = snapshot.nodes.get(name) if snapshot is not None else None
            self.reconciler.note_waking(name, node is not None and "POWERING_UP" in node.state.flags, now)

    def _add(self, key: Key) -> None:
        nodeset = self.nodesets.get(key)
        if nodeset is not None and nodeset.spec.cluster == self._settings.cluster:
            self.queue.add(key)

    def _add_all(self) -> None:
        for key in list(self.nodesets.store.keys()):
            self._add(key)

    def _wants_reservations(self) -> bool:
        return any(one.spec.update_strategy.reservation for one in self.nodesets.store.values())

    async def _reconcile_all(self) -> None:
        for informer in self._informers.values():
            await informer.synced.wait()
        self._add_all()
        await self.queue.run(self._reconcile, WORKERS)

    async def _reconcile(self, key: Key) -> None:
        nodeset = self.nodesets.get(key)
        if nodeset is not None and nodeset.spec.cluster != self._settings.cluster:
            return
        try:
            following = await self.reconciler.reconcile(key)
        except ApiError as error:
            log.warning("round failed", nodeset=key[1], error=str(error), again_s=self.queue.add_backed_off(key))
            return
        if following.has_failed:
            self.queue.add_backed_off(key)
        else:
            self.queue.forget(key)
        if nodeset is not None:
            self.queue.add_after(key, following.seconds)

    async def _watch_silence(self) -> None:
        """Looks at every set at once when Slurm falls silent, and when it speaks again."""
        was_silent = True
        while True:
            age = self.poller.age_s()
            metrics.SLURM_AGE.set(age)
            if (age > STALE_S) != was_silent:
                was_silent = not was_silent
                log.info("Slurm is silent" if was_silent else "Slurm answers", error=self.poller.error)
                self._add_all()
            await self._clock.sleep(1)

    @staticmethod
    def _deafness(informer: Informer[Any]) -> serve.Check:
        def check() -> str:
            silent = informer.silent_s()
            return f"nothing heard for {silent:.0f} s" if informer.synced.is_set() and silent > _DEAF_S else ""

        return check

    @staticmethod
    def _unsynced(informer: Informer[Any]) -> serve.Check:
        return lambda: "" if informer.synced.is_set() else "not listed yet"
