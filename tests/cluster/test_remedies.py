"""Repairs on real nodes: a fault that ends with the pod, and many at once."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cluster.dev_stack import DevStack, eventually

FOUND = (
    '{"slipway":{"mounts":{"result":"failed","at":"2026-01-02T03:04:05Z",'
    '"failure":{"since":"2026-01-02T03:04:05Z","found":"/home is not mounted","kind":"node","drains":true}}}}'
)


@pytest.fixture(autouse=True)
def repaired(stack: DevStack) -> Iterator[None]:
    """The set `gpu` has a policy for the time of a test."""
    stack.forget_repairs("gpu")
    _declare(stack, {"steps": ["RecreatePod"], "waitSeconds": 5, "windowSeconds": 600})
    yield
    _declare(stack, None)
    stack.wait_until_idle()


def _declare(stack: DevStack, policy: dict[str, object] | None) -> None:
    stack.kubectl("patch", "nodeset", "gpu", "--type=merge", "--patch", json.dumps({"spec": {"remedies": policy}}))


def remedied(stack: DevStack) -> str:
    """The reason of the set's condition Remedied."""
    conditions = stack.get("nodeset", "gpu")["status"]["conditions"]
    return next((each["reason"] for each in conditions if each["type"] == "Remedied"), "")


def uid(stack: DevStack, pod: str) -> str:
    return stack.get("pod", pod)["metadata"]["uid"]


def _repair(stack: DevStack) -> dict[str, Any]:
    """The set's only repair."""
    [repair] = stack.get("nodeset", "gpu")["status"]["repairs"]
    return repair


def _has_checks(stack: DevStack, pod: str) -> bool:
    """True once the pod's slurmd has registered, with the files that slurmctld sends."""
    state = stack.nodes()[pod]
    there = stack.worker(pod, "ls /run/slurm/conf/", check=False)
    return "NOT_RESPONDING" not in state and "DOWN" not in state and "slipway-checks.sh" in there


def test_node_whose_home_is_gone_gets_a_new_pod_and_returns_to_service(stack: DevStack) -> None:
    """`mounts` looks each minute, beside jobs; here when it is told. A job that runs meanwhile ends first."""
    before, other = uid(stack, "gpu-1"), uid(stack, "gpu-0")
    job = stack.hold("--partition=gpu", "--nodelist=gpu-1", "--chdir=/tmp")
    stack.wait_for_job(job, "RUNNING")
    eventually("its prolog is over, which would send it back", lambda: "Reason=None" in stack.slurm(f"scontrol show job {job}"), 30)
    stack.kubectl("exec", "gpu-1", "-c", "slurmd", "--", "umount", "--lazy", "/home")
    stack.look_at("gpu-1")
    eventually("the node is drained for the check", lambda: "slipway: check mounts" in stack.slurm("scontrol show node gpu-1"), 150)
    eventually("the repair waits for the job", lambda: _repair(stack)["state"] == "Draining", 60)
    assert uid(stack, "gpu-1") == before
    stack.slurm(f"scancel {job}")
    eventually("the pod is another", lambda: uid(stack, "gpu-1") != before, 90)
    eventually("its slurmd has the checks", lambda: _has_checks(stack, "gpu-1"), 60)
    stack.look_at("gpu-1")
    eventually("the node is in service", lambda: "DRAIN" not in stack.nodes()["gpu-1"], 180)
    eventually("its record says so, which is written after it", lambda: _repair(stack)["state"] == "InService", 30)
    assert [step["step"] for step in _repair(stack)["steps"]] == ["RecreatePod"]
    assert uid(stack, "gpu-0") == other


def test_fault_of_all_nodes_is_systemic_and_touches_nothing(stack: DevStack) -> None:
    """The checks pass at their next look, and the brake is off again."""
    before = {pod: uid(stack, pod) for pod in ("gpu-0", "gpu-1")}
    stack.slurm(f"scontrol update NodeName=gpu-[0-1] Extra='{FOUND}'")
    eventually("the set says so", lambda: remedied(stack) == "Systemic", 30, every_s=0.1)
    stack.look_at(*before)
    eventually("the brake is off", lambda: remedied(stack) == "NothingToDo", 60)
    assert {pod: uid(stack, pod) for pod in before} == before
    assert not any("DRAIN" in state for state in stack.nodes().values())
