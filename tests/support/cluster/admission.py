"""Checks before jobs, as tests of the dev stack ask for them and read their results."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from names import annotations
from tests.support.cluster.dev_stack import DevStack

RIGHTS = "try-checks"
"""The role that the stack would have with `remedies` or `checksBeforeJobs` in its file."""


@pytest.fixture(scope="module", autouse=True)
def granted(deployed: DevStack) -> Iterator[None]:
    """No set of the dev stack's file asks for checks, so the controller may start none."""
    about = {"name": RIGHTS}
    rules = [
        {"apiGroups": ["batch"], "resources": ["cronjobs"], "verbs": ["get"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]},
    ]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": about, "rules": rules}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": RIGHTS}
    subjects = [{"kind": "ServiceAccount", "name": "dev-nodeset-controller", "namespace": "slurm"}]
    binding = {"apiVersion": role["apiVersion"], "kind": "RoleBinding", "metadata": about, "roleRef": reference, "subjects": subjects}
    manifest = {"apiVersion": "v1", "kind": "List", "items": [role, binding]}
    deployed.kubectl("apply", "--filename", "-", stdin=json.dumps(manifest))
    yield
    deployed.kubectl("delete", "rolebinding,role", RIGHTS)


@pytest.fixture(autouse=True)
def restored(stack: DevStack) -> Iterator[None]:
    """The set `gpu` is that of the stack again, and nothing of a test is left in Slurm."""
    stack.pause_guard("nodeset/gpu")
    stack.forget_repairs("gpu")
    yield
    stack.undeclare_repairs("gpu")
    patch(stack, {"template": {"metadata": {"annotations": {annotations.CHECKS_BEFORE_JOBS: None}}}})
    stack.slipway("up", "--force-conflicts")  # takes back the fields that kubectl has changed, and owns them again
    stack.resume_guard("nodeset/gpu")
    stack.slurm("scontrol update NodeName=gpu-[0-1] Extra={}")
    stack.wait_until_settled()


def patch(stack: DevStack, spec: dict[str, Any]) -> None:
    """Changes the spec of the set `gpu`, as who runs kubectl does."""
    stack.kubectl("patch", "nodeset", "gpu", "--type=merge", "--patch", json.dumps({"spec": spec}))


def results(stack: DevStack, name: str) -> dict[str, Any]:
    """What checks have noted of a node."""
    [seen] = json.loads(stack.slurm(f"scontrol show node {name} --json"))["nodes"]
    return json.loads(seen["extra"] or "{}").get("slipway", {})


def identity(stack: DevStack, pod: str) -> str:
    """Which machine a pod is on, as the controller knows it."""
    machine = stack.get("node", stack.get("pod", pod)["spec"]["nodeName"])
    return machine["spec"].get("providerID") or machine["metadata"]["uid"]
