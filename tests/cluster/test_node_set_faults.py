"""Node sets when Kubernetes itself fails, and what a set can be told about machines, disks, windows and deadlines, on the real cluster."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.dev_stack import CONTROLLER, STATE, DevStack, eventually
from tests.cluster.test_local import kill, pid_of
from tests.cluster.test_node_sets import condition, reason, status, uid
from tests.cluster.test_recovery import processes_of


@pytest.fixture
def thawed(own_cluster: None, stack: DevStack) -> Iterator[DevStack]:
    """The stack, with its API server running afterwards and `cpu` at its two nodes."""
    server = str(pid_of("kube-apiserver"))
    yield stack
    subprocess.run(["kill", "-CONT", server], check=True)
    stack.kubectl("scale", "nodeset", "cpu", "--replicas=2")
    stack.slurm("scancel --user=alice", check=False)
    stack.wait_until_settled()


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
    pods = stack.get("pods", "-l", "slipway.dev/nodeset", f"--field-selector=spec.nodeName={machine}")["items"]
    return [pod["metadata"]["name"] for pod in pods]


def machine_of(stack: DevStack, pod: str) -> str:
    return stack.get("pod", pod)["spec"].get("nodeName", "")


def leaders(stack: DevStack) -> list[int]:
    """The process of the controller that leads, on this machine."""
    holder = stack.get("lease", "dev-nodeset-controller")["spec"]["holderIdentity"]
    return processes_of(holder.partition("_")[0], "controllers.nodeset")


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


def test_frozen_api_server_stops_deletions_not_jobs_and_the_controllers_recover_alone(thawed: DevStack) -> None:
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


def lose_worker_1(stack: DevStack, is_patient: bool) -> None:
    """Removes the Kubernetes node, and waits until its worker runs jobs on the other one."""
    lost = cpu_on_worker_1(stack)
    before = uid(stack, lost)
    stack.run(str(STATE / "bin" / "kubectl"), "delete", "node", "worker-1")
    if not is_patient:
        stack.kubectl("delete", "pod", *pods_on(stack, "worker-1"), "--force", "--grace-period=0")
    eventually("made anew", lambda: uid(stack, lost) != before and machine_of(stack, lost) == "worker-0", 180)
    eventually("takes jobs", lambda: stack.nodes()[lost] == "IDLE+CLOUD", 60)
    job = stack.submit("#!/bin/bash\nhostname\n", f"--nodelist={lost}", "--output=moved.out")
    stack.wait_for_job(job)
    assert stack.ssh("cat moved.out") == f"{lost}\n"


def test_pinned_worker_returns_to_its_machine_and_its_disk_outlives_the_pod_but_not_the_node(restored: DevStack) -> None:
    stack = restored
    disk = '[{"name": "scratch", "mountPath": "/scratch", "size": "64Mi"}]'
    options = ("placement=Pinned", f"volumeClaims={disk}", 'volumeClaimRetention={"whenScaled": "Delete", "whenDeleted": "Delete"}')
    stack.standalone("up", *(word for option in options for word in ("--config", f"cluster.nodeSets[0].{option}")))
    eventually("rolled", lambda: condition(stack, "cpu", "Updated")["status"] == "True" and status(stack, "cpu").get("ready") == 2, 120)
    stack.wait_until_idle()
    where, before = machine_of(stack, "cpu-0"), uid(stack, "cpu-0")
    stack.slurm("true")
    write = "#!/bin/bash\nmkdir -p /scratch/mine 2>/dev/null; df --output=target /scratch | tail -n 1\n"
    job = stack.submit(write, "--nodelist=cpu-0", "--output=disk.out")
    stack.wait_for_job(job)
    assert stack.ssh("cat disk.out").strip() == "/scratch"
    stack.kubectl("exec", "cpu-0", "-c", "slurmd", "--", "touch", "/scratch/kept")
    stack.kubectl("delete", "pod", "cpu-0", "--wait=false")
    eventually("another pod", lambda: uid(stack, "cpu-0") != before and status(stack, "cpu").get("ready") == 2, 90)
    assert machine_of(stack, "cpu-0") == where
    stack.kubectl("exec", "cpu-0", "-c", "slurmd", "--", "test", "-e", "/scratch/kept")
    stack.wait_until_idle()
    stack.kubectl("scale", "nodeset", "cpu", "--replicas=1")
    eventually("one pod", lambda: status(stack, "cpu").get("replicas") == 1, 90)
    kept = stack.kubectl("get", "pods", "-l", "slipway.dev/nodeset=cpu", "-o", "name").split()[0].removeprefix("pod/")

    def claims() -> list[str]:
        return stack.kubectl("get", "pvc", "-l", "slipway.dev/nodeset=cpu", "-o", "name").split()

    eventually("one disk", lambda: claims() == [f"persistentvolumeclaim/scratch-{kept}"], 60)


def test_maintenance_set_is_rolled_while_its_reservation_is_active_and_not_before(restored: DevStack) -> None:
    stack = restored
    before = {pod: uid(stack, pod) for pod in ("cpu-0", "cpu-1")}
    update = 'update={"type": "Maintenance", "reservation": "patching", "maxUnavailable": 2}'
    stack.standalone("up", "--config", f"cluster.nodeSets[0].{update}", "--config", "cluster.nodeSets[0].drainGraceS=63")
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


def test_job_that_outlives_the_drain_deadline_is_requeued_when_the_set_says_so(restored: DevStack) -> None:
    stack = restored
    stack.standalone("up", "--config", 'cluster.nodeSets[0].drain={"action": "Requeue", "deadlineS": 10}')
    jobs = [stack.submit("#!/bin/bash\nsleep 600\n", f"--nodelist=cpu-{at}", "--requeue") for at in (0, 1)]
    for job in jobs:
        stack.wait_for_job(job, "RUNNING")
    stack.kubectl("scale", "nodeset", "cpu", "--replicas=1")
    drained = eventually("one drained", lambda: [name for name, state in stack.nodes().items() if "DRAIN" in state], 60)
    assert reason(stack, drained[0]) == "slipway: nodeset scale-in"
    eventually("its pod is gone", lambda: status(stack, "cpu").get("replicas") == 1, 60)
    shown = [stack.slurm(f"scontrol show job {job} -o") for job in jobs]
    restarts = sorted(word for line in shown for word in line.split() if word.startswith("Restarts="))
    assert restarts == ["Restarts=0", "Restarts=1"]
    stack.slurm("scancel --user=alice")


def test_controllers_are_there_twice_and_one_leads(stack: DevStack) -> None:
    pods = stack.get("pods", "-l", CONTROLLER)["items"]
    holder = stack.get("lease", "dev-nodeset-controller")["spec"]["holderIdentity"]
    assert len(pods) == 2
    assert any(holder.startswith(pod["metadata"]["name"]) for pod in pods)


def test_cordoned_machine_is_drained_evicted_after_its_jobs_and_given_back(stack: DevStack) -> None:
    worker = cpu_on_worker_1(stack)
    before, words = uid(stack, worker), "new fans"
    on_machine = pods_on(stack, "worker-1")
    job = stack.submit("#!/bin/bash\nsleep 15\n", f"--nodelist={worker}", "--output=/dev/null")
    stack.wait_for_job(job, "RUNNING")
    stack.kubectl("annotate", "node", "worker-1", f"slipway.dev/reason={words}")
    try:
        stack.kubectl("cordon", "worker-1")
        expected = f"slipway: cordon worker-1: {words}"
        eventually("all drained", lambda: all(reason(stack, node) == expected for node in on_machine), 10)
        only = ("--pod-selector=slipway.dev/nodeset", "--ignore-daemonsets", "--delete-emptydir-data", "--force")
        stack.kubectl("drain", "worker-1", *only, "--timeout=120s", timeout_s=180)
        stack.wait_for_job(job)
        # The worker that had the job was evicted after it, and comes back on the other machine.
        eventually("elsewhere", lambda: uid(stack, worker) != before and machine_of(stack, worker) == "worker-0", 90)
        eventually("takes jobs", lambda: stack.nodes()[worker] == "IDLE+CLOUD", 60)
    finally:
        stack.kubectl("uncordon", "worker-1")
        stack.kubectl("annotate", "node", "worker-1", "slipway.dev/reason-")
    eventually("none drained", lambda: not any("DRAIN" in state for state in stack.nodes().values()), 90)
    stack.wait_until_settled()


def test_pod_that_the_kubelet_refuses_is_tried_less_and_less_often_and_named(restored: DevStack) -> None:
    stack = restored
    # A pod with a machine of its own passes no scheduler; the kubelet looks at the selector then.
    refused = '{"spec": {"template": {"spec": {"nodeName": "worker-0", "nodeSelector": {"no-such": "label"}}}}}'
    mended = '{"spec": {"template": {"spec": {"nodeName": null, "nodeSelector": {"no-such": null}}}}}'
    stack.kubectl("patch", "nodeset", "cpu", "--type=merge", "-p", refused)
    try:
        eventually("named", lambda: "worker-0 refused it (NodeAffinity" in condition(stack, "cpu", "PodsStart").get("message", ""), 60)
        seen: set[str] = set()
        until = time.monotonic() + 15

        def watched() -> bool:
            pods = stack.get("pods", "-l", "slipway.dev/nodeset=cpu")["items"]
            seen.update(pod["metadata"]["uid"] for pod in pods)
            return time.monotonic() > until

        eventually("a while", watched, 30, every_s=0.3)
        assert len(seen) <= 8, "one that runs still, and a few tries"
    finally:
        stack.kubectl("patch", "nodeset", "cpu", "--type=merge", "-p", mended)  # a deployment leaves what kubectl alone has set
    # With another template the next try does not wait.
    eventually("mended", lambda: condition(stack, "cpu", "PodsStart").get("status") == "True", 60)
    stack.wait_until_settled()
