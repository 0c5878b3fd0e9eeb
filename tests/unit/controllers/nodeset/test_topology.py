"""Where nodes are placed, and which features they get, by the labels of the machines that their pods are on."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.plans.topology import Placement, assign_blocks, features_of
from controllers.nodeset.status import build_status
from controllers.nodeset.structs import Topology
from controllers.nodeset.workers import Machine, WorkerNode, WorkerPod
from slurm.topology import block_name, block_place
from tests.support.controllers.nodeset.examples import look, node, nodeset, pod

TREE = Topology("fabric", ("spine", "leaf"))
BLOCKS = Topology("nvlink", ("rack",), 2)
MACHINES = {
    "m-0": Machine(labels={"spine": "a", "leaf": "1", "rack": "r7", "ib": "true"}),
    "m-1": Machine(labels={"spine": "a"}),
    "m-2": Machine(labels={"spine": "b", "leaf": "1", "rack": "r9"}),
}
HOME = "fabric:fabric:a:a-1,nvlink:nvlink-0"
NOWHERE = "fabric:fabric:unplaced,nvlink:unplaced"


def plan(*workers: tuple[WorkerPod | None, WorkerNode | None], silent: bool = False, **spec: Any) -> Any:
    wanted = {"topologies": (TREE, BLOCKS), "replicas": len(workers), **spec}
    return plan_nodeset(nodeset(**wanted), look(*workers, silent=silent, machines=MACHINES, blocks={"nvlink": {"r7": 0}})).topologies


def on(machine: str | None, topology: str = "", words: str = "IDLE CLOUD", **facts: Any) -> tuple[WorkerPod | None, WorkerNode]:
    return (pod(machine=machine, **facts) if machine else None), node(words, topology=topology)


@pytest.mark.parametrize(
    ("worker", "told"),
    [
        pytest.param(on("m-0"), HOME, id="new"),
        pytest.param(on("m-0", HOME), None, id="there-already"),
        pytest.param(on("m-0", "fabric:fabric:b:b-1,nvlink:nvlink-1"), HOME, id="moved-or-relabelled"),
        pytest.param(on("m-0", "fabric:fabric:a:a-1"), HOME, id="a-topology-is-new"),
        pytest.param(on("m-0", HOME, "ALLOCATED CLOUD"), None, id="with-a-job"),
        pytest.param(on("m-0", "", "ALLOCATED CLOUD"), HOME, id="a-job-does-not-hold-it-up"),
        pytest.param(on("m-1"), None, id="never-placed-and-has-none"),
        pytest.param(on("m-1", HOME), NOWHERE, id="lost-its-label"),
        pytest.param(on("m-9", HOME), None, id="machine-unknown"),
        pytest.param(on(None, HOME), None, id="pod-away-for-a-moment"),
        pytest.param(on(None, HOME, "IDLE CLOUD POWERED_DOWN"), NOWHERE, id="off"),
        pytest.param((pod(machine="m-0"), None), None, id="node-unknown"),
    ],
)
def test_node_is_told_where_its_machine_is(worker: tuple[WorkerPod | None, WorkerNode | None], told: str | None) -> None:
    assert plan(worker).place == ({} if told is None else {Placement(told, None): (0,)})


def test_nodes_of_one_switch_are_told_in_one_request() -> None:
    made = plan(on("m-0"), on("m-0"), on("m-2"))
    assert made.place == {Placement(HOME, None): (0, 1), Placement("fabric:fabric:b:b-1,nvlink:unplaced", None): (2,)}
    assert made.unplaced == {2: "m-2 is in group r9, and all 2 blocks of nvlink are taken: raise its count"}


def test_nothing_is_told_while_slurm_is_silent_or_nothing_is_declared() -> None:
    assert plan(on("m-0"), silent=True).place == {}
    assert plan(on("m-0"), topologies=()).place == {}


def test_pod_is_told_the_address_in_the_first_topology_once() -> None:
    assert plan(on("m-0")).addresses == {0: "fabric.a.a-1"}
    assert plan(on("m-0", HOME, address="fabric.a.a-1")).addresses == {}
    assert plan(on("m-0"), topologies=(BLOCKS, TREE)).addresses == {0: "nvlink-0"}
    assert plan(on("m-1")).addresses == {0: "fabric.unplaced"}


def test_status_names_nodes_without_a_place_and_the_label_that_is_missing() -> None:
    spec = nodeset(topologies=(TREE,), replicas=2)
    observed = look(on("m-0"), on("m-1"), machines=MACHINES)
    status = build_status(spec, observed, plan_nodeset(spec, observed), None, "2026-01-01T00:00:00Z")
    found = next(condition for condition in status.conditions if condition.type == "NodesPlaced")
    assert (found.status, found.reason) == ("False", "NoPlace")
    assert "m-1 has no label leaf" in found.message
    assert "gpu-1" in found.message
    assert status.phase == "Ready"


@pytest.mark.parametrize(
    ("labels", "features"),
    [
        pytest.param({"node.kubernetes.io/instance-type": "p5.48xlarge"}, ("h100", "p5.48xlarge"), id="value"),
        pytest.param({"example.com/ib": "true"}, ("h100", "ib"), id="true-is-the-name"),
        pytest.param({"example.com/ib": "false"}, ("h100",), id="false-is-none"),
        pytest.param({"example.com/gpus": "8"}, ("h100", "gpus-8"), id="digit-first"),
        pytest.param({"example.com/ib": "h100"}, ("h100",), id="one-that-the-set-has"),
        pytest.param({"other": "x"}, ("h100",), id="label-not-named"),
    ],
)
def test_label_becomes_a_feature(labels: dict[str, str], features: tuple[str, ...]) -> None:
    wanted = ("node.kubernetes.io/instance-type", "example.com/ib", "example.com/gpus")
    spec = nodeset(label_features=wanted, features=("h100",)).spec
    assert features_of(spec, Machine(labels=labels)) == features


def test_features_are_told_again_where_a_reconfigure_took_them() -> None:
    spec: dict[str, Any] = {"topologies": (), "label_features": ("ib",), "features": ("h100",)}
    bare = pod(machine="m-0"), node(features=("h100",))
    assert plan(bare, **spec).place == {Placement(None, ("h100", "ib")): (0,)}
    assert plan((pod(machine="m-0"), node(features=("ib", "h100"))), **spec).place == {}
    off = None, node("IDLE CLOUD POWERED_DOWN", features=("h100", "ib"))
    assert plan(off, **spec).place == {Placement(None, ("h100",)): (0,)}


GROUPS = st.sampled_from(["r1", "r2", "r3"])
TEXTS = st.sampled_from(["", *(block_place("nvlink", block_name("nvlink", number)) for number in range(4))])


@given(st.lists(st.tuples(GROUPS, TEXTS), max_size=12), st.integers(1, 4))
def test_no_two_groups_share_a_block_and_each_keeps_its_own(nodes: list[tuple[str, str]], count: int) -> None:
    topology = Topology("nvlink", ("rack",), count)
    found = assign_blocks(topology, nodes, {})
    groups = {group for group, _ in nodes}
    assert len(set(found.values())) == len(found) == min(count, len(groups))
    assert all(number < count for number in found.values())
    assert assign_blocks(topology, reversed(nodes), found) == found
    settled = [(group, block_place("nvlink", block_name("nvlink", found[group]))) for group, _ in nodes if group in found]
    assert assign_blocks(topology, settled, {}) == {group: number for group, number in found.items() if group in dict(settled)}
