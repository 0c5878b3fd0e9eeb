"""Node sets on the real cluster: they follow the queue, update without touching jobs, and leave alone what is not theirs."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.cluster.node_sets import condition, evict, reason, scaled_back, status, submit_in_power_downs, uid
from tests.support.patience import patience

FIXTURES = (scaled_back,)


def test_job_for_nodes_powering_down_starts_in_seconds_and_is_never_lost(stack: DevStack) -> None:
    """While the pods end; tests/soak/test_cluster.py tries the moments before and after, too."""
    submit_in_power_downs(stack, 1.5)


def test_job_at_zero_nodes_starts_soon_after_its_node_has_registered(stack: DevStack) -> None:
    stack.put_to_sleep()
    eventually("none counted any more", lambda: status(stack, "burst").get("ready", 0) == 0, 60)
    job = stack.submit("#!/bin/bash\nhostname\n", "--partition=burst", "--output=woken.out")
    eventually("its node has registered", lambda: status(stack, "burst").get("ready"), 120)
    begin = time.monotonic()
    stack.wait_for_job(job)
    took = time.monotonic() - begin
    assert stack.ssh("cat woken.out").startswith("burst-")
    assert took < 25 * patience(), "longer than Slurm's own check every 30 s would take"


def test_shrink_then_grow_before_the_job_ends_deletes_nothing(scaled_back: DevStack) -> None:
    stack = scaled_back
    jobs = [stack.hold(f"--nodelist=cpu-{ordinal}") for ordinal in (0, 1)]
    for job in jobs:
        stack.wait_for_job(job, "RUNNING")
    before = {pod: uid(stack, pod) for pod in ("cpu-0", "cpu-1")}
    stack.kubectl("scale", "nodeset", "cpu", "--replicas=1")
    drained = eventually("one drained", lambda: [name for name, state in stack.nodes().items() if "DRAIN" in state], 60)
    assert reason(stack, drained[0]) == "slipway: nodeset scale-in"
    stack.kubectl("scale", "nodeset", "cpu", "--replicas=2")
    eventually("undrained", lambda: not any("DRAIN" in state for state in stack.nodes().values()), 60)
    assert {pod: uid(stack, pod) for pod in before} == before
    stack.let_go()
    for job in jobs:
        stack.wait_for_job(job)


def test_shrink_under_a_running_job_waits_for_it(scaled_back: DevStack) -> None:
    stack = scaled_back
    jobs = [stack.hold(f"--nodelist=cpu-{at}") for at in (0, 1)]
    for job in jobs:
        stack.wait_for_job(job, "RUNNING")
    before = {pod: uid(stack, pod) for pod in ("cpu-0", "cpu-1")}
    stack.kubectl("scale", "nodeset", "cpu", "--replicas=1")
    eventually("one drained", lambda: any("DRAIN" in state for state in stack.nodes().values()), 60)
    stack.let_controller_look("cpu")
    assert {pod: uid(stack, pod) for pod in before} == before
    assert [stack.job_state(job) for job in jobs] == ["RUNNING"] * 2
    stack.let_go()
    # The job with the earlier end is not known to Slurm (no time limit was asked for), but each node waited for its own.
    for job in jobs:
        stack.wait_for_job(job)
    eventually("one pod", lambda: len(stack.get("pods", labels="slipway.dev/nodeset=cpu")["items"]) == 1, 90)
    eventually("told", lambda: status(stack, "cpu").get("replicas") == 1 and condition(stack, "cpu", "Ready")["status"] == "True", 60)


def test_roll_waits_for_the_job_and_leaves_an_administrators_drain_alone(restored: DevStack) -> None:
    stack = restored
    before = {pod: uid(stack, pod) for pod in ("cpu-0", "cpu-1", "gpu-0", "gpu-1")}
    stack.slurm("scontrol update nodename=cpu-0 state=drain reason='fan is loud'")
    job = stack.hold("--nodelist=cpu-1")
    stack.wait_for_job(job, "RUNNING")
    stack.slipway("up", "--config", "cluster.nodeSets[0].drainGraceS=61")
    eventually("cpu-1 is drained by us", lambda: reason(stack, "cpu-1") == "slipway: nodeset update", 60)
    assert uid(stack, "cpu-1") == before["cpu-1"]
    eventually("what is left alone is told", lambda: "left alone" in condition(stack, "cpu", "Updated")["message"], 60)
    stack.let_go()
    stack.wait_for_job(job)
    stack.wait_until_new("cpu-1", before["cpu-1"])
    eventually("cpu-1 takes jobs", lambda: stack.nodes()["cpu-1"] == "IDLE+CLOUD", 60)
    assert uid(stack, "cpu-0") == before["cpu-0"]
    assert reason(stack, "cpu-0") == "fan is loud"
    stack.slurm("scontrol update nodename=cpu-0 state=undrain")
    eventually("cpu-0 made anew, once it is ours again", lambda: uid(stack, "cpu-0") != before["cpu-0"], 60)
    assert {pod: uid(stack, pod) for pod in ("gpu-0", "gpu-1")} == {pod: before[pod] for pod in ("gpu-0", "gpu-1")}


def test_pod_deleted_by_hand_comes_back_as_the_same_slurm_node(stack: DevStack) -> None:
    before = uid(stack, "cpu-1")
    stack.kubectl("delete", "pod", "cpu-1", "--wait=false")
    stack.wait_until_new("cpu-1", before)
    stack.wait_until_settled()
    job = stack.submit("#!/bin/bash\nhostname\n", "--nodelist=cpu-1", "--output=same.out")
    stack.wait_for_job(job)
    assert stack.ssh("cat same.out") == "cpu-1\n"


def test_administrators_drain_outlives_the_pod(stack: DevStack) -> None:
    stack.slurm("scontrol update nodename=cpu-1 state=drain reason='disk is slow'")
    before = uid(stack, "cpu-1")
    stack.kubectl("delete", "pod", "cpu-1", "--wait=false")
    stack.wait_until_new("cpu-1", before)
    eventually("drained", lambda: stack.nodes()["cpu-1"] == "IDLE+CLOUD+DRAIN", 60)
    eventually("with its reason", lambda: reason(stack, "cpu-1") == "disk is slow", 60)
    stack.slurm("scontrol update nodename=cpu-1 state=undrain")


def test_disruption_budget_follows_jobs_within_a_second(stack: DevStack) -> None:
    eventually("an idle worker may be evicted", lambda: "disruption budget" not in evict(stack, "cpu-0"), 60)
    begin = time.monotonic()
    evict(stack, "cpu-0")
    a_try = time.monotonic() - begin
    job = stack.submit("#!/bin/bash\nsleep infinity\n", "--nodelist=cpu-0")
    stack.wait_for_job(job, "RUNNING")
    begin = time.monotonic()
    eventually("a busy one may not", lambda: "disruption budget" in evict(stack, "cpu-0"), 60, every_s=0.1)
    # The poll of Slurm takes 0.5 s at most, and each try of ours takes a kubectl.
    assert time.monotonic() - begin < 2 * patience() + 3 * a_try
    stack.slurm(f"scancel {job}")


def test_busy_workers_of_a_set_that_is_scaled_in_cannot_be_evicted(scaled_back: DevStack) -> None:
    stack = scaled_back
    jobs = [stack.submit("#!/bin/bash\nsleep infinity\n", f"--nodelist=cpu-{ordinal}") for ordinal in (0, 1)]
    for job in jobs:
        stack.wait_for_job(job, "RUNNING")
    stack.kubectl("scale", "nodeset", "cpu", "--replicas=1")
    eventually("one drained", lambda: any("DRAIN" in state for name, state in stack.nodes().items() if name.startswith("cpu-")), 60)
    eventually("Kubernetes has counted both", lambda: _healthy(stack, "cpu") == 2, 60)
    assert ["disruption budget" in evict(stack, pod) for pod in ("cpu-0", "cpu-1")] == [True, True]
    stack.slurm(f"scancel {jobs[0]} {jobs[1]}")


def test_busy_worker_of_an_elastic_set_cannot_be_evicted(stack: DevStack) -> None:
    # Slurm wakes no node that is still on its way down.
    stack.put_to_sleep()
    job = stack.submit("#!/bin/bash\nsleep infinity\n", "--partition=burst")
    stack.wait_for_job(job, "RUNNING")
    pod = stack.slurm(f"squeue -h -j {job} -o %N").strip()
    eventually("Kubernetes has counted it", lambda: _healthy(stack, "burst") == 1, 60)
    assert "disruption budget" in evict(stack, pod)
    told = {one["type"]: one["reason"] for one in stack.get("poddisruptionbudget", "burst")["status"]["conditions"]}
    assert told["DisruptionAllowed"] == "InsufficientPods", "Kubernetes cannot work the budget out"
    stack.slurm(f"scancel {job}")


def _healthy(stack: DevStack, nodeset: str) -> int:
    """Workers under the set's budget, as Kubernetes' disruption controller has counted them."""
    return stack.get("poddisruptionbudget", nodeset).get("status", {}).get("currentHealthy", 0)


@pytest.fixture
def taken_back(stack: DevStack) -> Iterator[DevStack]:
    """The stack, whose set `burst` the test may change by hand: the guard takes it back."""
    stack.pause_guard("nodeset/burst")
    yield stack
    stack.resume_guard("nodeset/burst")
    stack.slurm("scancel --user=alice", check=False)
    stack.slipway("up", "--force-conflicts")
    stack.wait_until_settled()


def test_status_says_what_a_person_can_do_about_pods_that_do_not_fit(taken_back: DevStack) -> None:
    stack = taken_back
    stack.kubectl("patch", "nodeset", "burst", "--type=json", "-p", json.dumps(_request_of_a_thousand_cpus(stack)))
    job = stack.submit("#!/bin/bash\ntrue\n", "--partition=burst")
    message = eventually("said", lambda: _message(stack, "burst", "PodsStart", "1000 free cpu"), 120)
    assert "not running" in message
    assert "no node of pool workers has 1000 free cpu" in message
    stack.slurm(f"scancel {job}")


def _message(stack: DevStack, nodeset: str, kind: str, part: str) -> str:
    """The condition's message once it has this part; before, nothing."""
    message = condition(stack, nodeset, kind)["message"]
    return message if part in message else ""


def _request_of_a_thousand_cpus(stack: DevStack) -> list[dict[str, Any]]:
    containers = stack.get("nodeset", "burst")["spec"]["template"]["spec"]["containers"]
    at = next(at for at, one in enumerate(containers) if one["name"] == "slurmd")
    return [{"op": "replace", "path": f"/spec/template/spec/containers/{at}/resources/requests/cpu", "value": "1000"}]
