"""Carries plans out, one set at a time, and says in which order. Thin: every decision is in `plan`, every word for people in `status`.

A round may be killed between any two writes; the next one looks again and resumes. Whatever could hurt a job is only done from a reading
of Slurm that was requested after the round began. A round first protects jobs, then adds, then takes away, and reports last.
"""

from dataclasses import dataclass

import structlog

from controllers.nodeset import pods as build
from controllers.nodeset.memory import SetMemory
from controllers.nodeset.observe import Surroundings, observe
from controllers.nodeset.plan import Plan, plan
from controllers.nodeset.reports import count, report, report_defect, report_unread
from controllers.nodeset.rounds import SWEEP_S, TOO_LATE_S, Round, World
from controllers.nodeset.structs import FINALIZER
from controllers.nodeset.workers import Observed
from controllers.nodeset.writes.drains import change_slurm, record_drains
from controllers.nodeset.writes.pods import (
    add_finalizer,
    create,
    delete,
    delete_unbound,
    drop_claims,
    finish,
    mark_free,
    protect,
    record_places,
)
from controllers.runtime.structs import Key
from controllers.slurm.client import SlurmError
from controllers.slurm.snapshot import Snapshot

STALE_S = 15.0
"""A reading of Slurm that is older, in seconds, is no reading."""
SOON_S = 0.5
"""While something is under way, the next look comes so many seconds later at the latest."""

log = structlog.get_logger()


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
        self._memories: dict[Key, SetMemory] = {}

    @property
    def wants_jobs(self) -> bool:
        """True while a set wants the list of jobs to be read."""
        return any(one.wants_jobs for one in self._memories.values())

    async def reconcile(self, key: Key) -> Next:
        """One round for one set. Raises ApiError when nothing could be reported."""
        nodeset = self._world.nodesets.get(key)
        if nodeset is None:
            self._forget(key)
            if (unread := self._world.nodesets.unread.get(key)) is not None:
                await report_unread(self._world, unread)
            return Next(SWEEP_S)
        this = Round(self._world, key, nodeset, self._memories.setdefault(key, SetMemory()))
        if FINALIZER not in nodeset.metadata.finalizers:
            if nodeset.metadata.deletion_timestamp is not None:
                return Next(SWEEP_S)
            await add_finalizer(this)
        _note_revision(this)
        observed, decided = await self._decide(this)
        await protect(this, observed, decided)
        await record_drains(this, decided)
        slurm = self._world.slurm_writer
        may_be_quick = this.memory.late_since is None or slurm.is_quick(this.reading_took_s)
        if decided.writes_to_slurm and not slurm.is_fresh(this.asked_at) and may_be_quick:
            # The API server has held the writes up: look again, as Slurm did not wait.
            observed, decided = await self._decide(this)
            await protect(this, observed, decided)
        await change_slurm(this, decided)
        if not this.has_no_reading:
            this.memory.note_late(this.is_late, self._world.clock.now())
        await create(this, observed, decided)
        await delete(this, observed, decided)
        await delete_unbound(this, observed, decided)
        await mark_free(this, decided)
        await record_places(this, observed)
        await drop_claims(this, frozenset(decided.retire))
        await report(this, observed, decided)
        if decided.done:
            await finish(this, observed)
        count(key, observed, decided)
        return _next(this, decided)

    async def report_defect(self, key: Key, error: Exception) -> None:
        """Says in a set's status that its round ended with an error that nobody thought of."""
        await report_defect(self._world, key, error)

    def note_waking(self, name: str, is_waking: bool, now: float) -> None:
        """Slurm wants that node up, or no longer does."""
        if is_waking:
            self._world.waking.setdefault(name, now)
        else:
            self._world.waking.pop(name, None)

    def _forget(self, key: Key) -> None:
        self._world.expectations.forget(key)
        self._memories.pop(key, None)
        self._world.retries.drop(key)
        self._world.refusals.drop(key)

    async def _decide(self, this: Round) -> tuple[Observed, Plan]:
        """A plan that may be carried out: where it could hurt a job, made from a reading that was requested just now."""
        poller = self._world.poller
        snapshot = poller.snapshot if poller.age_s() <= STALE_S else None
        this.asked_at = snapshot.asked_at if snapshot is not None else float("-inf")
        observed = _look(this, snapshot)
        decided = plan(this.nodeset, observed)
        this.memory.wants_jobs = decided.needs_jobs
        if not decided.needs_fresh_reading:
            return observed, decided
        try:
            snapshot = await poller.fresh()
            this.asked_at = snapshot.asked_at
            this.reading_took_s = self._world.clock.now() - snapshot.asked_at
        except SlurmError as error:
            log.info("no fresh reading, so nothing is taken away", nodeset=this.nodeset.metadata.name, error=str(error))
            snapshot, this.has_no_reading = None, True
        observed = _look(this, snapshot)
        return observed, plan(this.nodeset, observed)


def _note_revision(this: Round) -> None:
    """Failed pods of an older template are tried again at once: somebody has corrected the set."""
    present = build.revision(this.nodeset.spec)
    if this.memory.revision not in ("", present):
        this.world.retries.drop(this.key)
        this.world.refusals.drop(this.key)
    this.memory.revision = present


def _look(this: Round, snapshot: Snapshot | None) -> Observed:
    world, key, memory = this.world, this.key, this.memory
    name, now = this.nodeset.metadata.name, world.clock.now()
    creating = (build.ordinal_of(name, one) for one in world.expectations.creating(key))
    pods_held_back, until = world.refusals.held(key, now), world.retries.until(key, now)
    jobs_asked_at = float("-inf") if snapshot is None else snapshot.jobs_asked_at
    wall, jobs_age_s = world.clock.wall(), now - jobs_asked_at
    memory.forget_asked(wall - jobs_age_s)
    around = Surroundings(
        on_their_way=frozenset(one for one in creating if one is not None),
        held_back=pods_held_back.union(until),
        resumed_at={ordinal: wall + at - now for ordinal, at in until.items()},
        pods_held_back=pods_held_back,
        jobs_age_s=jobs_age_s,
        requeued_at=memory.requeued,
        cancelled_at=memory.cancelled,
        refused={ordinal: why for ordinal, why in memory.refused.items() if ordinal in pods_held_back},
        deleting=world.expectations.deleting(key),
        claims=tuple(world.claims_of(this.nodeset)),
        machines=world.machine,
        ghosts_due=memory.ghost_pause_s(now) <= 0,
        ghost_batch=memory.ghosts[1] if memory.ghosts else 0,
        can_requeue=world.slurm.can_requeue,
        drained_at=this.drains(),
        stopping_settled=memory.stop_settled(now),
    )
    observed = observe(this.nodeset, world.pods.by_index("nodeset", key), snapshot, wall, around)
    _note(this, observed)
    return observed


def _note(this: Round, observed: Observed) -> None:
    """Remembers what failed, what came up, and which pods run on beside a stop hook's drain."""
    world, key, now = this.world, this.key, this.world.clock.now()
    ended = {ordinal: pod.refused for ordinal, pod in observed.pods.items() if pod.finished}
    world.refusals.note(key, ended, now)
    this.memory.refused.update({ordinal: why for ordinal, why in ended.items() if why})
    if observed.nodes is None:
        return  # nothing is known of what is down or came up
    registered = [one.ordinal for one in observed.workers() if one.is_registered]
    world.retries.note(key, (one.ordinal for one in observed.workers() if one.has_failed_to_resume or one.is_given_up), now)
    world.retries.forget(key, registered)
    world.refusals.forget(key, registered)
    this.memory.note_stopping(observed.workers(), now)


def _next(this: Round, decided: Plan) -> Next:
    world, key, now = this.world, this.key, this.world.clock.now()
    if this.memory.late_s(now) >= TOO_LATE_S:
        return Next(SWEEP_S, has_failed=True)  # each look asks a Slurm that is slow already for all its nodes
    if (
        decided.needs_fresh_reading or decided.create or decided.delete_unbound or this.has_no_reading or this.came_too_late
    ) and not this.errors:
        return Next(SOON_S)
    again_s = this.memory.ghost_pause_s(now) if decided.ghosts_left else SWEEP_S
    held_s = min(world.retries.next_s(key, now), world.refusals.next_s(key, now), this.memory.stop_settles_s(now))
    return Next(min(SWEEP_S, again_s, decided.late_in_s, held_s), bool(this.errors))
