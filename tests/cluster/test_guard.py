"""Objects that somebody edits or deletes by hand are back within seconds, and no job notices."""

import json
from collections.abc import Callable
from typing import Any

from tests.support.cluster.dev_stack import DevStack, eventually

RESTORED_S = 10
DEEDS: dict[str, tuple[str, ...]] = {
    "configmap/dev-slurm-config": ("delete",),
    "service/dev-slurmctld": ("delete",),
    "secret/dev-mariadb": ("delete",),
    "service/dev-slurmrestd": ("patch", "--type=merge", "--patch", '{"spec": {"selector": {"app": "mine"}}}'),
    "configmap/dev-users": ("patch", "--type=merge", "--patch", '{"data": {"mine": "x"}}'),
    "deployment/dev-login": ("scale", "--replicas=0"),
}


def test_manual_edits_and_deletions_are_undone_in_seconds_under_an_array(stack: DevStack) -> None:
    names = tuple(DEEDS)
    before = {name: _content(stack, name) for name in names}
    array = stack.hold("--array=0-3", "--output=/dev/null")
    eventually("the whole array", lambda: _running(stack, array) == 4, 60)
    for name, (verb, *more) in DEEDS.items():
        stack.kubectl(verb, name, *more)
    eventually("all as it was", lambda: {name: _content(stack, name) for name in names} == before, RESTORED_S)
    for name in names:
        eventually(f"told of {name}", _is_told(stack, name.partition("/")[2]), 20)
    assert "kubectl-patch" in " ".join(_told(stack, "dev-slurmrestd"))
    eventually("a login", lambda: stack.ssh("touch go; echo in", check=False) == "in\n", 60)
    eventually("the array's end", lambda: _running(stack, array) == 0, 60)
    eventually("all tasks in accounting", lambda: stack.ssh(f"sacct -nXP -j {array} -o State").split() == ["COMPLETED"] * 4, 60)


def _content(stack: DevStack, name: str) -> Any:
    """What is declared of an object; None where it is not there, or on its way out."""
    found = stack.kubectl("get", name, "--ignore-not-found", "-o", "json")
    item = json.loads(found) if found.strip() else {"metadata": {"deletionTimestamp": "now"}}
    if item["metadata"].get("deletionTimestamp"):
        return None
    spec = item.get("spec", {})
    return item.get("data"), spec.get("selector"), spec.get("replicas"), spec.get("ports")


def _running(stack: DevStack, array: int) -> int:
    return len(stack.slurm(f"squeue -h -r -j {array} -t RUNNING -o %i", check=False).split())


def _told(stack: DevStack, name: str) -> list[str]:
    events = stack.get("events.events.k8s.io")["items"]
    return [one["note"] for one in events if one["regarding"]["name"] == name and one.get("reportingController") == "slipway.dev/guard"]


def _is_told(stack: DevStack, name: str) -> Callable[[], bool]:
    return lambda: bool(_told(stack, name))
