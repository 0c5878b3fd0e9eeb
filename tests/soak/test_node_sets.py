"""Tests of node sets on the real cluster in which the controller replaces many pods."""

import time

from tests.support.cluster.dev_stack import CONTROLLER, DevStack, eventually
from tests.support.cluster.machines import machine_of
from tests.support.cluster.node_sets import condition, evict, reason, status, uid


def test_pinned_worker_keeps_its_machine_and_its_disk_until_the_node_goes(restored: DevStack) -> None:
    """Quick: tests/unit/controllers/nodeset/test_disks.py."""
    stack = restored
    disk = '[{"name": "scratch", "mountPath": "/scratch", "size": "64Mi"}]'
    options = ("placement=Pinned", f"volumeClaims={disk}", 'volumeClaimRetention={"whenScaled": "Delete", "whenDeleted": "Delete"}')
    stack.slipway("up", *(word for option in options for word in ("--config", f"cluster.nodeSets[0].{option}")))
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


def test_job_past_the_drain_deadline_is_requeued_if_the_set_says_so(restored: DevStack) -> None:
    """Quick: tests/unit/controllers/nodeset/test_deadlines.py."""
    stack = restored
    stack.slipway("up", "--config", 'cluster.nodeSets[0].drain={"action": "Requeue", "deadlineS": 10}')
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


def test_pod_refused_by_the_kubelet_is_retried_ever_less_often_and_named(restored: DevStack) -> None:
    """Quick: tests/unit/controllers/nodeset/test_retried.py."""
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
            pods = stack.get("pods", labels="slipway.dev/nodeset=cpu")["items"]
            seen.update(pod["metadata"]["uid"] for pod in pods)
            return time.monotonic() > until

        eventually("a while", watched, 30, every_s=0.3)
        assert len(seen) <= 8, "one that runs still, and a few tries"
    finally:
        stack.kubectl("patch", "nodeset", "cpu", "--type=merge", "-p", mended)  # a deployment leaves what kubectl alone has set
    # With another template the next try does not wait.
    eventually("mended", lambda: condition(stack, "cpu", "PodsStart").get("status") == "True", 60)
    stack.wait_until_settled()


def test_controller_killed_in_the_middle_of_a_roll_is_followed_by_another(restored: DevStack) -> None:
    """Quick: tests/cluster/test_recovery.py kills one in a scale-out; tests/unit/controllers/nodeset/test_killed.py at every write."""
    stack = restored
    before = {pod: uid(stack, pod) for pod in ("cpu-0", "cpu-1")}
    job = stack.hold("--nodelist=cpu-1")
    stack.wait_for_job(job, "RUNNING")
    stack.slipway("up", "--config", "cluster.nodeSets[0].drainGraceS=62")
    eventually("the roll has begun", lambda: uid(stack, "cpu-0") != before["cpu-0"], 60)
    stack.kubectl("delete", "pod", "-l", CONTROLLER, "--force", "--grace-period=0")
    stack.let_go()
    stack.wait_for_job(job)
    eventually("the roll is finished", lambda: uid(stack, "cpu-1") != before["cpu-1"], 120)
    stack.wait_until_settled()


def test_nothing_is_removed_without_slurmctld_until_the_running_job_ends(scaled_back: DevStack) -> None:
    """Quick: tests/cluster/test_silence.py, where slurmrestd is away."""
    stack = scaled_back
    before = {pod: uid(stack, pod) for pod in ("cpu-0", "cpu-1")}
    job = stack.hold("--nodelist=cpu-0")
    stack.wait_for_job(job, "RUNNING")
    stack.pause_guard("statefulset/dev-slurmctld")
    stack.kubectl("scale", "statefulset/dev-slurmctld", "--replicas=0")
    eventually("silence noticed", lambda: condition(stack, "cpu", "SlurmAnswers")["status"] == "False", 60)
    stack.kubectl("scale", "nodeset", "cpu", "--replicas=0")
    eventually("an idle pod is protected as well", lambda: "disruption budget" in evict(stack, "cpu-1"), 60)
    stack.let_controller_look("cpu")
    assert {pod: uid(stack, pod) for pod in before} == before
    stack.kubectl("scale", "statefulset/dev-slurmctld", "--replicas=1")
    eventually("slurmctld", lambda: stack.slurm("scontrol ping"), 120)
    eventually("heard again", lambda: condition(stack, "cpu", "SlurmAnswers")["status"] == "True", 60)
    stack.let_controller_look("cpu")
    assert uid(stack, "cpu-0") == before["cpu-0"]
    stack.let_go()
    stack.wait_for_job(job)
    eventually("scaled in, alone", lambda: status(stack, "cpu").get("replicas", 0) == 0, 90)
