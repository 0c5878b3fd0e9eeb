"""Drains as Slurm really treats them: waking nodes, lost reasons, cordoned machines, nodes that nobody serves, and old readings."""

from typing import Any

import pytest

from controllers.nodeset.memory import STOP_SETTLED_S
from controllers.nodeset.observed import GhostPace, Observed
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.slurm_writer import FRESH_S
from controllers.nodeset.structs import UpdateStrategy
from controllers.nodeset.workers import Machine
from controllers.runtime.structs import KUBE_NODES, PODS
from slurm.reasons import SCALE_IN, UPDATE
from tests.support.controllers.nodeset.examples import IDLE, NOW, OLD, acts_of, look, node, nodeset, pod
from tests.support.controllers.nodeset.memory_cluster import Cluster

STOPPING = "slipway: pod stopping"


WAKING = "MIXED CLOUD NOT_RESPONDING POWERING_UP"


CORDONED = {"machine-7": Machine(is_cordoned=True, words="new fans")}


BACK = {"machine-7": Machine()}


CORDON = "slipway: cordon machine-7: new fans"
GPUS = "slipway: gpus: 7 GPUs, and the config says 8"


ON_7 = pod(machine="machine-7")


def acts(spec: dict[str, Any], seen: Observed) -> dict[str, Any]:
    return {name: ordinals for name, ordinals in acts_of(plan_nodeset(nodeset(**spec), seen)).items() if name != "release"}


@pytest.mark.parametrize(
    ("spec", "seen", "expected"),
    [
        # Reasons keep their owner, whatever Slurm appends.
        pytest.param(
            {"min": 0, "max": 1},
            look((None, node("DOWN CLOUD POWERED_DOWN", f"{UPDATE} : ResumeTimeout reached"))),
            {"resume": (0,)},
            id="our-drain-that-timed-out-is-resumed",
        ),
        pytest.param(
            {"replicas": 1},
            look((pod(), node("IDLE DRAIN", f"{SCALE_IN} : Not responding")), IDLE),
            {"delete": (0,)},
            id="leaving-stays-leaving-whatever-is-appended",
        ),
        # Waking nodes.
        pytest.param({"min": 1, "max": 1}, look((OLD, node(WAKING))), {}, id="waking-is-not-drained-by-a-roll"),
        pytest.param({"min": 1, "max": 1}, look((OLD, node("MIXED CLOUD POWERED_DOWN"))), {}, id="asked-for-is-not-drained"),
        pytest.param({"replicas": 1}, look((pod(), node(WAKING)), IDLE), {"drain": {SCALE_IN: (1,)}}, id="scale-in-takes-another"),
        pytest.param({"replicas": 0}, look((pod(), node(WAKING))), {}, id="scale-in-waits-until-it-is-up"),
        pytest.param(
            {"min": 1, "max": 1}, look((pod(), node("IDLE DRAIN")), drained_at={0: NOW}), {"undrain": (0,)}, id="lost-reason-is-ours"
        ),
        pytest.param(
            {"min": 1, "max": 1},
            look((pod(), node("IDLE DRAIN", "Not responding")), drained_at={0: NOW}),
            {"undrain": (0,)},
            id="lost-reason-is-ours-whatever-slurm-wrote-since",
        ),
        pytest.param({"min": 1, "max": 1}, look((pod(), node("IDLE DRAIN", "Not responding"))), {}, id="not-responding-without-a-record"),
        pytest.param({"min": 1, "max": 1}, look((pod(), node("IDLE DRAIN"))), {}, id="lost-reason-without-a-record-is-a-strangers"),
        pytest.param(
            {"min": 1, "max": 1}, look((pod(), node("IDLE DRAIN", "fan is loud")), drained_at={0: NOW}), {}, id="strangers-over-ours"
        ),
        # The stop hook's drain.
        pytest.param({"min": 0, "max": 1}, look((None, node("IDLE DRAIN POWERED_DOWN", STOPPING))), {"undrain": (0,)}, id="stopped-asleep"),
        pytest.param({"replicas": 1}, look((pod(), node("IDLE DRAIN", STOPPING))), {}, id="pod-may-be-stopping-now"),
        pytest.param(
            {"replicas": 1},
            look((pod(), node("IDLE DRAIN", f"{STOPPING} : Not responding")), stopping_settled=frozenset({0})),
            {"undrain": (0,)},
            id="pod-runs-on-beside-a-stop-drain",
        ),
        pytest.param(
            {"replicas": 1},
            look((pod(terminating=True), node("IDLE DRAIN", STOPPING)), stopping_settled=frozenset({0})),
            {},
            id="stopping-pod-keeps-its-drain",
        ),
        # Elastic nodes that fell silent.
        pytest.param(
            {"min": 0, "max": 1}, look((None, node("DOWN CLOUD POWERED_DOWN", "Not responding"))), {"resume": (0,)}, id="fell-silent"
        ),
        pytest.param(
            {"min": 0, "max": 1},
            look((pod(ready=False, terminating=True), node("DOWN CLOUD POWERED_DOWN", "Not responding"))),
            {},
            id="fell-silent-and-its-pod-may-live",
        ),
        pytest.param({"min": 0, "max": 1}, look((None, node("DOWN CLOUD POWERED_DOWN", "fan is loud"))), {}, id="down-for-others-reasons"),
        pytest.param(
            {"min": 0, "max": 1},
            look((None, node("DOWN CLOUD DRAIN POWERED_DOWN", f"{STOPPING} : Not responding"))),
            {"resume": (0,)},
            id="stopped-and-fell-silent",
        ),
        # Nodes that the set does not serve.
        pytest.param(
            {"replicas": 1}, look(IDLE, (None, node("IDLE CLOUD POWERED_DOWN"))), {"drain": {SCALE_IN: (1,)}}, id="unserved-is-drained"
        ),
        pytest.param({"replicas": 1}, look(IDLE, (None, node(WAKING))), {}, id="unserved-and-waking-waits"),
        pytest.param({"replicas": 1}, look(IDLE, (None, node("IDLE CLOUD DRAIN POWERED_DOWN", SCALE_IN))), {}, id="unserved-stays-drained"),
        pytest.param(
            {"replicas": 1},
            look((None, node("IDLE POWERED_DOWN")), (None, node(WAKING))),
            {"create": (1,), "drain": {SCALE_IN: (0,)}},
            id="pod-goes-to-the-node-that-a-job-waits-for",
        ),
        pytest.param(
            {"min": 0, "max": 1, "ordinals": 2},
            look((None, node("IDLE POWERED_DOWN")), (None, node("IDLE POWERED_DOWN"))),
            {"drain": {SCALE_IN: (1,)}},
            id="beyond-max-is-drained-and-asleep-is-not",
        ),
        # GPUs that differ from the config: the pod has drained its node, and lifts that itself.
        pytest.param({"replicas": 1}, look((ON_7, node("IDLE DRAIN", GPUS))), {}, id="gpus-stay-drained"),
        pytest.param({"min": 0, "max": 1}, look((None, node("IDLE CLOUD DRAIN POWERED_DOWN", GPUS))), {"undrain": (0,)}, id="gpus-and-off"),
        pytest.param({"replicas": 1}, look((None, node("IDLE DRAIN", GPUS))), {"create": (0,)}, id="gpus-without-a-pod"),
        pytest.param({"replicas": 0}, look((ON_7, node("IDLE DRAIN", GPUS))), {"delete": (0,)}, id="gpus-of-a-pod-that-leaves"),
        pytest.param(
            {"replicas": 1},
            look((pod(revision="old", ready=False, machine="machine-7"), node("IDLE CLOUD DRAIN NOT_RESPONDING", GPUS))),
            {"delete": (0,)},
            id="gpus-of-an-older-template",
        ),
        # Cordoned machines.
        pytest.param({"replicas": 1}, look((ON_7, node()), machines=CORDONED), {"drain": {CORDON: (0,)}}, id="cordon-drains"),
        pytest.param(
            {"replicas": 1}, look((ON_7, node("ALLOCATED")), machines=CORDONED), {"drain": {CORDON: (0,)}}, id="cordon-drains-busy"
        ),
        pytest.param({"min": 0, "max": 1}, look((ON_7, node(WAKING)), machines=CORDONED), {}, id="cordon-waits-for-waking"),
        pytest.param({"replicas": 1}, look((ON_7, node("IDLE DRAIN", CORDON)), machines=CORDONED), {}, id="cordoned-stays"),
        pytest.param(
            {"replicas": 1}, look((ON_7, node("IDLE DRAIN", f"{CORDON} : Not responding")), machines=CORDONED), {}, id="cordoned-appended"
        ),
        pytest.param(
            {"replicas": 1},
            look((ON_7, node("IDLE DRAIN", "slipway: cordon machine-7")), machines=CORDONED),
            {"drain": {CORDON: (0,)}},
            id="cordon-gets-words",
        ),
        pytest.param(
            {"replicas": 1},
            look(
                (ON_7, node("IDLE DRAIN", "slipway: cordon machine-7: fan")), machines={"machine-7": Machine(True, "fan : Not responding")}
            ),
            {},
            id="cordon-with-words-as-slurmctld-appends-them",
        ),
        pytest.param({"replicas": 1}, look((ON_7, node("IDLE DRAIN", "fan is loud")), machines=CORDONED), {}, id="cordon-leaves-strangers"),
        pytest.param(
            {"replicas": 1},
            look((ON_7, node("IDLE DRAIN", SCALE_IN)), machines=CORDONED),
            {"drain": {CORDON: (0,)}},
            id="no-gap-between-our-drain-and-the-cordons",
        ),
        pytest.param({"replicas": 1}, look((ON_7, node("IDLE DRAIN", CORDON)), machines=BACK), {"undrain": (0,)}, id="uncordon-lifts"),
        pytest.param({"replicas": 1}, look((ON_7, node("IDLE DRAIN", CORDON))), {}, id="cordoned-and-its-kubernetes-node-deleted"),
        pytest.param({"replicas": 1}, look((ON_7, node("IDLE DRAIN", SCALE_IN))), {}, id="drained-and-its-kubernetes-node-deleted"),
        pytest.param({"replicas": 1}, look((pod(), node("IDLE DRAIN", CORDON))), {"undrain": (0,)}, id="lifted-on-another-machine"),
        pytest.param(
            {"min": 0, "max": 1}, look((None, node("IDLE DRAIN POWERED_DOWN", CORDON))), {"undrain": (0,)}, id="cordoned-asleep-may-wake"
        ),
        pytest.param(
            {"replicas": 0}, look((ON_7, node("ALLOCATED DRAIN", CORDON))), {"drain": {SCALE_IN: (0,)}}, id="leaving-gets-its-own-reason"
        ),
        # Nodes that somebody has taken down.
        pytest.param(
            {"replicas": 1}, look((ON_7, node("DOWN", "fan is loud")), machines=CORDONED), {}, id="cordon-leaves-a-strangers-down"
        ),
        pytest.param(
            {"replicas": 0}, look((pod(), node("DOWN", "fan is loud"))), {"drain": {"fan is loud": (0,)}}, id="down-goes-under-their-words"
        ),
        pytest.param({"replicas": 0}, look((pod(), node("DOWN DRAIN", "fan is loud"))), {"delete": (0,)}, id="down-and-drained-goes"),
        pytest.param({"replicas": 0}, look((pod(), node("DOWN", "Not responding"))), {"drain": {SCALE_IN: (0,)}}, id="down-by-itself"),
        pytest.param({"replicas": 0}, look((None, node("DOWN", "fan is loud"))), {}, id="unserved-and-down-takes-no-job-anyhow"),
        # Rolls and repairs.
        pytest.param(
            {"replicas": 2},
            look((pod(ready=False), node("DOWN DRAIN", "fan is loud")), (OLD, node())),
            {"drain": {UPDATE: (1,)}},
            id="repair-uses-no-budget",
        ),
        pytest.param(
            {"replicas": 3},
            look((pod(ready=False, revision="old", machine="m"), node("DOWN")), (OLD, node()), (OLD, node())),
            {"drain": {UPDATE: (0,)}},
            id="unhealthy-goes-first",
        ),
        pytest.param(
            {"replicas": 3},
            look((pod(ready=False, revision="old", machine="m"), node("IDLE NOT_RESPONDING")), (OLD, node()), IDLE),
            {"drain": {UPDATE: (0,)}},
            id="silent-for-a-moment-uses-the-budget",
        ),
        pytest.param(
            {"replicas": 2},
            look((pod(ready=False, revision="old", machine="m"), node("ALLOCATED")), (pod(machine="m", terminating=True), node())),
            {},
            id="silent-kubelet-beside-a-pod-that-goes",
        ),
        pytest.param(
            {"replicas": 2},
            look((pod(ready=False, revision="old", machine="m"), node("ALLOCATED")), IDLE),
            {"drain": {UPDATE: (0,)}},
            id="silent-kubelet-alone",
        ),
        pytest.param(
            {"replicas": 1, "update_strategy": UpdateStrategy("Maintenance", 1, "window")},
            look((pod(ready=False, revision="old", machine="m"), node("DOWN"))),
            {"drain": {UPDATE: (0,)}},
            id="unhealthy-needs-no-window",
        ),
        pytest.param(
            {"replicas": 2, "update_strategy": UpdateStrategy("Maintenance", 2, "window")},
            look((OLD, node()), (OLD, node()), window=frozenset({1})),
            {"drain": {UPDATE: (1,)}},
            id="window-of-other-nodes",
        ),
        # Pods in flight, and names that are taken.
        pytest.param(
            {"replicas": 3, "max_pods_in_flight": 1},
            look((pod(ready=False, created_at=0.0), node("DOWN")), (pod(ready=False, created_at=0.0), node("DOWN"))),
            {"create": (2,)},
            id="lost-machines-are-not-in-flight",
        ),
        pytest.param({"replicas": 1}, look(taken={0: "pod gpu-0 (StatefulSet db)"}), {"create": (1,)}, id="another-name-is-free"),
        pytest.param({"replicas": 1, "ordinals": 1}, look(taken={0: "pod gpu-0 (StatefulSet db)"}), {}, id="name-is-taken"),
    ],
)
def test_drains(spec: dict[str, Any], seen: Observed, expected: dict[str, Any]) -> None:
    assert acts(spec, seen) == expected


def test_busy_pods_of_a_fixed_set_go_slowly_when_slurm_has_lost_its_state() -> None:
    lost = (pod(revision="old", marked_busy=True, has_run=True), node("IDLE CLOUD POWERED_DOWN"))
    spec: dict[str, Any] = {"replicas": 100, "ordinals": 100, "update_strategy": UpdateStrategy(max_unavailable="100%")}
    made = plan_nodeset(nodeset(**spec), look(*[lost] * 100))
    assert (len(made.deletions.free), len(made.ghosts.evict_later)) == (5, 95)
    assert plan_nodeset(nodeset(**spec), look(*[lost] * 100, ghosts=GhostPace(is_due=False))).deletions.free == ()


def test_only_free_workers_of_a_cordoned_machine_may_be_evicted() -> None:
    drained, busy = (pod(machine="machine-7", marked_busy=True), node("IDLE DRAIN", CORDON)), (ON_7, node("ALLOCATED DRAIN", CORDON))
    made = plan_nodeset(nodeset(replicas=2), look(drained, busy, machines=CORDONED))
    assert (made.labels.free, made.labels.busy) == ((0,), (1,))


@pytest.mark.anyio
async def test_cordon_drains_with_the_administrators_words_and_uncordon_lifts(cluster: Cluster) -> None:
    cluster.machine("machine")
    cluster.declare(nodes=3, replicas=3)
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    cluster.slurm.words["gpu-2"].add("DRAIN")
    cluster.slurm.reasons["gpu-2"] = "fan is loud"
    cluster.machine("machine", cordoned=True, words="\x1bnew\nfans\x07")
    await cluster.rounds(2)
    assert [cluster.slurm.reasons[name] for name in ("gpu-0", "gpu-1")] == ["slipway: cordon machine: new fans"] * 2
    assert len(cluster.pods()) == 3
    assert "gpu-[0-1] drained, as machine is cordoned (new fans)" in str(cluster.status()["conditions"])
    cluster.machine("machine")
    await cluster.rounds(2)
    assert ["DRAIN" in cluster.slurm.words[f"gpu-{at}"] for at in range(3)] == [False, False, True]
    assert cluster.slurm.reasons["gpu-2"] == "fan is loud"
    assert cluster.slurm.jobs_on == {"gpu-0": 7}


@pytest.mark.anyio
async def test_evicted_worker_of_a_cordoned_machine_comes_back_elsewhere(cluster: Cluster) -> None:
    cluster.machine("machine")
    cluster.machine("other")
    cluster.declare(nodes=1, replicas=1)
    await cluster.rounds(4)
    cluster.machine("machine", cordoned=True)
    await cluster.rounds(2)
    cluster.server.objects.delete(cluster.server.objects.kind("v1", "pods"), ("slurm", "gpu-0"))
    await cluster.rounds(3)
    assert "DRAIN" in cluster.slurm.words["gpu-0"], "its pod is pending"
    cluster.place = "other"
    await cluster.rounds(3)
    assert cluster.server.get(PODS, ("slurm", "gpu-0"))["spec"]["nodeName"] == "other"
    assert cluster.slurm.words["gpu-0"] == {"IDLE", "CLOUD"}


@pytest.mark.anyio
async def test_drain_that_lost_its_reason_is_lifted_by_the_next_process_too(cluster: Cluster) -> None:
    """The drain came as Slurm had just asked for the node; slurmd then registered, which cleared the reason."""
    cluster.declare(nodes=1, min=1, max=1)
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    cluster.declare(image="b", nodes=1, min=1, max=1)
    await cluster.rounds(2)
    assert cluster.slurm.reasons["gpu-0"] == UPDATE
    cluster.slurm.end_job("gpu-0")
    cluster.slurm.reasons["gpu-0"] = ""
    cluster.declare(image="a", nodes=1, min=1, max=1)
    await cluster.replace_process()
    await cluster.rounds(3)
    assert cluster.slurm.words["gpu-0"] == {"IDLE", "CLOUD"}
    assert cluster.status()["drains"] == []


@pytest.mark.anyio
async def test_stop_hooks_drain_beside_a_pod_that_runs_on_is_lifted(cluster: Cluster) -> None:
    cluster.declare(nodes=1, replicas=1)
    await cluster.rounds(4)
    cluster.slurm.words["gpu-0"].add("DRAIN")
    cluster.slurm.reasons["gpu-0"] = STOPPING
    assert 0 < (await cluster.process.round()).seconds <= STOP_SETTLED_S
    assert "DRAIN" in cluster.slurm.words["gpu-0"]
    cluster.process.later_s += STOP_SETTLED_S
    await cluster.rounds(1)
    assert cluster.slurm.words["gpu-0"] == {"IDLE", "CLOUD"}


@pytest.mark.anyio
async def test_elastic_node_whose_machine_died_under_a_job_comes_back(cluster: Cluster) -> None:
    cluster.machine("machine")
    cluster.declare(nodes=1, min=0, max=1)
    cluster.slurm.wake("gpu-0", 7)
    await cluster.rounds(3)
    cluster.server.patch(PODS, ("slurm", "gpu-0"), {"metadata": {"finalizers": ["a/kubelet-that-is-gone"]}})
    cluster.machine("machine", ready=False)
    cluster.slurm.fall_silent("gpu-0")
    for _ in range(3):
        await cluster.process.round()
    said = {one["type"]: one["message"] for one in cluster.status()["conditions"] if one["status"] == "False"}
    assert cluster.status()["phase"] == "Degraded"
    assert "gpu-0 fell silent" in said["NodesRegister"]
    assert "kubectl delete node machine" in said["MachinesAnswer"]
    assert "DOWN" in cluster.slurm.words["gpu-0"], "its pod may still live"
    cluster.server.patch(PODS, ("slurm", "gpu-0"), {"metadata": {"finalizers": None}})
    cluster.process.later_s += 60
    await cluster.rounds(3)
    assert cluster.slurm.words["gpu-0"] == {"IDLE", "CLOUD", "POWERED_DOWN"}


@pytest.mark.anyio
async def test_job_that_came_while_writes_were_held_up_is_not_cancelled(cluster: Cluster) -> None:
    spec: dict[str, Any] = {"nodes": 2, "drain": {"action": "Cancel", "deadlineSeconds": 60}}
    cluster.declare(replicas=2, ordinals=2, **spec)
    await cluster.rounds(4)
    cluster.slurm.start_job("gpu-0", 7)
    cluster.slurm.start_job("gpu-1", 8)
    await cluster.rounds(1)
    cluster.declare(replicas=1, ordinals=2, **spec)
    await cluster.rounds(3)
    [going] = [name for name, words in cluster.slurm.words.items() if "DRAIN" in words]
    cluster.process.later_s += 61
    readings = 0

    async def hold_up() -> None:
        """The first reading is the test's own; what the round decides from the second is held up, and the world goes on."""
        nonlocal readings
        readings += 1
        if readings == 2:
            cluster.process.later_s += FRESH_S + 1
            cluster.slurm.words[going].discard("DRAIN")
            cluster.slurm.reasons[going] = ""

    cluster.slurm.after_reading = hold_up
    await cluster.process.round()
    assert readings >= 3, "it looked again"
    assert cluster.slurm.cancelled == []


@pytest.mark.anyio
async def test_process_that_lost_its_lease_writes_nothing_to_slurm(cluster: Cluster) -> None:
    cluster.declare(nodes=2, replicas=2)
    await cluster.rounds(4)
    cluster.declare(nodes=2, replicas=1)
    cluster.process.leads = False
    await cluster.process.caught_up()
    with pytest.raises(Exception, match="does not lead"):
        await cluster.process.reconciler.reconcile(("slurm", "gpu"))
    assert cluster.slurm.updates == []


@pytest.mark.anyio
async def test_pin_that_no_longer_fits_its_machine_is_dropped(cluster: Cluster) -> None:
    cluster.machine("machine")
    cluster.machine("other")
    cluster.declare(nodes=1, replicas=1, placement="Pinned")
    await cluster.rounds(4)
    taint = {"key": "retired", "value": "yes", "effect": "NoSchedule"}
    cluster.server.patch(KUBE_NODES, ("", "machine"), {"spec": {"taints": [taint]}})
    cluster.place = "other"
    cluster.server.remove(PODS, ("slurm", "gpu-0"))
    await cluster.rounds(3)
    assert cluster.server.get(PODS, ("slurm", "gpu-0"))["spec"]["nodeName"] == "other"


@pytest.mark.anyio
async def test_pod_of_another_controller_is_left_alone_and_named(cluster: Cluster) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "x", "controller": True}
    labels = {"slipway.dev/cluster": "dev", "slipway.dev/nodeset": "gpu"}
    meta = {"namespace": "slurm", "name": "gpu-0", "labels": labels, "ownerReferences": [owner]}
    cluster.server.put(PODS, {"metadata": meta, "spec": {}, "status": {"phase": "Failed"}})
    cluster.declare(nodes=2, replicas=2)
    await cluster.rounds(4)
    assert cluster.server.get(PODS, ("slurm", "gpu-0"))["metadata"]["ownerReferences"][0]["kind"] == "StatefulSet"
    assert "pod gpu-0 (StatefulSet db) belongs to somebody else" in str(cluster.status()["conditions"])


@pytest.mark.anyio
async def test_set_with_nulls_is_served_as_any_other(cluster: Cluster) -> None:
    disk = {"metadata": {"name": "disk"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": None}}
    spec = {"volumes": None, "nodeSelector": None, "affinity": None, "containers": [{"name": "slurmd", "resources": None}]}
    cluster.declare(nodes=1, replicas=1, placement="Pinned", volumeClaimTemplates=[disk], template={"spec": spec})
    await cluster.rounds(4)
    assert cluster.status()["phase"] == "Ready"
