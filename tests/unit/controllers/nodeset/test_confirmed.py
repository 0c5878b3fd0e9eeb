"""The check that confirms a fault: asked for as soon as the fault has lasted, once, and nothing is done before it has failed, too."""

from typing import Any

import pytest

from controllers.nodeset.observed import Repair, Repairs
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.plans.causes import find_causes_of, rfc3339
from controllers.nodeset.repairs import with_outlooks
from controllers.nodeset.structs import RemedyPolicy
from controllers.nodeset.workers import Machine, MachineCause
from slurm.check_results import Failure, Request
from slurm.reasons import check
from tests.support.controllers.nodeset.check_jobs import answer, jobs, put_cron_job, state
from tests.support.controllers.nodeset.examples import NOW, look, node, nodeset, pod
from tests.support.controllers.nodeset.memory_cluster import Cluster
from tests.support.controllers.nodeset.repairs import POLICY, fail, uids

HERE = pod(machine="m-1")
DEADLOCK = MachineCause("condition/KernelDeadlock", "node", "reboot", "KernelDeadlock is True")
MACHINES = {"m-1": Machine(identity="i-1")}
BROKEN = {"m-1": Machine(identity="i-1", causes=(DEADLOCK,))}
FULL = Failure(rfc3339(NOW - 900), "full")
SINCE = NOW - 400
ASKED = Request("i-1", rfc3339(SINCE))


def suspect(since: float = SINCE) -> Repairs:
    return Repairs({0: Repair("Suspect", since, began=since)})


def failing(words: str = "IDLE DRAIN", reason: str = check("disk", "full"), **facts: Any) -> Any:
    return node(words, reason, **{"failures": {"disk": FULL}, "failed_at": {"disk": NOW}, **facts})


def spec(*checks: str) -> Any:
    policy = RemedyPolicy(("RecreatePod", "RebootMachine"), confirmed_by="gpu", machines="Webhook", systemic_percent=100)
    return nodeset(replicas=1, remedies=policy, check_jobs=checks)


@pytest.mark.parametrize(
    ("worker", "facts", "is_asked"),
    [
        pytest.param(failing(), {}, True, id="the-fault-has-lasted"),
        pytest.param(failing(), {"repairs": suspect(NOW - 200)}, False, id="it-may-pass-yet"),
        pytest.param(failing(), {"repairs": Repairs()}, False, id="not-in-the-status-yet"),
        pytest.param(failing(passed_for={"gpu": ASKED}), {}, False, id="it-has-passed"),
        pytest.param(failing(passed_for={"gpu": Request("i-1", rfc3339(NOW - 9000))}), {}, True, id="it-passed-for-an-earlier-fault"),
        pytest.param(failing(failed_at={"gpu": NOW - 9}), {}, False, id="it-fails-and-drains-nobody"),
        pytest.param(failing(failures={"disk": FULL, "gpu": FULL}), {}, False, id="it-fails"),
        pytest.param(failing("MIXED DRAIN"), {}, False, id="a-job-is-left"),
        pytest.param(failing("IDLE DRAIN", "fan is loud"), {}, False, id="an-administrators-drain"),
        pytest.param(failing(), {"looked_at": frozenset({0})}, True, id="a-check-looks-already"),
        pytest.param(node("IDLE"), {"machines": BROKEN}, True, id="an-idle-node-without-a-drain"),
        pytest.param(node("MIXED"), {"machines": BROKEN}, False, id="a-node-with-jobs"),
        pytest.param(node("DOWN"), {"machines": BROKEN}, False, id="a-node-that-is-down"),
        pytest.param(failing(), {"silent": True}, False, id="slurm-is-silent"),
    ],
)
def test_check_is_asked_for_once_the_fault_has_lasted(worker: Any, facts: dict[str, Any], is_asked: bool) -> None:
    known: dict[str, Any] = {"machines": MACHINES, "repairs": suspect(), **facts}
    seen = look((HERE, worker), **known)
    made = plan_nodeset(spec("disk", "gpu"), seen)
    assert made.repairs.checks == ({"gpu": {0: ASKED}} if is_asked else {})


def test_check_beside_jobs_is_not_started() -> None:
    seen = look((HERE, failing()), machines=MACHINES, repairs=suspect())
    assert plan_nodeset(spec("disk"), seen).repairs.checks == {}


def test_what_happens_next_names_the_check() -> None:
    seen = look((HERE, failing()), machines=MACHINES, repairs=suspect())
    made = plan_nodeset(spec("disk", "gpu"), seen)
    [told] = with_outlooks(spec("disk", "gpu"), made.repairs, find_causes_of(spec("disk", "gpu"), seen, made.reasons), seen)[0]
    assert f"If it still fails at {rfc3339(SINCE + 300)}, and gpu fails as well, its pod is replaced (RecreatePod)" in told.next


@pytest.mark.anyio
@pytest.mark.parametrize(("result", "after"), [("passed", "Suspect"), ("failed", "Verifying"), ("unknown", "Suspect")])
async def test_step_follows_only_where_the_check_has_failed_too(cluster: Cluster, result: str, after: str) -> None:
    for name in ("disk", "gpu"):
        put_cron_job(cluster.server, name)
    cluster.declare(replicas=4, healthChecks=["disk", "gpu"], checkJobs=["disk", "gpu"], remedies={**POLICY, "confirmedBy": "gpu"})
    await cluster.rounds(5)
    before = uids(cluster)
    fail(cluster, "gpu-1")
    for _ in range(4):
        cluster.process.later_s += 30
        await cluster.rounds(1)
    assert {name: set(asked) for name, asked in jobs(cluster).items()} == {"gpu": {"gpu-1"}}
    assert (state(cluster), uids(cluster)) == ("Suspect", before)
    answer(cluster, gpu=result)
    for _ in range(5):
        cluster.process.later_s += 10
        await cluster.rounds(1)
    assert (state(cluster), uids(cluster) == before) == (after, after == "Suspect")
    assert set(jobs(cluster)) == {"passed": set(), "failed": {"disk"}, "unknown": {"gpu"}}[result]
