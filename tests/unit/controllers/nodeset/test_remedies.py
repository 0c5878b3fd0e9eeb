"""Repairs of nodes that stay faulty: one look, one plan. Each row is what a person reads in docs/operate/remedies.md."""

from typing import Any

import msgspec
import pytest

from controllers.nodeset.observed import Observed, Repair, Repairs, TakenStep
from controllers.nodeset.plan import Plan, plan_nodeset
from controllers.nodeset.plans.causes import find_causes_of
from controllers.nodeset.records import build_repairs, read_repairs, rfc3339_or_empty
from controllers.nodeset.repairs import RepairPlan, with_outlooks
from controllers.nodeset.structs import NodeSetStatus, RemedyPolicy
from controllers.nodeset.workers import Machine
from slurm.causes import Wish
from slurm.check_results import Failure
from slurm.reasons import REMEDY
from tests.support.controllers.nodeset.examples import BUSY, IDLE, NOW, acts_of, look, node, nodeset, pod

FULL = Failure("2026-01-01T00:00:00Z", "/tmp has 3 MiB free", "node")
TOLD = Failure(FULL.since, FULL.found, "node", drains=False, wish="none")
SPARED = Failure(FULL.since, FULL.found, "node", drains=False)
HELD = "slipway: check disk: /tmp has 3 MiB free"
LONG_AGO, SOON = NOW - 400, NOW - 100
ALL = RemedyPolicy(("RecreatePod", "RebootMachine", "ReplaceMachine"), machines="Webhook", webhook="https://repairs.example")
POD_ONLY = RemedyPolicy(("RecreatePod",))
MACHINES = {"m-1": Machine(identity="i-1", boot="b-1")}
HERE = pod(machine="m-1", uid="p")


def failing(words: str = "IDLE DRAIN", reason: str = HELD, looked: float = NOW - 10, **facts: Any) -> Any:
    return node(words, reason, failures={"disk": FULL}, failed_at={"disk": looked}, **facts)


def wishing(wish: Wish) -> Any:
    """A node whose check asks for that."""
    return node("IDLE DRAIN", HELD, failures={"disk": Failure(FULL.since, FULL.found, "node", wish=wish)}, failed_at={"disk": NOW - 10})


def repair(state: Any, since: float = LONG_AGO, *steps: str, **facts: Any) -> Repair:
    taken = tuple(TakenStep(step, LONG_AGO - 50, "i-1") for step in steps)  # type: ignore[arg-type]
    given: dict[str, Any] = {"began": LONG_AGO - 100, "steps": taken, **facts}
    return Repair(state, since, **given)


def at(*repairs: Repair, systemic_since: float | None = None) -> Repairs:
    return Repairs(dict(enumerate(repairs)), systemic_since)


def planned(policy: RemedyPolicy | None, seen: Observed, replicas: int = 1) -> Plan:
    return plan_nodeset(nodeset(replicas=replicas, remedies=policy), seen)


def _with_machines(facts: dict[str, Any]) -> dict[str, Any]:
    return {"machines": MACHINES, **facts}


def state_of(made: Plan, ordinal: int = 0) -> str:
    found = made.repairs.record.nodes.get(ordinal)
    return found.state if found is not None else ""


@pytest.mark.parametrize(
    ("worker", "before", "state"),
    [
        pytest.param((HERE, failing()), None, "Suspect", id="a-fault-is-suspect"),
        pytest.param((HERE, node("MIXED", failures={"disk": SPARED})), None, "", id="a-spared-node-keeps-its-jobs"),
        pytest.param((HERE, node("MIXED", failures={"disk": TOLD})), None, "", id="what-is-told-only-is-no-fault"),
        pytest.param((HERE, wishing("reboot")), repair("Draining"), "RebootMachine", id="repairs-begin-with-the-reboot-that-is-asked-for"),
        pytest.param((HERE, wishing("replace")), repair("Draining"), "ReplaceMachine", id="or-with-a-new-machine"),
        pytest.param((HERE, failing()), repair("Suspect", SOON), "Suspect", id="a-fault-that-may-pass"),
        pytest.param((HERE, node()), repair("Suspect", SOON), "", id="a-fault-that-has-passed"),
        pytest.param((HERE, failing()), repair("Suspect"), "RecreatePod", id="free-already"),
        pytest.param((HERE, failing("MIXED DRAIN")), repair("Suspect"), "Draining", id="jobs-are-left"),
        pytest.param((HERE, failing("MIXED DRAIN")), repair("Draining"), "Draining", id="jobs-have-their-time"),
        pytest.param((HERE, failing("IDLE DRAIN COMPLETING")), repair("Draining"), "Draining", id="a-job-ends"),
        pytest.param((HERE, failing("FOO DRAIN")), repair("Draining"), "Draining", id="unknown-is-busy"),
        pytest.param((pod(uid="q", machine="m-1"), failing()), repair("RecreatePod", pod="p"), "Verifying", id="another-pod"),
        pytest.param((None, failing()), repair("RecreatePod", pod="p"), "RecreatePod", id="no-pod-yet"),
        pytest.param((HERE, node()), repair("RecreatePod", LONG_AGO, "RecreatePod", pod="p"), "InService", id="passed-before-it-went"),
        pytest.param((HERE, node()), repair("Verifying", SOON, "RecreatePod"), "InService", id="it-helped"),
        pytest.param((HERE, failing()), repair("Verifying", SOON, "RecreatePod"), "Verifying", id="a-check-has-time"),
        pytest.param(
            (HERE, failing(looked=NOW - 2000)), repair("Verifying", NOW - 1000, "RecreatePod"), "Verifying", id="no-look-since-the-step"
        ),
        pytest.param(
            (HERE, failing(looked=NOW - 9000)), repair("Verifying", NOW - 8000, "RecreatePod"), "Verifying", id="no-look-for-hours"
        ),
        pytest.param((HERE, failing()), repair("Verifying", NOW - 1000, "RecreatePod"), "RebootMachine", id="it-did-not-help"),
        pytest.param(
            (HERE, failing()),
            repair("Verifying", NOW - 5000, "RecreatePod", "RebootMachine", "ReplaceMachine"),
            "GivenUp",
            id="nothing-helped",
        ),
        pytest.param((HERE, node()), repair("GivenUp", LONG_AGO, "RecreatePod"), "InService", id="a-person-has-helped"),
        pytest.param((HERE, failing()), repair("InService", SOON, "RecreatePod"), "Suspect", id="it-fails-again"),
        pytest.param(
            (HERE, failing("IDLE DRAIN", "fan is loud")), repair("Suspect"), "Suspect", id="an-administrators-drain-is-above-ours"
        ),
        pytest.param((HERE, failing("DOWN", "fan is loud")), repair("Suspect"), "Suspect", id="an-administrators-down-too"),
        pytest.param((HERE, failing("IDLE DRAIN", "fan is loud")), repair("Draining"), "Suspect", id="an-administrator-comes-later"),
    ],
)
def test_state_follows_what_is_seen(worker: Any, before: Repair | None, state: str) -> None:
    seen = look(worker, machines=MACHINES, repairs=at(before) if before else Repairs())
    assert state_of(planned(ALL, seen)) == state


@pytest.mark.parametrize(
    ("worker", "stored", "facts", "acts"),
    [
        pytest.param((HERE, failing()), repair("Suspect"), {}, {}, id="a-step-is-recorded-first"),
        pytest.param((HERE, failing()), repair("RecreatePod", pod="p"), {}, {"delete": (0,)}, id="then-taken"),
        pytest.param((HERE, failing("MIXED DRAIN")), repair("RecreatePod", pod="p"), {}, {}, id="not-under-a-job"),
        pytest.param((HERE, failing()), repair("RecreatePod", pod="p"), {"looked_at": frozenset({0})}, {}, id="not-under-a-check"),
        pytest.param((HERE, failing()), repair("RecreatePod", pod="p"), {"silent": True}, {}, id="not-while-slurm-is-silent"),
        pytest.param((HERE, failing("IDLE DRAIN", "fan is loud")), repair("RecreatePod", pod="p"), {}, {}, id="not-under-an-administrator"),
        pytest.param(
            (HERE, failing()),
            repair("RecreatePod", pod="p"),
            {"machines": {"m-1": Machine(is_cordoned=True, identity="i-1")}},
            {},
            id="not-on-a-cordoned-machine",
        ),
        pytest.param((HERE, failing()), repair("RecreatePod", pod="p"), {"machines": {}}, {}, id="not-where-the-kubernetes-node-is-gone"),
        pytest.param(
            (HERE, failing("IDLE", "")), repair("RecreatePod", pod="p"), {}, {"drain": {REMEDY: (0,)}}, id="drained-again-where-lifted"
        ),
        pytest.param((HERE, node("DOWN CLOUD", "Not responding")), repair("Draining"), {}, {"drain": {REMEDY: (0,)}}, id="down-is-drained"),
        pytest.param(
            (HERE, node("IDLE DRAIN", HELD)),
            repair("RebootMachine", machine="i-1", boot="b-1", asked_at=NOW - 5),
            {},
            {"drain": {REMEDY: (0,)}},
            id="held-until-the-machine-has-booted",
        ),
        pytest.param((HERE, node("IDLE DRAIN", REMEDY)), None, {"drained_at": {0: NOW - 9}}, {"undrain": (0,)}, id="lifted-afterwards"),
    ],
)
def test_steps_on_pods(worker: Any, stored: Repair | None, facts: dict[str, Any], acts: dict[str, Any]) -> None:
    seen = look(worker, repairs=at(stored) if stored else Repairs(), **_with_machines(facts))
    assert acts_of(planned(ALL, seen)) == acts


REBOOT = repair("RebootMachine", NOW - 5, machine="i-1", boot="b-1")


@pytest.mark.parametrize(
    ("worker", "stored", "facts", "asks"),
    [
        pytest.param((HERE, failing()), REBOOT, {}, True, id="free"),
        pytest.param((HERE, failing("MIXED DRAIN")), REBOOT, {}, False, id="busy"),
        pytest.param((HERE, failing("IDLE", "")), REBOOT, {}, False, id="not-drained"),
        pytest.param((HERE, failing()), REBOOT, {"silent": True}, False, id="slurm-is-silent"),
        pytest.param((HERE, failing()), REBOOT, {"looked_at": frozenset({0})}, False, id="a-check-looks"),
        pytest.param((HERE, failing("IDLE DRAIN", "fan is loud")), REBOOT, {}, False, id="administrator"),
        pytest.param((HERE, failing()), REBOOT, {"machines": {"m-1": Machine(identity="i-2")}}, False, id="another-machine"),
        pytest.param((HERE, failing()), REBOOT, {"machines": {"m-1": Machine(identity="i-1", workers=2)}}, False, id="two-workers"),
        pytest.param((HERE, failing()), repair("RebootMachine", machine="i-1", asked_at=NOW), {}, False, id="asked-already"),
        pytest.param((pod(machine="m-1", terminating=True), failing()), REBOOT, {}, False, id="its-pod-goes"),
    ],
)
def test_machine_is_asked_for_only_where_no_job_can_be(worker: Any, stored: Repair, facts: dict[str, Any], asks: bool) -> None:
    seen = look(worker, repairs=at(stored), **_with_machines(facts))
    made = planned(ALL, seen)
    assert bool(made.repairs.machines) == asks
    assert not asks or made.needs_fresh_reading


@pytest.mark.parametrize(
    ("machine", "state"),
    [
        pytest.param(Machine(identity="i-1", boot="b-1"), "RebootMachine", id="not-yet"),
        pytest.param(Machine(identity="i-1", boot="b-2"), "Verifying", id="has-booted"),
        pytest.param(Machine(identity="i-1", boot="b-2", answers=False), "RebootMachine", id="does-not-answer-yet"),
        pytest.param(Machine(identity="i-2", boot="b-9"), "Verifying", id="another-machine"),
    ],
)
def test_reboot_is_over_when_the_machine_says_so(machine: Machine, state: str) -> None:
    stored = repair("RebootMachine", NOW - 50, machine="i-1", boot="b-1", asked_at=NOW - 50)
    assert state_of(planned(ALL, look((HERE, failing()), machines={"m-1": machine}, repairs=at(stored)))) == state


def test_late_replacement_is_given_up_and_still_taken_when_it_arrives() -> None:
    stored = repair("ReplaceMachine", NOW - 9000, "RecreatePod", "RebootMachine", "ReplaceMachine", machine="i-1", asked_at=NOW - 3600)
    waits = look((None, failing("DOWN DRAIN")), repairs=at(stored))
    late = planned(ALL, waits).repairs.record
    assert late.nodes[0].state == "Verifying"
    given_up = planned(ALL, look((None, failing("DOWN DRAIN")), now=NOW + 9000, repairs=late)).repairs.record
    assert given_up.nodes[0].state == "GivenUp"
    arrived = look((pod(machine="m-1"), node()), machines={"m-1": Machine(identity="i-2")}, repairs=given_up, now=NOW + 9999)
    assert state_of(planned(ALL, arrived)) == "InService"


def test_new_machine_has_a_clean_record() -> None:
    stored = repair("InService", LONG_AGO, "RecreatePod", "RebootMachine")
    there = {"m-1": Machine(identity="i-2")}
    again = planned(ALL, look((HERE, failing()), machines=there, repairs=at(stored))).repairs.record
    later = look((HERE, failing(looked=NOW + 5000)), machines=there, repairs=again, now=NOW + 5000)
    assert state_of(planned(ALL, later)) == "RecreatePod"


def test_machine_that_fails_again_gets_the_next_step_after_twice_the_time() -> None:
    again = planned(ALL, look((HERE, failing()), machines=MACHINES, repairs=at(repair("InService", LONG_AGO, "RecreatePod"))))
    states = [
        state_of(planned(ALL, look((HERE, failing()), machines=MACHINES, repairs=again.repairs.record, now=NOW + later)))
        for later in (300, 600)
    ]
    assert states == ["Suspect", "RebootMachine"]


def test_caps_hold_over_the_whole_set() -> None:
    policy = RemedyPolicy(("RecreatePod",), max_per_day=2, systemic_percent=100)
    done = repair("InService", LONG_AGO, "RecreatePod")
    seen = look(
        *[IDLE, *[(HERE, failing())] * 3], machines=MACHINES, repairs=Repairs({0: done, **dict.fromkeys((1, 2, 3), repair("Draining"))})
    )
    made = planned(policy, seen, replicas=4)
    assert [state_of(made, ordinal) for ordinal in range(4)] == ["InService", "RecreatePod", "Draining", "Draining"]
    assert made.repairs.capped == {"RecreatePod": (2, 3)}


def test_no_more_at_once_than_may_fail() -> None:
    policy = RemedyPolicy(("RecreatePod",), systemic_percent=50)
    seen = look(*[(HERE, failing())] * 3, IDLE, machines=MACHINES, repairs=at(*[repair("Draining", began=NOW - 5000)] * 3))
    made = planned(policy, seen, replicas=4)
    assert [state_of(made, ordinal) for ordinal in range(3)] == ["RecreatePod", "RecreatePod", "Draining"]


def test_300_nodes_failing_together_are_neither_drained_nor_repaired() -> None:
    open_ = (HERE, failing("IDLE", ""))
    seen = look(*[open_] * 300, *[IDLE] * 700, machines=MACHINES)
    made = plan_nodeset(nodeset(replicas=1000, ordinals=1000, remedies=ALL), seen)
    assert (made.repairs.is_systemic, made.drains.drain, made.repairs.held) == (True, {}, ())
    assert len(build_repairs("gpu", made.repairs.record)) == 1


def test_three_hundred_failures_within_a_minute_meet_every_cap() -> None:
    """One hundred of the thousand may fail, and ten get a new pod in a day. Those that fail first are drained, and wait for ten seconds
    only, before anybody can tell that the cause is systemic."""
    policy = RemedyPolicy(("RecreatePod",), wait_seconds=10)
    declared, repairs, drained = nodeset(replicas=1000, ordinals=1000, remedies=policy), Repairs(), set[int]()
    for second in range(0, 60, 2):
        failed = range(5 * (second + 2))
        workers = [(HERE, failing() if ordinal in drained else failing("IDLE", "")) for ordinal in failed]
        seen = look(*workers, *[IDLE] * (1000 - len(failed)), now=NOW + second, machines=MACHINES, repairs=repairs)
        made = plan_nodeset(declared, seen)
        drained |= {ordinal for ordinals in made.drains.drain.values() for ordinal in ordinals}
        repairs = made.repairs.record
        assert not (made.repairs.is_systemic and made.deletions.free)
    assert (len(drained), repairs.systemic_since is not None) == (100, True)
    assert sum(len(each.steps) for each in repairs.nodes.values()) == policy.max_per_day == 10


@pytest.mark.parametrize(
    ("fail", "since", "is_systemic"),
    [
        pytest.param(2, None, False, id="as-many-as-may"),
        pytest.param(3, None, True, id="one-more"),
        pytest.param(2, SOON, True, id="fewer-do-not-end-it"),
        pytest.param(1, SOON, False, id="half-as-many-do"),
    ],
)
def test_brake_has_a_hysteresis(fail: int, since: float | None, is_systemic: bool) -> None:
    seen = look(*[(HERE, failing())] * fail, *[IDLE] * (20 - fail), machines=MACHINES, repairs=Repairs(systemic_since=since))
    made = plan_nodeset(nodeset(replicas=20, ordinals=20, remedies=ALL), seen)
    assert made.repairs.is_systemic == is_systemic


def test_brake_holds_beyond_the_window_while_all_still_fail() -> None:
    repairs = Repairs(dict.fromkeys(range(3), repair("Suspect", NOW - 9000, began=NOW - 9000)), NOW - 9000)
    seen = look(*[(HERE, failing())] * 3, *[IDLE] * 17, machines=MACHINES, repairs=repairs)
    made = plan_nodeset(nodeset(replicas=20, ordinals=20, remedies=ALL), seen)
    assert made.repairs.is_systemic
    assert not [each for each in made.repairs.record.nodes.values() if each.state != "Suspect"]


@pytest.mark.parametrize(
    ("worker", "state", "is_told"),
    [
        pytest.param(node("IDLE DRAIN", REMEDY), "Verifying", True, id="no-answer"),
        pytest.param(node("IDLE DRAIN", REMEDY, failed_at={"disk": NOW - 7000}), "Verifying", True, id="an-answer-before-the-step"),
        pytest.param(node("IDLE DRAIN", REMEDY, failed_at={"disk": NOW - 10}), "RebootMachine", False, id="a-failure-after-it"),
        pytest.param(node("DOWN DRAIN", REMEDY), "RebootMachine", False, id="a-node-that-has-not-come-back"),
    ],
)
def test_machine_is_touched_for_a_failure_and_never_for_a_missing_answer(worker: Any, state: str, is_told: bool) -> None:
    policy, stored = msgspec.structs.replace(ALL, verified_by=("disk",)), repair("Verifying", NOW - 6000, "RecreatePod", machine="i-1")
    seen = look((HERE, worker), machines=MACHINES, repairs=at(stored), drained_at={0: NOW - 6000})
    declared = nodeset(replicas=1, remedies=policy, check_jobs=("disk",))
    made = plan_nodeset(declared, seen)
    told = with_outlooks(declared, made.repairs, find_causes_of(declared, seen, made.reasons), seen)
    assert (state_of(made), any("No check has answered" in cause.next for cause in told[0])) == (state, is_told)
    assert (made.repairs.held, made.resumes.writes_to_slurm) == ((0,), False)


@pytest.mark.parametrize(("confirms", "state"), [("disk", "RecreatePod"), ("gpu", "Suspect")], ids=["confirmed", "not-confirmed"])
def test_deeper_check_confirms_a_fault(confirms: str, state: str) -> None:
    policy = msgspec.structs.replace(POD_ONLY, confirmed_by=confirms)
    assert state_of(planned(policy, look((HERE, failing()), machines=MACHINES, repairs=at(repair("Suspect"))))) == state


def test_lost_machine_gets_no_new_pod() -> None:
    lost = {"m-1": Machine(identity="i-1", answers=False)}
    seen = look((HERE, node("IDLE DRAIN", REMEDY)), machines=lost, repairs=at(repair("Draining")), drained_at={0: NOW})
    assert state_of(planned(ALL, seen)) == "RebootMachine"
    assert state_of(planned(POD_ONLY, look((HERE, node("IDLE", "")), machines=lost, repairs=at(repair("Suspect"))))) == "GivenUp"


def test_without_a_policy_only_a_requested_reboot_is_waited_for() -> None:
    asked = repair("RebootMachine", machine="i-1", boot="b-1", asked_at=NOW)
    made = planned(
        None, look((HERE, failing()), (HERE, failing()), machines=MACHINES, repairs=at(asked, repair("RecreatePod", pod="p"))), 2
    )
    assert (dict(made.repairs.record.nodes), made.repairs.held) == ({0: asked}, (0,))
    assert acts_of(made) == {}


def test_busy_node_beside_faulty_ones_is_left_alone() -> None:
    made = planned(ALL, look(BUSY, (HERE, failing()), machines=MACHINES), 2)
    assert made.repairs.record.nodes.keys() == {1}


@pytest.mark.parametrize(
    "repairs",
    [
        pytest.param(at(REBOOT, repair("GivenUp", LONG_AGO, "RecreatePod")), id="one-each"),
        pytest.param(at(*[repair("Suspect")] * 5, systemic_since=LONG_AGO), id="many-alike"),
        pytest.param(RepairPlan(at(REBOOT)).with_asked({0: NOW + 0.7}).record, id="asked"),
    ],
)
def test_status_brings_repairs_back(repairs: Repairs) -> None:
    status = NodeSetStatus(repairs=build_repairs("gpu", repairs), systemic_since=rfc3339_or_empty(repairs.systemic_since))
    assert read_repairs("gpu", msgspec.json.decode(msgspec.json.encode(status), type=NodeSetStatus)) == repairs
