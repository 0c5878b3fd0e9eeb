"""Checks that the controller starts on real nodes, before a node's first job on a machine."""

from typing import Any

from names import annotations
from tests.support.cluster.admission import granted, identity, patch, restored, results
from tests.support.cluster.dev_stack import DevStack, eventually

FIXTURES = (granted, restored)


def passed_result(stack: DevStack, name: str, check: str) -> dict[str, Any]:
    """What is noted of a check that the node has passed on a machine; nothing before it has."""
    noted: dict[str, Any] = results(stack, name).get(check, {})
    return noted if noted.get("passedFor") else {}


def evidence(stack: DevStack, name: str) -> dict[str, str]:
    """What the node's object has as the evidence of each cause, by name."""
    return {cause["name"]: cause["evidence"] for cause in stack.get("slurmnode", name)["status"].get("causes", [])}


def test_new_pod_takes_no_job_before_its_machine_has_passed_the_check(stack: DevStack) -> None:
    """The job waits from before slurmd starts: it runs after the check, which began later."""
    containers = stack.get("nodeset", "gpu")["spec"]["template"]["spec"]["containers"]
    [slurmd] = [each for each in containers if each["name"] == "slurmd"]
    slurmd["env"].append({"name": "SLIPWAY_CHECKED_FIRST", "value": "1"})
    template = {"metadata": {"annotations": {annotations.CHECKS_BEFORE_JOBS: "true"}}, "spec": {"containers": containers}}
    checks = {"checkJobs": ["memory"], "checksBeforeJobs": ["memory"]}
    patch(stack, {**checks, "template": template, "updateStrategy": {"type": "OnDelete"}})
    stack.kubectl("delete", "pod", "gpu-1", "--wait=false")
    eventually("the old pod stops", lambda: "DRAIN" in stack.nodes()["gpu-1"], 30, every_s=0.1)
    job = stack.submit("#!/bin/bash\ntrue\n", "--partition=gpu", "--nodelist=gpu-1", "--chdir=/tmp")
    eventually("the worker has drained", lambda: "slipway: admission" in stack.slurm("scontrol show node gpu-1"), 60, every_s=0.1)
    eventually("people are told", lambda: "has not passed memory" in evidence(stack, "gpu-1").get("admission", ""), 30)
    passed = eventually("it has passed", lambda: passed_result(stack, "gpu-1", "memory"), 90)  # read before a later run, by the schedule
    assert passed["passedFor"] == {"machine": identity(stack, "gpu-1")}
    stack.wait_for_job(job, deadline_s=90)
    shown = stack.slurm(f"TZ=UTC scontrol show job {job} -o")
    started = next(word.partition("=")[2] for word in shown.split() if word.startswith("StartTime="))
    assert f"{started}Z" >= passed["at"], "the job ran before the check"
    eventually("the other node is in service", lambda: stack.nodes()["gpu-0"].startswith("IDLE"), 60)
