"""Health checks of the dev stack, run at the moment that a test chooses."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.support.cluster.dev_stack import DevStack, eventually

ALL_FULL: dict[str, Any] = {"minFreeMiB": 1_000_000_000}
OURS = "slipway: check disk: "
KINDS = ("disk", "memory", "clock", "gpu")
NIGHTLY = ("mpi", "stream", "storage")
BENCH = "try-check"
"""The Job in whose pod checks are run with other limits."""
CRON_JOBS = tuple(f"dev-check-{kind}" for kind in (*KINDS, *NIGHTLY))


@pytest.fixture(scope="module", autouse=True)
def on_demand(deployed: DevStack) -> Iterator[None]:
    """No check runs by its schedule, and none that did is still under way."""
    _suspend(deployed, True)
    eventually("no scheduled check runs", lambda: not any(job["status"].get("active") for job in deployed.get("cronjob")["items"]), 60)
    job = job_of(deployed, "disk")
    job["template"]["spec"]["containers"][0]["command"] = ["sleep", "infinity"]
    create_job(deployed, BENCH, job | {"activeDeadlineSeconds": 3600})
    deployed.wait("--for=jsonpath={.status.ready}=1", f"job/{BENCH}", deadline_s=120)
    yield
    deployed.kubectl("delete", "job", BENCH, "--wait=false")
    _suspend(deployed, False)


@pytest.fixture(autouse=True)
def cleaned(stack: DevStack) -> Iterator[None]:
    """No failure, no drain and no reservation of a test is left."""
    yield
    nodes, reserved = stack.nodes(), reservations(stack)
    for name in nodes:
        if f"slipway-check-{name} " in reserved:
            stack.slurm(f"scontrol delete ReservationName=slipway-check-{name}")
    stack.slurm(f"scontrol update NodeName={','.join(nodes)} Extra={{}}")
    for name in nodes:
        seen = node(stack, name)
        if "DRAIN" in seen["state"] and not seen["reason"].startswith("slipway: check "):
            stack.slurm(f"scontrol update NodeName={name} State=RESUME", check=False)  # the controller may be faster
    stack.wait_until_idle()


def _suspend(stack: DevStack, is_suspended: bool) -> None:
    stack.kubectl("patch", "cronjob", *CRON_JOBS, "--patch", json.dumps({"spec": {"suspend": is_suspended}}))


def job_of(stack: DevStack, kind: str) -> dict[str, Any]:
    return stack.get("cronjob", f"dev-check-{kind}")["spec"]["jobTemplate"]["spec"]


def create_job(stack: DevStack, name: str, job: dict[str, Any]) -> None:
    stack.kubectl("delete", "job", name, "--ignore-not-found")
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": job}
    stack.kubectl("create", "--filename", "-", stdin=json.dumps(manifest))


def check(
    stack: DevStack, kind: str, max_drained: int | None = 100, runs: str = "", nodes: Sequence[str] = (), **limits: Any
) -> dict[str, dict[str, str]]:
    """Runs a check's command with other limits, in a pod like its own, and returns its line about each node.

    `max_drained` None: the stack's. `runs` is the program that the nodes run instead, `nodes` the node sets. `per`, `after`,
    `budgetNodeMinutes` and `wish` are the check's own.
    """
    [*program, given] = job_of(stack, kind)["template"]["spec"]["containers"][0]["command"]
    spec = json.loads(given)
    spec["check"] = runs or spec["check"]
    spec |= {key: limits.pop(key) for key in ("per", "after", "budgetNodeMinutes", "wish") if key in limits}
    spec["nodeSets"] = [each for each in spec["nodeSets"] if not nodes or each["name"] in nodes]
    for node_set in spec["nodeSets"]:
        node_set["settings"] |= limits
        node_set |= {} if max_drained is None else {"maxDrained": max_drained}
    return by_node(stack.kubectl("exec", f"job/{BENCH}", "--container", "check", "--", *program, json.dumps(spec), timeout_s=400))


def of_nodes(said: dict[str, dict[str, str]]) -> dict[str, tuple[str, str]]:
    """The result and the action for each node, without the lines of pairs."""
    return {name: (line["result"], line["action"]) for name, line in said.items() if "pair" not in line}


def by_node(said: str) -> dict[str, dict[str, str]]:
    lines = [json.loads(line) for line in said.splitlines()]
    return {"+".join(line["pair"]) if "pair" in line else line["node"]: line for line in lines}


def node(stack: DevStack, name: str) -> dict[str, Any]:
    [seen] = json.loads(stack.slurm(f"scontrol show node {name} --json"))["nodes"]
    return seen


def causes(stack: DevStack, name: str) -> dict[str, dict[str, str]]:
    """What the node's object has of its causes, by name, the most urgent first."""
    return {cause["name"]: cause for cause in stack.get("slurmnode", name)["status"].get("causes", [])}


def reservations(stack: DevStack) -> str:
    return stack.slurm("scontrol show reservation --oneliner")
