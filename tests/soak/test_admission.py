"""Checks that the controller starts on real nodes after a step of a repair."""

import json

from tests.support.cluster.admission import granted, identity, patch, restored, results
from tests.support.cluster.dev_stack import DevStack, eventually

FIXTURES = (granted, restored)
FULL = (
    '{"slipway":{"disk":{"result":"failed","at":"2026-01-02T03:04:05Z",'
    '"failure":{"since":"2026-01-02T03:04:05Z","found":"/tmp has 3 MiB free","kind":"node","drains":true}}}}'
)


def test_repaired_node_is_checked_at_once_and_returns_after_a_deep_check(stack: DevStack) -> None:
    """No schedule of these checks comes within the test, but for a quarter of an hour's first minute.

    Quick: tests/unit/controllers/nodeset/test_verified.py in the simulation, and tests/cluster/test_remedies.py: a node gets a new pod.
    """
    policy = {"steps": ["RecreatePod"], "waitSeconds": 3, "verifiedBy": ["clock"]}
    patch(stack, {"remedies": policy, "checkJobs": ["disk", "memory", "clock", "gpu"]})
    before = stack.get("pod", "gpu-1")["metadata"]["uid"]
    stack.slurm(f"scontrol update NodeName=gpu-1 Extra='{FULL}'")
    eventually("the pod is another", lambda: stack.get("pod", "gpu-1")["metadata"]["uid"] != before, 60)
    eventually("the failed check has passed", lambda: results(stack, "gpu-1")["disk"]["result"] == "passed", 60, every_s=0.2)
    assert "DRAIN" in stack.nodes()["gpu-1"] or "RESERVED" in stack.nodes()["gpu-1"], "in service before the deeper check has passed"
    eventually("in service", lambda: stack.get("nodeset", "gpu")["status"]["repairs"][0]["state"] == "InService", 60, every_s=0.2)
    [record] = stack.get("nodeset", "gpu")["status"]["repairs"]
    proof = {"machine": identity(stack, "gpu-1"), "step": record["steps"][0]["at"]}
    assert {check: results(stack, "gpu-1")[check].get("passedFor") for check in ("disk", "clock")} == {"disk": proof, "clock": proof}
    assert "passedFor" not in json.dumps(results(stack, "gpu-0")), "a node was looked at that nobody had asked about"
    stack.wait_until_idle()
