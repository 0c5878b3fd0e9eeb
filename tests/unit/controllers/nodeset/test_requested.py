"""Drains that an annotation of a worker's pod asks for."""

from typing import Any

import pytest

from controllers.nodeset.observe import worker_pod
from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.plans.causes import find_causes_of
from controllers.nodeset.structs import SLURM_NODES
from controllers.nodeset.undrained import build_undrained
from controllers.nodeset.workers import Machine
from controllers.runtime.structs import PODS, ObjectMeta, Pod
from names import annotations
from slurm.check_results import Failure
from slurm.reasons import SCALE_IN, UPDATE, check, cordon, requested
from tests.support.controllers.nodeset.examples import acts_of, look, node, nodeset, pod
from tests.support.controllers.nodeset.memory_cluster import Cluster
from tests.unit.controllers.nodeset.killer import killed_at

ASKED = pod(machine="m", drain_requested="link is slow")
REASON = "slipway: requested: link is slow"
KNOWN = {"m": Machine()}
CORDONED = {"m": Machine(is_cordoned=True)}
FULL = Failure("", "full")


@pytest.mark.parametrize(
    ("spec", "seen", "acts"),
    [
        pytest.param({"replicas": 1}, look((ASKED, node()), machines=KNOWN), {"drain": {REASON: (0,)}}, id="drained"),
        pytest.param({"replicas": 1}, look((ASKED, node("MIXED")), machines=KNOWN), {"drain": {REASON: (0,)}}, id="its-jobs-run-on"),
        pytest.param({"replicas": 1}, look((ASKED, node()), machines={}), {"drain": {REASON: (0,)}}, id="whatever-its-machine-is"),
        pytest.param({"replicas": 1}, look((ASKED, node("IDLE DRAIN", REASON)), machines=KNOWN), {}, id="stays-drained-and-keeps-its-pod"),
        pytest.param(
            {"replicas": 1}, look((ASKED, node("IDLE DRAIN", f"{REASON} : Not responding")), machines=KNOWN), {}, id="appended-to"
        ),
        pytest.param({"replicas": 1}, look((pod(machine="m"), node("IDLE DRAIN", REASON)), machines=KNOWN), {"undrain": (0,)}, id="lifted"),
        pytest.param(
            {"replicas": 1},
            look((ASKED, node("IDLE DRAIN", requested("old"))), machines=KNOWN),
            {"drain": {REASON: (0,)}},
            id="other-words",
        ),
        pytest.param({"replicas": 1}, look((ASKED, node("IDLE DRAIN", "fan is loud")), machines=KNOWN), {}, id="a-persons-stays"),
        pytest.param({"replicas": 1}, look((ASKED, node("DOWN", "fan is loud")), machines=KNOWN), {}, id="so-does-a-persons-down"),
        pytest.param(
            {"replicas": 1}, look((ASKED, node("IDLE DRAIN", cordon("m"))), machines=CORDONED), {}, id="a-cordon-names-the-reason"
        ),
        pytest.param(
            {"replicas": 1}, look((ASKED, node("IDLE DRAIN", cordon("m"))), machines=KNOWN), {"drain": {REASON: (0,)}}, id="and-hands-over"
        ),
        pytest.param(
            {"replicas": 1},
            look((ASKED, node("IDLE DRAIN", check("disk", "full"), failures={"disk": FULL})), machines=KNOWN),
            {},
            id="a-check-that-fails-names-it",
        ),
        pytest.param(
            {"replicas": 1},
            look((ASKED, node("IDLE DRAIN", check("disk", "full"))), machines=KNOWN),
            {"drain": {REASON: (0,)}},
            id="passed",
        ),
        pytest.param({"replicas": 0}, look((ASKED, node()), machines=KNOWN), {"drain": {SCALE_IN: (0,)}}, id="who-leaves-leaves"),
        pytest.param(
            {"min": 0, "max": 1},
            look((ASKED, node("MIXED CLOUD NOT_RESPONDING POWERING_UP")), machines=KNOWN),
            {},
            id="a-job-waits-for-it",
        ),
        pytest.param(
            {"min": 0, "max": 1}, look((None, node("IDLE CLOUD DRAIN POWERED_DOWN", REASON))), {"undrain": (0,)}, id="asleep-without-pod"
        ),
        pytest.param({"replicas": 1}, look((ASKED, node()), machines=KNOWN, silent=True), {}, id="slurm-is-silent"),
    ],
)
def test_node_is_drained_for_as_long_as_its_pod_asks_for_it(spec: dict[str, Any], seen: Observed, acts: dict[str, Any]) -> None:
    assert acts_of(plan_nodeset(nodeset(**spec), seen)) == acts


def test_roll_leaves_a_pod_alone_that_asks_for_a_drain() -> None:
    """A new pod would not have the annotation."""
    old = pod(machine="m", revision="old", drain_requested="link is slow")
    made = plan_nodeset(nodeset(replicas=2), look((old, node("IDLE DRAIN", REASON)), (pod(revision="old"), node()), machines=KNOWN))
    assert (made.drains.drain, made.deletions.free, made.roll.left_alone) == ({UPDATE: (1,)}, (), (0,))


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        pytest.param({}, "", id="none"),
        pytest.param({annotations.DRAIN_REQUESTED: "link is slow"}, "link is slow", id="words"),
        pytest.param({annotations.DRAIN_REQUESTED: ""}, "no reason given", id="no-words"),
        pytest.param({annotations.DRAIN_REQUESTED: "\x1b\n"}, "no reason given", id="nothing-to-read"),
        pytest.param({annotations.DRAIN_REQUESTED: "a\x07\nb" + "x" * 500}, "a b" + "x" * 197, id="bell-and-long"),
    ],
)
def test_annotation_is_read_as_words_of_others(annotations: dict[str, str], words: str) -> None:
    assert worker_pod(Pod(ObjectMeta(name="gpu-0", annotations=annotations)), nodeset().spec).drain_requested == words


def test_cause_and_condition_say_what_lifts_it() -> None:
    seen = look((ASKED, node("IDLE DRAIN", REASON)), machines=KNOWN)
    [cause] = find_causes_of(nodeset(replicas=1), seen, {0: REASON})[0]
    assert (cause.name, cause.kind, cause.evidence) == ("requested", "maintenance", "link is slow")
    assert cause.next == "The drain is lifted after: kubectl -n slurm annotate pod gpu-0 slipway.dev/drain-requested-"
    said = build_undrained("gpu", seen.workers(), seen)
    assert (said.status, said.reason) == ("False", "DrainRequested")
    assert "gpu-0: link is slow" in said.message
    assert "kubectl annotate pod gpu-0 slipway.dev/drain-requested-" in said.message


@pytest.mark.anyio
@pytest.mark.parametrize("allowed", range(10))
async def test_next_process_drains_and_lifts_after_a_kill_at_any_write(cluster: Cluster, allowed: int) -> None:
    key = "slurm", "gpu-0"
    cluster.declare(nodes=2, replicas=2)
    await cluster.rounds(4)
    cluster.server.patch(PODS, key, {"metadata": {"annotations": {annotations.DRAIN_REQUESTED: "link \x1bis slow : Not responding"}}})
    await killed_at(cluster, allowed, rounds=3)
    await cluster.rounds(2)
    assert cluster.slurm.reasons["gpu-0"] == REASON
    assert "DRAIN" not in cluster.slurm.words["gpu-1"]
    assert cluster.server.get(SLURM_NODES, key)["status"]["summary"] == "requested"
    writes = len(cluster.slurm.updates)
    await cluster.rounds(3)
    assert len(cluster.slurm.updates) == writes, "it is drained once"
    cluster.server.patch(PODS, key, {"metadata": {"annotations": {annotations.DRAIN_REQUESTED: None}}})
    await killed_at(cluster, allowed, rounds=3)
    await cluster.rounds(2)
    assert "DRAIN" not in cluster.slurm.words["gpu-0"]


@pytest.mark.anyio
async def test_request_ends_with_its_pod(cluster: Cluster) -> None:
    key = "slurm", "gpu-0"
    cluster.declare(nodes=1, replicas=1)
    await cluster.rounds(4)
    cluster.server.patch(PODS, key, {"metadata": {"annotations": {annotations.DRAIN_REQUESTED: "link is slow"}}})
    await cluster.rounds(2)
    assert cluster.slurm.reasons["gpu-0"] == REASON
    cluster.server.remove(PODS, key)
    await cluster.rounds(4)
    assert set(cluster.pods()) == {"gpu-0"}
    assert "DRAIN" not in cluster.slurm.words["gpu-0"]
