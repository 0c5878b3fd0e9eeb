"""A simulated GPU that vanishes from a node of the dev stack while jobs run elsewhere: what Slurm, the set's status and its events say."""

from collections.abc import Iterator

import pytest

from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.cluster.node_sets import condition, status

FAULT = "3 GPUs, and the config says 4"


@pytest.fixture
def whole(shared_cluster: None, stack: DevStack) -> Iterator[DevStack]:
    """The stack, with all simulated GPUs of gpu-1 afterwards."""
    yield stack
    give_back(stack)
    stack.let_go()
    stack.slurm("scancel --user=alice", check=False)
    stack.wait_until_settled()


def inside(stack: DevStack, script: str) -> str:
    """Runs a script as root in the worker that loses a GPU."""
    return stack.worker("gpu-1", script, check=False)


def give_back(stack: DevStack) -> None:
    inside(stack, "[ -e /dev/nvidia3 ] || mknod --mode=666 /dev/nvidia3 c 195 3")


def notes(stack: DevStack) -> list[str]:
    """What events say of GPUs of the set that differ."""
    events = stack.get("events", fields="involvedObject.kind=NodeSet,involvedObject.name=gpu,reason=GpusDiffer")
    return [event["message"] for event in events["items"]]


def test_node_that_loses_a_gpu_reports_it_takes_no_job_and_recovers(whole: DevStack) -> None:
    stack = whole
    other = stack.hold("--nodelist=gpu-0", "--gres=gpu:1")
    stack.wait_for_job(other, "RUNNING")
    restarts = stack.get("pod", "gpu-1")["status"]["containerStatuses"][0]["restartCount"]
    inside(stack, "rm /dev/nvidia3; pkill --exact 'slurmd(-wlm)?'")  # its name in Debian, once it has started itself anew
    eventually("a condition", lambda: condition(stack, "gpu", "GpusAsDeclared")["status"] == "False", 60)
    told = condition(stack, "gpu", "GpusAsDeclared")
    assert (told["reason"], f"gpu-1: {FAULT}" in told["message"]) == ("GpusDiffer", True)
    eventually("an event with both values", lambda: any(f"gpu-1: {FAULT}" in note for note in notes(stack)), 30)
    assert status(stack, "gpu")["phase"] == "Degraded"
    assert f"slipway: gpus: {FAULT}" in stack.slurm("sinfo --list-reasons --noheader --format=%E")
    waiting = stack.submit("#!/bin/bash\ntrue\n", "--nodelist=gpu-1", "--gres=gpu:4", "--output=/dev/null")
    stack.let_controller_look("gpu")
    assert (stack.job_state(waiting), stack.job_state(other)) == ("PENDING", "RUNNING")
    give_back(stack)
    stack.wait_for_job(waiting)
    eventually("all as declared", lambda: condition(stack, "gpu", "GpusAsDeclared")["status"] == "True", 60)
    assert stack.job_state(other) == "RUNNING"
    assert stack.get("pod", "gpu-1")["status"]["containerStatuses"][0]["restartCount"] == restarts
