"""What a health check does next, as one truth table."""

from dataclasses import dataclass, replace

import pytest

from programs.node_checks.plan import (
    NOT_STARTED,
    Done,
    Drain,
    Note,
    Outcome,
    Release,
    Reservation,
    Reserve,
    Resume,
    Run,
    Step,
    actions,
    next_step,
    plan_checks,
    reason_prefix,
)
from slurm import reasons
from slurm.check_results import FAILED, PASSED, SKIPPED, UNKNOWN
from slurm.scontrol import Node
from slurm.states import node_state
from tests.support.law import Law, every_state

OURS = "slipway: check disk: / is read-only"
HELD = Reservation("slipway-check-gpu-0", "gpu-0", f"slipway: check disk: {OURS}")
OLDER = Reservation("slipway-check-disk-gpu-0", "gpu-0", OURS)
"""As earlier releases made it."""
THEIRS = Reservation("slipway-check-gpu-0", "gpu-0", f"slipway: check memory: {OURS}")
PASS = Outcome(PASSED, "fine")
FAIL = Outcome(FAILED, "/ has 3 MiB free")
UNSURE = Outcome(UNKNOWN, "did not end within 60 s")
BUSY = Outcome(SKIPPED, "busy")
SPARED = replace(FAIL, is_spared=True)
DRAIN = Drain("slipway: check disk: / has 3 MiB free")


def node(*state: str, reason: str = "", user: str = "") -> Node:
    return Node("gpu-0", node_state(state), reason, user, ("main",))


@dataclass(frozen=True)
class Noted:
    """An outcome that is written down."""

    outcome: Outcome


IDLE = node("IDLE", "CLOUD")
DRAINED = node("IDLE", "CLOUD", "DRAIN", reason=OURS)
RESUMED = node("IDLE", "CLOUD", "RESERVED", "MAINTENANCE")
DOWN = node("DOWN", reason="no power", user="alice")
ADMIN = node("IDLE", "DRAIN", reason="fan is loud", user="alice")
OTHER_CHECK = node("IDLE", "DRAIN", reason="slipway: check disk-2: / is read-only")
STOPPING = node("IDLE", "DRAIN", reason="slipway: pod stopping", user="root")

TABLE = [
    # An idle node.
    pytest.param(IDLE, None, None, Run(None), id="idle-is-checked"),
    pytest.param(node("IDLE", "PLANNED"), None, None, Run(None), id="planned-for-a-later-job-is-idle-now"),
    pytest.param(IDLE, None, PASS, Done(PASS), id="passed-stays"),
    pytest.param(IDLE, None, FAIL, Note(), id="failed-is-noted-first"),
    pytest.param(IDLE, None, Noted(FAIL), DRAIN, id="failed-and-noted-is-drained"),
    pytest.param(IDLE, None, Noted(SPARED), Done(SPARED), id="failed-beyond-the-cap-keeps-its-jobs"),
    pytest.param(IDLE, None, UNSURE, Done(UNSURE), id="unknown-never-drains"),
    pytest.param(node("MIXED"), None, BUSY, Done(BUSY), id="got-busy-meanwhile-is-skipped"),
    pytest.param(
        IDLE,
        None,
        BUSY,
        Done(NOT_STARTED),
        id="called-busy-but-idle-is-unknown",
    ),
    pytest.param(node("DOWN", "NOT_RESPONDING"), None, Noted(FAIL), DRAIN, id="failed-then-down-is-drained"),
    pytest.param(DOWN, None, Noted(FAIL), Done(FAIL), id="words-of-who-set-it-down-meanwhile-stay"),
    pytest.param(DRAINED, None, Noted(FAIL), Done(FAIL), id="failed-and-drained-is-done"),
    pytest.param(OTHER_CHECK, None, Noted(FAIL), Done(FAIL), id="failed-and-drained-for-another-check-is-done"),
    # Not the moment.
    pytest.param(node("ALLOCATED"), None, None, Done(BUSY), id="allocated-is-skipped"),
    pytest.param(node("MIXED", "CLOUD"), None, None, Done(BUSY), id="mixed-is-skipped"),
    pytest.param(node("IDLE", "COMPLETING"), None, None, Done(BUSY), id="completing-is-skipped"),
    pytest.param(node("ALLOCATED", "DRAIN", reason=OURS), None, None, Done(BUSY), id="our-drain-with-jobs-left-waits"),
    pytest.param(node("IDLE", "RESERVED"), None, None, Done(Outcome(SKIPPED, "kept for others: IDLE RESERVED")), id="reserved-by-others"),
    pytest.param(
        node("IDLE", "MAINTENANCE", "DRAIN", reason=OURS),
        None,
        None,
        Done(Outcome(SKIPPED, "kept for others: DRAIN IDLE MAINTENANCE")),
        id="our-drain-under-maintenance-of-others",
    ),
    pytest.param(node("IDLE", "POWERED_DOWN"), None, None, Done(Outcome(SKIPPED, "powered down: IDLE POWERED_DOWN")), id="powered-down"),
    # Cannot run.
    pytest.param(None, None, None, Done(Outcome(UNKNOWN, "Slurm has no node gpu-0")), id="no-such-node-is-unknown"),
    pytest.param(node("DOWN"), None, None, Done(Outcome(UNKNOWN, "the node does not answer: DOWN")), id="down-is-unknown"),
    pytest.param(
        node("IDLE", "NOT_RESPONDING"),
        None,
        None,
        Done(Outcome(UNKNOWN, "the node does not answer: IDLE NOT_RESPONDING")),
        id="silent-is-unknown",
    ),
    pytest.param(
        node("SURPRISE"), None, None, Done(Outcome(UNKNOWN, "in a state that is not known here: SURPRISE")), id="new-state-is-unknown"
    ),
    # Drained by others.
    pytest.param(ADMIN, None, None, Done(Outcome(SKIPPED, "drained by alice: fan is loud")), id="drained-by-an-administrator"),
    pytest.param(STOPPING, None, None, Done(Outcome(SKIPPED, "drained by root: slipway: pod stopping")), id="drained-by-a-stopping-pod"),
    pytest.param(ADMIN, None, FAIL, Note(), id="failed-is-noted-below-the-drain-of-others"),
    pytest.param(ADMIN, None, Noted(FAIL), Done(FAIL), id="failed-but-others-drained-it-meanwhile"),
    pytest.param(ADMIN, HELD, None, Release(HELD), id="others-took-over-a-reserved-node"),
    pytest.param(ADMIN, HELD, PASS, Note(), id="passed-is-noted-below-the-drain-of-others"),
    pytest.param(ADMIN, HELD, Noted(PASS), Release(HELD), id="others-drained-it-while-it-passed"),
    pytest.param(ADMIN, HELD, Noted(FAIL), Release(HELD), id="others-drained-it-while-it-failed"),
    # Drained by a check: look again.
    pytest.param(DRAINED, None, None, Reserve(HELD), id="our-drain-is-reserved-first"),
    pytest.param(
        OTHER_CHECK,
        None,
        None,
        Reserve(replace(HELD, comment="slipway: check disk: slipway: check disk-2: / is read-only")),
        id="drain-of-another-check-hides-no-fault-from-this-one",
    ),
    pytest.param(DRAINED, HELD, None, Resume(), id="then-resumed-inside-the-reservation"),
    pytest.param(RESUMED, HELD, None, Run(HELD), id="then-checked-there"),
    pytest.param(RESUMED, HELD, PASS, Drain(OURS), id="passed-is-drained-again-as-only-the-controller-lifts"),
    pytest.param(DRAINED, HELD, PASS, Note(), id="then-noted"),
    pytest.param(DRAINED, HELD, Noted(PASS), Release(HELD), id="then-let-go"),
    pytest.param(RESUMED, HELD, Noted(PASS), Release(HELD), id="lifted-by-the-controller-and-let-go"),
    pytest.param(RESUMED, HELD, FAIL, Note(), id="failed-is-noted-inside-the-reservation"),
    pytest.param(RESUMED, HELD, Noted(FAIL), Drain(OURS), id="failed-is-drained-again"),
    pytest.param(RESUMED, OLDER, Noted(FAIL), Drain(OURS), id="reservation-of-an-earlier-release-has-the-reason-alone"),
    pytest.param(RESUMED, HELD, UNSURE, Drain(OURS), id="unknown-is-drained-again"),
    pytest.param(DOWN, HELD, UNSURE, Drain("no power"), id="set-down-meanwhile-is-drained-with-those-words"),
    pytest.param(RESUMED, HELD, BUSY, Drain(OURS), id="could-not-start-is-drained-again"),
    pytest.param(DRAINED, HELD, Noted(FAIL), Release(HELD), id="drained-again-and-let-go"),
    pytest.param(DRAINED, HELD, UNSURE, Release(HELD), id="unknown-drained-again-and-let-go"),
    pytest.param(node("ALLOCATED", "RESERVED"), HELD, Noted(FAIL), Drain(OURS), id="failed-while-its-job-ends"),
    # Another check looks at it.
    pytest.param(DRAINED, THEIRS, None, Done(BUSY), id="reserved-by-another-check-is-waited-for"),
    pytest.param(RESUMED, THEIRS, None, Done(BUSY), id="resumed-by-another-check-is-waited-for"),
    pytest.param(RESUMED, THEIRS, FAIL, Note(), id="failed-before-another-check-reserved-it-is-noted"),
    pytest.param(RESUMED, THEIRS, Noted(FAIL), Done(FAIL), id="and-left-to-that-check-and-the-controller"),
    pytest.param(None, THEIRS, None, Done(Outcome(UNKNOWN, "Slurm has no node gpu-0")), id="reservation-of-another-check-stays"),
    # Left over by a run that was killed.
    pytest.param(node("DOWN", "DRAIN", reason=OURS), HELD, None, Release(HELD), id="left-over-on-a-node-that-is-down-and-drained"),
    pytest.param(node("DOWN", "RESERVED"), HELD, None, Drain(OURS), id="left-over-resumed-node-that-is-down-is-drained-again"),
    pytest.param(
        node("ALLOCATED", "RESERVED"),
        HELD,
        None,
        Done(Outcome(UNKNOWN, "the job of an earlier run has not ended; the node stays reserved until the next run")),
        id="left-over-job-still-runs",
    ),
    pytest.param(None, HELD, None, Release(HELD), id="left-over-of-a-node-that-is-gone"),
]


@pytest.mark.parametrize(("seen", "held", "found", "step"), TABLE)
def test_next_step(seen: Node | None, held: Reservation | None, found: Outcome | Noted | None, step: Step) -> None:
    outcome = found.outcome if isinstance(found, Noted) else found
    assert next_step("disk", "gpu-0", seen, held, outcome, isinstance(found, Noted)) == step


def test_plan_covers_chosen_nodes_and_what_earlier_runs_left() -> None:
    nodes = {"gpu-0": RESUMED, "gpu-1": IDLE, "cpu-0": IDLE}
    assert plan_checks("disk", ["gpu-1", "gpu-2"], nodes, {"gpu-0": HELD, "cpu-0": THEIRS}) == {
        "gpu-1": Run(None),
        "gpu-2": Done(Outcome(UNKNOWN, "Slurm has no node gpu-2")),
        "gpu-0": Run(HELD),
    }


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        pytest.param("a\nb\tc", "slipway: check disk: a b c", id="one-line"),
        pytest.param('it\'s "full"', "slipway: check disk: it s full", id="no-quotes"),
        pytest.param("größe", "slipway: check disk: gr e", id="ascii"),
        pytest.param("x" * 500, "slipway: check disk: " + "x" * 219, id="bounded"),
    ],
)
def test_reason_is_safe_for_slurm(found: str, reason: str) -> None:
    assert reasons.check("disk", found) == reason


def test_no_check_takes_the_reason_of_another_for_its_own() -> None:
    assert not reasons.check("disk-2", "full").startswith(reason_prefix("disk"))


@pytest.mark.parametrize(
    ("steps", "outcome", "action"),
    [
        pytest.param([Run(None)], PASS, "", id="passed"),
        pytest.param([Run(None), Note(), Drain("x")], FAIL, "drained", id="failed"),
        pytest.param([Run(None), Note()], FAIL, "drained", id="failed-and-the-controller-was-faster"),
        pytest.param([Reserve(HELD), Resume(), Run(HELD), Drain("x"), Note(), Release(HELD)], PASS, "cleared", id="passed-again"),
        pytest.param([Reserve(HELD), Resume(), Run(HELD), Drain("x"), Release(HELD)], FAIL, "drained", id="failed-again"),
        pytest.param([Reserve(HELD), Resume(), Run(HELD), Drain("x"), Release(HELD)], UNSURE, "kept drained", id="unknown-again"),
    ],
)
def test_action_says_what_came_of_it(steps: list[Step], outcome: Outcome, action: str) -> None:
    assert actions(steps, outcome, DRAINED) == action


@pytest.mark.parametrize("seen", [pytest.param(ADMIN, id="drained-by-others"), pytest.param(IDLE, id="spared")])
def test_failure_that_drained_nothing_says_so(seen: Node) -> None:
    assert actions([Run(None), Note()], FAIL, seen) == ""


def lawful(law: Law) -> Node:
    words = [word for word in law.words.split("+") if word]
    return node(*words, reason=OURS if "DRAIN" in words else "")


@every_state
def test_check_runs_on_no_node_where_a_job_may_be(law: Law) -> None:
    step = next_step("disk", "gpu-0", lawful(law), None, None)
    is_idle = law.words.startswith("IDLE") and (law.may_be_drained or law.is_free) and "COMPLETING" not in law.words
    assert is_idle or isinstance(step, Done)


@every_state
def test_failed_check_drains_no_node_that_wakes_or_whose_state_is_unknown(law: Law) -> None:
    step = next_step("disk", "gpu-0", lawful(law), None, FAIL, is_noted=True)
    assert isinstance(step, Drain) == law.may_be_drained
