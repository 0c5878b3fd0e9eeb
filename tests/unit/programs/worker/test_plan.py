"""What a worker does about its node: before slurmd starts, while it runs, before the pod ends."""

import pytest

from programs.worker.plan import (
    Drain,
    Leave,
    Lift,
    Remark,
    Restart,
    SetDown,
    SetInstance,
    Wait,
    needs_boot,
    plan_gpus,
    plan_instance,
    plan_remark,
    plan_settle,
    plan_stop,
    plan_watch,
)
from slurm.scontrol import Node
from slurm.states import node_state
from tests.support.law import Law, every_state

OURS = "slipway: pod stopping"


def node(words: str, reason: str = "") -> Node:
    return Node("gpu-0", node_state(word for word in words.split("+") if word), reason)


@every_state
def test_stop_leaves_only_free_nodes_and_drains_only_drainable_ones(law: Law) -> None:
    step = plan_stop("gpu-0", node(law.words), has_steps=False)
    assert isinstance(step, Leave) == law.is_free
    assert isinstance(step, Drain) == (law.may_be_drained and not law.is_free)


@pytest.mark.parametrize(
    ("words", "reason", "kept"),
    [
        pytest.param("DOWN+CLOUD", "fan is loud", "fan is loud", id="a-persons"),
        pytest.param("DOWN+CLOUD+NOT_RESPONDING", "fan is loud : Not responding", "fan is loud", id="a-persons-with-slurms-behind"),
        pytest.param("DOWN+CLOUD+NOT_RESPONDING", "Not responding", OURS, id="slurms"),
        pytest.param("DOWN+CLOUD", "slipway: cordon worker-3", OURS, id="ours"),
        pytest.param("IDLE+CLOUD", "fan was loud", OURS, id="of-a-node-that-is-up"),
    ],
)
def test_stop_keeps_the_words_of_a_person_who_set_the_node_down(words: str, reason: str, kept: str) -> None:
    assert plan_stop("gpu-0", node(words, reason), has_steps=False) == Drain(kept)


@pytest.mark.parametrize(("has_steps", "step"), [pytest.param(True, Wait, id="steps-run"), pytest.param(False, Leave, id="none")])
def test_stop_leaves_a_node_that_slurm_does_not_know_once_no_step_runs(has_steps: bool, step: type) -> None:
    assert isinstance(plan_stop("gpu-0", None, has_steps), step)


@pytest.mark.parametrize("words", ["IDLE+CLOUD+POWERED_DOWN", "IDLE+CLOUD+POWERING_DOWN"])
def test_stop_waits_for_steps_on_a_node_that_slurm_takes_for_off(words: str) -> None:
    """slurmctld has lost its state: it knows neither the node nor the job, which runs on."""
    assert isinstance(plan_stop("gpu-0", node(words), has_steps=True), Wait)


def test_stop_leaves_steps_of_jobs_that_slurm_has_given_up() -> None:
    """Their machine was away for long: they are back in the queue, and may run elsewhere."""
    assert isinstance(plan_stop("gpu-0", node("DOWN+CLOUD+NOT_RESPONDING+POWERED_DOWN"), has_steps=True), Leave)


@every_state
def test_start_says_down_only_where_jobs_had_begun(law: Law) -> None:
    assert isinstance(plan_settle(node(law.words)), SetDown) == law.jobs_began


@pytest.mark.parametrize(
    ("reason", "lifted"),
    [
        pytest.param(OURS, True, id="pod-stopping"),
        pytest.param(f"{OURS} : Not responding", True, id="away-longer-than-slurmd-timeout"),
        pytest.param("slipway: nodeset update : ResumeTimeout reached", True, id="nodeset-update-that-did-not-come-up"),
        pytest.param("slipway: nodeset scale-in", True, id="scale-in"),
        pytest.param("slipway: gpus: 3 GPUs, and the config says 4", True, id="gpus-that-differed"),
        pytest.param("slipway: check disk: / is read-only", False, id="a-check-lifts-its-own"),
        pytest.param("slipway: cordon machine-7", False, id="cordon"),
        pytest.param("fan is loud", False, id="an-administrator"),
        pytest.param("not slipway: pod stopping", False, id="words-in-the-middle"),
        pytest.param("", False, id="nobody-knows"),
    ],
)
@pytest.mark.parametrize("words", ["IDLE+CLOUD+DRAIN", "DOWN+CLOUD+DRAIN+NOT_RESPONDING", "IDLE+CLOUD+DRAIN+POWERED_DOWN"])
def test_start_lifts_the_drain_of_a_pod_by_its_prefix_and_no_other(words: str, reason: str, lifted: bool) -> None:
    assert plan_settle(node(words, reason)) == (Lift(reason) if lifted else None)


FAULT = "3 GPUs, and the config says 4"
GPUS = f"slipway: gpus: {FAULT}"


@pytest.mark.parametrize(
    ("words", "reason", "fault", "change"),
    [
        pytest.param("IDLE+CLOUD", "", FAULT, Drain(GPUS), id="drained"),
        pytest.param("IDLE+CLOUD+POWERED_DOWN", "", FAULT, Drain(GPUS), id="never-registered"),
        pytest.param("MIXED+CLOUD+POWERING_UP+NOT_RESPONDING", "", FAULT, Drain(GPUS), id="a-job-waits-for-it"),
        pytest.param("MIXED+CLOUD", "", FAULT, Drain(GPUS), id="jobs-run"),
        pytest.param("IDLE+CLOUD+DRAIN", GPUS, FAULT, None, id="drained-already"),
        pytest.param("DOWN+CLOUD+DRAIN+NOT_RESPONDING", f"{GPUS} : Not responding", FAULT, None, id="drained-already-and-silent"),
        pytest.param("IDLE+CLOUD+DRAIN", "slipway: gpus: 2 GPUs, and the config says 4", FAULT, Drain(GPUS), id="another-fault"),
        pytest.param("IDLE+CLOUD+DRAIN", GPUS, f"{FAULT} : Not responding", None, id="ends-as-slurmctld-ends-reasons"),
        pytest.param("IDLE+CLOUD+DRAIN", OURS, FAULT, Drain(GPUS), id="of-an-earlier-pod"),
        pytest.param("IDLE+CLOUD+DRAIN", "fan is loud", FAULT, None, id="a-persons-drain"),
        pytest.param("DOWN+CLOUD", "fan is loud", FAULT, None, id="a-persons-down"),
        pytest.param("DOWN+CLOUD+NOT_RESPONDING", "Not responding", FAULT, Drain(GPUS), id="slurms-down"),
        pytest.param("STRANGE", "", FAULT, None, id="unknown-state"),
        pytest.param("IDLE+CLOUD+DRAIN", GPUS, "", Lift(GPUS), id="mended"),
        pytest.param("IDLE+CLOUD+DRAIN", "fan is loud", "", None, id="mended-and-somebody-elses"),
        pytest.param("IDLE+CLOUD", "", "", None, id="nothing-to-do"),
    ],
)
def test_gpus_that_differ_keep_jobs_off_the_node_until_they_do_not(
    words: str, reason: str, fault: str, change: Drain | Lift | None
) -> None:
    assert plan_gpus(node(words, reason), fault) == change


BEFORE_JOBS = "slipway: admission"


@pytest.mark.parametrize(
    ("words", "reason", "change"),
    [
        pytest.param("IDLE+CLOUD+POWERED_DOWN", "", Drain(BEFORE_JOBS), id="never-registered"),
        pytest.param("IDLE+CLOUD", "", Drain(BEFORE_JOBS), id="slurm-has-not-missed-the-last-pod-yet"),
        pytest.param("ALLOCATED+CLOUD+POWERING_UP+NOT_RESPONDING", "", Drain(BEFORE_JOBS), id="a-job-waits-for-it"),
        pytest.param("IDLE+CLOUD+DRAIN", OURS, Drain(BEFORE_JOBS), id="of-an-earlier-pod"),
        pytest.param("IDLE+CLOUD+DRAIN", GPUS, Drain(BEFORE_JOBS), id="gpus-are-right-again"),
        pytest.param("IDLE+CLOUD+DRAIN+UNDRAIN", "", Drain(BEFORE_JOBS), id="about-to-be-undrained"),
        pytest.param("IDLE+CLOUD+DRAIN", BEFORE_JOBS, None, id="drained-already"),
        pytest.param("DOWN+CLOUD+DRAIN+NOT_RESPONDING", f"{BEFORE_JOBS} : Not responding", None, id="drained-already-and-silent"),
        pytest.param("IDLE+CLOUD+DRAIN", "fan is loud", None, id="a-persons-drain"),
        pytest.param("IDLE+CLOUD+DRAIN", "slipway: check disk: full", None, id="a-checks-drain"),
        pytest.param("DOWN+CLOUD", "fan is loud", Drain("fan is loud"), id="a-persons-down-stays-theirs"),
        pytest.param("DOWN+CLOUD", "slipway: pod was replaced", Drain(BEFORE_JOBS), id="jobs-were-given-back"),
        pytest.param("STRANGE", "", Drain(BEFORE_JOBS), id="unknown-state"),
    ],
)
def test_node_is_drained_before_slurmd_starts_if_checks_come_first(words: str, reason: str, change: Drain | None) -> None:
    assert plan_settle(node(words, reason), has_checks_before_jobs=True) == change


@every_state
def test_start_before_checks_never_lifts_a_drain(law: Law) -> None:
    for reason in (GPUS, OURS, BEFORE_JOBS, "fan is loud", ""):
        assert not isinstance(plan_settle(node(law.words, reason), has_checks_before_jobs=True), Lift)


def test_jobs_of_an_earlier_pod_are_released_before_gpus_are_reported() -> None:
    assert isinstance(plan_settle(node("MIXED+CLOUD"), FAULT), SetDown)
    assert plan_settle(node("DOWN+CLOUD", "slipway: pod was replaced"), FAULT) == Drain(GPUS)


@every_state
def test_drain_for_gpus_is_never_lifted_by_a_start_while_they_differ(law: Law) -> None:
    for reason in (GPUS, OURS, "fan is loud", ""):
        assert not isinstance(plan_settle(node(law.words, reason), FAULT), Lift)


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        pytest.param("", "m-1/b-1", SetInstance("m-1/b-1"), id="first-machine"),
        pytest.param("m-1/b-1", "m-1/b-1", None, id="same-machine"),
        pytest.param("m-1/b-1", "m-1/b-2", SetInstance("m-1/b-2"), id="machine-that-booted"),
        pytest.param("m-1/b-1", "m-2/b-9", SetInstance("m-2/b-9"), id="another-machine"),
        pytest.param("m-1/b-1", "", None, id="machine-that-nobody-knows"),
    ],
)
def test_slurm_is_told_of_the_machine_that_the_node_is_on(before: str, now: str, change: SetInstance | None) -> None:
    assert plan_instance(Node("gpu-0", node_state(["IDLE"]), instance=before), now) == change


@pytest.mark.parametrize(
    ("comment", "remark", "change"),
    [
        pytest.param("", "GPU 1", Remark("slipway: gpus: GPU 1"), id="written"),
        pytest.param("slipway: gpus: GPU 1", "GPU 1", None, id="written-already"),
        pytest.param("slipway: gpus: GPU 1", "", Remark(""), id="removed"),
        pytest.param("rack 7", "GPU 1", None, id="a-persons-stays"),
        pytest.param("rack 7", "", None, id="a-persons-stays-where-nothing-is-to-be-said"),
        pytest.param("", "", None, id="nothing-to-say"),
    ],
)
def test_remark_on_gpus_is_the_nodes_comment_unless_a_person_wrote_one(comment: str, remark: str, change: Remark | None) -> None:
    assert plan_remark(Node("gpu-0", node_state(["IDLE"]), comment=comment), remark) == change


def test_node_without_a_drain_has_none_lifted() -> None:
    assert plan_settle(node("DOWN+CLOUD+NOT_RESPONDING", OURS)) is None


def test_jobs_are_released_before_the_undrain_and_the_reason_stays() -> None:
    assert plan_settle(node("MIXED+CLOUD+DRAIN", f"{OURS} : Not responding")) == SetDown(OURS)
    assert plan_settle(node("MIXED+CLOUD")) == SetDown("slipway: pod was replaced")


@pytest.mark.parametrize(
    ("words", "booted"),
    [
        pytest.param("IDLE+CLOUD", False, id="up"),
        pytest.param("IDLE+CLOUD+POWERED_DOWN", True, id="off"),
        pytest.param("MIXED+CLOUD+POWERING_UP", True, id="waking"),
        pytest.param("IDLE+POWER_DOWN", False, id="asked-to-power-down-later"),
    ],
)
def test_slurmd_says_that_it_booted_where_slurm_waits_for_that(words: str, booted: bool) -> None:
    assert needs_boot(node(words)) is booted


WATCHED = [
    pytest.param(node("IDLE+CLOUD"), None, None, id="up"),
    pytest.param(node("IDLE+CLOUD+DRAIN", "fan is loud"), None, None, id="drained-by-others"),
    pytest.param(node("IDLE+CLOUD+DRAIN"), node("IDLE+DRAIN+POWERED_DOWN", "fan is loud"), Drain("fan is loud"), id="their-words-return"),
    pytest.param(
        node("IDLE+CLOUD+DRAIN"),
        node("MIXED+DRAIN+POWERING_UP", "slipway: nodeset update"),
        Lift("slipway: nodeset update"),
        id="our-drain-of-a-waking-node-is-lifted-though-its-reason-is-gone",
    ),
    pytest.param(
        node("IDLE+DRAIN"), node("IDLE+DRAIN+POWERED_DOWN", "slipway: check disk: x"), Drain("slipway: check disk: x"), id="of-a-check"
    ),
    pytest.param(node("IDLE+CLOUD+DRAIN"), node("IDLE+CLOUD+POWERED_DOWN"), None, id="a-drain-that-nobody-saw-is-kept"),
    pytest.param(node("IDLE+CLOUD+DRAIN"), None, None, id="a-drain-of-nobody-is-kept"),
    pytest.param(node("IDLE+CLOUD+DRAIN", OURS), None, Lift(OURS), id="of-an-earlier-pods-hook"),
    pytest.param(node("IDLE+CLOUD+DRAIN", "slipway: nodeset update"), None, None, id="the-controllers-wish-is-kept"),
    pytest.param(node("IDLE+POWERING_UP"), None, Restart(), id="slurm-waits-for-a-start"),
    pytest.param(node("IDLE+CLOUD+POWERED_DOWN"), None, Restart(), id="slurmctld-lost-its-state"),
    pytest.param(node("IDLE+CLOUD+POWERING_DOWN"), None, None, id="on-its-way-down"),
    pytest.param(node("IDLE+POWERING_UP+WARPED"), None, None, id="unknown"),
]


@pytest.mark.parametrize(("now", "before", "change"), WATCHED)
def test_registration_is_looked_after(now: Node, before: Node | None, change: object) -> None:
    assert plan_watch(now, before, is_elastic=False, is_stopping=False, running_s=15, has_steps=False) == change


@pytest.mark.parametrize("words", ["IDLE+CLOUD+POWERED_DOWN", "MIXED+CLOUD+POWERING_UP"])
def test_registration_waits_for_steps_that_slurmctld_has_forgotten(words: str) -> None:
    """It would end them: slurmd says which steps it has, and slurmctld ends those that it does not know."""
    assert plan_watch(node(words), None, is_elastic=False, is_stopping=False, running_s=99, has_steps=True) is None
    assert plan_watch(node(words), None, is_elastic=False, is_stopping=False, running_s=99, has_steps=False) == Restart()


def test_slurmd_gets_time_to_register() -> None:
    assert plan_watch(node("IDLE+POWERING_UP"), None, is_elastic=False, is_stopping=False, running_s=14, has_steps=False) is None


def test_elastic_node_that_is_off_is_the_controllers_to_remove() -> None:
    assert plan_watch(node("IDLE+CLOUD+POWERED_DOWN"), None, is_elastic=True, is_stopping=False, running_s=99, has_steps=False) is None


def test_stopping_pod_keeps_its_own_drain_and_still_comes_up_for_a_job() -> None:
    assert plan_watch(node("IDLE+CLOUD+DRAIN", OURS), None, is_elastic=False, is_stopping=True, running_s=99, has_steps=False) is None
    assert plan_watch(node("IDLE+CLOUD+POWERED_DOWN"), None, is_elastic=False, is_stopping=True, running_s=99, has_steps=False) is None
    assert plan_watch(node("MIXED+CLOUD+POWERING_UP"), None, is_elastic=True, is_stopping=True, running_s=99, has_steps=False) == Restart()
