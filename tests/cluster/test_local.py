"""The local cluster itself: repeated and damaged, with a stack on it that goes on. tests/soak/test_local.py ends it."""

import signal
import sys

from local import processes
from tests.cluster.dev_stack import STATE, DevStack, eventually


def local(stack: DevStack, verb: str) -> str:
    return stack.run(sys.executable, "-m", "local", verb, timeout_s=600).stdout


def pid_of(program: str) -> int:
    """The process id of a program of the local cluster, by its record."""
    return int((STATE / "processes" / program).read_text().split()[0])


def kill(program: str) -> None:
    """Kills a program of the local cluster behind its back, and returns when it is gone: `up` would take it for running."""
    boot, record = processes.boot_id(), processes.running(STATE / "processes")[program]
    processes.send(record, signal.SIGKILL, boot)
    eventually(f"{program} is gone", lambda: not processes.is_alive(record, boot), 30)


def test_second_up_starts_nothing(stack: DevStack) -> None:
    assert "nothing had to be started" in local(stack, "up")


def test_up_restarts_a_killed_control_plane_program_and_jobs_run_on(own_cluster: None, stack: DevStack) -> None:
    job = stack.hold("--nodelist=cpu-0")
    stack.wait_for_job(job, "RUNNING")
    for program in ("kube-scheduler", "kube-apiserver"):
        kill(program)
    local(stack, "up")
    eventually("an answer from the API server", lambda: stack.kubectl("get", "pods"), 60)
    assert stack.job_state(job) == "RUNNING"
    stack.let_go()
    stack.wait_for_job(job)
