"""What takes minutes on the real cluster because Slurm or Kubernetes has a time of its own, or because there are many moments to try.

Each docstring names the quick test that holds the promise in `make test`.
"""

import subprocess
import time

from tests.support.cluster.checks import causes
from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.cluster.machines import cpu_on_worker_1, lose_worker_1, pods_on
from tests.support.cluster.node_sets import status, submit_in_power_downs, uid
from tests.support.cluster.programs import pid_of
from tests.support.cluster.recovery import UNTIL_KILLED, kill_pod
from tests.support.cluster.silence import be_silent

SILENCE_S = 300
"""Ten sweeps of the controller."""


def test_five_minutes_of_silence_remove_no_pod_and_lose_no_job(answering: DevStack) -> None:
    """Quick: tests/cluster/test_silence.py, which has the controller look ten times at once."""

    def wait() -> None:
        until = time.monotonic() + SILENCE_S
        eventually("ten sweeps over", lambda: time.monotonic() > until, 2 * SILENCE_S, every_s=5)

    be_silent(answering, wait)


def test_job_on_a_killed_worker_starts_again_by_itself(stack: DevStack) -> None:
    """Two minutes after it was requeued. Quick: tests/cluster/test_recovery.py, which starts the requeued job at once."""
    job = stack.submit(UNTIL_KILLED, "--nodelist=cpu-0 --requeue --output=requeued.out")
    stack.wait_for_job(job, "RUNNING")
    kill_pod(stack, "cpu-0")
    stack.wait_for_job(job, deadline_s=400)
    assert stack.ssh("cat requeued.out").strip().endswith("cpu-0")


def test_kubernetes_itself_frees_the_ordinals_of_a_removed_node(whole: DevStack) -> None:
    """Quick: tests/cluster/test_node_set_faults.py, which takes the pods out of the API as Kubernetes does after 40 s."""
    lose_worker_1(whole, is_patient=True)


def test_job_for_nodes_on_their_way_down_is_never_lost_whenever_it_comes(stack: DevStack) -> None:
    """Quick: tests/cluster/test_node_sets.py, with three moments of a power-down."""
    submit_in_power_downs(stack, 0, 0.5, 1, 1.5, 2, 3, 4, 6)


def run_array(restored: DevStack, tasks: int) -> None:
    """Runs an array on up to eight nodes, and waits until they are gone."""
    sizes = ("nodeSets[2].max=8", "slurm.suspendTimeS=10")
    restored.slipway("up", *(word for size in sizes for word in ("--config", f"cluster.{size}")))
    eventually("eight nodes to wake", lambda: sum(name.startswith("burst-") for name in restored.nodes()) == 8, 120)
    job = restored.submit("#!/bin/bash\nsleep 1\n", "--partition=burst", f"--array=1-{tasks}", "--output=/dev/null")
    most = 0

    def finished() -> bool:
        nonlocal most
        most = max(most, status(restored, "burst").get("ready", 0))
        return not restored.slurm(f"squeue -h -j {job}").strip()

    eventually("the array done", finished, 400, every_s=2)
    assert most >= 4, f"never more than {most} nodes at once"
    states = eventually("in accounting", lambda: _tasks(restored, job, tasks), 180)
    assert set(states) == {"COMPLETED"}
    assert "Restarts=0" in restored.slurm(f"scontrol show job {job}_1 -o; scontrol show job {job} -o | head -1", check=False)
    assert restored.ssh(f"sacct -nXP -j {job} -o Restarts | sort -u").split() == ["0"]
    eventually("no pod left", lambda: not restored.kubectl("get", "pod", "-l", "slipway.dev/nodeset=burst", "-o", "name").strip(), 240)
    assert status(restored, "burst")["wanted"] == 0


def _tasks(stack: DevStack, job: int, number: int) -> list[str]:
    states = stack.ssh(f"sacct -nXP -j {job} -o State").split()
    return states if len(states) == number and "RUNNING" not in states else []


def test_array_of_two_hundred_tasks_wakes_eight_nodes(restored: DevStack) -> None:
    """Quick: tests/cluster/test_node_sets.py wakes nodes for one job; tests/slurm/test_elastic.py, with the real programs."""
    run_array(restored, 200)


def is_ready(stack: DevStack, machine: str) -> bool:
    """What Kubernetes says of a machine; Unknown is not Ready."""
    conditions = stack.get("node", machine)["status"]["conditions"]
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def test_job_on_a_machine_with_a_silent_kubelet_completes(own_cluster: None, stack: DevStack) -> None:
    """Kubernetes calls a machine NotReady 50 s after the last word of its kubelet. The worker there runs on, and Slurm hears it. Quick:
    tests/unit/controllers/nodeset has kubelets that fall silent in the simulation."""
    worker = cpu_on_worker_1(stack)
    before = {pod: uid(stack, pod) for pod in pods_on(stack, "worker-1")}
    job = stack.hold(f"--nodelist={worker}")
    stack.wait_for_job(job, "RUNNING")
    kubelet = str(pid_of("kubelet-worker-1"))
    subprocess.run(["kill", "-STOP", kubelet], check=True)
    try:
        eventually("the machine is NotReady", lambda: not is_ready(stack, "worker-1"), 120)
        eventually("its node says so", lambda: "machine-not-ready" in causes(stack, worker), 60)
        stack.let_controller_look("cpu")
        assert {pod: uid(stack, pod) for pod in before} == before
        assert "DRAIN" not in stack.nodes()[worker]
        assert stack.job_state(job) == "RUNNING"
        stack.let_go()
        stack.wait_for_job(job)
    finally:
        subprocess.run(["kill", "-CONT", kubelet], check=True)
        stack.let_go()
    eventually("the machine is Ready", lambda: is_ready(stack, "worker-1"), 90)
    eventually("its node says no more", lambda: "machine-not-ready" not in causes(stack, worker), 90)
    stack.wait_until_settled()
    assert {pod: uid(stack, pod) for pod in pods_on(stack, "worker-1")} == before
