"""A drain deadline counts from the drain that the jobs wait under, and from no earlier one."""

from collections.abc import Iterable
from math import inf
from typing import Any

import pytest

from controllers.nodeset.observed import JobRequests, Observed, Repair, Repairs, RepairState
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.plans.causes import rfc3339
from controllers.nodeset.plans.deadlines import JOBS_SOON_S
from controllers.nodeset.rounds import SWEEP_S
from controllers.nodeset.structs import SLURM_NODES, Drain, RemedyPolicy
from controllers.nodeset.workers import Machine, NodeJob
from controllers.slurm.structs import Jobs
from slurm.check_results import Failure as CheckFailure
from slurm.reasons import SCALE_IN, check
from tests.support.controllers.nodeset.examples import NOW, look, node, nodeset, pod
from tests.support.controllers.nodeset.memory_cluster import Cluster
from tests.support.controllers.nodeset.repairs import fail, uids
from tests.support.fakes.requests import Failure

DAY_S = 86_400


LONG_AGO = NOW - 3 * DAY_S


CANCEL: dict[str, Any] = {"ordinals": 2, "drain": {"action": "Cancel", "deadlineSeconds": DAY_S}}


MACHINES = {"m": Machine(is_cordoned=True)}


JOBS = (NodeJob("7"),)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(look((pod(), node("ALLOCATED")), drained_at={0: LONG_AGO}), id="not-drained-any-more"),
        pytest.param(
            look((pod(machine="m"), node("ALLOCATED DRAIN", "slipway: cordon m", jobs=JOBS)), machines=MACHINES, drained_at={0: LONG_AGO}),
            id="cordon-before",
        ),
        pytest.param(look((pod(), node("ALLOCATED DRAIN", jobs=JOBS)), drained_at={0: LONG_AGO}), id="reason-of-it-was-lost"),
    ],
)
def test_new_drain_does_not_inherit_the_time_of_an_earlier_one(seen: Observed) -> None:
    made = plan_nodeset(nodeset(replicas=0, drain=Drain("Cancel", DAY_S)), seen)
    assert (made.drains.drain, made.drains.drained_at, made.deadlines.cancel) == ({SCALE_IN: (0,)}, {0: NOW}, ())


def test_drain_that_is_there_keeps_its_time() -> None:
    seen = look((pod(), node("ALLOCATED DRAIN", SCALE_IN, jobs=JOBS)), drained_at={0: LONG_AGO})
    made = plan_nodeset(nodeset(replicas=0, drain=Drain("Cancel", DAY_S)), seen)
    assert (made.drains.drain, made.drains.drained_at, made.deadlines.cancel) == ({}, {0: LONG_AGO}, (0,))


@pytest.mark.parametrize(
    ("jobs", "requeued", "looks_again_s"),
    [
        pytest.param(JobRequests(), ("7",), inf, id="list-is-as-new-as-the-nodes"),
        pytest.param(JobRequests(NOW - 20), ("7",), inf, id="list-is-younger-than-the-deadline"),
        pytest.param(JobRequests(NOW - 40), (), JOBS_SOON_S, id="list-is-older-than-the-deadline"),
        pytest.param(JobRequests(NOW - 20, requeued_at={"7": NOW - 10}), (), inf, id="asked-since-the-list"),
        pytest.param(JobRequests(NOW - 5, requeued_at={"7": NOW - 10}), ("7",), inf, id="still-there-in-a-newer-list"),
        pytest.param(JobRequests(NOW - 20, requeued_at={"8": NOW - 10}), ("7",), inf, id="another-job-was-asked"),
    ],
)
def test_request_stands_on_a_list_younger_than_deadline_and_last_request(
    jobs: JobRequests, requeued: tuple[str, ...], looks_again_s: float
) -> None:
    """The deadline was over 30 s ago."""
    draining = (pod(), node("ALLOCATED DRAIN", SCALE_IN, jobs=JOBS))
    made = plan_nodeset(nodeset(replicas=0, drain=Drain("Requeue", 600)), look(draining, drained_at={0: NOW - 630}, jobs=jobs))
    assert (made.deadlines.requeue, made.deadlines.next_s, made.deadlines.unmovable) == (requeued, looks_again_s, {})


@pytest.mark.parametrize(
    ("asked_at", "cancelled"), [pytest.param(NOW - 10, (), id="asked-since"), pytest.param(NOW - 25, (0,), id="newer-list")]
)
def test_cancel_is_not_repeated_on_the_same_list(asked_at: float, cancelled: tuple[int, ...]) -> None:
    draining = (pod(), node("ALLOCATED DRAIN", SCALE_IN, jobs=JOBS))
    seen = look(draining, drained_at={0: NOW - 630}, jobs=JobRequests(NOW - 20, cancelled_at={0: asked_at}))
    assert plan_nodeset(nodeset(replicas=0, drain=Drain("Cancel", 600)), seen).deadlines.cancel == cancelled


@pytest.mark.anyio
async def test_job_is_asked_to_leave_once_for_each_list_of_jobs(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm takes its time to end the job, and a list of jobs takes a second: the next one comes half a minute later."""
    spec: dict[str, Any] = {"nodes": 1, "ordinals": 1, "drain": {"action": "Requeue", "deadlineSeconds": 60}}
    cluster.declare(replicas=1, **spec)
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    cluster.declare(replicas=0, **spec)
    listed = cluster.slurm.jobs
    asked: list[str] = []

    async def list_slowly() -> Jobs:
        cluster.process.later_s += 1
        return await listed()

    async def ask(ids: Iterable[str]) -> None:
        asked.extend(ids)

    monkeypatch.setattr(cluster.slurm, "jobs", list_slowly)
    monkeypatch.setattr(cluster.slurm, "requeue_jobs", ask)
    await cluster.rounds(3)
    cluster.process.later_s += 61
    for requests in (1, 2):
        for _ in range(20):
            await cluster.rounds(1)
            cluster.process.later_s += 0.5
        assert asked == ["7"] * requests
        cluster.process.later_s += 25


@pytest.mark.anyio
async def test_jobs_have_their_whole_time_after_a_long_cordon(cluster: Cluster) -> None:
    cluster.machine("machine")
    cluster.declare(replicas=2, **CANCEL)
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    cluster.slurm.start_job("gpu-1", 8)
    cluster.machine("machine", cordoned=True)
    await cluster.rounds(2)
    cluster.declare(image="b", replicas=2, **CANCEL)
    await cluster.rounds(3)
    cluster.process.later_s += 3 * DAY_S
    cluster.machine("machine")
    await cluster.rounds(6)
    assert cluster.slurm.reasons["gpu-1"] == "slipway: nodeset update"
    assert cluster.slurm.cancelled == []
    cluster.process.later_s += DAY_S
    await cluster.rounds(3)
    assert cluster.slurm.cancelled == ["gpu-1"]


@pytest.mark.anyio
async def test_drain_whose_time_could_not_be_recorded_is_not_asked_for(cluster: Cluster) -> None:
    """The record is still that of an earlier drain, which an administrator has lifted."""
    cluster.declare(replicas=1, **CANCEL)
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    cluster.declare(replicas=0, **CANCEL)
    await cluster.rounds(3)
    cluster.process.later_s += 0.5 * DAY_S
    cluster.slurm.words["gpu-0"].discard("DRAIN")
    cluster.slurm.reasons["gpu-0"] = ""
    cluster.server.fail(Failure("status", 403, reason="Forbidden", verb="patch", plural="nodesets", times=2))
    with pytest.raises(Exception, match="403"):
        await cluster.process.round()
    assert "DRAIN" not in cluster.slurm.words["gpu-0"]
    await cluster.rounds(2)
    assert "DRAIN" in cluster.slurm.words["gpu-0"]
    cluster.process.later_s += 0.6 * DAY_S
    await cluster.rounds(3)
    assert cluster.slurm.cancelled == []


@pytest.mark.anyio
async def test_requeue_comes_only_past_the_deadline(cluster: Cluster) -> None:
    cluster.declare(replicas=2, drain={"action": "Requeue", "deadlineSeconds": 3600})
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    cluster.slurm.start_job("gpu-1", 8)
    cluster.declare(replicas=1, drain={"action": "Requeue", "deadlineSeconds": 3600})
    await cluster.rounds(4)
    assert cluster.slurm.requeued == []
    cluster.process.later_s += 3600
    await cluster.rounds(6)
    assert len(cluster.slurm.requeued) == 1
    assert len(cluster.pods()) == 1


REQUEUE: dict[str, Any] = {"ordinals": 2, "drain": {"action": "Requeue", "deadlineSeconds": 3600}}


async def _with_ten_seconds_left(cluster: Cluster, image: str, replicas: int, **spec: Any) -> None:
    """A job on gpu-0, which was drained so long ago that the deadline is ten seconds away; since then another controller leads."""
    cluster.declare(replicas=1, **REQUEUE)
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    cluster.declare(image, replicas=replicas, **REQUEUE, **spec)
    await cluster.rounds(3)
    assert "DRAIN" in cluster.slurm.words["gpu-0"]
    await cluster.replace_process()
    cluster.process.later_s += 3590


@pytest.mark.anyio
async def test_next_look_is_when_the_deadline_ends(cluster: Cluster) -> None:
    await _with_ten_seconds_left(cluster, "a", 0)
    await cluster.rounds(4)
    assert cluster.slurm.requeued == []
    assert 0 < (await cluster.process.round()).seconds <= 10


@pytest.mark.anyio
async def test_job_that_slurm_does_not_requeue_runs_on_and_is_told_of_once(cluster: Cluster) -> None:
    cluster.declare(replicas=2, **REQUEUE)
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    cluster.slurm.start_job("gpu-1", 8)
    cluster.slurm.not_batch = {7, 8}
    cluster.declare(replicas=1, **REQUEUE)
    await cluster.rounds(3)
    cluster.process.later_s += 3600
    await cluster.rounds(3)
    said = next(one for one in cluster.status()["conditions"] if one["type"] == "DrainsEnd")
    assert (said["status"], "of srun or salloc" in said["message"]) == ("False", True)
    before = len(cluster.server.writes())
    following = [await cluster.process.round() for _ in range(3)]
    assert [one.seconds for one in following] == [SWEEP_S] * 3, "nothing to ask Slurm for, so no hurry"
    assert (cluster.slurm.requeued, len(cluster.server.writes()), len(cluster.pods())) == ([], before, 2)
    cluster.slurm.end_job("gpu-0")
    cluster.slurm.end_job("gpu-1")
    await cluster.rounds(6)
    assert len(cluster.pods()) == 1


@pytest.mark.anyio
async def test_drain_goes_on_and_requeues_no_job_until_slurm_lists_the_jobs(cluster: Cluster) -> None:
    cluster.declare(replicas=2, **REQUEUE)
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    cluster.slurm.has_no_jobs_list = True
    cluster.declare(replicas=0, **REQUEUE)
    await cluster.rounds(3)
    cluster.process.later_s += 3600
    await cluster.rounds(3)
    assert set(cluster.pods()) == {"gpu-0"}, "only the idle one went, although the deadline of both is over"
    assert cluster.slurm.requeued == []
    said = next(one for one in cluster.status()["conditions"] if one["type"] == "DrainsEnd")
    assert (said["status"], said["reason"]) == ("Unknown", "JobsUnknown")
    assert "too many of them" in said["message"]
    cluster.slurm.has_no_jobs_list = False
    cluster.process.later_s += 30
    await cluster.rounds(4)
    assert (cluster.slurm.requeued, cluster.pods()) == (["7"], {})


@pytest.mark.anyio
async def test_jobs_are_wanted_only_while_workers_are_to_go(cluster: Cluster) -> None:
    cluster.declare(replicas=2)
    await cluster.rounds(4)
    assert not cluster.process.reconciler.wants_jobs
    cluster.slurm.start_job("gpu-0", 7)
    cluster.slurm.start_job("gpu-1", 8)
    cluster.declare(replicas=1)
    await cluster.rounds(2)
    assert cluster.process.reconciler.wants_jobs
    for name in list(cluster.slurm.jobs_on):
        cluster.slurm.end_job(name)
    await cluster.rounds(4)
    assert len(cluster.pods()) == 1
    assert not cluster.process.reconciler.wants_jobs, "a drained node without a pod is no reason"


@pytest.mark.anyio
async def test_deadline_is_kept_by_a_set_whose_pods_are_refused(cluster: Cluster) -> None:
    await _with_ten_seconds_left(cluster, "b", 1)
    cluster.declare("b", replicas=2, **REQUEUE, updateStrategy={"type": "RollingUpdate", "maxUnavailable": 2})
    cluster.server.fail(Failure("status", 403, reason="Forbidden", verb="create", plural="pods", times=float("inf")))
    await cluster.rounds(2)
    following = await cluster.process.round()
    assert following.has_failed
    assert 0 < following.seconds <= 10


CHECKED = check("disk", "full")
FULL = CheckFailure(rfc3339(LONG_AGO), "full")
POLICY = RemedyPolicy(("RecreatePod",), systemic_percent=100)
AT_TEN_MINUTES = Drain("Requeue", 600)


def held(reason: str = CHECKED, words: str = "ALLOCATED DRAIN", **facts: Any) -> Any:
    """A node that a check has found failing, with a job."""
    usual: dict[str, Any] = {"failures": {"disk": FULL}, "failed_at": {"disk": NOW}, "jobs": JOBS}
    return pod(machine="m-1"), node(words, reason, **{**usual, **facts})


def waiting(state: RepairState = "Draining", since: float = NOW - 630, systemic_since: float | None = None) -> Repairs:
    return Repairs({0: Repair(state, since, began=since)}, systemic_since)


@pytest.mark.parametrize(
    ("worker", "spec", "repairs", "ends"),
    [
        pytest.param(held(), {"drain": AT_TEN_MINUTES}, waiting(), (("7",), ()), id="requeued"),
        pytest.param(held(), {"drain": Drain("Cancel", 600)}, waiting(), ((), (0,)), id="cancelled"),
        pytest.param(held(), {"drain": Drain()}, waiting(), ((), ()), id="the-set-waits"),
        pytest.param(held(), {"drain": AT_TEN_MINUTES, "remedies": None}, waiting(), ((), ()), id="no-remedies"),
        pytest.param(held(), {"drain": AT_TEN_MINUTES}, waiting(since=NOW - 500), ((), ()), id="not-yet"),
        pytest.param(held(), {"drain": AT_TEN_MINUTES}, waiting("Suspect"), ((), ()), id="the-fault-may-pass"),
        pytest.param(held(), {"drain": AT_TEN_MINUTES}, waiting("GivenUp"), ((), ()), id="no-step-waits-for-them"),
        pytest.param(held(), {"drain": AT_TEN_MINUTES}, Repairs(), ((), ()), id="not-in-the-status"),
        pytest.param(held("fan is loud"), {"drain": AT_TEN_MINUTES}, waiting(), ((), ()), id="an-administrators-drain"),
        pytest.param(held("Kill task failed", reason_by="root"), {"drain": AT_TEN_MINUTES}, waiting(), ((), ()), id="slurms-own-drain"),
        pytest.param(held("", "ALLOCATED"), {"drain": AT_TEN_MINUTES}, waiting(), ((), ()), id="somebody-lifted-the-drain"),
        pytest.param(held(jobs=(NodeJob("8", is_batch=False),)), {"drain": AT_TEN_MINUTES}, waiting(), ((), ()), id="a-job-of-srun"),
    ],
)
def test_jobs_hold_up_the_repair_of_a_failed_check_until_the_deadline(
    worker: Any, spec: dict[str, Any], repairs: Repairs, ends: tuple[tuple[str, ...], tuple[int, ...]]
) -> None:
    seen = look(worker, machines={"m-1": Machine(identity="i-1")}, repairs=repairs)
    made = plan_nodeset(nodeset(replicas=1, **{"remedies": POLICY, **spec}), seen)
    assert (made.deadlines.requeue, made.deadlines.cancel) == ends


def test_systemic_cause_ends_no_job_and_a_lifted_drain_restarts_the_time() -> None:
    declared = nodeset(replicas=3, remedies=RemedyPolicy(("RecreatePod",)), drain=AT_TEN_MINUTES)
    machines = {"m-1": Machine(identity="i-1")}
    seen = look(*[held()] * 3, machines=machines, repairs=waiting(systemic_since=NOW - 10))
    assert (plan_nodeset(declared, seen).repairs.is_systemic, plan_nodeset(declared, seen).deadlines.requeue) == (True, ())
    lifted = plan_nodeset(declared, look(held("", "ALLOCATED"), machines=machines, repairs=waiting()))
    assert lifted.repairs.record.nodes[0] == Repair("Draining", NOW, began=NOW - 630)


@pytest.mark.anyio
async def test_job_beside_a_failed_check_is_requeued_at_the_deadline(cluster: Cluster) -> None:
    drain = {"action": "Requeue", "deadlineSeconds": 600}
    cluster.declare(replicas=4, healthChecks=["disk"], remedies={"steps": ["RecreatePod"], "waitSeconds": 60}, drain=drain)
    await cluster.rounds(5)
    cluster.slurm.start_job("gpu-1", 7)
    cluster.slurm.start_job("gpu-2", 8)
    fail(cluster, "gpu-1")
    before = uids(cluster)
    for _ in range(14):
        cluster.process.later_s += 45
        await cluster.rounds(1)
    assert (cluster.slurm.requeued, uids(cluster)) == ([], before)
    causes = cluster.server.get(SLURM_NODES, ("slurm", "gpu-1"))["status"]["causes"]
    [told] = [cause for cause in causes if cause["name"] == "check/disk"]
    assert "Once no job is on it, its pod is replaced (RecreatePod). Jobs that still run at " in told["next"]
    for _ in range(10):
        cluster.process.later_s += 30
        await cluster.rounds(1)
    assert (cluster.slurm.requeued, cluster.slurm.jobs_on) == (["7"], {"gpu-2": 8})
    assert {name for name, uid in uids(cluster).items() if uid != before[name]} == {"gpu-1"}
