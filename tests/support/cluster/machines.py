"""The machines of the dev stack: which pods they run, and the loss of one."""

import sys
from collections.abc import Iterator

import pytest

from tests.support.cluster.dev_stack import STATE, DevStack, eventually
from tests.support.cluster.node_sets import uid
from tests.support.cluster.programs import kill


@pytest.fixture
def whole(own_cluster: None, stack: DevStack) -> Iterator[DevStack]:
    """The stack, with both worker machines afterwards."""
    yield stack
    # A kubelet makes its node when it starts, not when somebody has deleted it.
    kill("kubelet-worker-1")
    (STATE / "applied").unlink(missing_ok=True)
    stack.run(sys.executable, "-m", "local", "up", timeout_s=600)
    stack.slurm("scancel --user=alice", check=False)
    stack.kubectl("delete", "pod", *pods_on(stack, "worker-0"), timeout_s=180)
    stack.wait_until_settled()


def pods_on(stack: DevStack, machine: str) -> list[str]:
    """Names of the workers' pods on a Kubernetes node."""
    pods = stack.get("pods", labels="slipway.dev/nodeset", fields=f"spec.nodeName={machine}")["items"]
    return [pod["metadata"]["name"] for pod in pods]


def machine_of(stack: DevStack, pod: str) -> str:
    return stack.get("pod", pod)["spec"].get("nodeName", "")


def cpu_on_worker_1(stack: DevStack) -> str:
    """A worker of `cpu` on that machine; where both are on the other, one is made anew there. (One with GPUs finds none free elsewhere.)"""
    found = [pod for pod in pods_on(stack, "worker-1") if pod.startswith("cpu-")]
    if found:
        return found[0]
    before = uid(stack, "cpu-1")
    stack.kubectl("cordon", "worker-0")
    try:
        stack.kubectl("delete", "pod", "cpu-1", "--wait=false")
        eventually("on worker-1", lambda: uid(stack, "cpu-1") != before and machine_of(stack, "cpu-1") == "worker-1", 120)
    finally:
        stack.kubectl("uncordon", "worker-0")
    stack.wait_until_settled()
    return "cpu-1"


def lose_worker_1(stack: DevStack, is_patient: bool) -> None:
    """Removes the Kubernetes node, and waits until its worker runs jobs on the other one."""
    lost = cpu_on_worker_1(stack)
    before = uid(stack, lost)
    stack.run(str(STATE / "bin" / "kubectl"), "delete", "node", "worker-1")
    if not is_patient:
        stack.kubectl("delete", "pod", *pods_on(stack, "worker-1"), "--force", "--grace-period=0")
    stack.wait_until_new(lost, before, 180)
    assert machine_of(stack, lost) == "worker-0"
    eventually("takes jobs", lambda: stack.nodes()[lost] == "IDLE+CLOUD", 60)
    job = stack.submit("#!/bin/bash\nhostname\n", f"--nodelist={lost}", "--output=moved.out")
    stack.wait_for_job(job)
    assert stack.ssh("cat moved.out") == f"{lost}\n"
