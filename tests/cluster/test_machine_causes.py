"""What others say against real machines: conditions and taints of Kubernetes nodes, and Slurm's own drains of nodes whose processes do not
end.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from names import annotations
from slurm.maintenance import ANNOUNCED
from tests.support.cluster.dev_stack import DevStack, eventually

TAINT = "karpenter.sh/disrupted"


@pytest.fixture
def machine(stack: DevStack) -> Iterator[str]:
    """The machine of gpu-0, in order again at the end."""
    name = stack.get("pod", "gpu-0")["spec"]["nodeName"]
    yield name
    stack.kubectl("taint", "node", name, f"{TAINT}-", check=False)
    stack.kubectl("annotate", "node", name, f"{annotations.MAINTENANCE_BEGINS}-")
    say(stack, name, "False")
    declare(stack, None)
    stack.wait_until_idle()


def say(stack: DevStack, machine: str, status: str) -> None:
    """What node-problem-detector would write of a kernel that hangs."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {
        "type": "KernelDeadlock",
        "status": status,
        "reason": "DockerHung",
        "message": "task docker:20744 blocked",
        "lastTransitionTime": now,
    }
    patch = {"status": {"conditions": [condition]}}
    stack.kubectl("patch", "node", machine, "--subresource=status", "--type=strategic", "--patch", json.dumps(patch))


def declare(stack: DevStack, policy: dict[str, object] | None) -> None:
    stack.kubectl("patch", "nodeset", "gpu", "--type=merge", "--patch", json.dumps({"spec": {"remedies": policy}}))


def node(stack: DevStack, name: str) -> dict[str, Any]:
    [seen] = json.loads(stack.slurm(f"scontrol show node {name} --json"))["nodes"]
    return seen


def causes(stack: DevStack, name: str) -> dict[str, dict[str, str]]:
    """What the node's object has of its causes, by name."""
    return {cause["name"]: cause for cause in stack.get("slurmnode", name)["status"].get("causes", [])}


def on(stack: DevStack, machine: str) -> list[str]:
    """The Slurm nodes whose pods are on the machine."""
    pods = stack.get("pods", labels="slipway.dev/nodeset")["items"]
    return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName") == machine]


def test_taint_before_a_machines_end_drains_its_nodes_and_warns_their_job(stack: DevStack, machine: str) -> None:
    job = stack.hold("--partition=gpu", "--nodelist=gpu-0", "--output=warned.out")
    stack.wait_for_job(job, "RUNNING")
    names = on(stack, machine)
    begin = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=30)
    stack.kubectl("annotate", "node", machine, f"{annotations.MAINTENANCE_BEGINS}={begin.isoformat()}")
    stack.kubectl("taint", "node", machine, f"{TAINT}:NoSchedule")
    reason = f"slipway: maintenance {machine}: taint/{TAINT}"
    eventually("its nodes are drained", lambda: all(node(stack, name)["reason"].startswith(reason) for name in names), 30)
    eventually("and the cause is told", lambda: all(f"taint/{TAINT}" in causes(stack, name) for name in names), 30)
    others = [name for name in stack.nodes() if name not in names]
    assert not any("DRAIN" in node(stack, name)["state"] for name in others)
    assert stack.job_state(job) == "RUNNING"
    window = f"{ANNOUNCED}gpu-0"
    eventually(
        "the job is warned",
        lambda: f"warned {ANNOUNCED.rstrip('-')}@{begin.timestamp():.0f}" in stack.slurm(f"scontrol show job {job}"),
        60,
    )
    eventually("and reads it in its output", lambda: "of gpu-0 starts at" in stack.ssh("cat warned.out"), 30)
    assert str(job) in stack.slipway("maintenance", "--reservation", window).stdout
    stack.kubectl("annotate", "node", machine, f"{annotations.MAINTENANCE_BEGINS}-")
    eventually("nothing is reserved", lambda: ANNOUNCED not in stack.slurm("scontrol show reservation"), 30)
    stack.kubectl("taint", "node", machine, f"{TAINT}-")
    eventually("the drains are lifted", lambda: not any("DRAIN" in state for state in stack.nodes().values()), 30)
    assert stack.job_state(job) == "RUNNING"
    stack.let_go()
    stack.wait_for_job(job)


def test_machine_condition_is_reported_and_drains_only_if_policy_says_so(stack: DevStack, machine: str) -> None:
    """The policy has no step that is enough against a deadlock of the kernel: a person is needed, and the node takes no job until then."""
    say(stack, machine, "True")
    cause = eventually("it is told", lambda: causes(stack, "gpu-0").get("condition/KernelDeadlock"), 30)
    assert cause is not None
    assert "task docker:20744 blocked" in cause["evidence"]
    stack.let_controller_look("gpu")
    assert "DRAIN" not in stack.nodes()["gpu-0"]
    declare(stack, {"steps": ["RecreatePod"], "waitSeconds": 5})
    eventually("the node is drained", lambda: node(stack, "gpu-0")["reason"].startswith("slipway: remedy"), 60)
    pod = stack.get("pod", "gpu-0")["metadata"]["uid"]
    say(stack, machine, "False")
    eventually("it takes jobs again", lambda: "DRAIN" not in stack.nodes()["gpu-0"], 60)
    assert stack.get("pod", "gpu-0")["metadata"]["uid"] == pod
    eventually("the cause is gone", lambda: "condition/KernelDeadlock" not in causes(stack, "gpu-0"), 30)


@pytest.mark.usefixtures("machine")
def test_node_with_stuck_processes_gets_a_new_pod_and_loses_slurms_drain(stack: DevStack) -> None:
    before = stack.get("pod", "gpu-0")["metadata"]["uid"]
    stack.slurm("scontrol update NodeName=gpu-0 State=DRAIN Reason='Kill task failed'")
    eventually("the cause", lambda: "kill-task-failed" in causes(stack, "gpu-0"), 30)
    stack.let_controller_look("gpu")
    assert node(stack, "gpu-0")["reason"] == "Kill task failed"
    declare(stack, {"steps": ["RecreatePod"], "waitSeconds": 5})
    eventually("another pod", lambda: stack.get("pod", "gpu-0")["metadata"]["uid"] != before, 90)
    eventually("it takes jobs again", lambda: "DRAIN" not in stack.nodes()["gpu-0"], 90)
