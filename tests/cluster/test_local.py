"""The local cluster itself: repeated and damaged, with a stack on it that goes on. tests/soak/test_local.py ends it."""

from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.cluster.programs import kill, local


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
