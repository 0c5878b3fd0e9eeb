"""What the status says, and that it says what to do."""

import msgspec
import pytest

from controllers.nodeset.conditions import Silence, least_ready
from controllers.nodeset.events import build_events
from controllers.nodeset.observed import JobRequests, Observed
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.status import build_status, cut
from controllers.nodeset.structs import Condition, Drain, NodeSetObject, NodeSetStatus, UpdateStrategy
from controllers.nodeset.workers import Machine, NodeJob
from slurm.reasons import SCALE_IN, UPDATE, gpus
from tests.support.controllers.nodeset.examples import BUSY, GHOST, IDLE, NO_REQUEUE, NOW, OLD, SALLOC, look, node, nodeset, pod


def test_status_names_the_jobs_that_slurm_does_not_requeue_and_what_to_do() -> None:
    one = nodeset(replicas=0, drain=Drain("Requeue", 60))
    seen = look((pod(), node("ALLOCATED DRAIN", SCALE_IN, jobs=(SALLOC, NO_REQUEUE))), drained_at={0: 0.0})
    said = build_status(one, seen, plan_nodeset(one, seen), None, "2026-01-01T00:00:00Z")
    told = next(condition for condition in said.conditions if condition.type == "DrainsEnd")
    assert (told.status, told.reason) == ("False", "NotRequeued")
    assert told.message.endswith("the nodes are gpu-0.")
    assert "job 8 of srun or salloc: end with scancel 8" in told.message
    assert "job 9 submitted with --no-requeue" in told.message
    assert "scontrol update jobid=9 requeue=1" in told.message
    assert (said.phase, said.why) == ("Draining", told.message)


def test_job_that_an_old_slurmrestd_cannot_requeue_is_left_and_reported() -> None:
    one = nodeset(replicas=0, drain=Drain("Requeue", 60))
    seen = look(
        (pod(), node("ALLOCATED DRAIN", SCALE_IN, jobs=(NodeJob("7"), SALLOC))), jobs=JobRequests(can_requeue=False), drained_at={0: 0.0}
    )
    made = plan_nodeset(one, seen)
    assert (made.deadlines.requeue, made.deadlines.unmovable, made.needs_fresh_reading) == ((), {0: (NodeJob("7"), SALLOC)}, False)
    told = next(each for each in build_status(one, seen, made, None, "2026-01-01T00:00:00Z").conditions if each.type == "DrainsEnd")
    assert "job 8 of srun or salloc: end with scancel 8; job 7 as slurmrestd is too old" in told.message
    assert "scontrol requeue 7" in told.message


GPUS = gpus("7 GPUs, and the config says 8")
OTHER_GPUS = gpus('each GPU is "NVIDIA A100-SXM4-80GB", and the config says h100')


def gpu_condition(seen: Observed, before: tuple[Condition, ...] = ()) -> tuple[NodeSetStatus, list[Condition]]:
    one = nodeset(replicas=3)
    one = msgspec.structs.replace(one, status=NodeSetStatus(conditions=before))
    said = build_status(one, seen, plan_nodeset(one, seen), None, "2026-01-01T00:00:00Z")
    return said, [each for each in said.conditions if each.type == "GpusAsDeclared"]


def test_gpus_that_differ_are_a_condition_and_an_event_with_both_values() -> None:
    held = pod(ready=False)
    seen = look(IDLE, (held, node("IDLE CLOUD DRAIN NOT_RESPONDING", GPUS)), (held, node("IDLE CLOUD DRAIN POWERED_DOWN", OTHER_GPUS)))
    said, [told] = gpu_condition(seen)
    assert (told.status, told.reason) == ("False", "GpusDiffer")
    assert "gpu-1: 7 GPUs, and the config says 8" in told.message
    assert 'gpu-2: each GPU is "NVIDIA A100-SXM4-80GB", and the config says h100' in told.message
    assert (said.phase, said.why) == ("Degraded", told.message)
    others = {each.type: each.status for each in said.conditions}
    assert (others["NodesRegister"], others["Undrained"]) == ("True", "True")
    assert "GpusDiffer" in {event["reason"] for event in build_events(nodeset(), said, "a")}


def test_gpus_beside_other_sockets_are_a_condition_that_degrades_nothing() -> None:
    remark = "GPU 1 is beside socket 1, and gres.conf says 0; gpus.sockets should be [0, 1]"
    said, _ = gpu_condition(look(IDLE, (pod(), node(gpu_remark=remark)), IDLE))
    [told] = [each for each in said.conditions if each.type == "CoresFollowGpus"]
    assert (told.status, told.reason, said.phase) == ("False", "OtherSockets", "Ready")
    assert told.message.endswith(f"gpu-1: {remark}")


def test_set_has_a_condition_for_gpus_only_once_they_have_differed() -> None:
    assert gpu_condition(look(IDLE, IDLE, IDLE))[1] == []
    before = Condition("GpusAsDeclared", "False", "GpusDiffer", "", 3, "2025-01-01T00:00:00Z")
    [told] = gpu_condition(look(IDLE, IDLE, IDLE), (before,))[1]
    assert (told.status, told.last_transition_time) == ("True", "2026-01-01T00:00:00Z")
    [told] = gpu_condition(look(IDLE, IDLE, IDLE, silent=True), (before,))[1]
    assert told.status == "Unknown"


def test_message_of_a_thousand_nodes_still_says_what_to_do() -> None:
    one, seen = nodeset(min=0, max=1000), look(*[GHOST if ordinal % 2 else IDLE for ordinal in range(1000)])
    told = next(
        each
        for each in build_status(one, seen, plan_nodeset(one, seen), None, "2026-01-01T00:00:00Z").conditions
        if each.reason == "OffInSlurm"
    )
    assert "scale statefulset dev-slurmctld --replicas=0" in told.message
    assert told.message.endswith(" ...")
    assert len(told.message) <= 1024


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("x" * 5000, id="without-a-comma"),
        pytest.param("jobs 1, " + "ü" * 900, id="bytes-not-characters"),
        pytest.param("do this first, " + "y" * 5000, id="long-after-the-last-comma"),
    ],
)
def test_long_message_keeps_its_beginning_and_fits_an_event(message: str) -> None:
    shown = cut(message)
    assert 900 < len(shown.encode()) <= 1024
    assert shown.startswith(message[:400])
    assert shown.endswith(" ...")


def test_status_names_a_pod_that_does_not_end_and_a_silent_machine() -> None:
    one, lost = nodeset(replicas=2), {"machine-7": Machine(answers=False)}
    stuck = pod(terminating=True, terminating_since=NOW - 400, machine="machine-8")
    seen = look((pod(machine="machine-7"), node()), (stuck, node("IDLE DRAIN", SCALE_IN)), machines={**lost, "machine-8": Machine()})
    told = {each.type: each for each in build_status(one, seen, plan_nodeset(one, seen), None, "2026-01-01T00:00:00Z").conditions}
    assert "gpu-1 should have ended 400 s ago" in told["PodsEnd"].message
    assert "kubectl -n slurm delete pod gpu-1 --force" in told["PodsEnd"].message
    assert "machine-7 with gpu-0 does not answer" in told["MachinesAnswer"].message
    assert "kubectl delete node machine-7" in told["MachinesAnswer"].message


def test_status_says_how_to_keep_pods_that_slurm_has_off() -> None:
    one = nodeset(min=0, max=9)
    said = build_status(one, look(*[GHOST] * 9), plan_nodeset(one, look(*[GHOST] * 9)), None, "2026-01-01T00:00:00Z")
    assert said.phase == "Degraded"
    assert "1 of the pods are deleted every 30 s" in said.why
    assert "kubectl -n slurm scale statefulset dev-slurmctld --replicas=0" in said.why
    assert "gpu-[1-8]" in said.why


@pytest.mark.parametrize(("wanted", "least"), [(0, 0), (1, 1), (2, 1), (1000, 900)])
def test_few_broken_nodes_do_not_keep_a_set_from_ready(wanted: int, least: int) -> None:
    strategy = UpdateStrategy(max_unavailable="10%" if wanted > 2 else 1)
    assert least_ready(nodeset(update_strategy=strategy), wanted) == least


@pytest.mark.parametrize(
    ("seen", "silence", "phase", "words"),
    [
        pytest.param(look(IDLE, BUSY), None, "Ready", "", id="ready"),
        pytest.param(look(IDLE), None, "Progressing", "1 of 2 wanted nodes", id="one-missing"),
        pytest.param(look(IDLE, silent=True), Silence(42, "no answer"), "SlurmSilent", "has not answered for 42 s", id="silent"),
        pytest.param(
            look(*[(pod(ready=False, blocked="no node of pool gpu has 4 free nvidia.com/gpu"), node("IDLE POWERED_DOWN"))] * 2, now=150.0),
            None,
            "Degraded",
            "2 pods not running (gpu-[0-1]): no node of pool gpu has 4 free nvidia.com/gpu",
            id="blocked",
        ),
        pytest.param(
            look(IDLE, (pod(ready=False), node("IDLE POWERED_DOWN"))), None, "Degraded", "gpu-1 did not register within 600 s", id="late"
        ),
        pytest.param(look(IDLE, (pod(), None)), None, "Degraded", "Slurm does not know gpu-1", id="unknown-to-slurm"),
        pytest.param(look(IDLE, BUSY, (pod(), node("ALLOCATED DRAIN", SCALE_IN))), None, "Draining", "gpu-2 leaving", id="draining"),
        pytest.param(look(IDLE, (OLD, node("ALLOCATED DRAIN", UPDATE))), None, "Updating", "gpu-1 draining", id="updating"),
        pytest.param(
            look(IDLE, (pod(), node("ALLOCATED DRAIN", UPDATE)), held=frozenset({1})),
            None,
            "Updating",
            "gpu-1 get their new size in Slurm when drained of jobs; gpu-1 draining",
            id="another-size",
        ),
        pytest.param(look(IDLE, (pod(), node("IDLE DRAIN", "fan is loud"))), None, "Ready", "gpu-1: fan is loud", id="drained-by-others"),
    ],
)
def test_status_says_what_is_and_why(seen: Observed, silence: Silence | None, phase: str, words: str) -> None:
    one = nodeset(replicas=2)
    said = build_status(one, seen, plan_nodeset(one, seen), silence, "2026-01-01T00:00:00Z")
    assert said.phase == phase
    assert words in said.why
    assert said.observed_generation == 3


def test_condition_that_stays_keeps_its_time() -> None:
    one = nodeset(replicas=2)
    before = build_status(one, look(IDLE, BUSY), plan_nodeset(one, look(IDLE, BUSY)), None, "2026-01-01T00:00:00Z")
    later = NodeSetObject(one.metadata, one.spec, before)
    after = build_status(
        later, look(IDLE, silent=True), plan_nodeset(later, look(IDLE, silent=True)), Silence(1, "x"), "2026-02-02T00:00:00Z"
    )
    times = {condition.type: condition.last_transition_time for condition in after.conditions}
    assert times["PodsStart"] == "2026-01-01T00:00:00Z"
    assert times["SlurmAnswers"] == "2026-02-02T00:00:00Z"
