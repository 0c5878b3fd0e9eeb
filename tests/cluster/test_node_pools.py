"""The check of a pool at deployment, on real nodes: the stack's own Job has passed, and one that expects more says what is missing."""

import json
from typing import Any

import pytest

from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.log_lines import as_words

WANTED = "nodes wanted with slipway.dev/pool="
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "all-there": ({}, ""),
    "too-few-nodes": (
        {"count": 3, "gpus": 4},
        f'pool "workers": 3 {WANTED}workers and 4 nvidia.com/gpu, 2 found: worker-0, worker-1',
    ),
    "too-few-gpus": (
        {"gpus": 8},
        f'pool "workers": 2 {WANTED}workers and 8 nvidia.com/gpu, 0 found; worker-0 has 4; worker-1 has 4',
    ),
    "wrong-label": ({"labels": {"slipway.dev/pool": "h10"}, "gpus": 0}, f'pool "workers": 2 {WANTED}h10, 0 found'),
}
"""What is expected of the stack's pool beside what is there, and the line that the check ends with."""


@pytest.fixture(scope="module")
def said(deployed: DevStack) -> dict[str, str]:
    """The lines that the stack's check ends with, by case: all run at once, as pods take longer to start than to look."""
    for name, (changes, _) in CASES.items():
        _start(deployed, name, changes)
    ended = {name: eventually(f"the check of {name} has ended", lambda name=name: _ended(deployed, name), 60) for name in CASES}
    deployed.kubectl("delete", *(f"job/try-{name}" for name in CASES), "--cascade=foreground")
    return {name: as_words(state.get("message", "")).strip().removeprefix("pool: ") for name, state in ended.items()}


def _start(stack: DevStack, name: str, changes: dict[str, Any]) -> None:
    """Runs the stack's check with a changed expectation."""
    job = pool_check(stack)
    [container] = job["spec"]["template"]["spec"]["containers"]
    expectation = json.loads(container["command"][-1]) | {"waitS": 1} | changes
    container["command"][-1] = json.dumps(expectation)
    spec = {"backoffLimit": 0, "template": {"spec": job["spec"]["template"]["spec"]}}
    stack.kubectl("delete", "job", f"try-{name}", "--ignore-not-found", "--cascade=foreground")
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"try-{name}"}, "spec": spec}
    stack.kubectl("create", "--filename", "-", stdin=json.dumps(manifest))


def pool_check(stack: DevStack) -> dict[str, Any]:
    [job] = stack.get("job", labels="app.kubernetes.io/component=pool-check")["items"]
    return job


def _ended(stack: DevStack, name: str) -> dict[str, Any]:
    pods = stack.get("pod", labels=f"job-name=try-{name}")["items"]
    assert len(pods) == 1
    return pods[0]["status"]["containerStatuses"][0]["state"]["terminated"]


def test_nodes_of_the_stack_were_found(stack: DevStack) -> None:
    assert pool_check(stack)["status"]["succeeded"] == 1


@pytest.mark.parametrize("case", CASES)
def test_what_is_missing_is_said_in_one_line(said: dict[str, str], case: str) -> None:
    assert said[case] == CASES[case][1]
