"""The check of a pool at deployment, on real nodes: the stack's own Job has passed, and one that expects more says what is missing."""

import json
from typing import Any

import pytest

from tests.cluster.dev_stack import DevStack, eventually


def pool_check(stack: DevStack) -> dict[str, Any]:
    [job] = stack.get("job", "--selector", "app.kubernetes.io/component=pool-check")["items"]
    return job


def run_again(stack: DevStack, **changes: Any) -> str:
    """Runs the stack's check with a changed expectation: the line that it ends with, empty when all is there."""
    job = pool_check(stack)
    [container] = job["spec"]["template"]["spec"]["containers"]
    expectation = json.loads(container["command"][-1]) | {"waitS": 1} | changes
    container["command"][-1] = json.dumps(expectation)
    spec = {"backoffLimit": 0, "template": {"spec": job["spec"]["template"]["spec"]}}
    stack.kubectl("delete", "job", "try-pool", "--ignore-not-found", "--cascade=foreground")
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "try-pool"}, "spec": spec}
    stack.kubectl("create", "--filename", "-", stdin=json.dumps(manifest))
    ended: dict[str, Any] = eventually("the check has ended", lambda: _ended(stack), 60)
    stack.kubectl("delete", "job", "try-pool", "--cascade=foreground")
    return ended.get("message", "").strip()


def _ended(stack: DevStack) -> dict[str, Any]:
    pods = stack.get("pod", "--selector", "job-name=try-pool")["items"]
    assert len(pods) == 1
    return pods[0]["status"]["containerStatuses"][0]["state"]["terminated"]


def test_nodes_of_the_stack_were_found(stack: DevStack) -> None:
    assert pool_check(stack)["status"]["succeeded"] == 1
    assert run_again(stack) == ""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param(
            {"count": 3, "gpus": 4},
            'pool "workers": 3 nodes wanted with slipway.dev/pool=workers and 4 nvidia.com/gpu, 2 found: worker-0, worker-1',
            id="too-few-nodes",
        ),
        pytest.param(
            {"gpus": 8},
            'pool "workers": 2 nodes wanted with slipway.dev/pool=workers and 8 nvidia.com/gpu, 0 found; worker-0 has 4; worker-1 has 4',
            id="too-few-gpus",
        ),
        pytest.param(
            {"labels": {"slipway.dev/pool": "h10"}, "gpus": 0},
            'pool "workers": 2 nodes wanted with slipway.dev/pool=h10, 0 found',
            id="wrong-label",
        ),
    ],
)
def test_what_is_missing_is_said_in_one_line(stack: DevStack, changes: dict[str, Any], said: str) -> None:
    assert run_again(stack, **changes) == said
