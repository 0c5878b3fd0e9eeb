"""slurmrestd and the database away for a while."""

from collections.abc import Callable, Iterator

import pytest

from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.cluster.node_sets import condition, evict, status, uid

AWAY = ("deployment/dev-slurmrestd", "statefulset/dev-mariadb")


@pytest.fixture
def answering(stack: DevStack) -> Iterator[DevStack]:
    """The stack, with both back afterwards, and `cpu` at its two nodes."""
    yield stack
    stack.resume_guard(*AWAY)
    stack.kubectl("scale", *AWAY, "--replicas=1")
    stack.kubectl("scale", "nodeset", "cpu", "--replicas=2")
    stack.wait_until_settled()


def be_silent(stack: DevStack, meanwhile: Callable[[], None]) -> None:
    """Takes both away under a set of two idle nodes that is to have none; what runs `meanwhile` gives the controller time for a mistake."""
    pods = {pod: uid(stack, pod) for pod in ("cpu-0", "cpu-1")}
    stack.pause_guard(*AWAY)
    stack.kubectl("scale", *AWAY, "--replicas=0")
    eventually("silence noticed", lambda: condition(stack, "cpu", "SlurmAnswers")["status"] == "False", 60)
    stack.kubectl("scale", "nodeset", "cpu", "--replicas=0")
    job = stack.submit("#!/bin/bash\nsleep 2\n", "--nodelist=gpu-0", "--output=/dev/null")
    eventually("said", lambda: "nothing is removed until it does" in status(stack, "cpu")["why"], 60)
    eventually("an idle pod is protected as well", lambda: "disruption budget" in evict(stack, "gpu-0"), 60)
    stack.wait_for_job(job)
    read = stack.slipway("status").stdout
    assert "nodes never (" in read
    assert "No job runs or waits." not in read
    meanwhile()
    assert {pod: uid(stack, pod) for pod in pods} == pods
    assert not any("DRAIN" in state for state in stack.nodes().values())
    stack.kubectl("scale", *AWAY, "--replicas=1")
    eventually("scaled in, alone", lambda: status(stack, "cpu").get("replicas", 0) == 0, 90)
    eventually("the job of that time in accounting", lambda: stack.ssh(f"sacct -nXP -j {job} -o State").split() == ["COMPLETED"], 120)
