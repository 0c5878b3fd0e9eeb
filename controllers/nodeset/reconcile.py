"""Runs rounds, one set at a time: observe, plan, write, report. Thin: decisions are in `plan`, texts in `status`.

A round first protects jobs, then adds, then takes away, and reports last. Pure work that may take long runs in a thread: the event loop
must renew the lease and answer probes meanwhile.
"""

import asyncio
from collections.abc import Mapping

import structlog

from controllers.nodeset import pods as build
from controllers.nodeset.looks import STALE_S, look
from controllers.nodeset.memory import SetMemory
from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import Plan, plan_nodeset
from controllers.nodeset.plans.causes import find_causes_of
from controllers.nodeset.repairs import with_outlooks
from controllers.nodeset.reports import count, report, report_defect, report_unread
from controllers.nodeset.rounds import SWEEP_S, Round, World
from controllers.nodeset.schedule import Next, next_round
from controllers.nodeset.structs import NodeSetObject
from controllers.nodeset.writes.check_jobs import start_checks
from controllers.nodeset.writes.deadlines import end_jobs
from controllers.nodeset.writes.disks import delete_claims
from controllers.nodeset.writes.drains import change_drains, record_drains
from controllers.nodeset.writes.finalizers import add_finalizer, finish
from controllers.nodeset.writes.labels import mark_free, protect
from controllers.nodeset.writes.pins import record_pins
from controllers.nodeset.writes.pods import create, delete, delete_unbound
from controllers.nodeset.writes.repairs import ask_for_machines
from controllers.nodeset.writes.resumes import resume_nodes
from controllers.nodeset.writes.slurm_nodes import write_slurm_nodes
from controllers.nodeset.writes.topology import annotate_pods, place_nodes
from controllers.nodeset.writes.windows import change_windows
from controllers.runtime.structs import Key
from controllers.slurm.client import SlurmError
from names import finalizers
from slurm.causes import Cause

log = structlog.get_logger()


class Reconciler:
    """Brings each set a step nearer to what it should be, and remembers each set between rounds."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._memories: dict[Key, SetMemory] = {}

    @property
    def wants_jobs(self) -> bool:
        """True while a set wants the list of jobs to be read."""
        return any(memory.wants_jobs for memory in self._memories.values())

    async def reconcile(self, key: Key) -> Next:
        """One round for one set. Raises ApiError when nothing could be reported."""
        nodeset = self.world.nodesets.get(key)
        if nodeset is None:
            self._forget(key)
            if (unread := self.world.nodesets.unread.get(key)) is not None:
                await report_unread(self.world, unread)
            return Next(SWEEP_S)
        is_being_deleted = nodeset.metadata.deletion_timestamp is not None
        if is_being_deleted and finalizers.DRAIN not in nodeset.metadata.finalizers:
            return Next(SWEEP_S)
        return await run_round(Round(self.world, key, nodeset, self._memories.setdefault(key, SetMemory())))

    async def report_defect(self, key: Key, error: Exception) -> None:
        """Reports an unexpected error of a round in the set's status."""
        await report_defect(self.world, key, error)

    def note_waking(self, name: str, is_waking: bool, now: float) -> None:
        """Notes whether Slurm wants a node up."""
        if is_waking:
            self.world.waking.setdefault(name, now)
        else:
            self.world.waking.pop(name, None)

    def _forget(self, key: Key) -> None:
        self.world.expectations.forget(key)
        self._memories.pop(key, None)
        self.world.retries.drop(key)
        self.world.refusals.drop(key)


async def run_round(round_: Round) -> Next:
    """Carries out one plan, part by part. Raises ApiError."""
    if finalizers.DRAIN not in round_.nodeset.metadata.finalizers:
        await add_finalizer(round_)
    _note_revision(round_)
    observed, plan = await _observe_and_plan(round_)
    await protect(round_, observed, plan)
    await record_drains(round_, plan.drains)
    if plan.writes_to_slurm and not round_.is_fresh_for_slurm() and round_.may_be_in_time():
        # The API server has held the writes up: observe again, as Slurm did not wait.
        observed, plan = await _observe_and_plan(round_)
        await protect(round_, observed, plan)
    await change_drains(round_, plan.drains)
    await resume_nodes(round_, plan.resumes)
    await end_jobs(round_, plan.deadlines)
    await place_nodes(round_, plan.topologies)
    await change_windows(round_, plan.windows)
    plan = await ask_for_machines(round_, observed, plan)
    await start_checks(round_, plan.repairs.checks)
    round_.note_lateness()
    await create(round_, observed, plan)
    await delete(round_, observed, plan)
    await delete_unbound(round_, observed, plan)
    await mark_free(round_, plan)
    await record_pins(round_, observed)
    await annotate_pods(round_, plan.topologies)
    await delete_claims(round_, plan.disks.delete)
    causes = await asyncio.to_thread(find_causes, round_.nodeset, observed, plan)
    await write_slurm_nodes(round_, observed, plan, causes)
    await report(round_, observed, plan)
    if plan.is_finished:
        await finish(round_, observed)
    count(round_, observed, plan, causes)
    return next_round(round_, plan)


def find_causes(nodeset: NodeSetObject, observed: Observed, plan: Plan) -> Mapping[int, tuple[Cause, ...]]:
    """The causes of each node, and what is done about them."""
    return with_outlooks(nodeset, plan.repairs, find_causes_of(nodeset, observed, plan.reasons), observed)


async def _observe_and_plan(round_: Round) -> tuple[Observed, Plan]:
    """A plan that may be carried out: where it could hurt a job, made from a reading that was requested just now."""
    poller = round_.world.poller
    snapshot = poller.snapshot if poller.age_s() <= STALE_S else None
    round_.asked_at = snapshot.asked_at if snapshot is not None else float("-inf")
    observed = await look(round_, snapshot)
    plan = await asyncio.to_thread(plan_nodeset, round_.nodeset, observed)
    round_.memory.wants_jobs = plan.deadlines.needs_jobs
    if not plan.needs_fresh_reading:
        return observed, plan
    try:
        snapshot = await poller.fresh()
        round_.asked_at = snapshot.asked_at
        round_.reading_took_s = round_.world.clock.now() - snapshot.asked_at
    except SlurmError as error:
        log.info("no fresh reading, so nothing is taken away", nodeset=round_.nodeset.metadata.name, error=str(error))
        snapshot, round_.has_no_reading = None, True
    observed = await look(round_, snapshot)
    return observed, await asyncio.to_thread(plan_nodeset, round_.nodeset, observed)


def _note_revision(round_: Round) -> None:
    """Failed pods are tried again at once when the template has changed: somebody has corrected the set."""
    present = build.revision(round_.nodeset.spec)
    if round_.memory.revision not in ("", present):
        round_.world.retries.drop(round_.key)
        round_.world.refusals.drop(round_.key)
    round_.memory.revision = present
