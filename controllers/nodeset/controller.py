"""The whole controller: informers and the poller fill the queue, the reconciler empties it. It also delivers changed files to slurmctld,
and reports their progress in a condition. Only the holder of the lease acts.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import msgspec
import structlog

from controllers.files import delivery, progress
from controllers.nodeset import metrics
from controllers.nodeset.declared import DeclaredSets
from controllers.nodeset.looks import STALE_S
from controllers.nodeset.observe import machine
from controllers.nodeset.pods import claim_ordinal, claim_stem
from controllers.nodeset.reconcile import Reconciler
from controllers.nodeset.rounds import SWEEP_S, World
from controllers.nodeset.settings import Settings
from controllers.nodeset.structs import NODESETS, SLURM_NODES, NodeSetObject, SlurmNode
from controllers.nodeset.writes.windows import release_orphans
from controllers.runtime import holders, program, serve
from controllers.runtime.api import Api
from controllers.runtime.clock import SYSTEM, Clock
from controllers.runtime.errors import ApiError
from controllers.runtime.expectations import Expectations
from controllers.runtime.informer import DEAF_S, Informer
from controllers.runtime.lease import Election
from controllers.runtime.queue import WorkQueue
from controllers.runtime.server_clock import ServerClock
from controllers.runtime.structs import CLAIMS, CONFIG_MAPS, KUBE_NODES, PODS, Key, KubeNode, Lease, PartialObject, Pod, Unread
from controllers.runtime.writer import Writer
from controllers.slurm.client import SlurmClient
from controllers.slurm.snapshot import Poller
from names import labels
from slurm.check_results import FAILURE
from slurm.states import is_waking

WORKERS = 4
"""Sets that are worked on side by side."""
GATHER_S = 0.02
"""Seconds for which changes of pods are gathered: a thousand pods that start must not cause a thousand rounds."""

log = structlog.get_logger()


def nodeset_of(item: Pod | PartialObject | SlurmNode) -> Iterable[Key]:
    """The set that an object belongs to, by its label."""
    name = item.metadata.labels.get(labels.NODESET)
    return [(item.metadata.namespace, name)] if name else []


def stem_of(item: PartialObject) -> Iterable[Key]:
    """Where claims of one template are found, whoever made them."""
    return [(item.metadata.namespace, claim_stem(item.metadata.name))]


def _words_of(node: KubeNode) -> tuple[object, ...]:
    """What other programs say of a machine."""
    return node.spec.taints, node.status.conditions


CLAIM_INDEXES = {"nodeset": nodeset_of, "stem": stem_of}


class _Spec(msgspec.Struct):
    cluster: Any = ""


class _WithCluster(msgspec.Struct):
    spec: _Spec


def cluster_of(unread: Unread) -> str:
    """The cluster that an undecodable set names; empty if that cannot be read either."""
    try:
        cluster = msgspec.json.decode(unread.raw, type=_WithCluster).spec.cluster
    except msgspec.DecodeError:
        return ""
    return cluster if isinstance(cluster, str) else ""


class Controller:
    """All sets of one Slurm cluster."""

    def __init__(self, settings: Settings, api: Api, slurm: SlurmClient, clock: Clock = SYSTEM) -> None:
        server = ServerClock(clock.wall)
        api.on_date, clock = server.note, replace(clock, wall=server.now)
        self._settings, self._api, self._clock = settings, api, clock
        namespace, ours = settings.namespace, f"{labels.CLUSTER}={settings.cluster},{labels.NODESET}"
        by_set = {"nodeset": nodeset_of}
        container = f"{settings.identity}_"
        lease = namespace, f"{settings.cluster}-nodeset-controller"
        self.election = Election(api, lease, f"{container}{uuid4()}", container=container, clock=clock, has_ended=self._has_ended)
        self.queue: WorkQueue[Key] = WorkQueue("nodesets", clock=clock)
        self.nodesets = Informer(api, NODESETS, namespace=namespace, clock=clock)
        self.pods = Informer(api, PODS, namespace=namespace, labels=ours, indexes=by_set, clock=clock)
        self.machines = Informer(api, KUBE_NODES, clock=clock)
        self.pins = Informer(api, CONFIG_MAPS, namespace=namespace, labels=ours, clock=clock)
        self.claims = Informer(api, CLAIMS, namespace=namespace, indexes=CLAIM_INDEXES, clock=clock)
        self.slurm_nodes = Informer(api, SLURM_NODES, namespace=namespace, labels=ours, indexes=by_set, clock=clock)
        """Its changes queue no round, as this process makes them."""
        of_cluster = f"{labels.CLUSTER}={settings.cluster}"
        control_plane = f"{of_cluster},{delivery.COMPONENT}"
        self.files = Informer(api, CONFIG_MAPS, namespace=namespace, labels=control_plane, clock=clock)
        self.slurmctld = Informer(api, progress.DAEMON_PODS, namespace=namespace, labels=control_plane, clock=clock)
        self.accounts = Informer(api, CONFIG_MAPS, namespace=namespace, labels=f"{of_cluster},{delivery.ACCOUNTS_FILES}", clock=clock)
        self.slurmdbd = Informer(api, progress.DAEMON_PODS, namespace=namespace, labels=f"{of_cluster},{delivery.ACCOUNTS}", clock=clock)
        self.expectations: Expectations[Key] = Expectations(clock=clock)
        self.is_slurm_silent = True
        """As every set was last told."""
        self._unsettled: set[Key] = set()
        """Sets that may want something of Slurm soon: all but fixed sets whose last round found nothing to do before the next sweep."""
        self.poller = Poller(
            slurm,
            clock.now,
            self._slurm_changed,
            wants_jobs=lambda: self.reconciler.wants_jobs,
            wants_reservations=self._wants_reservations,
            is_at_rest=self._is_at_rest,
        )
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
                self.pins,
                self.claims,
                self.slurm_nodes,
                slurm,
                self.poller,
                self.writer,
                self.expectations,
                clock,
                settings.identity,
                held=lambda: self.progress.held,
                may_write=self.election.is_held,
                ec2=settings.ec2,
            )
        )
        self.declared = DeclaredSets(self.nodesets, self.pins, api, self.writer, clock)
        self.delivery = delivery.FileDelivery("slurmctld", self.files, self.slurmctld, self.writer, clock)
        self.accounts_delivery = delivery.FileDelivery("slurmdbd", self.accounts, self.slurmdbd, self.writer, clock)
        self.progress = progress.FileProgress(
            self.files, self.slurmctld, self.writer, clock, settings.identity, held_changed=self._add_sets_of
        )
        self._informers = {
            "nodesets": self.nodesets,
            "pods": self.pods,
            "machines": self.machines,
            "places": self.pins,
            "claims": self.claims,
            "slurm nodes": self.slurm_nodes,
            "files": self.files,
            "slurmctld": self.slurmctld,
            "accounts": self.accounts,
            "slurmdbd": self.slurmdbd,
        }
        self.nodesets.on_change(self._nodeset_changed)
        self.nodesets.on_unread(self._nodeset_unread)
        self.pods.on_change(self._pod_changed)
        self.claims.on_change(self._claim_changed)
        self.machines.on_change(self._machine_changed)

    async def run(self, stop: asyncio.Event | None = None) -> int:
        """The process's exit code; see `program.run`."""
        live = {name: self._deafness(informer) for name, informer in self._informers.items()}
        ready = {name: self._unsynced(informer) for name, informer in self._informers.items()}
        try:
            async with serve.served(self._settings, live=live, ready=ready):
                return await program.run(
                    {f"informer of {name}": informer.run for name, informer in self._informers.items()},
                    {
                        "slurm": self.poller.run,
                        "silence": self._watch_silence,
                        "orphaned reservations": self._release_orphans,
                        "reconcile": self._reconcile_all,
                        "declared": self.declared.run,
                        "files": self.delivery.run,
                        "accounts": self.accounts_delivery.run,
                        "progress of files": self.progress.run,
                    },
                    election=self.election,
                    stop=stop,
                )
        finally:
            await self._api.close()

    async def _has_ended(self, lease: Lease) -> bool:
        return await holders.has_ended(self._api, self._settings.namespace, lease, "controller")

    def _nodeset_changed(self, old: NodeSetObject | None, new: NodeSetObject | None) -> None:
        item = new or old
        if item is not None and item.spec.cluster == self._settings.cluster:
            self.queue.add(item.metadata.key)

    def _nodeset_unread(self, unread: Unread) -> None:
        """Queues a set that may be of this cluster: its status must say that it cannot be read."""
        if cluster_of(unread) in ("", self._settings.cluster):
            self.queue.add(unread.metadata.key)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        for item in (new, old):
            for key in nodeset_of(item) if item is not None else ():
                self.expectations.seen(key, old, new)
                self.queue.add_after(key, GATHER_S)

    def _claim_changed(self, old: PartialObject | None, new: PartialObject | None) -> None:
        """A claim that is gone, or has another owner, may have held a pod up."""
        if old is not None and (new is None or old.metadata.owner_references != new.metadata.owner_references):
            keys = self.nodesets.store.keys()
            for key in {*nodeset_of(old), *(key for key in keys if claim_ordinal(key[1], old.metadata.name) is not None)}:
                self.queue.add_after(key, GATHER_S)

    def _machine_changed(self, old: KubeNode | None, new: KubeNode | None) -> None:
        """Most changes of a machine, such as of its images, concern no set."""
        if old is None or new is None or machine(old) != machine(new) or _words_of(old) != _words_of(new):
            self._add_all()

    def _slurm_changed(self, names: frozenset[str]) -> None:
        snapshot = self.poller.snapshot
        now = self._clock.now()
        self._add_sets_of(names)
        for name in names:
            node = snapshot.nodes.get(name) if snapshot is not None else None
            self.reconciler.note_waking(name, node is not None and is_waking(node.state), now)

    def _add_sets_of(self, names: frozenset[str]) -> None:
        for nodeset in {name.rpartition("-")[0] for name in names}:
            self._add((self._settings.namespace, nodeset))

    def _add(self, key: Key) -> None:
        nodeset = self.nodesets.get(key)
        if nodeset is not None and nodeset.spec.cluster == self._settings.cluster:
            self.queue.add(key)

    def _add_all(self) -> None:
        for key in list(self.nodesets.store.keys()):
            self._add(key)

    def _is_at_rest(self) -> bool:
        return not self._unsettled and len(self.queue) == 0

    def _wants_reservations(self) -> bool:
        """For windows of maintenance, and because a check looks at failing nodes in reservations."""
        snapshot = self.poller.snapshot
        are_failing = snapshot is not None and any(FAILURE in node.extra for node in snapshot.nodes.values())
        sets = self.nodesets.store.values()
        return are_failing or any(nodeset.spec.update_strategy.reservation or nodeset.awaits_checks for nodeset in sets)

    async def _reconcile_all(self) -> None:
        for informer in self._informers.values():
            if informer is not self.slurm_nodes:  # pods do not wait for a report, as where the kind SlurmNode is not known yet
                await informer.synced.wait()
        self._add_all()
        await self.queue.run(self._reconcile, WORKERS)

    async def _reconcile(self, key: Key) -> None:
        nodeset = self.nodesets.get(key)
        if nodeset is not None and nodeset.spec.cluster != self._settings.cluster:
            return
        self._unsettled.add(key)
        try:
            with metrics.RECONCILE_SECONDS.time():
                following = await self.reconciler.reconcile(key)
        except ApiError as error:
            log.warning("round failed", nodeset=key[1], error=str(error), again_s=self.queue.add_backed_off(key))
            return
        except Exception as error:  # a set that nobody thought of must not end the rounds of all others
            log.exception("round failed", nodeset=key[1], again_s=self.queue.add_backed_off(key))
            await self.reconciler.report_defect(key, error)
            return
        if following.has_failed:
            self.queue.add_backed_off(key)
        else:
            self.queue.forget(key)
        if nodeset is None or (following.seconds >= SWEEP_S and not following.has_failed and not nodeset.spec.is_elastic):
            self._unsettled.discard(key)
        if nodeset is not None:
            self.queue.add_after(key, following.seconds)

    async def _watch_silence(self) -> None:
        """Looks at every set at once when Slurm falls silent, and when it speaks again."""
        metrics.SLURM_AGE.set_function(self.poller.age_s)
        while True:
            age = self.poller.age_s()
            if (age > STALE_S) != self.is_slurm_silent:
                self.is_slurm_silent = not self.is_slurm_silent
                log.info("Slurm is silent" if self.is_slurm_silent else "Slurm answers", error=self.poller.error)
                self._add_all()
            # Slurm cannot fall silent before then. At rest, waking up each second would be a tenth of what this process takes.
            await self._clock.sleep(max(1.0, STALE_S - age))

    async def _release_orphans(self) -> None:
        while True:
            await release_orphans(self.reconciler.world)
            await self._clock.sleep(SWEEP_S)

    @staticmethod
    def _deafness(informer: Informer[Any]) -> serve.Check:
        def check() -> str:
            silent = informer.silent_s()
            return f"nothing heard for {silent:.0f} s" if informer.synced.is_set() and silent > DEAF_S else ""

        return check

    @staticmethod
    def _unsynced(informer: Informer[Any]) -> serve.Check:
        return lambda: "" if informer.synced.is_set() else "not listed yet"
