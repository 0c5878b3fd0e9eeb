"""Why nodes are out of service: every cause at once, each with its evidence, its owner and what happens next."""

from typing import Any

import pytest

from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.plans.causes import find_causes_of, rfc3339
from controllers.nodeset.structs import Drain, NodeSetObject, RemedyPolicy
from controllers.nodeset.workers import Machine, WorkerNode, WorkerPod
from slurm.causes import Cause
from slurm.check_results import LAUNCH, Failure
from slurm.reasons import CORDON, DELETE, NOT_RESPONDING, POD_REPLACED, POD_STOPPING, RESUME_FAILED, SCALE_IN, UPDATE
from tests.support.controllers.nodeset.examples import IDLE, NOW, look, node, nodeset, pod

AT = NOW - 3600
THEN = rfc3339(AT)
DISK = Failure("2026-02-03T04:05:06.789+00:00", "/scratch has 3 errors", "hardware")
ON = "machine-7"
"""The machine of the pod."""
REBOOT = Failure("lately", "full", "node", wish="reboot")
UNMET = "Its wish cannot be met, as the node set has no remedies for such faults: have the machine "
NEXT_RUN = "The check looks again at its next run. To run it now: kubectl -n slurm create job --from=cronjob/dev-check-disk disk-now"


def found(observed: Observed, reasons: dict[int, str] | None = None, of: NodeSetObject | None = None) -> tuple[Cause, ...]:
    return find_causes_of(of or nodeset(replicas=1), observed, reasons or {}).get(0, ())


def on(machine: Machine | None, known: WorkerNode | None = None, **facts: Any) -> Observed:
    machines = {} if machine is None else {ON: machine}
    return look((pod(machine=ON), known or node()), machines=machines, **facts)


def drained(reason: str, words: str = "IDLE CLOUD DRAIN", made: WorkerPod | None = None, **facts: Any) -> Observed:
    """One node with a reason that somebody gave an hour ago."""
    return look((made or pod(), node(words, reason, reason_at=AT, **facts)))


def cause(observed: Observed, reasons: dict[int, str] | None = None, of: NodeSetObject | None = None) -> Cause:
    [one] = found(observed, reasons, of)
    return one


GONE = "Its pod is deleted once its jobs have ended."
ROLLED = "its pod is replaced: the template or the node's size has changed, or Slurm has the node off"


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(
            cause(look(IDLE, drained_at={0: AT}), {0: SCALE_IN}),
            Cause("scale-in", "user", "NodeSet controller", "the set has fewer nodes", "NodeSet controller", GONE, since=THEN),
            id="scale-in",
        ),
        pytest.param(
            cause(look((None, node())), {0: SCALE_IN}),
            Cause(
                *("scale-in", "user", "NodeSet controller", "the set has fewer nodes", "NodeSet controller"),
                "To give the node a pod, raise replicas of the set.",
            ),
            id="scale-in-without-a-pod",
        ),
        pytest.param(
            cause(look(IDLE), {0: DELETE}, nodeset(replicas=1, drain=Drain("Requeue", 600))),
            Cause(
                *("delete", "user", "NodeSet controller", "the set is being deleted", "NodeSet controller"),
                f"{GONE} Jobs that still run 600 s after the drain are requeued.",
            ),
            id="delete-with-a-deadline",
        ),
        pytest.param(
            cause(look(IDLE), {0: UPDATE}, nodeset(replicas=1, drain=Drain("Cancel", 60))),
            Cause(
                *("update", "maintenance", "NodeSet controller", ROLLED, "NodeSet controller"),
                f"{GONE} Jobs that still run 60 s after the drain are cancelled.",
            ),
            id="update",
        ),
        pytest.param(
            cause(drained(UPDATE, made=pod(ready=False))),
            Cause(
                *("update", "maintenance", "NodeSet controller", ROLLED, "NodeSet controller"),
                "The drain is lifted once the next pod is up.",
            ),
            id="update-until-the-next-pod-is-up",
        ),
        pytest.param(
            cause(on(Machine(is_cordoned=True, words="new fans"))),
            Cause(
                *("cordon", "maintenance", "Kubernetes", f"{ON} is cordoned: new fans", "administrator of Kubernetes"),
                f"The drain is lifted after: kubectl uncordon {ON}",
            ),
            id="cordoned-with-words",
        ),
        pytest.param(
            cause(on(Machine(is_cordoned=True))),
            Cause(
                *("cordon", "maintenance", "Kubernetes", f"{ON} is cordoned", "administrator of Kubernetes"),
                f"The drain is lifted after: kubectl uncordon {ON}",
            ),
            id="cordoned-without-a-word",
        ),
        pytest.param(
            cause(on(None, node("IDLE CLOUD DRAIN", f"{CORDON}{ON}: new fans"))),
            Cause(
                *("cordon", "maintenance", "Kubernetes", f"{ON} was cordoned, and its Kubernetes node is deleted", "NodeSet controller"),
                "The drain is lifted once its pod runs on another machine.",
            ),
            id="cordoned-then-deleted",
        ),
        pytest.param(
            cause(on(Machine(answers=False))),
            Cause(
                *("machine-not-ready", "node", "Kubernetes", f"{ON} does not answer Kubernetes", f"kubelet of {ON}"),
                f"Jobs may still run. See: kubectl describe node {ON}. When it is off for good: kubectl delete node {ON}",
                "none",
            ),
            id="machine-not-ready",
        ),
        pytest.param(
            cause(drained("slipway: gpus: 7 of 8")),
            Cause(
                *("gpus", "hardware", "worker", "7 of 8", "worker"),
                "slurmd waits until the GPUs are those of the config. Repair the machine, or correct gpus in the stack file.",
                since=THEN,
            ),
            id="gpus",
        ),
        pytest.param(
            cause(drained(POD_STOPPING)),
            Cause(
                *("pod-stopping", "maintenance", "worker", "its pod was asked to stop", "NodeSet controller"),
                "The drain is lifted once the next pod is up.",
                since=THEN,
            ),
            id="pod-stopping",
        ),
        pytest.param(
            cause(look((pod(), node(failures={"disk": DISK})))),
            Cause(
                *("check/disk", "hardware", "health check disk", "/scratch has 3 errors", "health check disk", NEXT_RUN),
                since="2026-02-03T04:05:06Z",
            ),
            id="health-check",
        ),
        pytest.param(
            cause(look((pod(), node(failures={LAUNCH: Failure("lately", "no job starts")})))),
            Cause(
                *("check/launch", "node", "health check launch", "no job starts", "health check launch"),
                "Each minute a job of Slurm's own user is tried there, once the node has no other job. slurmd's log has the cause.",
            ),
            id="no-job-starts",
        ),
        pytest.param(
            cause(look((pod(), node(failures={"disk": Failure("lately", "full", drains=False)})))),
            Cause(
                *("check/disk", "node", "health check disk", "full", "health check disk"),
                f"It does not drain this one: checks hold as many nodes as they may, or only a link is at fault. {NEXT_RUN}",
                "none",
            ),
            id="health-check-that-takes-no-job-away",
        ),
        pytest.param(
            cause(look((pod(), node(failures={"disk": Failure("lately", "full", drains=False, wish="none")})))),
            Cause(
                *("check/disk", "node", "health check disk", "full", "health check disk"),
                f"It drains no node: its wish is none. {NEXT_RUN}",
                "none",
            ),
            id="health-check-without-a-wish",
        ),
        pytest.param(
            cause(look((pod(), node(failures={"disk": REBOOT})))),
            Cause(
                *("check/disk", "node", "health check disk", "full", "health check disk"), f"{UNMET}rebooted by hand. {NEXT_RUN}", "reboot"
            ),
            id="health-check-whose-wish-nobody-meets",
        ),
        pytest.param(
            cause(look((pod(), node(failures={"disk": REBOOT}))), of=nodeset(replicas=1, remedies=RemedyPolicy(("RebootMachine",)))),
            Cause(*("check/disk", "node", "health check disk", "full", "health check disk"), NEXT_RUN, "reboot"),
            id="health-check-whose-wish-is-met",
        ),
        pytest.param(
            cause(
                look((pod(), node(failures={"disk": REBOOT}))),
                of=nodeset(replicas=1, remedies=RemedyPolicy(("RebootMachine",), causes=("hardware",))),
            ),
            Cause(
                *("check/disk", "node", "health check disk", "full", "health check disk"), f"{UNMET}rebooted by hand. {NEXT_RUN}", "reboot"
            ),
            id="health-check-whose-wish-is-of-another-kind",
        ),
        pytest.param(
            cause(drained("slipway: check disk: full", failures=None)),
            Cause("check/disk", "node", "health check disk", "full", "health check disk", NEXT_RUN, since=THEN),
            id="health-check-whose-results-are-lost",
        ),
        pytest.param(
            cause(drained(f"fan is loud : {NOT_RESPONDING}", reason_by="ada")),
            Cause(
                *("administrator", "administrator", "ada", "fan is loud", "administrator of Slurm"),
                "The node is left alone. Lift with: scontrol update nodename=gpu-0 state=undrain",
                since=THEN,
            ),
            id="drained-by-a-person",
        ),
        pytest.param(
            cause(drained("fan is loud", "DOWN CLOUD")),
            Cause(
                *("administrator", "administrator", "an unknown user", "fan is loud", "administrator of Slurm"),
                "The node is left alone. Lift with: scontrol update nodename=gpu-0 state=resume",
                since=THEN,
            ),
            id="down-by-a-person",
        ),
        pytest.param(
            cause(drained("")),
            Cause(
                *("administrator", "administrator", "an unknown user", "a drain without a reason", "administrator of Slurm"),
                "The node is left alone. Lift with: scontrol update nodename=gpu-0 state=undrain",
                since=THEN,
            ),
            id="drain-whose-reason-is-lost",
        ),
        pytest.param(
            cause(drained("Low RealMemory (reported:1 < 100.00% of configured:2)")),
            Cause(
                *("slurmctld", "node", "slurmctld", "Low RealMemory (reported:1 < 100.00% of configured:2)", "administrator of Slurm"),
                "The node is left alone. Lift with: scontrol update nodename=gpu-0 state=undrain",
                since=THEN,
            ),
            id="drained-by-slurm-itself",
        ),
        pytest.param(
            cause(drained(NOT_RESPONDING, "DOWN CLOUD")),
            Cause(
                *("down", "node", "slurmctld", NOT_RESPONDING, "slurmctld"),
                *("It comes back when its slurmd registers. See: kubectl -n slurm logs gpu-0 -c slurmd", "none", THEN),
            ),
            id="down-by-slurm-itself",
        ),
        pytest.param(
            cause(drained(RESUME_FAILED, "DOWN CLOUD POWERED_DOWN"), of=nodeset(min=0, max=1)),
            Cause(
                *("down", "node", "slurmctld", RESUME_FAILED, "slurmctld"),
                "The controller resumes it once its old pod is gone. To try at once: scontrol update nodename=gpu-0 state=resume",
                *("none", THEN),
            ),
            id="down-as-it-did-not-come-up",
        ),
        pytest.param(
            cause(drained(POD_REPLACED, "DOWN CLOUD")),
            Cause(
                *("down", "node", "worker", "pod was replaced", "slurmctld"),
                *("It comes back when its slurmd registers. See: kubectl -n slurm logs gpu-0 -c slurmd", "none", THEN),
            ),
            id="down-by-the-next-pod",
        ),
        pytest.param(
            cause(drained("", "DOWN CLOUD")),
            Cause(
                *("down", "node", "slurmctld", "Slurm has it DOWN, without a reason of its own", "slurmctld"),
                *("It comes back when its slurmd registers. See: kubectl -n slurm logs gpu-0 -c slurmd", "none"),
            ),
            id="down-without-a-reason",
        ),
    ],
)
def test_cause_says_who_found_what_and_what_happens_next(one: Cause, expected: Cause) -> None:
    assert one == expected


@pytest.mark.parametrize(
    ("observed", "reasons", "names"),
    [
        pytest.param(
            on(Machine(is_cordoned=True, answers=False), node("IDLE CLOUD DRAIN", "fan is loud", failures={"disk": DISK})),
            {0: UPDATE},
            ["check/disk", "cordon", "update", "administrator", "machine-not-ready"],
            id="hardware-first-and-what-takes-no-job-last",
        ),
        pytest.param(
            drained(f"{SCALE_IN} : {NOT_RESPONDING}", "DOWN CLOUD DRAIN"), {0: SCALE_IN}, ["scale-in", "down"], id="silent-while-it-leaves"
        ),
        pytest.param(drained(f"fan : {NOT_RESPONDING}", "DOWN CLOUD DRAIN"), {}, ["administrator", "down"], id="silent-and-theirs"),
        pytest.param(drained(NOT_RESPONDING, "DOWN CLOUD DRAIN"), {}, ["administrator", "down"], id="silent-and-the-reason-is-lost"),
        pytest.param(
            drained("slipway: check disk: full", failures={"disk": DISK, "gpu": DISK}),
            {},
            ["check/disk", "check/gpu"],
            id="two-checks-of-which-slurm-names-one",
        ),
        pytest.param(look(IDLE), {}, [], id="none"),
        pytest.param(look(IDLE), {0: "slipway: of a release to come"}, [], id="reason-that-is-not-known-here"),
        pytest.param(look((pod(), node("ODD WORDS", "odd", failures=None))), {}, [], id="state-that-is-not-known-here"),
        pytest.param(look((pod(), node("IDLE DRAIN", "odd", reason_at=1e300))), {}, ["administrator"], id="time-that-is-none"),
        pytest.param(look((pod(machine=ON), None)), {}, [], id="node-that-slurm-does-not-list"),
        pytest.param(drained(SCALE_IN), {}, [], id="drain-of-ours-that-is-being-lifted"),
    ],
)
def test_all_causes_are_told_the_most_urgent_first(observed: Observed, reasons: dict[int, str], names: list[str]) -> None:
    assert [each.name for each in found(observed, reasons)] == names


def test_nothing_is_known_of_causes_while_slurm_is_silent() -> None:
    assert found(on(Machine(is_cordoned=True), silent=True), {0: SCALE_IN}) == ()


def test_node_beyond_the_set_has_the_cause_that_the_plan_has() -> None:
    observed, of = look(IDLE, IDLE), nodeset(replicas=1)
    made = plan_nodeset(of, observed)
    assert {at: [each.name for each in causes] for at, causes in find_causes_of(of, observed, made.reasons).items()} == {1: ["scale-in"]}


def test_reason_without_a_time_began_nobody_knows_when() -> None:
    assert cause(look((pod(), node("IDLE CLOUD DRAIN", "fan is loud", reason_at=0)))).since == ""


@pytest.mark.parametrize(
    ("given", "since"),
    [
        pytest.param("2026-02-03T05:05:06+01:00", "2026-02-03T04:05:06Z", id="other-zone"),
        pytest.param("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", id="early"),
        pytest.param("9999-12-31T23:59:59-05:00", "", id="too-late-for-a-time"),
        pytest.param("", "", id="empty"),
    ],
)
def test_time_of_a_failure_is_one_that_the_api_server_takes(given: str, since: str) -> None:
    assert cause(look((pod(), node(failures={"disk": Failure(given, "full")})))).since == since


def test_evidence_can_be_written_whatever_a_check_has_found() -> None:
    assert cause(look((pod(), node(failures={"disk": Failure("", "half a \ud83d")})))).evidence == "half a"


def test_words_of_others_are_cut() -> None:
    assert len(cause(drained("x" * 5_000)).evidence) == 500
