"""Checks that say whether a repair has helped, against a Kubernetes and a Slurm in memory: started at once, once, and waited for."""

import json
from typing import Any

import msgspec
import pytest

from controllers.nodeset.check_jobs import MOST_NODES, CronJob, build_job, choose
from controllers.nodeset.repairs.checks import LOOK_AGAIN_S
from controllers.nodeset.structs import SLURM_NODES
from slurm.check_results import CheckResult, Failure, Request, following, read_requests, read_results, with_result
from slurm.reasons import REMEDY
from tests.support.controllers.nodeset.check_jobs import IN_SERVICE, POLICY, SPEC, answer, at, jobs, put_cron_job, state
from tests.support.controllers.nodeset.memory_cluster import Cluster
from tests.support.controllers.nodeset.repairs import FULL, SINCE, condition, fail, repaired, uids
from tests.support.fakes.requests import Failure as Break
from tests.unit.controllers.nodeset.killer import KILL_POINTS, killed_at


@pytest.fixture
def checked(cluster: Cluster) -> Cluster:
    """A set whose checks are there to be started."""
    for check in ("disk", "stream"):
        put_cron_job(cluster.server, check)
    cluster.declare(**SPEC)
    return cluster


async def until_verifying(cluster: Cluster) -> None:
    await cluster.rounds(5)
    fail(cluster, "gpu-1")
    for _ in range(8):
        cluster.process.later_s += 30
        await cluster.rounds(1)
        if jobs(cluster):
            break
    assert (state(cluster), set(jobs(cluster))) == ("Verifying", {"disk"})


@pytest.mark.anyio
async def test_node_returns_after_its_failed_check_and_then_a_deeper_one_pass(checked: Cluster) -> None:
    await until_verifying(checked)
    assert set(jobs(checked)["disk"]) == {"gpu-1"}
    answer(checked)
    await checked.rounds(3)
    assert set(jobs(checked)) == {"stream"}
    assert (checked.slurm.reasons["gpu-1"], "DRAIN" in checked.slurm.words["gpu-1"]) == (REMEDY, True)
    [told] = checked.server.get(SLURM_NODES, ("slurm", "gpu-1"))["status"]["causes"]
    assert (told["name"], "job/dev-check-stream-asked" in told["next"]) == ("remedy", True), told
    answer(checked)
    await checked.rounds(3)
    assert (state(checked), checked.slurm.words["gpu-1"], jobs(checked)) == ("InService", IN_SERVICE, {})


@pytest.mark.anyio
async def test_one_job_looks_at_all_nodes_and_there_is_no_second_one(checked: Cluster) -> None:
    """The third node comes while the Job of the first two is there: it waits for its turn."""
    spec: dict[str, Any] = {**SPEC, "remedies": {**POLICY, "systemicPercent": 100}}
    checked.declare(**spec)
    await checked.rounds(5)
    for name in ("gpu-1", "gpu-2"):
        fail(checked, name)
    await repaired(checked, {}, rounds=8)
    assert {check: set(asked) for check, asked in jobs(checked).items()} == {"disk": {"gpu-1", "gpu-2"}}
    fail(checked, "gpu-3")
    await repaired(checked, {}, rounds=8)
    assert {check: set(asked) for check, asked in jobs(checked).items()} == {"disk": {"gpu-1", "gpu-2"}}
    answer(checked)
    await repaired(checked, {}, rounds=1)
    assert {check: set(asked) for check, asked in jobs(checked).items()} == {"disk": {"gpu-3"}, "stream": {"gpu-1", "gpu-2"}}


@pytest.mark.anyio
@pytest.mark.parametrize(("failed", "kind"), [("stream", "node"), ("stream", "hardware"), ("disk", "node")])
async def test_given_up_node_is_checked_now_and_then_and_returns_once_mended(checked: Cluster, failed: str, kind: Any) -> None:
    """Runs of the schedule leave the node alone, as the drain is the controller's: only what it starts itself can find the node mended."""
    spec: dict[str, Any] = {**SPEC, "remedies": {**POLICY, "causes": ["node"]}}
    checked.declare(**spec)
    await until_verifying(checked)
    if failed == "stream":
        answer(checked)
    else:
        await checked.rounds(1)
    asked = 0
    for _ in range(140):
        checked.process.later_s += 30
        await checked.rounds(1)
        assert "DRAIN" in checked.slurm.words["gpu-1"]
        asked += answer(checked, kind, **{failed: "failed"}).count(failed)
    assert (state(checked), condition(checked, "Remedied")) == ("GivenUp", ("False", "GivenUp"))
    assert 4200 // LOOK_AGAIN_S - 1 <= asked <= 4200 // LOOK_AGAIN_S + 1
    checked.slurm.reasons["gpu-1"] = REMEDY  # as a run of the check puts it back
    for _ in range(25):
        checked.process.later_s += 30
        await checked.rounds(1)
        answer(checked)
    assert (state(checked), checked.slurm.words["gpu-1"]) == ("InService", IN_SERVICE)


@pytest.mark.anyio
async def test_unanswered_check_is_repeated_and_reported_and_no_step_follows(checked: Cluster) -> None:
    await until_verifying(checked)
    answer(checked)
    before, asked = uids(checked), 0
    for _ in range(140):
        checked.process.later_s += 30
        await checked.rounds(1)
        assert (state(checked), "DRAIN" in checked.slurm.words["gpu-1"]) == ("Verifying", True)
        asked += answer(checked, stream="unknown").count("stream")
    assert (uids(checked), asked > 20) == (before, True)
    [told] = checked.server.get(SLURM_NODES, ("slurm", "gpu-1"))["status"]["causes"]
    assert told["evidence"] == "its repair is not verified yet: stream outstanding, without an answer"
    assert "No check has answered since" in told["next"], told
    assert condition(checked, "Remedied") == ("False", "Unanswered")
    for _ in range(5):
        checked.process.later_s += 30
        await checked.rounds(1)
        answer(checked)
    assert (state(checked), checked.slurm.words["gpu-1"]) == ("InService", IN_SERVICE)


@pytest.mark.parametrize("pace_s", [65, 300, 3600])
def test_every_node_has_its_turn_though_no_other_ever_has_an_answer(pace_s: int) -> None:
    repairs = {ordinal: Request(f"i-{ordinal}", SINCE) for ordinal in range(400)}
    before_jobs = {ordinal: Request(f"i-{ordinal}") for ordinal in range(400, 600)}
    waiting, seen = {**repairs, **before_jobs}, set[int]()
    for turn in range(40):
        made = choose(waiting, 1.8e9 + turn * pace_s)
        assert {ordinal: waiting[ordinal] for ordinal in made} == made
        assert (len(made), len(made.keys() & repairs.keys())) == (MOST_NODES, 150)
        seen |= made.keys()
    assert seen == waiting.keys()


@pytest.mark.parametrize(
    ("repaired", "before_jobs", "chosen"),
    [
        pytest.param(3, 4, (3, 4), id="all"),
        pytest.param(250, 0, (200, 0), id="repairs-alone"),
        pytest.param(0, 250, (0, 200), id="first-jobs-alone"),
        pytest.param(250, 10, (190, 10), id="a-share-that-is-not-needed"),
        pytest.param(10, 250, (10, 190), id="room-left-over"),
        pytest.param(250, 250, (150, 50), id="both"),
    ],
)
def test_job_takes_repairs_first_and_some_that_wait_for_their_first_job(repaired: int, before_jobs: int, chosen: tuple[int, int]) -> None:
    waiting = {one: Request("i", SINCE if one < repaired else "") for one in range(repaired + before_jobs)}
    made = choose(waiting, 1.8e9)
    assert (sum(one < repaired for one in made), sum(one >= repaired for one in made)) == chosen


@pytest.mark.anyio
async def test_pass_of_another_step_or_another_machine_counts_for_nothing(checked: Cluster) -> None:
    await until_verifying(checked)
    [request] = jobs(checked)["disk"].values()
    answer(checked)
    for other in (Request(request.machine, SINCE), Request("i-other", request.step), None):
        checked.slurm.extras["gpu-1"] = with_result("", "stream", CheckResult("passed", at(checked), passed_for=other)) or ""
        checked.process.later_s += 30
        await checked.rounds(2)
        assert (state(checked), "DRAIN" in checked.slurm.words["gpu-1"]) == ("Verifying", True), other
    checked.slurm.extras["gpu-1"] = with_result("", "stream", CheckResult("passed", at(checked), passed_for=request)) or ""
    await checked.rounds(3)
    assert (state(checked), checked.slurm.words["gpu-1"]) == ("InService", IN_SERVICE)


@pytest.mark.anyio
@pytest.mark.parametrize("allowed", range(2, KILL_POINTS, 2))
async def test_process_killed_after_any_write_starts_no_check_twice(checked: Cluster, allowed: int) -> None:
    await checked.rounds(5)
    fail(checked, "gpu-2")
    await killed_at(checked, allowed, rounds=8, round_s=30)
    ran: list[str] = []
    for _ in range(14):
        checked.process.later_s += 30
        await checked.rounds(1)
        ran += answer(checked)
    assert ran == ["disk", "stream"]
    assert (state(checked), checked.slurm.words["gpu-2"]) == ("InService", IN_SERVICE)


@pytest.mark.anyio
async def test_check_that_cannot_be_started_is_told_and_tried_again(checked: Cluster) -> None:
    checked.server.on_request = lambda request: Break("status", 403) if request.plural == "cronjobs" else None
    await checked.rounds(5)
    before = uids(checked)
    fail(checked, "gpu-1")
    await repaired(checked, {}, rounds=8)
    assert uids(checked)["gpu-1"] != before["gpu-1"]
    assert condition(checked, "Reconciled") == ("False", "Errors")
    checked.server.on_request = None
    checked.process.later_s += 30
    await checked.rounds(2)
    assert (set(jobs(checked)), condition(checked, "Reconciled")[0]) == ({"disk"}, "True")


@pytest.mark.anyio
async def test_failure_that_ends_by_itself_needs_no_check(checked: Cluster) -> None:
    await checked.rounds(5)
    fail(checked, "gpu-1")
    checked.process.later_s += 30
    await checked.rounds(1)
    checked.slurm.extras["gpu-1"] = with_result("", "disk", CheckResult("passed", SINCE)) or ""
    await checked.rounds(3)
    assert (jobs(checked), checked.slurm.words["gpu-1"]) == ({}, IN_SERVICE)


def test_job_is_what_kubectl_makes_from_the_cronjob_for_some_nodes_only() -> None:
    spec: dict[str, Any] = {
        "backoffLimit": 0,
        "template": {"spec": {"containers": [{"name": "check", "image": "a", "command": ["x"]}, {"name": "other"}]}},
    }
    meta = {"name": "dev-check-gpu", "namespace": "slurm", "uid": "u"}
    given: dict[str, Any] = {
        "metadata": meta,
        "spec": {"schedule": "0 * * * *", "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": spec}},
    }
    asked = {"gpu-0": Request("aws:///i-0", "2026-01-01T00:00:00Z"), "gpu-1": Request("i-1")}
    made = build_job(msgspec.convert(given, CronJob), "dev", "gpu", asked)
    assert made["metadata"] == {
        "name": "dev-check-gpu-asked",
        "namespace": "slurm",
        "labels": {"a": "b"},
        "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "name": "dev-check-gpu", "uid": "u", "controller": True}],
    }
    check, other = made["spec"]["template"]["spec"]["containers"]
    assert (made["spec"]["backoffLimit"], made["spec"]["ttlSecondsAfterFinished"], other) == (0, 60, {"name": "other"})
    assert (check["image"], check["command"], read_requests(check["env"][0]["value"])) == ("a", ["x"], asked)
    assert json.dumps(given["spec"]["jobTemplate"]["spec"]) == json.dumps(spec), "the CronJob's own template was changed"


def test_only_a_pass_answers_what_was_asked_and_later_runs_keep_it() -> None:
    asked, other = Request("i-1", SINCE), Request("i-2")
    passed = following(None, "passed", "fine", SINCE, "node", True, asked=asked)
    later = [following(passed, result, "x", SINCE, "node", True, asked=other) for result in ("failed", "unknown", "skipped")]
    assert {each.passed_for for each in [*later, following(passed, "passed", "fine", SINCE, "node", True)]} == {asked}
    assert following(passed, "passed", "fine", SINCE, "node", True, asked=other).passed_for == other
    assert read_results(with_result("", "gpu", passed) or "") == {"gpu": passed}
    failed = CheckResult("failed", SINCE, Failure(SINCE, FULL.found))
    assert following(failed, "passed", "fine", SINCE, "node", True, asked=asked) == CheckResult("passed", SINCE, passed_for=asked)
