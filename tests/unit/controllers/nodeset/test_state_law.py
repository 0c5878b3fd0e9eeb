"""The truth table of node states through the controller's plan: what each allows a set to do to a node and its pod, whatever the cause."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import Plan, plan_nodeset
from controllers.nodeset.structs import Drain, NodeSetObject, UpdateStrategy
from controllers.nodeset.workers import Machine, NodeJob, WorkerNode, WorkerPod
from slurm.check_results import Failure
from slurm.reasons import POD_STOPPING, SCALE_IN, UPDATE, gpus, is_check
from slurm.states import NodeState, node_state
from tests.support.controllers.nodeset.examples import NOW, nodeset, pod
from tests.support.law import Law, every_state

OLD = {"revision": "old", "machine": "m", "has_run": True, "marked_busy": True}
DEADLINE = Drain("Cancel", 60)
FOREIGN = ("fan is loud", "slipway: check disk: full")
FULL = Failure("2026-01-01T00:00:00Z", "full")
GPUS = gpus("7 GPUs, and the config says 8")
OURS = (UPDATE, SCALE_IN, f"{UPDATE} : Not responding", "slipway: cordon m")
CORDONED = {"m": Machine(is_cordoned=True)}


@dataclass(frozen=True)
class Cause:
    """Why something might be done to node 0 of a set."""

    spec: dict[str, Any]
    pod: WorkerPod | None = None
    is_deleted: bool = False
    is_leaving: bool = False
    """Its pod is to go."""
    around: dict[str, Any] = field(default_factory=dict[str, Any])


ELASTIC, FIXED, ROLL = {"min": 1, "max": 1}, {"replicas": 1, "ordinals": 1}, {"update_strategy": UpdateStrategy(max_unavailable="100%")}
GOES = {
    "old-template-of-a-fixed-set": Cause({**FIXED, **ROLL}, pod(**OLD), is_leaving=True),
    "old-template-of-an-elastic-set": Cause({**ELASTIC, **ROLL}, pod(**OLD), is_leaving=True),
    "old-and-not-ready": Cause({**ELASTIC, **ROLL}, pod(**{**OLD, "ready": False})),
    "beyond-replicas": Cause({"replicas": 0, "ordinals": 1}, pod(machine="m"), is_leaving=True),
    "beyond-max": Cause({"min": 0, "max": 0, "ordinals": 1}, pod(machine="m"), is_leaving=True),
    "set-is-deleted": Cause(ELASTIC, pod(machine="m"), is_deleted=True, is_leaving=True),
    "machine-is-cordoned": Cause(FIXED, pod(machine="m"), around={"machines": CORDONED}),
}
STAYS = {
    "wanted": Cause(ELASTIC, pod(machine="m")),
    "fixed-and-wanted": Cause(FIXED, pod(machine="m")),
    "on-delete": Cause({**ELASTIC, "update_strategy": UpdateStrategy("OnDelete")}, pod(**OLD)),
    "without-a-pod": Cause(ELASTIC),
    "unserved-without-a-pod": Cause({"replicas": 0, "ordinals": 1}),
}
ANY = {**GOES, **STAYS}


def decide(cause: Cause, law: Law, reason: str = "", drained_at: float | None = None, is_failing: bool = False) -> Plan:
    """The plan for a set whose only node is in that state, with a job past its deadline where there is one at all."""
    one = nodeset(**{"drain": DEADLINE, **cause.spec})
    if cause.is_deleted:
        one = NodeSetObject(msgspec.structs.replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z"), one.spec)
    failures = {"disk": FULL} if is_failing or is_check(reason) else {}
    node = WorkerNode(state_of(law), reason, jobs=(NodeJob("7"),), failures=failures)
    records = {} if drained_at is None else {0: drained_at}
    pods = {} if cause.pod is None else {0: cause.pod}
    return plan_nodeset(one, Observed(pods, {0: node}, NOW, drained_at=records, stopping_settled=frozenset({0}), **cause.around))


def state_of(law: Law) -> NodeState:
    return node_state(word for word in law.words.split("+") if word)


def plans(
    law: Law, causes: Mapping[str, Cause], reasons: Iterable[str], drained_at: float | None = 0.0
) -> Iterator[tuple[str, str, Cause, Plan]]:
    """What is decided for each cause and reason: first the name of the cause, and the reason."""
    for name, cause in causes.items():
        for reason in reasons:
            yield name, reason, cause, decide(cause, law, reason, drained_at)


@every_state
def test_pod_goes_only_where_no_job_can_be(law: Law) -> None:
    for name, reason, _, made in plans(law, ANY, ["", *OURS, *FOREIGN, POD_STOPPING, GPUS]):
        assert law.is_free or not made.deletions.free, (name, reason)
        assert made.needs_fresh_reading or not made.deletions.free, (name, reason)


@every_state
def test_leaving_pod_goes_or_its_node_is_drained_first_as_the_state_says(law: Law) -> None:
    for name, reason, cause, made in plans(law, GOES, [UPDATE if "DRAIN" in law.words else ""], NOW):
        if cause.is_leaving:
            assert made.deletions.free == ((0,) if law.is_free else ()), (name, reason)
            assert law.is_free or bool(made.drains.drain) is law.may_be_drained, (name, reason)


@every_state
def test_only_a_node_that_may_be_drained_is(law: Law) -> None:
    """A drain of ours may get another reason, which changes nothing for jobs."""
    is_drained, is_known = "DRAIN" in law.words, state_of(law).is_known
    for name, reason, _, made in plans(law, ANY, ["", *OURS, POD_STOPPING, GPUS, *FOREIGN] if is_drained else [""]):
        has_new_reason = is_drained and is_known and (not reason or reason in OURS)
        assert law.may_be_drained or has_new_reason or not made.drains.drain, (name, reason)


@every_state
def test_failing_node_is_drained_as_its_state_says(law: Law) -> None:
    for name, cause in STAYS.items():
        made = decide(cause, law, is_failing=True)
        assert bool(made.drains.drain) is law.may_be_drained, name


@every_state
def test_drain_of_others_is_neither_lifted_nor_changed_and_ends_no_jobs(law: Law) -> None:
    for name, reason, _, made in plans(law, ANY, FOREIGN if "DRAIN" in law.words else []):
        acts = made.writes_to_slurm or made.drains.drained_at
        assert not acts, (name, reason)


@every_state
def test_drain_without_a_reason_or_a_record_is_nobodys_and_stays(law: Law) -> None:
    for name, _, _, made in plans(law, ANY, [""], None):
        assert not made.drains.undrain, name
        assert not (made.deadlines.cancel and "DRAIN" in law.words), name


@every_state
def test_node_is_resumed_or_released_only_when_off_without_job_and_pod(law: Law) -> None:
    for name, reason, cause, made in plans(law, ANY, ["", *OURS]):
        if made.resumes.resume or made.resumes.release:
            assert law.is_free, (name, reason)
            assert cause.pod is None, (name, reason)


@every_state
def test_pod_whose_node_may_have_a_job_is_marked_busy(law: Law) -> None:
    """One whose node is idle may be evicted: its stop hook drains first, and asks again."""
    state = state_of(law)
    may_have_a_job = not law.is_free and not (state.is_known and "IDLE" in state.flags and "COMPLETING" not in state.flags)
    for name, reason, cause, made in plans(law, ANY, ["", *OURS]):
        if may_have_a_job and cause.pod is not None:
            assert not made.labels.free, (name, reason)
            assert cause.pod.marked_busy or made.labels.busy == (0,), (name, reason)
