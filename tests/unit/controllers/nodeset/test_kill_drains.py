"""Slurm's drain of a node where processes of a job did not end: whose it is, what is done about it, and when it is lifted."""

from typing import Any

import pytest

from controllers.nodeset.observed import Repair, Repairs, TakenStep
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.plans.causes import find_causes_of
from controllers.nodeset.structs import RemedyPolicy
from controllers.nodeset.workers import Machine
from slurm.check_results import Failure
from slurm.reasons import KILL_FAILED
from tests.support.controllers.nodeset.examples import NOW, acts_of, look, node, nodeset, pod

DRAINED_AT, STEP_AT = NOW - 900, NOW - 500
POD_ONLY = RemedyPolicy(("RecreatePod",))
REBOOTS = RemedyPolicy(("RecreatePod", "RebootMachine"), machines="Webhook", webhook="https://repairs.example")
REPLACES = RemedyPolicy(("RecreatePod", "ReplaceMachine"), machines="DeleteNode")
HARDWARE = RemedyPolicy(("RecreatePod",), causes=("hardware",))
FULL = Failure("2026-01-01T00:00:00Z", "full", "node")


def stuck(reason: str = KILL_FAILED, by: str = "root", words: str = "IDLE DRAIN", **facts: Any) -> Any:
    return node(words, reason, **{"reason_by": by, "reason_at": DRAINED_AT, **facts})


def after(step: Any, state: Any = "Verifying", at: float = STEP_AT) -> Repairs:
    return Repairs({0: Repair(state, NOW - 100, DRAINED_AT, pod="p", machine="i-1", boot="b-1", steps=(TakenStep(step, at, "i-1"),))})


@pytest.mark.parametrize(
    ("known", "policy", "name", "wish"),
    [
        pytest.param(stuck(), None, "kill-task-failed", "drain", id="without-a-policy"),
        pytest.param(stuck(by="slurm"), REBOOTS, "kill-task-failed", "reboot", id="by-slurmctld"),
        pytest.param(stuck(f"{KILL_FAILED} : Not responding"), REPLACES, "kill-task-failed", "replace", id="and-silent"),
        pytest.param(stuck(by="carol"), REBOOTS, "administrator", "drain", id="words-of-a-person"),
        pytest.param(stuck(by=""), REBOOTS, "slurmctld", "drain", id="nobody-says-whose"),
        pytest.param(stuck("Epilog error"), REBOOTS, "slurmctld", "drain", id="epilog"),
        pytest.param(stuck("batch job complete failure"), REBOOTS, "slurmctld", "drain", id="batch-job"),
        pytest.param(stuck("fan is loud"), REBOOTS, "administrator", "drain", id="administrator"),
    ],
)
def test_reason_of_slurm_is_no_administrators(known: Any, policy: RemedyPolicy | None, name: str, wish: str) -> None:
    [cause] = find_causes_of(nodeset(replicas=1, remedies=policy), look((pod(), known)), {})[0]
    assert (cause.name, cause.wish) == (name, wish)


OLD_POD, NEW_POD = pod(uid="p", machine="m"), pod(uid="q", machine="m")
SAME, BOOTED, OTHER = (Machine(identity=one, boot=boot) for one, boot in (("i-1", "b-1"), ("i-1", "b-2"), ("i-2", "b-9")))


@pytest.mark.parametrize(
    ("policy", "made", "known", "machine", "repairs", "expected"),
    [
        pytest.param(REBOOTS, OLD_POD, stuck(), BOOTED, after("RebootMachine"), {"undrain": (0,)}, id="booted"),
        pytest.param(REBOOTS, NEW_POD, stuck(), SAME, after("RebootMachine"), {}, id="a-new-pod-is-no-reboot"),
        pytest.param(POD_ONLY, NEW_POD, stuck(), SAME, after("RecreatePod"), {"undrain": (0,)}, id="new-pod"),
        pytest.param(POD_ONLY, OLD_POD, stuck(), SAME, after("RecreatePod"), {}, id="same-pod"),
        pytest.param(REPLACES, NEW_POD, stuck(), OTHER, after("ReplaceMachine"), {"undrain": (0,)}, id="other-machine"),
        pytest.param(POD_ONLY, NEW_POD, stuck(reason_at=NOW), SAME, after("RecreatePod"), {}, id="drained-after-the-step"),
        pytest.param(POD_ONLY, NEW_POD, stuck(by="carol"), SAME, after("RecreatePod"), {}, id="a-persons-stays"),
        pytest.param(HARDWARE, NEW_POD, stuck(), SAME, after("RecreatePod"), {}, id="policy-about-hardware"),
        pytest.param(None, NEW_POD, stuck(), SAME, after("RecreatePod"), {}, id="no-policy"),
        pytest.param(POD_ONLY, NEW_POD, stuck(), SAME, Repairs(), {}, id="no-repair"),
        pytest.param(
            *(POD_ONLY, NEW_POD, stuck(failures={"disk": FULL}), SAME, after("RecreatePod")),
            {"drain": {"slipway: check disk: full": (0,)}},
            id="a-check-holds-it-still",
        ),
    ],
)
def test_drain_is_lifted_only_after_a_step_that_has_ended_what_hung(
    policy: Any, made: Any, known: Any, machine: Machine, repairs: Repairs, expected: dict[str, Any]
) -> None:
    seen = look((made, known), machines={"m": machine}, repairs=repairs)
    assert acts_of(plan_nodeset(nodeset(replicas=1, remedies=policy), seen)) == expected


@pytest.mark.parametrize(
    ("words", "state", "following"),
    [("IDLE DRAIN", "Draining", "RebootMachine"), ("MIXED DRAIN", "Draining", "Draining"), ("IDLE DRAIN", "Suspect", "RebootMachine")],
    ids=["free", "other-jobs-run", "it-lasted"],
)
def test_machine_is_rebooted_once_no_job_is_there(words: str, state: Any, following: str) -> None:
    repairs = Repairs({0: Repair(state, NOW - 400, NOW - 400)})
    made = plan_nodeset(nodeset(replicas=1, remedies=REBOOTS), look((OLD_POD, stuck(words=words)), machines={"m": SAME}, repairs=repairs))
    assert (made.repairs.record.nodes[0].state, acts_of(made)) == (following, {})
