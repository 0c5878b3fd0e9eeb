"""Checks before a node's first job on a machine: no job before all have passed, whatever dies, and once for each machine."""

from typing import Any

import pytest

from components.check_jobs import CHECKS_BEFORE_JOBS
from controllers.nodeset.conditions import build_conditions
from controllers.nodeset.observe import find_checks_before_jobs
from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import Plan, plan_nodeset
from controllers.nodeset.structs import SLURM_NODES
from controllers.nodeset.workers import Machine
from controllers.runtime.structs import KUBE_NODES, PODS
from slurm.check_results import Failure, Request
from slurm.reasons import BEFORE_JOBS, check, cordon
from tests.support.controllers.nodeset.check_jobs import IN_SERVICE, answer, jobs, put_cron_job
from tests.support.controllers.nodeset.examples import NOW, acts_of, look, node, nodeset, pod
from tests.support.controllers.nodeset.memory_cluster import Cluster
from tests.support.controllers.nodeset.repairs import condition
from tests.unit.controllers.nodeset.killer import KILL_POINTS, killed_at

TEMPLATE = {
    "metadata": {"labels": {"app": "slurm"}, "annotations": CHECKS_BEFORE_JOBS},
    "spec": {"containers": [{"name": "slurmd", "image": "a"}]},
}
SPEC: dict[str, Any] = {
    "template": TEMPLATE,
    "replicas": 2,
    "nodes": 2,
    "healthChecks": ["disk", "stream"],
    "checkJobs": ["disk", "stream"],
    "checksBeforeJobs": ["disk", "stream"],
}
FULL = Failure("2026-01-01T00:00:00Z", "full")
SPARED = Failure(FULL.since, FULL.found, drains=False)
OURS = Request("i-1")
MACHINES = {"m-1": Machine(identity="i-1")}
HERE = pod(machine="m-1", has_checks_before_jobs=True)


def passed(*names: str, machine: str = "i-1") -> dict[str, Request]:
    return {name: Request(machine) for name in names}


def planned(worker: Any, machines: dict[str, Machine] | None = None, **facts: Any) -> tuple[Plan, Observed]:
    pods, nodes = {0: worker[0]}, {0: worker[1]}
    known = MACHINES if machines is None else machines
    missing = find_checks_before_jobs(("disk", "stream"), pods, nodes, known)
    seen = look(worker, machines=known, checks_before_jobs=missing, **facts)
    return plan_nodeset(nodeset(replicas=1, checks_before_jobs=("disk", "stream"), check_jobs=("disk", "stream")), seen), seen


def drained(reason: str = BEFORE_JOBS, **facts: Any) -> Any:
    return node("IDLE DRAIN", reason, **facts)


@pytest.mark.parametrize(
    ("worker", "facts", "acts"),
    [
        pytest.param((HERE, drained()), {}, {}, id="waits"),
        pytest.param((HERE, node("IDLE CLOUD POWERED_DOWN DRAIN", BEFORE_JOBS)), {}, {}, id="slurmd-listens-and-has-not-registered"),
        pytest.param((HERE, node("IDLE DRAIN", "")), {"drained_at": {0: NOW - 9}}, {"drain": {BEFORE_JOBS: (0,)}}, id="reason-lost"),
        pytest.param((HERE, drained(passed_for=passed("disk"))), {}, {}, id="one-of-two"),
        pytest.param((HERE, drained(passed_for=passed("disk", "stream"))), {}, {"undrain": (0,)}, id="all-have-passed"),
        pytest.param((HERE, drained(passed_for=passed("disk", "stream", machine="i-0"))), {}, {}, id="another-machine-has-passed"),
        pytest.param((HERE, drained(passed_for=passed("disk", "stream"))), {"machines": {}}, {}, id="machine-not-known"),
        pytest.param(
            (HERE, node("IDLE", passed_for=passed("disk"))), {}, {"drain": {BEFORE_JOBS: (0,)}}, id="drained-where-others-lifted-it"
        ),
        pytest.param((HERE, node("IDLE")), {"looked_at": frozenset({0})}, {}, id="not-while-a-check-looks"),
        pytest.param((HERE, drained(cordon("m-1"))), {}, {"drain": {BEFORE_JOBS: (0,)}}, id="after-a-cordon"),
        pytest.param((HERE, drained("fan is loud")), {}, {}, id="an-administrators-drain-stays"),
        pytest.param(
            (HERE, drained(failures={"disk": FULL})), {}, {"drain": {check("disk", "full"): (0,)}}, id="a-failure-has-its-own-drain"
        ),
        pytest.param((HERE, node("IDLE", failures={"disk": FULL})), {}, {"drain": {BEFORE_JOBS: (0,)}}, id="a-failure-that-is-not-drained"),
        pytest.param((HERE, drained(check("disk", "full"), failures={"disk": FULL})), {}, {}, id="held-by-its-check"),
        pytest.param((HERE, drained(check("disk", "full"))), {}, {"drain": {BEFORE_JOBS: (0,)}}, id="passed-unasked"),
        pytest.param((HERE, drained(failures={"disk": SPARED})), {}, {}, id="spared-and-kept-out"),
        pytest.param((pod(machine="m-1"), node("IDLE")), {}, {}, id="pod-from-before-the-field"),
        pytest.param((pod(machine="m-1"), drained()), {}, {"undrain": (0,)}, id="field-taken-away"),
    ],
)
def test_drain_stays_until_the_machine_has_passed_all(worker: Any, facts: dict[str, Any], acts: dict[str, Any]) -> None:
    assert acts_of(planned(worker, **facts)[0]) == acts


@pytest.mark.parametrize(
    ("worker", "facts", "checks"),
    [
        pytest.param((HERE, drained()), {}, {"disk": {0: OURS}}, id="the-first"),
        pytest.param((HERE, drained(passed_for=passed("disk"))), {}, {"stream": {0: OURS}}, id="then-the-second"),
        pytest.param((HERE, drained(passed_for=passed("disk", "stream"))), {}, {}, id="then-none"),
        pytest.param((HERE, drained()), {"machines": {}}, {}, id="machine-not-known"),
        pytest.param((HERE, node("ALLOCATED DRAIN", BEFORE_JOBS)), {}, {}, id="a-job-is-there"),
        pytest.param((HERE, node("DOWN DRAIN NOT_RESPONDING", BEFORE_JOBS)), {}, {}, id="not-up-yet"),
        pytest.param((HERE, drained("fan is loud")), {}, {}, id="an-administrators-drain"),
        pytest.param((HERE, drained(failures={"disk": FULL})), {}, {}, id="its-schedule-looks-at-a-failure"),
        pytest.param((HERE, drained(failed_at={"disk": NOW - 9}, failures={"disk": SPARED})), {}, {}, id="failed-a-moment-ago"),
        pytest.param(
            (HERE, drained(failed_at={"disk": NOW - 900}, failures={"disk": SPARED})), {}, {"disk": {0: OURS}}, id="looked-at-again"
        ),
    ],
)
def test_checks_run_one_after_another(worker: Any, facts: dict[str, Any], checks: dict[str, Any]) -> None:
    assert planned(worker, **facts)[0].repairs.checks == checks


@pytest.mark.parametrize(("age_s", "status"), [(100, None), (2000, "False")])
def test_set_says_so_when_a_node_waits_for_long(age_s: float, status: str | None) -> None:
    worker = pod(machine="m-1", has_checks_before_jobs=True, created_at=NOW - age_s), drained()
    plan, seen = planned(worker)
    found = build_conditions(nodeset(replicas=1, checks_before_jobs=("disk",)), seen, plan, list(seen.workers()), None, (), None)
    assert [each.status for each in found if each.type == "CheckedFirst"] == ([status] if status else [])


def test_roll_waits_for_the_checks() -> None:
    plan, _ = planned((HERE, drained()))
    assert plan.roll.unavailable == 1
    plan, _ = planned((HERE, node("IDLE", passed_for=passed("disk", "stream"))))
    assert plan.roll.unavailable == 0


@pytest.fixture
def checked(cluster: Cluster) -> Cluster:
    for name in ("disk", "stream"):
        put_cron_job(cluster.server, name)
    cluster.declare(**SPEC)
    return cluster


def are_out(cluster: Cluster) -> bool:
    return all("DRAIN" in words for words in cluster.slurm.words.values())


@pytest.mark.anyio
async def test_new_nodes_take_jobs_after_both_checks_and_their_new_pods_at_once(checked: Cluster) -> None:
    await checked.rounds(4)
    assert are_out(checked)
    assert {name: set(asked) for name, asked in jobs(checked).items()} == {"disk": {"gpu-0", "gpu-1"}}
    [told] = checked.server.get(SLURM_NODES, ("slurm", "gpu-0"))["status"]["causes"]
    assert (told["name"], told["evidence"]) == ("admission", "machine has not passed disk, stream")
    answer(checked)
    await checked.rounds(3)
    assert (are_out(checked), set(jobs(checked))) == (True, {"stream"})
    answer(checked)
    await checked.rounds(3)
    assert list(checked.slurm.words.values()) == [IN_SERVICE, IN_SERVICE]
    checked.server.remove(PODS, ("slurm", "gpu-0"))
    await checked.rounds(5)
    assert (checked.slurm.words["gpu-0"], jobs(checked)) == (IN_SERVICE, {})


@pytest.mark.anyio
async def test_replaced_machine_starts_clean(checked: Cluster) -> None:
    for _ in range(8):
        await checked.rounds(1)
        answer(checked)
    assert list(checked.slurm.words.values()) == [IN_SERVICE, IN_SERVICE]
    checked.server.remove(PODS, ("slurm", "gpu-0"))
    checked.server.put(KUBE_NODES, {"metadata": {"name": "new"}, "spec": {"providerID": "cloud://new"}, "status": {"conditions": []}})
    checked.place = "new"
    await checked.rounds(5)
    assert ("DRAIN" in checked.slurm.words["gpu-0"], checked.slurm.words["gpu-1"]) == (True, IN_SERVICE)
    assert {name: set(asked) for name, asked in jobs(checked).items()} == {"disk": {"gpu-0"}}


@pytest.mark.anyio
async def test_check_that_gives_no_answer_keeps_the_nodes_out_and_is_told(checked: Cluster) -> None:
    for _ in range(40):
        checked.process.later_s += 30
        await checked.rounds(1)
        answer(checked, disk="unknown")
        assert are_out(checked)
    assert condition(checked, "CheckedFirst") == ("False", "ChecksOutstanding")
    for _ in range(6):
        checked.process.later_s += 30
        await checked.rounds(1)
        answer(checked)
    assert list(checked.slurm.words.values()) == [IN_SERVICE, IN_SERVICE]
    assert condition(checked, "CheckedFirst") == ("True", "NoneWaits")


@pytest.mark.anyio
async def test_node_without_an_answer_keeps_no_other_from_its_turn(checked: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controllers.nodeset.check_jobs.MOST_NODES", 1)
    had_a_turn = set[str]()
    for _ in range(20):
        checked.process.later_s += 30
        await checked.rounds(1)
        asked = set(jobs(checked).get("disk", {}))
        assert len(asked) <= 1
        had_a_turn |= asked
        answer(checked, disk="unknown")
    assert had_a_turn == {"gpu-0", "gpu-1"}


@pytest.mark.anyio
@pytest.mark.parametrize("allowed", range(1, KILL_POINTS, 3))
async def test_process_killed_after_any_write_skips_no_check_before_jobs(checked: Cluster, allowed: int) -> None:
    await killed_at(checked, allowed, rounds=8)
    assert all("DRAIN" in words or "POWERED_DOWN" in words for words in checked.slurm.words.values())
    for _ in range(10):
        checked.process.later_s += 10
        await checked.rounds(1)
        answer(checked)
    assert list(checked.slurm.words.values()) == [IN_SERVICE, IN_SERVICE]
