"""Pods that no machine has: they go at once when they are not wanted or of an older template, unless a scheduler is faster."""

from typing import Any

import pytest

from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.structs import UpdateStrategy
from controllers.runtime.structs import PODS
from slurm.reasons import SCALE_IN
from tests.support.controllers.nodeset.examples import IDLE, look, node, nodeset, pod
from tests.support.controllers.nodeset.memory_cluster import Cluster
from tests.support.fakes.requests import Failure, Request

WAKING = "MIXED CLOUD NOT_RESPONDING POWERING_UP"
PENDING = pod(ready=False, revision="old", version="7")
CURRENT = pod(ready=False, version="7")
OFF = node("IDLE CLOUD POWERED_DOWN")
ELASTIC: dict[str, Any] = {"min": 0, "max": 2}


@pytest.mark.parametrize(
    ("spec", "seen", "gone"),
    [
        pytest.param(ELASTIC, look((PENDING, node(WAKING))), (0,), id="waking"),
        pytest.param(ELASTIC, look((PENDING, node("MIXED CLOUD POWERED_DOWN"))), (0,), id="just-asked-for"),
        pytest.param({"replicas": 1}, look((PENDING, OFF)), (0,), id="fixed-set"),
        pytest.param({"replicas": 2}, look((PENDING, OFF), (PENDING, OFF)), (0, 1), id="no-budget-is-needed"),
        pytest.param({"replicas": 1}, look((PENDING, None)), (0,), id="slurm-does-not-know-it-yet"),
        pytest.param({"replicas": 1}, look((PENDING, node("DOWN DRAIN", "fan is loud"))), (0,), id="node-that-others-drained"),
        pytest.param(
            {"replicas": 1, "update_strategy": UpdateStrategy("Maintenance", 1, "window")}, look((PENDING, OFF)), (0,), id="no-window"
        ),
        pytest.param({"replicas": 2, "max_pods_in_flight": 1}, look((PENDING, OFF), (PENDING, OFF)), (0,), id="at-most-so-many-at-once"),
        pytest.param({"replicas": 0}, look((CURRENT, node(WAKING))), (0,), id="not-wanted"),
        pytest.param({"replicas": 0}, look((CURRENT, None)), (0,), id="not-wanted-and-unknown-to-slurm"),
        pytest.param(ELASTIC, look((CURRENT, node(WAKING))), (), id="present-template"),
        pytest.param(ELASTIC, look((pod(ready=False, revision="old", machine="m"), node(WAKING))), (), id="it-has-a-machine"),
        pytest.param(ELASTIC, look((pod(revision="old"), node(WAKING))), (), id="it-is-ready"),
        pytest.param(ELASTIC, look((pod(ready=False, revision="old", has_run=True), node(WAKING))), (), id="it-has-run"),
        pytest.param(ELASTIC, look((pod(ready=False, revision="old", terminating=True), node(WAKING))), (), id="it-goes-already"),
        pytest.param({"replicas": 1, "update_strategy": UpdateStrategy("OnDelete")}, look((PENDING, OFF)), (), id="on-delete"),
        pytest.param({"replicas": 1}, look((PENDING, OFF), silent=True), (), id="slurm-is-silent"),
    ],
)
def test_pod_without_a_machine_goes_at_once(spec: dict[str, Any], seen: Observed, gone: tuple[int, ...]) -> None:
    made = plan_nodeset(nodeset(**spec), seen)
    assert (made.deletions.unbound, set(made.deletions.free) & set(gone)) == (gone, set())


def test_node_of_an_unwanted_pod_without_a_machine_is_drained_with_it() -> None:
    made = plan_nodeset(nodeset(replicas=1), look((CURRENT, node("IDLE")), IDLE))
    assert (made.deletions.unbound, made.drains.drain) == ((0,), {SCALE_IN: (0,)})


async def pending(cluster: Cluster) -> None:
    """A job waits for gpu-0, whose pod fits no machine; then somebody mends the template."""
    cluster.machine("machine", cordoned=True)
    cluster.declare(nodes=1, min=0, max=1)
    cluster.slurm.wake("gpu-0", 7)
    await cluster.rounds(3)
    assert cluster.pods() == {"gpu-0": "a"}
    cluster.declare(image="b", nodes=1, min=0, max=1)


@pytest.mark.anyio
async def test_waiting_job_starts_once_a_template_that_fits_nowhere_is_mended(cluster: Cluster) -> None:
    await pending(cluster)
    await cluster.rounds(2)
    assert cluster.pods() == {"gpu-0": "b"}
    cluster.machine("machine")
    await cluster.rounds(1)
    assert (cluster.slurm.jobs_on, cluster.slurm.words["gpu-0"]) == ({"gpu-0": 7}, {"ALLOCATED", "CLOUD"})


@pytest.mark.anyio
async def test_pod_that_gets_a_machine_before_its_deletion_is_sent_stays(cluster: Cluster) -> None:
    await pending(cluster)
    uid = cluster.server.get(PODS, ("slurm", "gpu-0"))["metadata"]["uid"]
    asked: list[dict[str, Any]] = []

    def bind(request: Request) -> Failure | None:
        """The scheduler is faster by a moment, and the job starts."""
        if (request.verb, request.plural) == ("delete", "pods"):
            asked.append(request.content()["preconditions"])
            cluster.server.on_request = None
            cluster.machine("machine")
            cluster.kubelets()
        return None

    await cluster.process.caught_up()
    cluster.server.on_request = bind
    following = await cluster.process.round()
    assert [sorted(each) for each in asked] == [["resourceVersion", "uid"]]
    assert not following.has_failed
    await cluster.rounds(3)
    assert cluster.server.get(PODS, ("slurm", "gpu-0"))["metadata"]["uid"] == uid
    assert (cluster.slurm.jobs_on, cluster.slurm.lost) == ({"gpu-0": 7}, [])
    assert cluster.status()["phase"] == "Updating"
