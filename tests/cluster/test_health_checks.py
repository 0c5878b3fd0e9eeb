"""Health checks on real nodes: what fails is drained, what passes again is lifted, and nobody else's node is touched.

Each check runs once by its CronJob's own Job; the tests of limits run its command in one such pod, which costs no start. The schedules are
suspended meanwhile.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.dev_stack import DevStack, eventually

ALL_FULL = {"minFreeMiB": 1_000_000_000}
OURS = "slipway: check disk: "
KINDS = ("disk", "memory", "clock", "gpu")
BENCH = "try-check"
"""The Job in whose pod checks are run with other limits."""
CRON_JOBS = tuple(f"dev-check-{kind}" for kind in KINDS)


@pytest.fixture(scope="module", autouse=True)
def on_demand(deployed: DevStack) -> Iterator[None]:
    """No check runs by its schedule, and none that did is still under way."""
    _suspend(deployed, True)
    eventually("no scheduled check runs", lambda: not any(job["status"].get("active") for job in deployed.get("cronjob")["items"]), 60)
    job = _job(deployed, "disk")
    job["template"]["spec"]["containers"][0]["command"] = ["sleep", "infinity"]
    _create(deployed, BENCH, job | {"activeDeadlineSeconds": 3600})
    deployed.kubectl("wait", "--for=jsonpath={.status.ready}=1", f"job/{BENCH}", "--timeout=120s", timeout_s=150)
    yield
    deployed.kubectl("delete", "job", BENCH, "--wait=false")
    _suspend(deployed, False)


@pytest.fixture(autouse=True)
def cleaned(stack: DevStack) -> Iterator[None]:
    """No drain and no reservation of a test is left."""
    yield
    for name, state in stack.nodes().items():
        if "RESERVED" in state or "MAINT" in state:
            stack.slurm(f"scontrol delete ReservationName=slipway-check-disk-{name}")
        if "DRAIN" in state:
            stack.slurm(f"scontrol update NodeName={name} State=RESUME")


def _suspend(stack: DevStack, is_suspended: bool) -> None:
    stack.kubectl("patch", "cronjob", *CRON_JOBS, "--patch", json.dumps({"spec": {"suspend": is_suspended}}))


def _job(stack: DevStack, kind: str) -> dict[str, Any]:
    return stack.get("cronjob", f"dev-check-{kind}")["spec"]["jobTemplate"]["spec"]


def _create(stack: DevStack, name: str, job: dict[str, Any]) -> None:
    stack.kubectl("delete", "job", name, "--ignore-not-found")
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": job}
    stack.kubectl("create", "--filename", "-", stdin=json.dumps(manifest))


def scheduled(stack: DevStack, *kinds: str) -> dict[str, dict[str, dict[str, str]]]:
    """One run of each check at the same time, by the Jobs that their CronJobs would create, to the end: by check, what it said of each
    node."""
    said: dict[str, dict[str, dict[str, str]]] = {}
    for kind in kinds:
        _create(stack, f"try-{kind}", _job(stack, kind))
    for kind in kinds:
        stack.kubectl("wait", "--for=condition=complete", f"job/try-{kind}", "--timeout=240s", timeout_s=260)
        said[kind] = _by_node(stack.kubectl("logs", f"job/try-{kind}", "--container", "check"))
    stack.kubectl("delete", "job", *(f"try-{kind}" for kind in kinds), "--wait=false")
    return said


def check(stack: DevStack, kind: str, max_drained: int | None = 100, **limits: Any) -> dict[str, dict[str, str]]:
    """One run of a check's command with other limits, in a pod like its own: what it said of each node. `max_drained` None: the stack's."""
    [*program, given] = _job(stack, kind)["template"]["spec"]["containers"][0]["command"]
    spec = json.loads(given)
    for node_set in spec["nodeSets"]:
        node_set["settings"] |= limits
    if max_drained is not None:
        spec["maxDrained"] = max_drained
    return _by_node(stack.kubectl("exec", f"job/{BENCH}", "--container", "check", "--", *program, json.dumps(spec), timeout_s=260))


def _by_node(said: str) -> dict[str, dict[str, str]]:
    lines = [json.loads(line) for line in said.splitlines()]
    return {line["node"]: line for line in lines}


def node(stack: DevStack, name: str) -> dict[str, Any]:
    [seen] = json.loads(stack.slurm(f"scontrol show node {name} --json"))["nodes"]
    return seen


def reservations(stack: DevStack) -> str:
    return stack.slurm("scontrol show reservation --oneliner")


def test_healthy_nodes_pass_every_check_of_the_same_minute_and_the_results_are_kept_in_slurm(stack: DevStack) -> None:
    """A check has a node for itself, and waits for the others there."""
    said = scheduled(stack, *KINDS)
    assert {line["result"] for lines in said.values() for line in lines.values()} == {"passed"}, said
    recorded = json.loads(node(stack, "gpu-0")["extra"])["slipway"]
    assert recorded == {kind: {"result": "passed", "at": said[kind]["gpu-0"]["at"]} for kind in KINDS}
    assert not any("DRAIN" in state for state in stack.nodes().values())


def test_failed_node_is_drained_with_what_was_found_and_lifted_when_it_passes_again(stack: DevStack) -> None:
    failed = check(stack, "disk", **ALL_FULL)
    assert {(line["result"], line["action"]) for line in failed.values()} == {("failed", "drained")}
    for name, line in failed.items():
        assert "DRAIN" in node(stack, name)["state"]
        assert node(stack, name)["reason"] == OURS + line["found"]
        assert "1000000000 wanted" in line["found"]
    again = check(stack, "disk", minFreeMiB=999_999_999)
    assert {(line["result"], line["action"]) for line in again.values()} == {("failed", "drained")}
    assert "999999999 wanted" in node(stack, "cpu-0")["reason"]
    passed = check(stack, "disk")
    assert {(line["result"], line["action"]) for line in passed.values()} == {("passed", "lifted")}
    assert "slipway-check" not in reservations(stack)
    stack.wait_until_idle()


def test_check_that_fails_on_every_node_drains_its_share_and_no_more(stack: DevStack) -> None:
    said = check(stack, "disk", None, **ALL_FULL)
    assert {line["result"] for line in said.values()} == {"failed"}
    assert sum("DRAIN" in state for state in stack.nodes().values()) == 1  # a quarter of four
    assert sum("not drained: this check holds 1 nodes already" in line["found"] for line in said.values()) == len(said) - 1


def test_drain_of_an_administrator_is_untouched(stack: DevStack) -> None:
    stack.slurm("scontrol update NodeName=cpu-0 State=DRAIN Reason='fan is loud'")
    for limits in (ALL_FULL, {}):
        said = check(stack, "disk", **limits)
        assert said["cpu-0"]["result"] == "skipped"
        assert said["cpu-0"]["found"].endswith(": fan is loud")
        assert "DRAIN" in node(stack, "cpu-0")["state"]
        assert node(stack, "cpu-0")["reason"] == "fan is loud"


def test_drain_of_another_check_is_untouched(stack: DevStack) -> None:
    check(stack, "disk", **ALL_FULL)
    said = check(stack, "memory")
    assert {line["result"] for line in said.values()} == {"skipped"}
    assert all(node(stack, name)["reason"].startswith(OURS) for name in said)


def test_check_that_cannot_run_is_unknown_and_drains_nothing(stack: DevStack) -> None:
    said = check(stack, "disk", paths=["/nowhere"])
    assert {(line["result"], line["found"]) for line in said.values()} == {("unknown", "/nowhere: No such file or directory")}
    assert not any("DRAIN" in state for state in stack.nodes().values())


def test_unknown_keeps_the_drain_of_a_failure(stack: DevStack) -> None:
    check(stack, "disk", **ALL_FULL)
    reason = node(stack, "cpu-1")["reason"]
    said = check(stack, "disk", paths=["/nowhere"])
    assert (said["cpu-1"]["result"], said["cpu-1"]["action"]) == ("unknown", "kept drained")
    assert node(stack, "cpu-1")["reason"] == reason
    assert "slipway-check" not in reservations(stack)


def test_busy_node_is_skipped_and_its_job_finishes(stack: DevStack) -> None:
    job = stack.hold("--nodelist=cpu-0")
    stack.wait_for_job(job, "RUNNING")
    said = check(stack, "disk", **ALL_FULL)
    assert (said["cpu-0"]["result"], said["cpu-0"]["found"]) == ("skipped", "busy")
    assert (said["cpu-1"]["result"], said["cpu-1"]["action"]) == ("failed", "drained")
    assert not node(stack, "cpu-0")["reason"]
    stack.let_go()
    stack.wait_for_job(job)


def test_what_a_killed_run_left_is_finished_by_the_next(stack: DevStack) -> None:
    """Killed between resuming a failed node and checking it: only the reservation keeps jobs off, and says why."""
    comment = f"{OURS}/tmp has 3 MiB free, 512 wanted"
    stack.slurm(
        "scontrol create reservation ReservationName=slipway-check-disk-cpu-0 Nodes=cpu-0 Users=slurm "
        f"StartTime=now Duration=UNLIMITED Flags=MAINT,IGNORE_JOBS Comment='{comment}'"
    )
    waiting = stack.submit("#!/bin/bash\nhostname\n", "--nodelist=cpu-0 --output=waited.out")
    unknown = check(stack, "disk", paths=["/nowhere"])
    assert (unknown["cpu-0"]["result"], unknown["cpu-0"]["action"]) == ("unknown", "kept drained")
    assert node(stack, "cpu-0")["reason"] == comment
    assert stack.job_state(waiting) == "PENDING"
    passed = check(stack, "disk")
    assert (passed["cpu-0"]["result"], passed["cpu-0"]["action"]) == ("passed", "lifted")
    assert "slipway-check" not in reservations(stack)
    stack.wait_for_job(waiting)


def test_check_does_not_wait_behind_the_queue(stack: DevStack) -> None:
    """A job that waits for both nodes is ahead in the queue; the idle one of them is checked all the same."""
    running = stack.hold("--nodelist=cpu-0 --exclusive")
    stack.wait_for_job(running, "RUNNING")
    waiting = stack.submit("#!/bin/bash\ntrue\n", "--nodelist=cpu-0,cpu-1 --nodes=2 --exclusive")
    eventually("the second job waits", lambda: stack.job_state(waiting) == "PENDING", 60)
    assert check(stack, "disk")["cpu-1"]["result"] == "passed"
    stack.let_go()
    stack.wait_for_job(waiting)
