"""Node sets of the dev stack: what their objects and pods are like."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.patience import patience


@pytest.fixture
def scaled_back(stack: DevStack) -> Iterator[DevStack]:
    """The stack, with `cpu` at its two nodes afterwards, undrained, and slurmctld there."""
    yield stack
    stack.resume_guard("statefulset/dev-slurmctld")
    stack.kubectl("scale", "statefulset/dev-slurmctld", "--replicas=1")
    stack.kubectl("scale", "nodeset", "cpu", "--replicas=2")
    eventually("slurmctld", lambda: stack.slurm("scontrol ping"), 120)
    stack.slurm("scancel --user=alice", check=False)
    stack.slurm("scontrol update nodename=cpu-[0-1] state=undrain", check=False)
    stack.wait_until_settled()


def status(stack: DevStack, nodeset: str) -> dict[str, Any]:
    return stack.get("nodeset", nodeset).get("status", {})


def condition(stack: DevStack, nodeset: str, kind: str) -> dict[str, str]:
    return next(one for one in status(stack, nodeset)["conditions"] if one["type"] == kind)


def uid(stack: DevStack, pod: str) -> str:
    return stack.get("pod", pod)["metadata"]["uid"]


def reason(stack: DevStack, node: str) -> str:
    return stack.slurm(f"sinfo -h -N -n {node} -o '%E' | head -n 1").strip()


def evict(stack: DevStack, pod: str) -> str:
    """What the API server says to an eviction that is only tried."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}, "deleteOptions": {"dryRun": ["All"]}}
    done = stack.run(
        *("bash", "-c", f"{'.slipway/bin/kubectl'} create --raw /api/v1/namespaces/slurm/pods/{pod}/eviction -f - 2>&1"),
        check=False,
        stdin=json.dumps(body),
    )
    return done.stdout


def submit_in_power_downs(stack: DevStack, *moments_s: float) -> None:
    """Submits a two-node job at each moment of a power-down. None lands on a pod that ends."""
    for moment_s in moments_s:
        first = stack.hold("--partition=burst", "--nodes=2", "--output=/dev/null")
        stack.wait_for_job(first, "RUNNING")
        before = {pod: uid(stack, pod) for pod in ("burst-0", "burst-1")}
        stack.let_go()
        stack.wait_for_job(first)
        stack.slurm(f"scontrol update nodename=burst-[0-1] state=power_down && sleep {moment_s}")
        job = stack.submit("#!/bin/bash\nsrun hostname\n", "--partition=burst", "--nodes=2", "--output=/dev/null")
        began = time.monotonic()
        stack.wait_for_job(job, deadline_s=60)
        took = time.monotonic() - began
        assert f"JobId={job} " in stack.slurm(f"scontrol show job {job} -o")
        assert " Restarts=0 " in stack.slurm(f"scontrol show job {job} -o"), f"submitted {moment_s} s after the power-down began"
        assert all(uid(stack, pod) != before[pod] for pod in before), "a job ran on a pod that was to end"
        assert took < 45 * patience(), f"submitted {moment_s} s after the power-down began"
