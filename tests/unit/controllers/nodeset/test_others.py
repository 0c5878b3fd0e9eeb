"""What administrators have done to nodes and machines stays as it is."""

from typing import Any

import pytest

from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.status import build_status
from controllers.runtime.structs import KUBE_NODES, PODS
from tests.support.controllers.nodeset.examples import look, node, nodeset, pod
from tests.support.controllers.nodeset.memory_cluster import Cluster

FAN = "fan is loud"


def take_down(cluster: Cluster, name: str) -> None:
    """As `scontrol update nodename=gpu-0 state=down reason="fan is loud"` does."""
    cluster.slurm.words[name] = {"DOWN", "CLOUD"}
    cluster.slurm.reasons[name] = FAN


@pytest.mark.anyio
async def test_node_that_somebody_took_down_stays_down_through_cordon_and_roll(cluster: Cluster) -> None:
    cluster.declare(nodes=2, replicas=2)
    await cluster.rounds(4)
    take_down(cluster, "gpu-1")
    cluster.machine("machine", cordoned=True)
    await cluster.rounds(2)
    cluster.machine("machine")
    await cluster.rounds(2)
    cluster.declare("b", nodes=2, replicas=2)
    await cluster.rounds(6)
    assert cluster.pods() == {"gpu-0": "b", "gpu-1": "a"}
    assert (cluster.slurm.words["gpu-1"], cluster.slurm.reasons["gpu-1"]) == ({"DOWN", "CLOUD"}, FAN)


@pytest.mark.anyio
async def test_node_that_somebody_took_down_is_scaled_in_and_keeps_their_words(cluster: Cluster) -> None:
    cluster.declare(nodes=2, replicas=2)
    await cluster.rounds(4)
    take_down(cluster, "gpu-1")
    cluster.declare(nodes=2, replicas=1)
    await cluster.rounds(4)
    assert cluster.pods() == {"gpu-0": "a"}
    assert (cluster.slurm.words["gpu-1"], cluster.slurm.reasons["gpu-1"]) == ({"DOWN", "CLOUD", "DRAIN"}, FAN)
    assert cluster.status()["drains"] == [], "it is not recorded as ours"


@pytest.mark.parametrize(
    ("workers", "verb"),
    [
        pytest.param([(pod(), node("DOWN", FAN))], "state=resume", id="down"),
        pytest.param([(pod(), node("IDLE DRAIN", FAN))], "state=undrain", id="drained"),
        pytest.param(
            [(pod(), node("DOWN", FAN)), (pod(), node("IDLE DRAIN", FAN))],
            "state=undrain, or state=resume for a node that is down",
            id="both",
        ),
    ],
)
def test_status_names_the_command_that_lifts(workers: list[Any], verb: str) -> None:
    one, seen = nodeset(replicas=len(workers)), look(*workers)
    said = next(each for each in build_status(one, seen, plan_nodeset(one, seen), None, "now").conditions if each.type == "Undrained")
    assert said.message.endswith(f"lift with: scontrol update nodename=... {verb}")


@pytest.mark.anyio
async def test_drain_of_a_cordoned_machine_outlives_its_kubernetes_node(cluster: Cluster) -> None:
    cluster.machine("other")
    cluster.declare(nodes=1, replicas=1)
    await cluster.rounds(4)
    cluster.machine("machine", cordoned=True)
    await cluster.rounds(2)
    cluster.server.remove(KUBE_NODES, ("", "machine"))
    await cluster.rounds(3)
    assert "DRAIN" in cluster.slurm.words["gpu-0"]
    assert "each is lifted once its pod runs on another machine" in str(cluster.status()["conditions"])
    cluster.server.remove(PODS, ("slurm", "gpu-0"))  # as Kubernetes does it to pods of a node that is gone
    cluster.place = "other"
    await cluster.rounds(4)
    assert cluster.slurm.words["gpu-0"] == {"IDLE", "CLOUD"}


@pytest.mark.anyio
async def test_drain_of_a_machine_that_is_back_in_kubernetes_is_lifted(cluster: Cluster) -> None:
    cluster.declare(nodes=1, replicas=1)
    await cluster.rounds(4)
    cluster.machine("machine", cordoned=True)
    await cluster.rounds(2)
    cluster.server.remove(KUBE_NODES, ("", "machine"))
    await cluster.rounds(2)
    cluster.machine("machine")
    await cluster.rounds(2)
    assert cluster.slurm.words["gpu-0"] == {"IDLE", "CLOUD"}
