"""What is done about nodes that stay faulty: step by step, within caps, and never where a job may be. Pure; part of `plan`.

A step is taken only once the status records it: docs/explain/decisions/0007.
"""

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf

from controllers.nodeset.observed import Observed, Repair, Repairs, RepairState, Step
from controllers.nodeset.plans.causes import find_faults
from controllers.nodeset.repairs import checks
from controllers.nodeset.repairs.states import decided_state, due_s, observed_state
from controllers.nodeset.repairs.steps import WAITING, MachineStep, begin_steps, is_held, is_to_be_recreated, machine_step, wait_s
from controllers.nodeset.repairs.views import View
from controllers.nodeset.structs import NodeSetObject, RemedyPolicy
from controllers.nodeset.workers import Worker
from slurm.check_results import Request

_OPEN: tuple[RepairState, ...] = ("Suspect", "Draining", "RecreatePod", "RebootMachine", "ReplaceMachine", "Verifying")


@dataclass(frozen=True)
class RepairPlan:
    """What becomes of the repairs of a set, in ordinals, and which health checks are started."""

    record: Repairs = field(default_factory=Repairs)
    """What the status says after this round."""
    held: tuple[int, ...] = ()
    """Nodes that are to be drained, or to stay so, for a step."""
    recreate: tuple[int, ...] = ()
    """Of these, workers whose pods go once no job can be on them."""
    machines: tuple[MachineStep, ...] = ()
    """Machines to reboot or to replace now."""
    failing: int = 0
    """Nodes that fail at the moment, those that are given up left out."""
    most_failing: int = 0
    """Nodes that may fail within one window before the cause counts as systemic."""
    capped: Mapping[Step, tuple[int, ...]] = field(default_factory=dict[Step, tuple[int, ...]])
    """Nodes whose next step has to wait, as there were as many such steps today as there may be."""
    outstanding: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    """Checks that have to pass after the last step, by the nodes that wait for them."""
    unanswered: tuple[int, ...] = ()
    """Nodes where no check has answered for long whether the last step has helped."""
    mended: frozenset[int] = frozenset()
    """Nodes whose drain by Slurm (`Kill task failed`) may be lifted, as a step has ended the processes."""
    before_jobs: frozenset[int] = frozenset()
    """Nodes that are to be drained until their checks before jobs have passed."""
    late_before_jobs: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    """Of these, nodes that have waited for long, and the checks that they miss."""
    checks: Mapping[str, Mapping[int, Request]] = field(default_factory=dict[str, Mapping[int, Request]])
    """Checks to start now, and what they are to prove on which nodes: a repair's proof counts for the machine as well."""
    draining_since: Mapping[int, float] = field(default_factory=dict[int, float])
    """Nodes whose repair waits for their last job, and since when, in seconds since 1970: as the status has it already."""
    next_s: float = inf
    """Seconds until a repair may continue."""
    has_changed: bool = False
    """The status is to be written; what follows comes with the next round."""

    @property
    def is_systemic(self) -> bool:
        """True while nothing is repaired, as too many nodes fail at once."""
        return self.record.systemic_since is not None

    def with_asked(self, asked: Mapping[int, float]) -> "RepairPlan":
        """The plan, with the time of the machine steps that were accepted in this round."""
        accepted = {ordinal: replace(self.record.nodes[ordinal], asked_at=float(int(at))) for ordinal, at in asked.items()}
        return replace(self, record=replace(self.record, nodes={**self.record.nodes, **accepted}), has_changed=True)


def plan_repairs(nodeset: NodeSetObject, observed: Observed, wanted: frozenset[int], leaving: Container[int] = ()) -> RepairPlan:
    """The next states of all repairs, what may be done now, and the checks to start. While Slurm is silent, nothing changes.

    `leaving` are workers that leave for another reason: these go first, and their machines are left alone.
    """
    if observed.nodes is None:
        return RepairPlan(observed.repairs)
    plan, asked = _plan(nodeset, observed, wanted, leaving)
    return replace(
        plan,
        before_jobs=frozenset(
            ordinal for ordinal in observed.checks_before_jobs if checks.waits_before_jobs(observed, observed.worker(ordinal))
        ),
        late_before_jobs=checks.find_late(observed),
        checks=checks.by_check(chain(asked, checks.before_jobs(observed), checks.of_other_machines(nodeset, observed))),
    )


def _plan(
    nodeset: NodeSetObject, observed: Observed, wanted: frozenset[int], leaving: Container[int]
) -> tuple[RepairPlan, Iterable[checks.Asked]]:
    """The plan of the repairs alone, and the checks that they want. While the set is being deleted, no repair changes."""
    policy, known, now = nodeset.spec.remedies, observed.repairs, float(int(observed.now))

    def views_of(policy: RemedyPolicy, workers: Iterable[Worker]) -> dict[int, View]:
        return {
            worker.ordinal: View(nodeset, policy, observed, worker, find_faults(nodeset, observed, worker, policy.causes), now)
            for worker in workers
        }

    if nodeset.metadata.deletion_timestamp is not None:
        views = views_of(policy, map(observed.worker, known.nodes)) if policy is not None else {}
        return RepairPlan(known, unanswered=_unanswered(views, known.nodes, {})), ()
    if policy is None:
        # A requested reboot or replacement of a machine still comes: its node is held until then.
        known = Repairs({ordinal: repair for ordinal, repair in known.nodes.items() if repair.asked_at is not None})
        if not known.nodes:
            return RepairPlan(has_changed=bool(observed.repairs.nodes) or observed.repairs.systemic_since is not None), ()
        policy = RemedyPolicy(steps=(), causes=())
    workers = {worker.ordinal: worker for worker in observed.workers() if worker.ordinal not in observed.pods_taken}
    views = views_of(policy, (workers | {ordinal: observed.worker(ordinal) for ordinal in known.nodes}).values())

    seen = {
        ordinal: repair
        for ordinal, view in views.items()
        if ordinal in known.nodes or (view.faults and ordinal in wanted and not view.worker.is_off)
        if (repair := observed_state(view, known.nodes.get(ordinal), ordinal in wanted)) is not None
    }
    most = max(1, len(wanted) * policy.systemic_percent // 100)
    failing = _failing_since(policy, views, seen)
    systemic_since = _systemic_since(known.systemic_since, failing, most, policy.window_seconds, now)
    is_systemic = systemic_since is not None

    repairs = {ordinal: decided_state(views[ordinal], repair, is_systemic) for ordinal, repair in seen.items()}
    capped = {} if is_systemic else begin_steps(policy, views, repairs, most, now)
    record = Repairs(repairs, systemic_since)
    outstanding = {
        ordinal: missing
        for ordinal, repair in repairs.items()
        if repair.state in WAITING and (missing := views[ordinal].outstanding(repair))
    }

    stored = {ordinal: repair for ordinal, repair in repairs.items() if known.nodes.get(ordinal) == repair}
    may_act = {ordinal: repair for ordinal, repair in stored.items() if not is_systemic and not views[ordinal].is_peoples}
    suspects = {} if is_systemic else {ordinal: repair for ordinal, repair in stored.items() if repair.state == "Suspect"}
    lasting = {ordinal: repair for ordinal, repair in suspects.items() if now - repair.since >= wait_s(policy, repair)}
    steps = [step for ordinal, repair in may_act.items() if (step := machine_step(views[ordinal], repair))]
    plan = RepairPlan(
        record,
        held=tuple(ordinal for ordinal, repair in repairs.items() if is_held(views[ordinal], repair, is_systemic)),
        recreate=tuple(ordinal for ordinal, repair in may_act.items() if is_to_be_recreated(views[ordinal], repair)),
        machines=tuple(step for step in steps if step.ordinal not in leaving),
        failing=len(failing),
        most_failing=most,
        capped=capped,
        outstanding=outstanding,
        unanswered=_unanswered(views, repairs, outstanding),
        mended=frozenset(ordinal for ordinal in known.nodes if views[ordinal].is_mended),
        draining_since={ordinal: repair.since for ordinal, repair in stored.items() if repair.state == "Draining"},
        next_s=min((due_s(views[ordinal], repair) for ordinal, repair in repairs.items()), default=inf),
        has_changed=record != observed.repairs,
    )
    return plan, chain(checks.after_steps(views, stored), checks.confirming(views, lasting))


def _unanswered(views: Mapping[int, View], repairs: Mapping[int, Repair], outstanding: Mapping[int, tuple[str, ...]]) -> tuple[int, ...]:
    return tuple(
        ordinal
        for ordinal, repair in repairs.items()
        if ordinal in views and checks.is_unanswered(views[ordinal], repair, outstanding.get(ordinal, ()))
    )


def _failing_since(policy: RemedyPolicy, views: Mapping[int, View], repairs: Mapping[int, Repair]) -> list[float]:
    """Since when each node fails, those left out that people decide about."""
    failing = [
        repair.began
        for ordinal, repair in repairs.items()
        if repair.state in _OPEN and views[ordinal].faults and not views[ordinal].is_peoples
    ]
    return [*failing, *(at for ordinal, view in views.items() if ordinal not in repairs and (at := _spared_since(view.worker, policy)))]


def _systemic_since(since: float | None, began: Collection[float], most: int, window_s: int, now: float) -> float | None:
    """Since when the cause is systemic. It begins with too many new faults in one window, and ends when half as many are left at all."""
    if since is not None:
        return since if len(began) > most // 2 else None
    return now if sum(at > now - window_s for at in began) > most else None


def _spared_since(worker: Worker, policy: RemedyPolicy) -> float:
    """When a check found a fault on a node that it does not drain, as checks hold their maximum of nodes. 0 for all other nodes."""
    if (node := worker.node) is None:
        return 0
    spared = [
        name
        for name, failure in (node.failures or {}).items()
        if not failure.drains and failure.wish != "none" and failure.kind in policy.causes
    ]
    return max((node.failed_at.get(name, 0) for name in spared), default=0)
