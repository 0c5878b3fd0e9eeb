"""Node sets when Kubernetes itself fails, and what a set can be told about machines, disks, windows and deadlines, on the real cluster."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster.dev_stack import CONTROLLER, NAMESPACE, DevStack, eventually
from tests.support.cluster.inside import processes_of
from tests.support.cluster.machines import cpu_on_worker_1, lose_worker_1, machine_of, pods_on, whole
from tests.support.cluster.node_sets import condition, evict, reason, status, uid
from tests.support.cluster.programs import pid_of
from tests.support.patience import patience

FIXTURES = (whole,)


@pytest.fixture
def thawed(own_cluster: None, stack: DevStack) -> Iterator[DevStack]:
    """The stack, with its API server running afterwards and `cpu` at its two nodes."""
    server = str(pid_of("kube-apiserver"))
    yield stack
    subprocess.run(["kill", "-CONT", server], check=True)
    stack.kubectl("scale", "nodeset", "cpu", "--replicas=2")
    stack.slurm("scancel --user=alice", check=False)
    stack.wait_until_settled()


def leaders(stack: DevStack) -> list[int]:
    """The process of the controller that leads, on this machine."""
    holder = stack.get("lease", "dev-nodeset-controller")["spec"]["holderIdentity"]
    return processes_of(NAMESPACE, holder.partition("_")[0], "controllers.nodeset")


def test_frozen_api_server_stops_deletions_not_jobs_and_recovers_alone(thawed: DevStack) -> None:
    stack = thawed
    before = {pod: uid(stack, pod) for pod in ("cpu-0", "cpu-1")}
    job = stack.hold("--nodelist=cpu-0")
    stack.wait_for_job(job, "RUNNING")
    [leader] = leaders(stack)
    subprocess.run(["kill", "-STOP", str(pid_of("kube-apiserver"))], check=True)
    eventually("the lease ran out, so the leader ended", lambda: not Path(f"/proc/{leader}").exists(), 60)
    stack.let_go()
    eventually("the job ended without an API server", lambda: stack.ssh(f"squeue -h -j {job} 2>/dev/null || true") == "", 60)
    subprocess.run(["kill", "-CONT", str(pid_of("kube-apiserver"))], check=True)
    eventually("an answer from the API server", lambda: stack.kubectl("get", "pods", check=False), 60)
    assert {pod: uid(stack, pod) for pod in before} == before
    stack.wait_for_job(job)
    stack.kubectl("scale", "nodeset", "cpu", "--replicas=1")
    eventually("the controllers work again", lambda: status(stack, "cpu").get("replicas") == 1, 120)


def test_removed_kubernetes_node_frees_its_ordinals_for_another_machine(whole: DevStack) -> None:
    """Kubernetes takes pods of a node that is no more out of the API after 40 s; here it is done at once, and in tests/soak/test_cluster.py
    it is waited for."""
    lose_worker_1(whole, is_patient=False)


def test_maintenance_set_is_rolled_only_while_its_reservation_is_active(restored: DevStack) -> None:
    stack = restored
    before = {pod: uid(stack, pod) for pod in ("cpu-0", "cpu-1")}
    update = 'update={"type": "Maintenance", "reservation": "patching", "maxUnavailable": 2}'
    stack.slipway("up", "--config", f"cluster.nodeSets[0].{update}", "--config", "cluster.nodeSets[0].drainGraceS=63")
    eventually("the change is seen", lambda: condition(stack, "cpu", "Updated")["status"] == "False", 60)
    stack.let_controller_look("cpu")
    assert {pod: uid(stack, pod) for pod in before} == before
    window = (
        "scontrol create reservation reservationname=patching starttime=now duration=30 nodes=cpu-[0-1] flags=maint,ignore_jobs users=root"
    )
    stack.slurm(window)
    try:
        eventually("both made anew", lambda: all(uid(stack, pod) != before[pod] for pod in before), 120)
        eventually("both up to date", lambda: condition(stack, "cpu", "Updated")["status"] == "True", 60)
    finally:
        stack.slurm("scontrol delete reservationname=patching")


def test_controllers_are_there_twice_and_one_leads(stack: DevStack) -> None:
    def are_two_and_one_leads() -> bool:
        pods = stack.get("pods", labels=CONTROLLER)["items"]
        holder = stack.get("lease", "dev-nodeset-controller")["spec"]["holderIdentity"]
        return len(pods) == 2 and any(holder.startswith(pod["metadata"]["name"]) for pod in pods)

    eventually("two, one of them the leader", are_two_and_one_leads, 60)


def test_cordoned_machine_is_drained_evicted_after_its_jobs_and_returned(stack: DevStack) -> None:
    worker = cpu_on_worker_1(stack)
    before, words = uid(stack, worker), "new fans"
    on_machine = pods_on(stack, "worker-1")
    job = stack.hold(f"--nodelist={worker}", "--output=/dev/null")
    stack.wait_for_job(job, "RUNNING")
    stack.kubectl("annotate", "node", "worker-1", f"slipway.dev/reason={words}")
    try:
        stack.kubectl("cordon", "worker-1")
        expected = f"slipway: cordon worker-1: {words}"
        eventually("all drained", lambda: all(reason(stack, node) == expected for node in on_machine), 10)
        assert stack.job_state(job) == "RUNNING"
        eventually("the job keeps its pod", lambda: "disruption budget" in evict(stack, worker), 60)
        stack.let_go()
        only = ("--pod-selector=slipway.dev/nodeset", "--ignore-daemonsets", "--delete-emptydir-data", "--force")
        stack.kubectl("drain", "worker-1", *only, f"--timeout={120 * patience():.0f}s", timeout_s=180)
        stack.wait_for_job(job)
        # The worker that had the job was evicted after it, and comes back on the other machine.
        eventually("elsewhere", lambda: uid(stack, worker) != before and machine_of(stack, worker) == "worker-0", 90)
        eventually("takes jobs", lambda: stack.nodes()[worker] == "IDLE+CLOUD", 60)
    finally:
        stack.kubectl("uncordon", "worker-1")
        stack.kubectl("annotate", "node", "worker-1", "slipway.dev/reason-")
    eventually("none drained", lambda: not any("DRAIN" in state for state in stack.nodes().values()), 90)
    stack.wait_until_settled()
