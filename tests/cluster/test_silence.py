"""Five minutes without slurmrestd and the database, on the real cluster.

The tests of standalone's verbs run meanwhile, on stacks of their own: they know nothing of Slurm. conftest puts them between these two.
"""

import time
from collections.abc import Iterator

import pytest

from tests.cluster.dev_stack import DevStack, eventually
from tests.cluster.test_node_sets import condition, evict, status, uid

SILENCE_S = 300
"""Ten sweeps of the controller: time enough for a mistake."""
AWAY = ("deployment/dev-slurmrestd", "statefulset/dev-mariadb")


class Silence:
    """Begins with whichever test comes first, and ends with the second, or with the session."""

    def __init__(self, stack: DevStack) -> None:
        self.stack = stack
        self.has_begun = False
        self.until = 0.0
        self.job = 0
        self.pods: dict[str, str] = {}

    def begin(self) -> None:
        """Takes both away under a set of two idle nodes that is to have none, and has a job done meanwhile."""
        if self.has_begun:
            assert self.until, "it did not begin as it should"
            return
        self.stack.ready()
        self.has_begun, self.pods = True, self.uids()
        self.stack.kubectl("scale", *AWAY, "--replicas=0")
        eventually("silence noticed", lambda: condition(self.stack, "cpu", "SlurmAnswers")["status"] == "False", 60)
        self.stack.kubectl("scale", "nodeset", "cpu", "--replicas=0")
        self.job = self.stack.submit("#!/bin/bash\nsleep 20\n", "--nodelist=gpu-0")
        self.until = time.monotonic() + SILENCE_S

    def uids(self) -> dict[str, str]:
        return {pod: uid(self.stack, pod) for pod in ("cpu-0", "cpu-1")}

    def end(self) -> None:
        """Puts all back; also after a failure."""
        if self.has_begun:
            self.has_begun = False
            self.stack.kubectl("scale", *AWAY, "--replicas=1")
            self.stack.kubectl("scale", "nodeset", "cpu", "--replicas=2")
            self.stack.wait_until_settled()


@pytest.fixture(scope="session")
def silence(deployed: DevStack) -> Iterator[Silence]:
    made = Silence(deployed)
    yield made
    made.end()


def test_silence_of_slurmrestd_and_the_database_is_told_and_protects_idle_pods_as_well(silence: Silence) -> None:
    silence.begin()
    stack = silence.stack
    assert "nothing is removed until it does" in status(stack, "cpu")["why"]
    eventually("an idle pod is protected as well", lambda: "disruption budget" in evict(stack, "gpu-0"), 60)
    stack.wait_for_job(silence.job)


def test_five_minutes_of_it_remove_no_pod_lose_no_job_and_end_by_themselves(silence: Silence) -> None:
    stack = silence.stack
    try:
        silence.begin()
        eventually("ten sweeps over", lambda: time.monotonic() > silence.until, SILENCE_S, every_s=5)
        assert silence.uids() == silence.pods
        assert not any("DRAIN" in state for state in stack.nodes().values())
        stack.kubectl("scale", *AWAY, "--replicas=1")
        eventually("scaled in, alone", lambda: status(stack, "cpu").get("replicas", 0) == 0, 90)
        job = f"sacct -nXP -j {silence.job} -o State"
        eventually("the job of that time in accounting", lambda: stack.ssh(job).split() == ["COMPLETED"], 120)
    finally:
        silence.end()
