"""Conditions and taints of Kubernetes nodes as causes of the Slurm nodes on them: which count, what they drain, and what is repaired."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from components.machine_causes import build_machine_causes
from configs.models.machine_causes import BUILT_IN, EC2
from configs.models.machine_causes import MachineCause as MachineCauseModel
from configs.models.node_set import NodeSet
from controllers.nodeset.machine_causes import find_machine_causes
from controllers.nodeset.observed import Observed, Repair, Repairs, TakenStep
from controllers.nodeset.plan import Plan, plan_nodeset
from controllers.nodeset.plans.causes import find_causes_of
from controllers.nodeset.status import build_status
from controllers.nodeset.structs import MachineCauseRule, RemedyPolicy
from controllers.nodeset.workers import Machine, MachineCause
from controllers.runtime.structs import KUBE_NODES, KubeNode, NodeCondition, Taint
from slurm.causes import Cause
from slurm.reasons import CORDON, MAINTENANCE, REMEDY, SCALE_IN, UPDATE
from tests.support.controllers.nodeset.examples import IDLE, NOW, acts_of, look, node, nodeset, pod
from tests.support.controllers.nodeset.memory_cluster import Cluster

SINCE = "2026-02-03T04:05:06Z"
RULES = msgspec.convert(build_machine_causes(NodeSet(name="gpu", pool="gpu")), tuple[MachineCauseRule, ...])
"""As the object of a set has them whose user says nothing."""
OWN = (MachineCauseRule(condition="Fabric*", kind="hardware", wish="replace"), MachineCauseRule(taint="example.com/*", wish="drain"))


def condition(kind: str, status: str = "True", reason: str = "Why", message: str = "what") -> NodeCondition:
    return NodeCondition(kind, status, reason, message, SINCE)


@pytest.mark.parametrize(
    ("rules", "said", "kind", "wish"),
    [
        pytest.param(RULES, condition("KernelDeadlock"), "node", "reboot", id="deadlock"),
        pytest.param(RULES, condition("ReadonlyFilesystem"), "hardware", "reboot", id="read-only"),
        pytest.param(RULES, condition("FrequentKubeletRestart"), "node", "none", id="told-only"),
        pytest.param(RULES, condition("SomethingNew"), "node", "none", id="of-a-program-that-is-not-known-here"),
        pytest.param(RULES, condition("KernelDeadlock", "False"), "", "", id="well"),
        pytest.param(RULES, condition("KernelDeadlock", "Unknown"), "", "", id="unknown-is-no-cause"),
        pytest.param(RULES, condition("AcceleratedHardwareReady", "False"), "hardware", "replace", id="good-when-true"),
        pytest.param(RULES, condition("AcceleratedHardwareReady"), "", "", id="good-when-true-and-true"),
        pytest.param(RULES, condition("StorageReady"), "", "", id="any-that-ends-with-ready-is-good-when-true"),
        pytest.param(RULES, condition("AcceleratedHardwareReady", "Unknown"), "", "", id="good-when-true-and-unknown"),
        pytest.param(RULES, condition("VMEventScheduled"), "maintenance", "drain", id="event-of-azure"),
        pytest.param(RULES, condition("Ready", "False"), "", "", id="kubernetes-own"),
        pytest.param(RULES, condition("MemoryPressure"), "", "", id="kubernetes-own-pressure"),
        pytest.param(RULES, Taint("aws-node-termination-handler/spot-itn", "NoSchedule"), "maintenance", "drain", id="spot"),
        pytest.param(
            RULES, Taint("aws-node-termination-handler/rebalance-recommendation", "NoSchedule"), "maintenance", "none", id="recommended"
        ),
        pytest.param(RULES, Taint("karpenter.sh/disrupted", "NoSchedule"), "maintenance", "drain", id="karpenter"),
        pytest.param(RULES, Taint("cloud.google.com/impending-node-termination", "NoSchedule"), "maintenance", "drain", id="gke"),
        pytest.param(RULES, Taint("node.kubernetes.io/out-of-service", "NoExecute"), "maintenance", "drain", id="out-of-service"),
        pytest.param(RULES, Taint("nvidia.com/gpu", "NoSchedule"), "", "", id="taint-for-placement"),
        pytest.param(RULES, Taint("node.kubernetes.io/unschedulable", "NoSchedule"), "", "", id="cordon-is-heeded-elsewhere"),
        pytest.param((*OWN, *RULES), condition("FabricDegraded"), "hardware", "replace", id="rule-of-the-user"),
        pytest.param((*OWN, *RULES), Taint("example.com/broken", "NoSchedule"), "node", "drain", id="taint-of-the-user"),
        pytest.param((), condition("KernelDeadlock"), "", "", id="no-rules"),
    ],
)
def test_condition_or_taint_is_a_cause_as_the_first_rule_says(rules: Any, said: NodeCondition | Taint, kind: str, wish: str) -> None:
    conditions, taints = ((said,), ()) if isinstance(said, NodeCondition) else ((), (said,))
    found = [(each.kind, each.wish) for each in find_machine_causes(rules, conditions, taints)]
    assert found == ([(kind, wish)] if kind else [])


def test_taint_with_two_effects_is_one_cause_and_names_are_in_order() -> None:
    taints = (Taint("karpenter.sh/disrupted", "NoSchedule"), Taint("karpenter.sh/disrupted", "NoExecute", "x", SINCE))
    found = find_machine_causes(RULES, (condition("KernelDeadlock"),), taints)
    assert [each.name for each in found] == ["condition/KernelDeadlock", "taint/karpenter.sh/disrupted"]
    assert (found[1].evidence, found[1].since) == ("taint karpenter.sh/disrupted=x:NoExecute", SINCE)


@pytest.mark.parametrize("rule", [*EC2, *BUILT_IN], ids=lambda rule: rule.condition or rule.taint)
def test_guide_has_the_table(rule: MachineCauseModel) -> None:
    name = rule.condition or rule.taint
    shown = "all other conditions" if name == "*" else f"`{name}`"
    rows = (Path(__file__).parents[4] / "docs" / "operate" / "remedies.md").read_text().splitlines()
    assert any(shown in row and row.endswith(f"| {rule.kind} | {rule.wish} |") for row in rows)


GOING = MachineCause("taint/karpenter.sh/disrupted", "maintenance", "drain", "taint karpenter.sh/disrupted:NoSchedule")
TOLD = MachineCause("taint/aws", "maintenance", "none", "taint aws:NoSchedule")
DEADLOCK = MachineCause("condition/KernelDeadlock", "node", "reboot", "KernelDeadlock is True: DockerHung: task docker:7 blocked", SINCE)
DEGRADED = MachineCause("condition/FabricDegraded", "hardware", "replace", "FabricDegraded is True")
BROKEN = MachineCause("condition/Broken", "node", "drain", "Broken is True")
RESTARTS = MachineCause("condition/FrequentKubeletRestart", "node", "none", "FrequentKubeletRestart is True")
HERE = pod(machine="m", uid="p")
HELD = f"{MAINTENANCE}m: taint/karpenter.sh/disrupted"
FAN = "fan is loud"


def on(*causes: MachineCause, **facts: Any) -> dict[str, Machine]:
    return {"m": Machine(identity="i-1", boot="b-1", causes=causes, **facts)}


@pytest.mark.parametrize(
    ("spec", "seen", "expected"),
    [
        pytest.param({"replicas": 1}, look((HERE, node()), machines=on(GOING)), {"drain": {HELD: (0,)}}, id="drained"),
        pytest.param({"replicas": 1}, look((HERE, node("ALLOCATED")), machines=on(GOING)), {"drain": {HELD: (0,)}}, id="jobs-run-on"),
        pytest.param({"replicas": 1}, look((HERE, node("IDLE DRAIN", HELD)), machines=on(GOING)), {}, id="not-twice"),
        pytest.param(
            {"replicas": 1}, look((HERE, node("IDLE DRAIN", f"{HELD} : Not responding")), machines=on(GOING)), {}, id="not-twice-appended"
        ),
        pytest.param({"replicas": 1}, look((HERE, node("IDLE DRAIN", FAN)), machines=on(GOING)), {}, id="an-administrators-stays"),
        pytest.param({"replicas": 1}, look((HERE, node("DOWN", FAN)), machines=on(GOING)), {}, id="their-down-stays"),
        pytest.param({"replicas": 1}, look((HERE, node("IDLE DRAIN", HELD)), machines=on()), {"undrain": (0,)}, id="taken-back"),
        pytest.param({"replicas": 1}, look((HERE, node("IDLE DRAIN", FAN)), machines=on()), {}, id="taken-back-and-theirs-stays"),
        pytest.param({"replicas": 1}, look((HERE, node("IDLE DRAIN", HELD))), {}, id="its-kubernetes-node-is-deleted"),
        pytest.param({"replicas": 1}, look((pod(), node("IDLE DRAIN", HELD))), {"undrain": (0,)}, id="on-another-machine"),
        pytest.param({"replicas": 1}, look((HERE, node()), machines=on(TOLD)), {}, id="told-only"),
        pytest.param({"replicas": 1}, look((HERE, node("FOO")), machines=on(GOING)), {}, id="state-that-is-not-known"),
        pytest.param({"replicas": 1}, look((HERE, node()), machines=on(GOING), silent=True), {}, id="slurm-is-silent"),
        pytest.param({"min": 0, "max": 1}, look((HERE, node("MIXED POWERING_UP")), machines=on(GOING)), {}, id="waking"),
        pytest.param(
            {"min": 0, "max": 1},
            look((HERE, node("IDLE DRAIN POWERING_DOWN", HELD)), machines=on(GOING)),
            {"delete": (0,)},
            id="asleep-it-stays-drained-until-its-pod-is-gone",
        ),
        pytest.param(
            {"min": 0, "max": 1},
            look((None, node("IDLE DRAIN POWERED_DOWN", HELD)), machines=on(GOING)),
            {"undrain": (0,)},
            id="asleep-without-a-pod",
        ),
        pytest.param(
            {"replicas": 1}, look((HERE, node()), machines=on(GOING, is_cordoned=True)), {"drain": {f"{CORDON}m": (0,)}}, id="cordon-first"
        ),
        pytest.param(
            {"replicas": 1}, look((HERE, node("IDLE DRAIN", f"{CORDON}m")), machines=on(GOING)), {"drain": {HELD: (0,)}}, id="uncordoned"
        ),
        pytest.param(
            {"replicas": 0}, look((HERE, node("ALLOCATED DRAIN", HELD))), {"drain": {SCALE_IN: (0,)}}, id="leaving-gets-its-own-reason"
        ),
        pytest.param(
            {"replicas": 1}, look((HERE, node("IDLE DRAIN", UPDATE)), machines=on(GOING)), {"drain": {HELD: (0,)}}, id="no-gap-after-ours"
        ),
        pytest.param({"replicas": 1}, look((HERE, node()), machines=on(DEADLOCK)), {}, id="a-fault-without-a-policy-is-told"),
    ],
)
def test_announced_maintenance_drains_until_it_is_taken_back(spec: dict[str, Any], seen: Observed, expected: dict[str, Any]) -> None:
    assert acts_of(plan_nodeset(nodeset(**spec), seen)) == expected


def test_status_says_what_was_announced_and_what_lifts_the_drain() -> None:
    one, seen = nodeset(replicas=1), look((HERE, node("IDLE DRAIN", HELD)), machines=on(GOING))
    said = next(each for each in build_status(one, seen, plan_nodeset(one, seen), None, "now").conditions if each.type == "Undrained")
    assert said.reason == "MaintenanceAnnounced"
    assert said.message == (
        "gpu-0 drained, as maintenance was announced for m: taint/karpenter.sh/disrupted; "
        "each is lifted once that is taken back, or its pod runs on another machine"
    )


def test_cause_has_the_evidence_of_the_condition_and_its_time() -> None:
    [cause] = find_causes_of(nodeset(replicas=1), look((HERE, node()), machines=on(DEADLOCK)), {})[0]
    assert cause == Cause(
        *("condition/KernelDeadlock", "node", "Kubernetes", "m: KernelDeadlock is True: DockerHung: task docker:7 blocked"),
        *("what sets it on m", "It ends when Kubernetes shows it no more: kubectl describe node m.", "reboot", SINCE),
    )


def test_condition_and_taint_without_a_time_are_causes_too() -> None:
    """The API server gives null for a time that nobody has set (seen on 1.35)."""
    taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule", "timeAdded": None}
    said = {"type": "KernelDeadlock", "status": "True", "lastHeartbeatTime": None, "lastTransitionTime": None}
    read = msgspec.convert({"metadata": {"name": "m"}, "spec": {"taints": [taint]}, "status": {"conditions": [said]}}, KubeNode)
    found = find_machine_causes(RULES, read.status.conditions, read.spec.taints)
    assert {each.name: each.since for each in found} == {"condition/KernelDeadlock": "", "taint/karpenter.sh/disrupted": ""}


def test_causes_of_both_sorts_stand_beside_each_other() -> None:
    seen = look((HERE, node("IDLE DRAIN", FAN)), machines=on(GOING, DEGRADED, RESTARTS))
    names = [cause.name for cause in find_causes_of(nodeset(replicas=1), seen, {})[0]]
    assert names == [DEGRADED.name, GOING.name, "administrator", RESTARTS.name]


ALL = RemedyPolicy(("RecreatePod", "RebootMachine", "ReplaceMachine"), machines="Webhook", webhook="https://repairs.example")
POD_ONLY = RemedyPolicy(("RecreatePod",))
LONG_AGO = NOW - 2000


def repair(state: Any, *steps: Any, **facts: Any) -> Repairs:
    taken = tuple(TakenStep(step, LONG_AGO - 50, "i-1") for step in steps)
    return Repairs({0: Repair(state, LONG_AGO, began=LONG_AGO - 100, steps=taken, **facts)})


def planned(seen: Observed, policy: RemedyPolicy = ALL) -> Plan:
    return plan_nodeset(nodeset(replicas=1, remedies=policy), seen)


@pytest.mark.parametrize(
    ("policy", "known", "causes", "repairs", "state", "drains"),
    [
        pytest.param(ALL, node(), [DEADLOCK], Repairs(), "Suspect", {}, id="it-may-pass"),
        pytest.param(ALL, node(), [RESTARTS], Repairs(), "", {}, id="what-is-told-only-is-no-fault"),
        pytest.param(ALL, node(), [GOING], Repairs(), "", {HELD: (0,)}, id="maintenance-is-no-fault"),
        pytest.param(ALL, node("MIXED"), [DEADLOCK], repair("Suspect"), "Draining", {REMEDY: (0,)}, id="drained-under-its-jobs"),
        pytest.param(ALL, node("MIXED DRAIN", FAN), [DEADLOCK], repair("Suspect"), "Suspect", {}, id="an-administrators-drain-stays"),
        pytest.param(ALL, node("IDLE DRAIN", REMEDY), [DEADLOCK], repair("Draining"), "RebootMachine", {}, id="a-pod-does-not-help"),
        pytest.param(ALL, node("IDLE DRAIN", REMEDY), [DEGRADED], repair("Draining"), "ReplaceMachine", {}, id="nor-a-reboot"),
        pytest.param(ALL, node("IDLE DRAIN", REMEDY), [BROKEN], repair("Draining"), "RecreatePod", {}, id="steps-in-their-order"),
        pytest.param(ALL, node("IDLE DRAIN", REMEDY), [BROKEN, DEADLOCK], repair("Draining"), "RebootMachine", {}, id="helps-against-all"),
        pytest.param(POD_ONLY, node(), [DEADLOCK], repair("Suspect"), "GivenUp", {REMEDY: (0,)}, id="given-up-and-drained"),
        pytest.param(POD_ONLY, node("IDLE DRAIN", REMEDY), [DEADLOCK], repair("GivenUp"), "GivenUp", {}, id="given-up-stays-drained"),
        pytest.param(
            *(ALL, node(), [DEADLOCK], repair("Verifying", "RebootMachine")), "Draining", {REMEDY: (0,)}, id="still-there-after-the-step"
        ),
        pytest.param(ALL, node("IDLE DRAIN", REMEDY), [], repair("Draining"), "", {}, id="it-has-passed"),
        pytest.param(ALL, node("IDLE DRAIN", REMEDY), [GOING, DEADLOCK], repair("Draining"), "Suspect", {HELD: (0,)}, id="it-goes-anyhow"),
    ],
)
def test_fault_of_a_machine_is_repaired_by_what_it_asks_for(
    policy: RemedyPolicy, known: Any, causes: list[MachineCause], repairs: Repairs, state: str, drains: dict[str, Any]
) -> None:
    made = planned(look((HERE, known), machines=on(*causes), repairs=repairs, drained_at={0: NOW - 9}), policy)
    found = made.repairs.record.nodes.get(0)
    assert (found.state if found is not None else "", dict(made.drains.drain)) == (state, drains)


def test_nodes_of_many_broken_machines_are_not_drained() -> None:
    machines = {f"m-{at}": Machine(identity=f"i-{at}", causes=(DEADLOCK,)) for at in range(300)}
    broken = [(pod(machine=name), node()) for name in machines]
    repairs = Repairs(dict.fromkeys(range(300), Repair("Suspect", NOW - 301, began=NOW - 301)))
    made = plan_nodeset(
        nodeset(replicas=1000, ordinals=1000, remedies=ALL), look(*broken, *[IDLE] * 700, machines=machines, repairs=repairs)
    )
    assert (made.repairs.is_systemic, dict(made.drains.drain)) == (True, {})


RULES_SENT = [
    {"condition": "KernelDeadlock", "status": "True", "kind": "node", "wish": "reboot"},
    {"taint": "karpenter.sh/disrupted", "kind": "maintenance", "wish": "drain"},
]


def tell(cluster: Cluster, taints: list[dict[str, Any]], *conditions: str) -> None:
    ready = {"type": "Ready", "status": "True"}
    told = [{"type": each, "status": "True", "reason": "Why", "message": "what", "lastTransitionTime": SINCE} for each in conditions]
    cluster.server.patch(KUBE_NODES, ("", "machine"), {"spec": {"taints": taints}})
    cluster.server.patch(KUBE_NODES, ("", "machine"), {"status": {"conditions": [ready, *told]}}, "status")


@pytest.mark.anyio
async def test_taint_drains_while_it_lasts_and_an_administrators_drain_stays(cluster: Cluster) -> None:
    cluster.declare(nodes=2, replicas=2, machineCauses=RULES_SENT)
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    cluster.slurm.words["gpu-1"].add("DRAIN")
    cluster.slurm.reasons["gpu-1"] = FAN
    tell(cluster, [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}])
    await cluster.rounds(3)
    assert cluster.slurm.reasons == {"gpu-0": f"{MAINTENANCE}machine: taint/karpenter.sh/disrupted", "gpu-1": FAN}
    assert [state for state, _ in cluster.slurm.updates].count("DRAIN") == 1
    tell(cluster, [])
    await cluster.rounds(2)
    assert [cluster.slurm.words[name] for name in ("gpu-0", "gpu-1")] == [{"ALLOCATED", "CLOUD"}, {"IDLE", "CLOUD", "DRAIN"}]
    assert (cluster.slurm.jobs_on, cluster.slurm.reasons["gpu-1"]) == ({"gpu-0": 7}, FAN)


@pytest.mark.anyio
async def test_deadlocked_machine_is_replaced_after_its_job_and_never_before(cluster: Cluster) -> None:
    policy = {"steps": ["RecreatePod", "ReplaceMachine"], "waitSeconds": 60, "machines": "DeleteNode"}
    cluster.declare(nodes=1, replicas=1, machineCauses=RULES_SENT, remedies=policy)
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    tell(cluster, [], "KernelDeadlock")
    for _ in range(6):
        cluster.process.later_s += 30
        await cluster.rounds(1)
    assert (cluster.slurm.reasons["gpu-0"], set(cluster.server.keys(KUBE_NODES))) == (REMEDY, {("", "machine")})
    cluster.slurm.end_job("gpu-0")
    for _ in range(3):
        await cluster.rounds(1)
    assert not list(cluster.server.keys(KUBE_NODES))
    [record] = cluster.status()["repairs"]
    assert (record["state"], [step["step"] for step in record["steps"]]) == ("ReplaceMachine", ["ReplaceMachine"])
