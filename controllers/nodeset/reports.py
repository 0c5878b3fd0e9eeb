"""Reports to people: the status, its events, and metrics. Thin; the texts are in `status` and `events`."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import msgspec
import structlog
from prometheus_client import Gauge

from controllers.nodeset import metrics
from controllers.nodeset.events import build_events
from controllers.nodeset.lateness import Lateness
from controllers.nodeset.observed import Observed, Repairs
from controllers.nodeset.plan import Plan
from controllers.nodeset.repairs import RepairPlan
from controllers.nodeset.rounds import TOO_LATE_S, Round, World
from controllers.nodeset.slurm_writer import FRESH_S
from controllers.nodeset.status import Silence, build_status, cut, dated, unreadable, with_fault
from controllers.nodeset.structs import NODESETS_WRITTEN, Condition
from controllers.runtime.errors import ApiError
from controllers.runtime.structs import EVENTS, Key, Unread
from slurm.causes import Cause
from slurm.states import category

log = structlog.get_logger()


class _Conditions(msgspec.Struct):
    conditions: tuple[Condition, ...] = ()


class _Reported(msgspec.Struct):
    """The conditions of a set that cannot be decoded otherwise."""

    status: _Conditions = msgspec.field(default_factory=_Conditions)


async def report(round_: Round, observed: Observed, plan: Plan) -> None:
    """Writes the status where it changed. Raises ApiError."""
    world, nodeset = round_.world, round_.nodeset
    now_text = world.now_text()
    unread = world.nodesets.unread.get(round_.key)
    if unread is not None and round_.memory.status is not None:
        nodeset = msgspec.structs.replace(nodeset, status=round_.memory.status)
    silence = None
    if observed.nodes is None:
        silence = Silence(world.poller.silent_s(), world.poller.error or "the last reading is too old")
    late_s, lateness = round_.memory.late_s(world.clock.now()), None
    if late_s >= TOO_LATE_S:
        lateness = Lateness(late_s, round_.reading_took_s, FRESH_S)
    present = await asyncio.to_thread(build_status, nodeset, observed, plan, silence, now_text, round_.errors, lateness)
    if unread is not None:
        present = with_fault(nodeset, present, unread, now_text)
    if present != nodeset.status:
        round_.fail_any("event", await world.writer.create_many(EVENTS, build_events(nodeset, present, world.identity)))
        await world.writer.patch_status(NODESETS_WRITTEN, round_.key, msgspec.to_builtins(present))
    round_.memory.status = present
    round_.memory.drained_at = nodeset.metadata.uid, plan.drains.drained_at
    round_.memory.repairs = nodeset.metadata.uid, plan.repairs.record


async def report_unread(world: World, unread: Unread) -> None:
    """Reports in the status of a set that no version of it could be decoded. Raises ApiError.

    The present status is compared first: each write changes the object, and would cause the next write.
    """
    fault = msgspec.structs.replace(unreadable(unread, has_earlier=False), last_transition_time=world.now_text())
    if _is_reported(unread.raw, fault):
        return
    present = {"phase": "Degraded", "why": fault.message, "conditions": msgspec.to_builtins((fault,))}
    await world.writer.patch_status(NODESETS_WRITTEN, unread.metadata.key, present)


def _is_reported(raw: bytes, fault: Condition) -> bool:
    try:
        conditions = msgspec.json.decode(raw, type=_Reported).status.conditions
    except msgspec.DecodeError:
        return False
    content = fault.type, fault.message, fault.observed_generation
    return any((condition.type, condition.message, condition.observed_generation) == content for condition in conditions)


async def report_defect(world: World, key: Key, error: Exception) -> None:
    """Reports an unexpected error of a round in the set's status. Best effort."""
    nodeset = world.nodesets.get(key)
    if nodeset is None:
        return
    message = f"{type(error).__name__}: {error}. A defect of the controller; its log has the details. Nothing is done to this set."
    other_conditions = [condition for condition in nodeset.status.conditions if condition.type != "Reconciled"]
    conditions = [*other_conditions, dated(nodeset, Condition("Reconciled", "False", "Defect", message), world.now_text())]
    try:
        await world.writer.patch_status(
            NODESETS_WRITTEN, key, {"phase": "Degraded", "why": cut(message), "conditions": msgspec.to_builtins(conditions)}
        )
    except ApiError as refusal:
        log.warning("failed", nodeset=key[1], what="status", error=str(refusal))


def count(round_: Round, observed: Observed, plan: Plan, causes: Mapping[int, tuple[Cause, ...]]) -> None:
    """Sets the metrics of a set. While Slurm is silent, those of its nodes stay as they are."""
    name = round_.key[1]
    metrics.WANTED.labels(name).set(len(plan.wanted))
    metrics.PODS.labels(name).set(len(observed.pods))
    metrics.UNAVAILABLE.labels(name).set(plan.roll.unavailable)
    if observed.nodes is None:
        return
    _count_repairs(round_, name, observed.repairs, plan.repairs)
    states = Counter(category(node.state) for node in observed.nodes.values())
    cause_counts = Counter((cause.name, cause.wish) for node_causes in causes.values() for cause in node_causes)
    _set_all(metrics.NODES, name, {(state,): number for state, number in states.items()}, round_.memory.counted_states)
    _set_all(metrics.CAUSES, name, cause_counts, round_.memory.counted_causes)


def _count_repairs(round_: Round, name: str, before: Repairs, repairs: RepairPlan) -> None:
    """A step counts when it is recorded, which happens once."""
    metrics.SYSTEMIC.labels(name).set(repairs.is_systemic)
    states = Counter(repair.state for repair in repairs.record.nodes.values())
    _set_all(metrics.REPAIRS, name, {(state,): number for state, number in states.items()}, round_.memory.counted_repairs)
    for ordinal, repair in repairs.record.nodes.items():
        known_steps = before.nodes[ordinal].steps if ordinal in before.nodes else ()
        for step in repair.steps:
            if step not in known_steps:
                metrics.STEPS.labels(name, step.step).inc()


def _set_all(gauge: Gauge, name: str, numbers: Mapping[tuple[str, ...], int], counted: set[tuple[str, ...]]) -> None:
    """Sets a gauge by its further labels, and sets those that are no longer present to 0."""
    counted.update(numbers)
    for labels in counted:
        gauge.labels(name, *labels).set(numbers.get(labels, 0))
