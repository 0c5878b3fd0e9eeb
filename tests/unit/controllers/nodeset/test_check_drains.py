"""Drains for what health checks have found: the controller lifts them, puts them back, and lets several causes hold one node."""

from typing import Any

import pytest

from controllers.nodeset.observe import Surroundings, observe
from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.workers import Machine
from controllers.slurm.snapshot import Snapshot
from controllers.slurm.structs import Node, Reservation
from slurm.check_results import LAUNCH, CheckResult, Failure, with_result
from slurm.reasons import SCALE_IN
from tests.support.controllers.nodeset.examples import IDLE, NOW, acts_of, look, node, nodeset, pod

SINCE = "2026-01-01T00:00:00Z"
FULL = Failure(SINCE, "/tmp has 3 MiB free", "node")
ECC = Failure(SINCE, "7 uncorrectable errors", "hardware")
NOTED = with_result("", "disk", CheckResult("failed", SINCE, FULL)) or ""
SPARED = Failure(SINCE, "/tmp has 3 MiB free", "node", drains=False)
TOLD = Failure(SINCE, "/tmp has 3 MiB free", "hardware", drains=False, wish="none")
FULL_REASON = "slipway: check disk: /tmp has 3 MiB free"
ECC_REASON = "slipway: check gpu: 7 uncorrectable errors"
LOOKED_AT = frozenset({0})
CORDONED = {"m-1": Machine(is_cordoned=True)}
CORDON = "slipway: cordon m-1"
STOPPING = "slipway: pod stopping"
HERE = pod(machine="m-1")


def held(words: str = "IDLE DRAIN", reason: str = FULL_REASON, **failures: Failure) -> Any:
    return node(words, reason, failures=failures)


@pytest.mark.parametrize(
    ("spec", "seen", "expected"),
    [
        # One cause.
        pytest.param({"replicas": 1}, look((pod(), held(disk=FULL))), {}, id="failing-node-stays-drained"),
        pytest.param({"replicas": 1}, look((pod(), held())), {"undrain": (0,)}, id="passed-node-is-lifted"),
        pytest.param({"replicas": 1}, look((pod(), held(disk=SPARED))), {"undrain": (0,)}, id="spared-node-is-lifted"),
        pytest.param({"replicas": 1}, look((pod(), held(disk=TOLD))), {"undrain": (0,)}, id="failure-without-a-wish-is-lifted"),
        pytest.param({"replicas": 1}, look((pod(), held("IDLE", "", disk=TOLD))), {}, id="failure-without-a-wish-puts-no-drain-back"),
        pytest.param(
            {"replicas": 1},
            look((pod(), held(disk=TOLD, gpu=ECC))),
            {"drain": {ECC_REASON: (0,)}},
            id="failure-without-a-wish-is-no-reason",
        ),
        pytest.param({"replicas": 1}, look((pod(), held("MIXED DRAIN"))), {"undrain": (0,)}, id="lifted-while-its-last-jobs-run"),
        pytest.param({"replicas": 1}, look((pod(), node("IDLE", failures={"disk": SPARED}))), {}, id="spared-node-keeps-its-jobs"),
        pytest.param(
            {"replicas": 1}, look((pod(), node("IDLE DRAIN", FULL_REASON, failures=None))), {}, id="what-nobody-can-read-lifts-nothing"
        ),
        pytest.param({"replicas": 1}, look((pod(ready=False), held())), {}, id="no-lift-before-the-pod-is-ready"),
        pytest.param({"replicas": 1}, look((pod(terminating=True), held())), {}, id="no-lift-on-a-pod-that-stops"),
        pytest.param({"replicas": 1}, look((pod(), held()), silent=True), {}, id="nothing-while-slurm-is-silent"),
        pytest.param(
            {"min": 0, "max": 1}, look((None, held("IDLE CLOUD DRAIN POWERED_DOWN"))), {"undrain": (0,)}, id="passed-and-asleep-is-lifted"
        ),
        # A drain that is missing.
        pytest.param(
            {"replicas": 1},
            look((pod(), held("IDLE", "", disk=FULL))),
            {"drain": {FULL_REASON: (0,)}},
            id="lifted-by-others-is-drained-again",
        ),
        pytest.param(
            {"replicas": 1},
            look((pod(), held("MIXED", "", disk=FULL))),
            {"drain": {FULL_REASON: (0,)}},
            id="its-jobs-run-on-and-no-other-comes",
        ),
        pytest.param(
            {"min": 0, "max": 1},
            look((pod(), held("MIXED CLOUD NOT_RESPONDING POWERING_UP", "", disk=FULL))),
            {},
            id="waking-node-is-up-first",
        ),
        pytest.param(
            {"min": 0, "max": 1},
            look((None, held("IDLE CLOUD POWERING_DOWN", "", disk=FULL))),
            {"drain": {FULL_REASON: (0,)}},
            id="no-release-would-lift-it-at-once",
        ),
        pytest.param({"replicas": 1}, look((pod(), held("IDLE", "", disk=FULL)), looked_at=LOOKED_AT), {}, id="a-check-looks-at-it"),
        pytest.param({"replicas": 1}, look((pod(), held()), looked_at=LOOKED_AT), {}, id="a-check-has-not-let-go-yet"),
        pytest.param(
            {"replicas": 1},
            look((HERE, held("IDLE", "", disk=FULL)), machines=CORDONED, looked_at=LOOKED_AT),
            {},
            id="a-cordon-waits-until-the-check-has-looked",
        ),
        pytest.param(
            {"replicas": 0},
            look((pod(), held("IDLE", "", disk=FULL)), looked_at=LOOKED_AT),
            {"drain": {SCALE_IN: (0,)}},
            id="who-leaves-waits-for-no-check",
        ),
        # Two checks.
        pytest.param({"replicas": 1}, look((pod(), held(disk=FULL, gpu=ECC))), {"drain": {ECC_REASON: (0,)}}, id="hardware-is-more-urgent"),
        pytest.param(
            {"replicas": 1}, look((pod(), held(reason=ECC_REASON, disk=FULL))), {"drain": {FULL_REASON: (0,)}}, id="one-passed-one-is-left"
        ),
        pytest.param(
            {"replicas": 1}, look((pod(), held(reason=f"{FULL_REASON} : Not responding", disk=FULL))), {}, id="appended-words-are-slurms"
        ),
        # Beside causes of the controller's own.
        pytest.param(
            {"replicas": 1},
            look((HERE, held(disk=FULL)), machines=CORDONED),
            {},
            id="cordon-below-a-check",
        ),
        pytest.param(
            {"replicas": 1}, look((HERE, held()), machines=CORDONED), {"drain": {CORDON: (0,)}}, id="check-passed-and-cordon-is-left"
        ),
        pytest.param(
            {"replicas": 1},
            look((HERE, held(reason=CORDON, disk=FULL)), machines={"m-1": Machine()}, drained_at={0: NOW}),
            {"drain": {FULL_REASON: (0,)}},
            id="uncordoned-and-check-is-left",
        ),
        pytest.param({"replicas": 1}, look((HERE, held(reason=CORDON, disk=FULL)), machines=CORDONED), {}, id="check-below-a-cordon"),
        pytest.param({"replicas": 1}, look((pod(), held()), IDLE), {"drain": {SCALE_IN: (0,)}}, id="passed-while-it-leaves"),
        pytest.param(
            {"replicas": 1},
            look((pod(), held(reason=STOPPING, disk=FULL)), stopping_settled=frozenset({0})),
            {"drain": {FULL_REASON: (0,)}},
            id="pod-that-did-not-stop-and-check-is-left",
        ),
        # Beside administrators.
        pytest.param({"replicas": 1}, look((pod(), held(reason="fan is loud", disk=FULL))), {}, id="theirs-over-ours"),
        pytest.param({"replicas": 1}, look((pod(), held(reason="fan is loud"))), {}, id="theirs-stays-when-ours-is-gone"),
        pytest.param({"replicas": 1}, look((pod(), held("DOWN", "no power", disk=FULL))), {}, id="their-words-on-a-node-that-is-down"),
    ],
)
def test_drain_for_a_check_follows_what_the_checks_say(spec: dict[str, Any], seen: Observed, expected: dict[str, Any]) -> None:
    made = {name: ordinals for name, ordinals in acts_of(plan_nodeset(nodeset(**spec), seen)).items() if name in ("drain", "undrain")}
    assert made == expected


def test_drain_for_a_check_has_no_record_as_no_worker_leaves() -> None:
    seen = look((pod(), held("IDLE", "", disk=FULL)))
    assert not plan_nodeset(nodeset(replicas=1), seen).drains.drained_at


def test_leaving_begins_anew_where_a_check_let_go() -> None:
    seen = look((HERE, held()), machines=CORDONED, drained_at={0: NOW - 500})
    assert plan_nodeset(nodeset(replicas=1), seen).drains.drained_at == {0: NOW}


@pytest.mark.parametrize(
    ("checks", "extra", "failures"),
    [
        pytest.param(("disk", "gpu"), NOTED, {"disk": FULL}, id="declared"),
        pytest.param(("gpu",), NOTED, {}, id="no-longer-declared"),
        pytest.param((), NOTED.replace("disk", LAUNCH), {LAUNCH: FULL}, id="built-in"),
        pytest.param(None, NOTED, None, id="deployer-does-not-say"),
        pytest.param(("disk",), "rack 7", None, id="field-of-somebody-else"),
        pytest.param(("disk",), "", {}, id="nothing-noted"),
    ],
)
def test_failures_are_those_of_the_checks_that_look_at_the_set(
    checks: tuple[str, ...] | None, extra: str, failures: dict[str, Failure] | None
) -> None:
    snapshot = Snapshot({"gpu-0": Node("gpu-0", ("IDLE",), extra=extra)}, (), (), NOW)
    observed = observe(nodeset(replicas=1, health_checks=checks), [], snapshot, NOW, Surroundings())
    assert observed.nodes is not None
    assert observed.nodes[0].failures == failures


def test_nodes_in_the_reservations_of_checks_are_looked_at() -> None:
    reservations = (Reservation("slipway-check-gpu-0", node_list="gpu-0"), Reservation("upgrade", node_list="gpu-[0-1]"))
    snapshot = Snapshot({f"gpu-{at}": Node(f"gpu-{at}", ("IDLE",)) for at in range(2)}, (), reservations, NOW)
    assert observe(nodeset(replicas=2), [], snapshot, NOW, Surroundings()).looked_at == {0}
