"""Slurm silent, without slurmrestd and the database, while the controller looks ten times. tests/soak/test_cluster.py has five minutes."""

from tests.support.cluster.dev_stack import DevStack
from tests.support.cluster.silence import answering, be_silent

FIXTURES = (answering,)

LOOKS = 10


def test_silence_is_told_removes_no_pod_loses_no_job_and_ends_by_itself(answering: DevStack) -> None:
    be_silent(answering, lambda: answering.let_controller_look("cpu", LOOKS))
