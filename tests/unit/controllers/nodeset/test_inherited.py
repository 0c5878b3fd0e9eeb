"""A failure that a check has seen on another machine: no repair for it, a look at once, and a drain until the check has passed here."""

from typing import Any

import pytest

from controllers.nodeset.inherited import find_inherited
from controllers.nodeset.observed import Repair, Repairs, TakenStep
from controllers.nodeset.plan import Plan, plan_nodeset
from controllers.nodeset.plans.causes import find_causes_of, rfc3339
from controllers.nodeset.structs import RemedyPolicy
from controllers.nodeset.workers import Machine
from controllers.runtime.structs import KUBE_NODES, PODS
from slurm.check_results import CheckResult, Failure, Request, read_results, seen_on, with_result
from slurm.reasons import REMEDY, check
from tests.support.controllers.nodeset.check_jobs import IN_SERVICE, answer, at, jobs, put_cron_job, state
from tests.support.controllers.nodeset.examples import NOW, acts_of, look, node, nodeset, pod
from tests.support.controllers.nodeset.memory_cluster import Cluster
from tests.support.controllers.nodeset.repairs import POLICY, fail, repaired

HELD = check("disk", "full")
LONG_AGO = NOW - 5000
MACHINES = {"m-2": Machine(identity="i-2", boot="b-2", made_at=NOW - 3000)}
HERE = pod(machine="m-2")
ALL = RemedyPolicy(("RecreatePod", "ReplaceMachine"), machines="DeleteNode", systemic_percent=100)


def failure(machine: str = "m-1/b-1", seen: float = LONG_AGO, **facts: Any) -> Failure:
    return Failure(rfc3339(LONG_AGO), "full", machine=machine, seen=rfc3339(seen), **facts)


def drained(found: Failure, reason: str = HELD, looked: float = NOW, words: str = "IDLE DRAIN") -> Any:
    return node(words, reason, failures={"disk": found}, failed_at={"disk": looked})


def planned(worker: Any, policy: RemedyPolicy | None = ALL, **facts: Any) -> Plan:
    known: dict[str, Any] = {"machines": MACHINES, **facts}
    seen = look(worker, **known)
    return plan_nodeset(nodeset(replicas=1, remedies=policy, check_jobs=("disk",)), seen)


@pytest.mark.parametrize(
    ("found", "where", "is_inherited"),
    [
        pytest.param(failure("m-2/b-2"), HERE, False, id="the-present-machine"),
        pytest.param(failure(""), HERE, False, id="nobody-noted-where"),
        pytest.param(failure("m-1/b-2"), HERE, True, id="another-machine"),
        pytest.param(failure("m-2/b-1", NOW - 4000), HERE, True, id="another-machine-of-that-name"),
        pytest.param(failure("m-2/b-1", NOW - 2000), HERE, False, id="an-earlier-boot-of-the-machine"),
        pytest.param(Failure("", "full", machine="m-2/b-1", seen="yesterday"), HERE, False, id="no-time"),
        pytest.param(failure("m-1/b-1"), pod(machine=None), False, id="no-machine-yet"),
        pytest.param(failure("m-1/b-1"), pod(machine="m-3"), True, id="a-machine-that-kubernetes-has-no-more"),
        pytest.param(failure("m-3/b-1"), pod(machine="m-3"), False, id="its-kubernetes-node-is-gone"),
        pytest.param(failure("m-1/b-1"), None, False, id="no-pod"),
    ],
)
def test_failure_is_inherited_where_it_was_seen_on_another_machine(found: Failure, where: Any, is_inherited: bool) -> None:
    seen = look((where, drained(found)), machines=MACHINES)
    assert set(find_inherited(seen, seen.worker(0))) == ({"disk"} if is_inherited else set())


@pytest.mark.parametrize("policy", [pytest.param(ALL, id="remedies"), pytest.param(None, id="none")])
@pytest.mark.parametrize(
    ("worker", "facts", "is_asked"),
    [
        pytest.param((HERE, drained(failure())), {}, True, id="drained-for-it"),
        pytest.param((HERE, drained(failure(), REMEDY)), {"drained_at": {0: NOW}}, True, id="drained-for-its-repair"),
        pytest.param((HERE, drained(failure("m-2/b-2"))), {}, False, id="seen-here"),
        pytest.param((HERE, drained(failure(), words="MIXED DRAIN")), {}, False, id="a-job-is-left"),
        pytest.param((HERE, drained(failure(), words="DOWN DRAIN")), {}, False, id="not-up-yet"),
        pytest.param((HERE, drained(failure("", drains=False), "", words="IDLE")), {}, False, id="spared"),
        pytest.param((HERE, drained(failure(), "fan is loud")), {}, False, id="an-administrators-drain"),
        pytest.param((HERE, drained(failure())), {"silent": True}, False, id="slurm-is-silent"),
        pytest.param((HERE, drained(failure())), {"machines": {}}, False, id="machine-not-known"),
    ],
)
def test_check_looks_at_the_new_machine_at_once(policy: RemedyPolicy | None, worker: Any, facts: dict[str, Any], is_asked: bool) -> None:
    made = planned(worker, policy, **facts)
    assert made.repairs.checks == ({"disk": {0: Request("i-2")}} if is_asked else {})
    assert made.drains.undrain == ()


def test_set_that_starts_no_checks_waits_for_the_schedule() -> None:
    seen = look((HERE, drained(failure())), machines=MACHINES)
    made = plan_nodeset(nodeset(replicas=1), seen)
    [told] = find_causes_of(nodeset(replicas=1), seen, {})[0]
    assert (made.repairs.checks, acts_of(made), told.next) == ({}, {}, "The drain is lifted once disk has passed on m-2.")


@pytest.mark.parametrize(
    ("repair", "state"),
    [
        pytest.param(None, "", id="no-repair-yet"),
        pytest.param(Repair("Suspect", LONG_AGO, began=LONG_AGO), "", id="suspect"),
        pytest.param(Repair("Draining", LONG_AGO, began=LONG_AGO), "", id="draining"),
        pytest.param(
            Repair("Draining", LONG_AGO, began=LONG_AGO, steps=(TakenStep("RecreatePod", LONG_AGO, "i-1"),)), "Verifying", id="after-a-step"
        ),
        pytest.param(
            Repair("ReplaceMachine", NOW, began=LONG_AGO, machine="i-1", asked_at=NOW, steps=(TakenStep("ReplaceMachine", NOW, "i-1"),)),
            "Verifying",
            id="replaced",
        ),
        pytest.param(Repair("GivenUp", LONG_AGO, began=LONG_AGO, machine="i-1"), "Suspect", id="replaced-by-a-person"),
        pytest.param(
            Repair("Verifying", LONG_AGO, began=LONG_AGO, steps=(TakenStep("ReplaceMachine", LONG_AGO, "i-1"),)),
            "Verifying",
            id="no-look-yet",
        ),
    ],
)
def test_no_step_follows_from_what_was_seen_elsewhere(repair: Repair | None, state: str) -> None:
    made = planned((HERE, drained(failure())), repairs=Repairs({0: repair} if repair else {}))
    found = made.repairs.record.nodes.get(0)
    assert (found.state if found else "", made.repairs.failing) == (state, 0)
    assert (made.deletions.free, made.repairs.machines, made.drains.undrain) == ((), (), ())


def test_cause_says_where_it_was_seen_and_what_happens_next() -> None:
    declared = nodeset(replicas=1, remedies=ALL, check_jobs=("disk",))
    [told] = find_causes_of(declared, look((HERE, drained(failure())), machines=MACHINES), {})[0]
    assert (told.name, told.kind, told.wish) == ("check/disk", "maintenance", "drain")
    assert told.evidence == "not looked for on m-2 yet; on m-1, where the node was before: full"
    assert told.next.startswith("The drain is lifted once disk has passed on m-2. It is started at once. See: kubectl -n slurm logs")


@pytest.fixture
def moved(cluster: Cluster) -> Cluster:
    """A set whose node `gpu-1` fails, with its pod on another machine than the one on which the check has seen that."""
    put_cron_job(cluster.server, "disk")
    cluster.declare(replicas=2, healthChecks=["disk"], checkJobs=["disk"], remedies={**POLICY, "systemicPercent": 100})
    return cluster


async def move(cluster: Cluster) -> None:
    await cluster.rounds(5)
    fail(cluster, "gpu-1")
    note(cluster, "old/b-1")
    cluster.server.put(KUBE_NODES, {"metadata": {"name": "new"}, "spec": {"providerID": "cloud://new"}, "status": {"conditions": []}})
    cluster.place = "new"
    cluster.server.remove(PODS, ("slurm", "gpu-1"))
    await cluster.rounds(3)


def note(cluster: Cluster, machine: str) -> None:
    """The failure that is noted was seen on that machine."""
    [result] = (read_results(cluster.slurm.extras["gpu-1"]) or {}).values()
    cluster.slurm.extras["gpu-1"] = with_result("", "disk", seen_on(machine, None, result)) or ""


@pytest.mark.anyio
async def test_replaced_machine_returns_once_its_check_has_passed(moved: Cluster) -> None:
    await move(moved)
    assert jobs(moved) == {"disk": {"gpu-1": Request("cloud://new")}}
    await repaired(moved, {}, rounds=10)
    assert (state(moved), "DRAIN" in moved.slurm.words["gpu-1"]) == ("", True), "no answer ends no failure, and begins no repair"
    answer(moved)
    await moved.rounds(3)
    assert (state(moved), moved.slurm.words["gpu-1"], jobs(moved)) == ("", IN_SERVICE, {})


@pytest.mark.anyio
async def test_replaced_machine_that_fails_as_well_has_a_repair_of_its_own(moved: Cluster) -> None:
    await move(moved)
    answer(moved, disk="failed")
    [result] = (read_results(moved.slurm.extras["gpu-1"]) or {}).values()
    assert result.failure is not None
    moved.slurm.extras["gpu-1"] = with_result("", "disk", CheckResult("failed", at(moved), result.failure)) or ""
    note(moved, "new/")
    await moved.rounds(2)
    assert (state(moved), jobs(moved)) == ("Suspect", {})
    await repaired(moved, {}, rounds=6)
    assert state(moved) == "Verifying"
