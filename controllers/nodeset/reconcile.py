"""Carries plans out, one set at a time. Thin: every decision is in `plan`, every word for people in `status`.

A round may be killed between any two writes: the next one looks again and goes on. What could hurt a job is only done from a reading of
Slurm that was asked for after the round began. First comes what protects jobs, then what adds, then what takes away, last what tells.
"""

from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from controllers.nodeset import metrics
from controllers.nodeset import pods as build
from controllers.nodeset.events import build_events
from controllers.nodeset.observe import observe
from controllers.nodeset.plan import GHOST_PAUSE_S, Plan, plan
from controllers.nodeset.retries import Retries
from controllers.nodeset.status import Silence, status
from controllers.nodeset.structs import FINALIZER, LABEL_BUSY, LABEL_CLUSTER, LABEL_NODESET, NODESETS, NodeSet
from controllers.nodeset.workers import Observed
from controllers.runtime.clock import Clock
from controllers.runtime.errors import ApiError, Conflict, NotFound
from controllers.runtime.expectations import Expectations
from controllers.runtime.informer import Informer
from controllers.runtime.structs import BUDGETS, CLAIMS, CONFIG_MAPS, EVENTS, PODS, ConfigMap, Key, KubeNode, PartialObject, Pod
from controllers.runtime.writer import Deletion, Patch, Writer
from controllers.slurm.client import SlurmClient, SlurmError
from controllers.slurm.snapshot import Poller, Snapshot

SWEEP_S = 30.0
"""Every set is looked at again after so many seconds, whatever was heard. Law 7."""
FRESH_S = 10.0
"""No pod is deleted on a reading that is older, in seconds."""
TAKEN_S = 30.0
"""A pod that is there, by the API server's word, and is not heard of for so many seconds has lost its labels, or is somebody else's."""
STALE_S = 15.0
"""A reading of Slurm that is older, in seconds, is no reading."""
SOON_S = 0.5
"""While something is under way, the next look comes so many seconds later at the latest."""

log = structlog.get_logger()


@dataclass
class World:
    """Where a round looks, and how it writes."""

    nodesets: Informer[NodeSet]
    pods: Informer[Pod]
    """With an index `nodeset`: (namespace, name of the set)."""
    machines: Informer[KubeNode]
    places: Informer[ConfigMap]
    """The records of pinned sets."""
    claims: Informer[PartialObject]
    """With an index `nodeset`, as the pods."""
    slurm: SlurmClient
    poller: Poller
    writer: Writer
    expectations: Expectations[Key]
    clock: Clock
    identity: str = "slipway"
    """Which process tells events."""
    retries: Retries = field(default_factory=Retries)


@dataclass
class _Round:
    """One set in one round, and what went wrong in it."""

    key: Key
    nodeset: NodeSet
    errors: list[str] = field(default_factory=list[str])
    has_no_reading: bool = False
    """Slurm was asked for a fresh one, and gave none."""
    asked_at: float = float("-inf")
    """When the reading was asked for that the plan stands on, on the clock."""

    async def attempt(self, what: str, write: Awaitable[object]) -> None:
        """One write; an error is noted for the status, and the round goes on with what does not depend on it."""
        try:
            await write
        except (ApiError, SlurmError) as error:
            self.fail(what, error)

    def fail(self, what: str, error: Exception) -> None:
        """Notes an error."""
        self.errors.append(f"{what}: {error}")
        log.warning("failed", nodeset=self.nodeset.metadata.name, what=what, error=str(error))

    def fail_any(self, what: str, results: Iterable[object]) -> bool:
        """Notes the first error of a batch, and says whether there was one: an object that is there or gone already is what was wanted."""
        for result in results:
            if isinstance(result, ApiError) and not isinstance(result, (Conflict, NotFound)):
                self.fail(what, result)
                return True
        return False


@dataclass(frozen=True)
class Next:
    """When to look at a set again."""

    seconds: float
    has_failed: bool = False
    """Something was refused or not answered: wait longer each time."""


class Reconciler:
    """Brings one set after the other a step nearer to what it should be."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._budgets: dict[Key, tuple[str, bool, float]] = {}
        """The disruption budget of each set as it was last applied: uid of the set, whether all pods count as busy, and when."""
        self._ghosts: dict[Key, tuple[float, int]] = {}
        """Of each set with ghosts: when some were last removed, on the clock, and how many go at once. A new leader has none."""
        self._waking: dict[str, float] = {}
        """Nodes that wait for a pod, and since when on the clock."""
        self._taken: dict[Key, dict[int, float]] = {}
        """Of each set, ordinals whose pods were there already when they were to be made: since when, on the clock."""
        self._wanting_jobs: set[Key] = set()
        """Sets whose last plan asked for the jobs on their nodes."""

    @property
    def wants_jobs(self) -> bool:
        """True while a set wants the list of jobs to be read."""
        return bool(self._wanting_jobs)

    async def reconcile(self, key: Key) -> Next:
        """One round for one set. Raises ApiError when nothing could be told."""
        world = self._world
        nodeset = world.nodesets.get(key)
        if nodeset is None:
            world.expectations.forget(key)
            self._budgets.pop(key, None)
            self._ghosts.pop(key, None)
            self._taken.pop(key, None)
            self._wanting_jobs.discard(key)
            world.retries.drop(key)
            return Next(SWEEP_S)
        this = _Round(key, nodeset)
        if FINALIZER not in nodeset.metadata.finalizers:
            if nodeset.metadata.deletion_timestamp is not None:
                return Next(SWEEP_S)
            await world.writer.patch(NODESETS, key, _finalizers(nodeset, [*nodeset.metadata.finalizers, FINALIZER]))
        observed, decided = await self._decide(this)
        await self._protect(this, observed, decided)
        await self._change_slurm(this, decided)
        await self._create(this, decided)
        if not decided.ghost_lot and observed.nodes is not None:
            self._ghosts.pop(key, None)
        await self._delete(this, observed, decided)
        await self._mark(this, decided.mark_free, "false")
        await self._record_places(this, observed)
        await self._drop_claims(this, frozenset(decided.retire))
        await self._tell(this, observed, decided)
        if decided.done:
            await self._finish(this, observed)
        self._count(key, observed, decided)
        if (decided.needs_fresh_reading or decided.create or this.has_no_reading) and not this.errors:
            return Next(SOON_S)
        again_s = self._ghost_pause_s(key) if decided.ghosts_left else SWEEP_S
        return Next(min(SWEEP_S, again_s, decided.late_in_s, world.retries.next_s(key, world.clock.now())), bool(this.errors))

    def note_waking(self, name: str, is_waking: bool, now: float) -> None:
        """Slurm wants that node up, or does no longer."""
        if is_waking:
            self._waking.setdefault(name, now)
        else:
            self._waking.pop(name, None)

    async def _decide(self, this: _Round) -> tuple[Observed, Plan]:
        """A plan that may be carried out: where it could hurt a job, made from a reading that was asked for just now."""
        world = self._world
        snapshot = world.poller.snapshot if world.poller.age_s() <= STALE_S else None
        observed = self._observe(this, snapshot)
        decided = plan(this.nodeset, observed)
        if decided.needs_jobs:
            self._wanting_jobs.add(this.key)
        else:
            self._wanting_jobs.discard(this.key)
        if not decided.needs_fresh_reading:
            return observed, decided
        try:
            snapshot = await world.poller.fresh()
            this.asked_at = snapshot.asked_at
        except SlurmError as error:
            log.info("no fresh reading, so nothing is taken away", nodeset=this.nodeset.metadata.name, error=str(error))
            snapshot, this.has_no_reading = None, True
        observed = self._observe(this, snapshot)
        return observed, plan(this.nodeset, observed)

    def _observe(self, this: _Round, snapshot: Snapshot | None) -> Observed:
        world = self._world
        name = this.nodeset.metadata.name
        creating = (build.ordinal_of(name, one) for one in world.expectations.creating(this.key))
        observed = observe(
            this.nodeset,
            world.pods.by_index("nodeset", this.key),
            snapshot,
            world.clock.wall(),
            on_their_way=frozenset(one for one in creating if one is not None),
            held_back=world.retries.held(this.key, world.clock.now()),
            window_open=self._window_is_open(this.nodeset, snapshot),
            deleting=world.expectations.deleting(this.key),
            claims=world.claims.by_index("nodeset", this.key),
            ghosts_due=self._ghost_pause_s(this.key) <= 0,
            ghost_lot=self._ghosts.get(this.key, (0.0, 0))[1],
            can_requeue=world.slurm.can_requeue,
        )
        if snapshot is None:
            return observed  # nothing is known of who is down, or came up
        world.retries.note(this.key, (one.ordinal for one in observed.workers() if one.has_failed_to_resume), world.clock.now())
        world.retries.forget(this.key, (one.ordinal for one in observed.workers() if one.is_registered))
        return observed

    def _ghost_pause_s(self, key: Key) -> float:
        """Seconds until more ghosts of a set may go."""
        return self._ghosts.get(key, (float("-inf"), 0))[0] + GHOST_PAUSE_S - self._world.clock.now()

    def _window_is_open(self, nodeset: NodeSet, snapshot: Snapshot | None) -> bool:
        name, now = nodeset.spec.update_strategy.reservation, self._world.clock.wall()
        if snapshot is None or name is None:
            return False
        return any(
            one.name == name and (one.start_time.value or 0) <= now < (one.end_time.value or float("inf")) for one in snapshot.reservations
        )

    async def _protect(self, this: _Round, observed: Observed, decided: Plan) -> None:
        """Before anything else: what may run a job must not be evicted."""
        unknown = observed.nodes is None
        uid, now = this.nodeset.metadata.uid, self._world.clock.now()
        # Applied again at each sweep: whoever has deleted or changed it leaves the jobs unprotected no longer than that.
        applied_uid, was_unknown, applied_at = self._budgets.get(this.key, ("", False, 0.0))
        is_applied = (applied_uid, was_unknown) == (uid, unknown) and now - applied_at < SWEEP_S
        if not is_applied and not decided.done:
            try:
                await self._world.writer.apply(BUDGETS, build.build_disruption_budget(this.nodeset, unknown))
                self._budgets[this.key] = (uid, unknown, now)
            except ApiError as error:
                this.fail("disruption budget", error)
        await self._mark(this, decided.mark_busy, "true")

    async def _mark(self, this: _Round, ordinals: Iterable[int], busy: str) -> None:
        change = {"metadata": {"labels": {LABEL_BUSY: busy}}}
        patches = [Patch(self._pod_key(this, ordinal), change) for ordinal in ordinals]
        this.fail_any("label of a pod", await self._world.writer.patch_many(PODS, patches))

    async def _change_slurm(self, this: _Round, decided: Plan) -> None:
        slurm = self._world.slurm
        for reason, ordinals in decided.drain.items():
            log.info("draining", nodeset=this.nodeset.metadata.name, nodes=self._text(this, ordinals), reason=reason)
            await this.attempt("drain", slurm.update_nodes(self._names(this, ordinals), "DRAIN", reason))
        if decided.undrain:
            log.info("lifting our drain", nodeset=this.nodeset.metadata.name, nodes=self._text(this, decided.undrain))
            await this.attempt("undrain", slurm.update_nodes(self._names(this, decided.undrain), "UNDRAIN"))
        if decided.resume:
            log.info("trying again", nodeset=this.nodeset.metadata.name, nodes=self._text(this, decided.resume))
            await this.attempt("resume", slurm.update_nodes(self._names(this, decided.resume), "RESUME"))
        if decided.requeue:
            log.warning("requeueing jobs past the drain deadline", nodeset=this.nodeset.metadata.name, jobs=decided.requeue)
            await this.attempt("requeue", slurm.requeue_jobs(decided.requeue))
        if decided.cancel:
            log.warning(
                "cancelling jobs past the drain deadline", nodeset=this.nodeset.metadata.name, nodes=self._text(this, decided.cancel)
            )
            await this.attempt("cancel", slurm.cancel_jobs(self._names(this, decided.cancel)))

    async def _create(self, this: _Round, decided: Plan) -> None:
        world, nodeset = self._world, this.nodeset
        taken = self._taken.pop(this.key, {})
        claims = [claim for ordinal in (*decided.claim, *decided.create) for claim in build.build_claims(nodeset, ordinal)]
        if this.fail_any("volume claim", await world.writer.create_many(CLAIMS, claims)) or not decided.create:
            return
        places = self._places(this)
        manifests = [build.build_pod(nodeset, ordinal, places.get(ordinal)) for ordinal in decided.create]
        for ordinal in decided.create:
            world.expectations.expect_created(this.key, build.node_name(nodeset.metadata.name, ordinal))
        log.info("making pods", nodeset=nodeset.metadata.name, pods=self._text(this, decided.create))
        results = await world.writer.create_many(PODS, manifests)
        for ordinal, result in zip(decided.create, results, strict=True):
            if isinstance(result, ApiError) and result.result != "unreachable":
                world.expectations.withdraw(this.key, build.node_name(nodeset.metadata.name, ordinal))
            elif not isinstance(result, ApiError):
                metrics.PODS_CREATED.inc()
                since = self._waking.pop(build.node_name(nodeset.metadata.name, ordinal), None)
                if since is not None:
                    metrics.POWER_UP_SECONDS.observe(world.clock.now() - since)
        if not this.fail_any("pod", results):
            now = world.clock.now()
            there = [
                ordinal
                for ordinal, one in zip(decided.create, results, strict=True)
                if isinstance(one, Conflict) and one.reason == "AlreadyExists"
            ]
            self._note_taken(this, {ordinal: taken.get(ordinal, now) for ordinal in there})

    def _note_taken(self, this: _Round, taken: dict[int, float]) -> None:
        """Pods that are there already, and since when. For a moment that is news on its way; then a person has to look."""
        self._taken[this.key] = taken
        if others := [ordinal for ordinal, since in taken.items() if self._world.clock.now() - since >= TAKEN_S]:
            labels = f"{LABEL_CLUSTER}={this.nodeset.spec.cluster} {LABEL_NODESET}={this.key[1]}"
            this.errors.append(
                f"pods of these names are there without the set's labels: {self._text(this, others)}. Where jobs run, give them back: "
                f"kubectl -n {this.key[0]} label --overwrite pod {self._names(this, others)[0]} {labels}. Where none do, delete the pod."
            )

    async def _delete(self, this: _Round, observed: Observed, decided: Plan) -> None:
        world = self._world
        if not decided.delete or world.clock.now() - this.asked_at > FRESH_S:
            return  # after a long wait for other writes a job may have come: the next round asks again
        if ghosts := [ordinal for ordinal in decided.ghosts if ordinal in decided.delete]:
            self._ghosts[this.key] = world.clock.now(), decided.ghost_lot
            text, left = self._text(this, ghosts), len(decided.ghosts_left)
            log.warning("pods run although Slurm has their nodes off", nodeset=this.nodeset.metadata.name, removed_now=text, left=left)
        deletions: list[Deletion] = []
        for ordinal in decided.delete:
            key = self._pod_key(this, ordinal)
            uid = observed.pods[ordinal].uid
            deletions.append(Deletion(key, uid))
            world.expectations.expect_deleted(this.key, key[1], uid)
        log.info("deleting pods that no job can be on", nodeset=this.nodeset.metadata.name, pods=self._text(this, decided.delete))
        results = await world.writer.delete_many(PODS, deletions)
        for deletion, result in zip(deletions, results, strict=True):
            if isinstance(result, ApiError) and result.result != "unreachable":
                world.expectations.withdraw(this.key, deletion.key[1])
            elif not isinstance(result, ApiError):
                metrics.PODS_DELETED.inc()
        this.fail_any("deletion of a pod", results)

    def _places(self, this: _Round) -> dict[int, str]:
        """Where the pods of a pinned set belong: machines that are still there."""
        if this.nodeset.spec.placement != "Pinned":
            return {}
        return {
            ordinal: machine for ordinal, machine in self._recorded(this).items() if self._world.machines.get(("", machine)) is not None
        }

    def _recorded(self, this: _Round) -> dict[int, str]:
        record = self._world.places.get((this.key[0], build.places_name(this.key[1])))
        return build.read_places(record.data) if record is not None else {}

    async def _record_places(self, this: _Round, observed: Observed) -> None:
        """Where pods of a pinned set run now; the entry of a machine that is gone, or of an ordinal that is no more, goes."""
        if this.nodeset.metadata.deletion_timestamp is not None:
            return
        kept = {ordinal: machine for ordinal, machine in self._places(this).items() if ordinal < this.nodeset.spec.bound}
        now = {ordinal: pod.machine for ordinal, pod in observed.pods.items() if pod.machine is not None and not pod.terminating}
        places = {**kept, **now} if this.nodeset.spec.placement == "Pinned" else {}
        if places != self._recorded(this):
            await this.attempt("record of places", self._world.writer.apply(CONFIG_MAPS, build.build_places(this.nodeset, places)))

    async def _tell(self, this: _Round, observed: Observed, decided: Plan) -> None:
        """Writes the status where it changed."""
        world = self._world
        now_text = datetime.fromtimestamp(world.clock.wall(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        silence = None
        if observed.nodes is None:
            silence = Silence(world.poller.silent_s(), world.poller.error or "the last reading is too old")
        said = status(this.nodeset, observed, decided, silence, now_text, this.errors)
        if said != this.nodeset.status:
            this.fail_any("event", await world.writer.create_many(EVENTS, build_events(this.nodeset, said, world.identity)))
            await world.writer.patch_status(NODESETS, this.key, msgspec.to_builtins(said))

    async def _finish(self, this: _Round, observed: Observed) -> None:
        """The set has no pod any more: claims go where they should, then the finalizer."""
        nodeset, world = this.nodeset, self._world
        if nodeset.spec.volume_claim_retention.when_deleted == "Delete":
            await self._drop_claims(this, observed.with_claims)
            if this.errors:
                return
        left = [one for one in nodeset.metadata.finalizers if one != FINALIZER]
        try:
            await world.writer.patch(NODESETS, this.key, _finalizers(nodeset, left))
        except NotFound:
            pass
        except Conflict:
            return  # news of it, such as the status that was just written, is on its way, and brings the next round
        log.info("set is gone", nodeset=nodeset.metadata.name)

    async def _drop_claims(self, this: _Round, ordinals: frozenset[int]) -> None:
        claims = self._world.claims.by_index("nodeset", this.key) if ordinals else []
        going = [one.metadata for one in claims if build.claim_ordinal(this.key[1], one.metadata.name) in ordinals]
        deletions = [Deletion(meta.key, meta.uid) for meta in going if meta.deletion_timestamp is None]
        this.fail_any("deletion of a claim", await self._world.writer.delete_many(CLAIMS, deletions))

    def _count(self, key: Key, observed: Observed, decided: Plan) -> None:
        metrics.WANTED.labels(key[1]).set(len(decided.wanted))
        metrics.PODS.labels(key[1]).set(len(observed.pods))
        metrics.UNAVAILABLE.labels(key[1]).set(decided.unavailable)

    def _pod_key(self, this: _Round, ordinal: int) -> Key:
        return this.key[0], build.node_name(this.nodeset.metadata.name, ordinal)

    def _names(self, this: _Round, ordinals: Iterable[int]) -> list[str]:
        return [build.node_name(this.nodeset.metadata.name, ordinal) for ordinal in ordinals]

    def _text(self, this: _Round, ordinals: Iterable[int]) -> str:
        return build.range_text(this.nodeset.metadata.name, ordinals)


def _finalizers(nodeset: NodeSet, wanted: list[str]) -> dict[str, Any]:
    """A patch that is refused where somebody else has changed them meanwhile."""
    return {"metadata": {"finalizers": wanted or None, "resourceVersion": nodeset.metadata.resource_version}}
