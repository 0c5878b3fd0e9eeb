"""The pause after a failure holds back the tries of the controller alone: an administrator who resumes the node ends it."""

from typing import Any

import pytest

from controllers.nodeset.observed import Observed, Pauses
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.status import build_status
from controllers.runtime.structs import EVENTS, PODS
from slurm.reasons import NOT_RESPONDING, RESUME_FAILED
from tests.support.controllers.nodeset.examples import NOW, look, node, nodeset
from tests.support.controllers.nodeset.memory_cluster import Cluster

HELD = Pauses(frozenset({0}))


WAKING = "MIXED CLOUD NOT_RESPONDING POWERING_UP"


@pytest.mark.parametrize(
    ("spec", "seen", "made"),
    [
        pytest.param({"min": 0, "max": 1}, look((None, node(WAKING)), pauses=HELD), (0,), id="waking-for-a-job"),
        pytest.param(
            {"min": 1, "max": 1}, look((None, node("IDLE CLOUD POWERED_DOWN")), pauses=HELD), (0,), id="resumed-and-one-of-the-first"
        ),
        pytest.param({"min": 1, "max": 1}, look((None, node("DOWN CLOUD POWERED_DOWN", RESUME_FAILED)), pauses=HELD), (), id="still-down"),
        pytest.param({"min": 1, "max": 1}, look((None, node(WAKING)), silent=True, pauses=HELD), (), id="nobody-knows"),
        pytest.param(
            {"min": 0, "max": 1}, look((None, node(WAKING)), pauses=Pauses(frozenset({0}), frozenset({0}))), (), id="refused-by-a-kubelet"
        ),
    ],
)
def test_pod_is_made_once_the_node_is_no_longer_down(spec: dict[str, Any], seen: Observed, made: tuple[int, ...]) -> None:
    assert plan_nodeset(nodeset(**spec), seen).create == made


@pytest.mark.parametrize("reason", [pytest.param(RESUME_FAILED, id="did-not-register"), pytest.param(NOT_RESPONDING, id="fell-silent")])
def test_status_says_when_a_node_is_resumed_and_how_to_do_it_now(reason: str) -> None:
    one, seen = (
        nodeset(min=0, max=1),
        look((None, node("DOWN CLOUD POWERED_DOWN", reason)), pauses=Pauses(frozenset({0}), resumed_at={0: NOW + 480})),
    )
    said = next(each for each in build_status(one, seen, plan_nodeset(one, seen), None, "now").conditions if each.type == "NodesRegister")
    assert "The controller resumes gpu-0 by 02:55 UTC" in said.message  # NOW + 480 s, to the next whole minute
    assert "scontrol update nodename=gpu-0 state=resume" in said.message


@pytest.mark.anyio
async def test_node_resumed_by_an_administrator_gets_its_pod_for_a_job_at_once(cluster: Cluster) -> None:
    cluster.declare(nodes=1, min=0, max=1)
    for failures in range(5):
        cluster.process.later_s += 30 * 2**failures + 1
        await _fail(cluster)
    assert cluster.slurm.words["gpu-0"] == {"DOWN", "CLOUD", "POWERED_DOWN"}, "it is left alone for eight minutes"
    await cluster.slurm.update_nodes(["gpu-0"], "RESUME")
    cluster.slurm.wake("gpu-0", 8)
    await cluster.rounds(2)
    assert cluster.pods() == {"gpu-0": "a"}
    assert cluster.slurm.jobs_on == {"gpu-0": 8}


async def _fail(cluster: Cluster) -> None:
    """The node is woken, its pod does not come up, ResumeTimeout is over, and the pod ends."""
    for _ in range(2):
        await cluster.process.round()
    assert "DOWN" not in cluster.slurm.words["gpu-0"], "it was resumed"
    cluster.slurm.wake("gpu-0", 7)
    await cluster.process.round()
    cluster.slurm.jobs_on.clear()
    cluster.slurm.words["gpu-0"], cluster.slurm.reasons["gpu-0"] = {"DOWN", "CLOUD", "POWERED_DOWN"}, RESUME_FAILED
    for _ in range(3):
        await cluster.process.round()
        for key in sorted(cluster.server.keys(PODS)):
            if cluster.server.get(PODS, key)["metadata"].get("deletionTimestamp"):
                cluster.server.remove(PODS, key)


@pytest.mark.anyio
async def test_pod_that_a_kubelet_refuses_is_named_and_tried_ever_less_often(cluster: Cluster) -> None:
    cluster.machine("machine")
    cluster.refusing.add("machine")
    cluster.declare(nodes=1, replicas=1, placement="Pinned")
    for _ in range(40):
        await cluster.rounds(1)
        cluster.process.later_s += 0.5
    assert 3 <= cluster.refusals <= 6, "within 20 s"
    said = next(one for one in cluster.status()["conditions"] if one["type"] == "PodsStart")
    assert "machine refused it (UnexpectedAdmissionError: no free devices)" in said["message"]
    assert ("slurm", "gpu-places") not in cluster.server.keys(PODS)


@pytest.mark.anyio
async def test_tries_of_a_refused_pod_are_one_event_and_its_start_another(cluster: Cluster) -> None:
    """Each try makes a pod of which nothing is known for a moment."""
    cluster.declare(nodes=1, replicas=1)
    cluster.refusing.add("machine")
    for _ in range(12):
        await cluster.rounds(2)
        cluster.process.later_s += 10
    assert cluster.refusals >= 3

    def told() -> list[str]:
        events = (cluster.server.get(EVENTS, key) for key in cluster.server.keys(EVENTS))
        return sorted(event["type"] for event in events if event["action"] == "PodsStart")

    assert told() == ["Warning"]
    cluster.refusing.clear()
    cluster.process.later_s += 300
    await cluster.rounds(4)
    assert told() == ["Normal", "Warning"]


@pytest.mark.anyio
async def test_refused_pod_is_tried_at_once_when_the_set_was_mended(cluster: Cluster) -> None:
    cluster.machine("machine")
    cluster.refusing.add("machine")
    cluster.declare(nodes=1, replicas=1)
    for _ in range(200):
        await cluster.rounds(1)
        cluster.process.later_s += 0.5
    cluster.refusing.clear()
    before = cluster.refusals
    await cluster.rounds(2)
    assert ("slurm", "gpu-0") not in cluster.server.keys(PODS), "it waits for a minute by now"
    cluster.declare("b", nodes=1, replicas=1)
    await cluster.rounds(2)
    assert ("slurm", "gpu-0") in cluster.server.keys(PODS)
    assert cluster.refusals == before
