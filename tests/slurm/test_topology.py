"""Topologies with the real slurmctld and its sidecar: nodes placed over REST by the controller's own client, files that change under them,
and what jobs see. The labels of machines are for tests/unit/controllers/nodeset/test_topology.py and tests/cluster/test_topology.py.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controllers.slurm.client import SlurmClient, SlurmRefused
from slurm.hostlists import expand, fold
from slurm.topology import address, block_name, block_place, tree_place
from tests.support.slurm.elastic_cluster import NAMES, ElasticCluster, elastic_stack
from tests.support.slurm.image_pods import Machine, wait_for
from tests.support.slurm.image_stack import ALICE
from tests.support.slurm.rest_client import ask

FOLDER = Path("/var/tmp/slipway-topology-pods")
PREFIX = "swto-"
NODES = ("el-0", "el-1", "el-2", "el-3")
TREE: dict[str, Any] = {"name": "fabric", "tree": {"labels": ["example.com/spine", "example.com/leaf"]}}
BLOCKS: dict[str, Any] = {"name": "nvlink", "block": {"label": "example.com/rack", "size": 2, "count": 2}}


def stack(*topologies: dict[str, Any]) -> dict[str, Any]:
    """An elastic set of four nodes that are up, and a partition for each topology."""
    made = elastic_stack(least=4, partitions=("main", "burst"))
    made["partitions"] += [{"name": each["name"], "nodeSets": ["el"], "topology": each["name"]} for each in topologies]
    return {**made, "topologies": list(topologies)}


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[ElasticCluster]:
    """slurmctld, its sidecar, slurmrestd and four workers."""
    machine = Machine(FOLDER, image_root, PREFIX)
    machine.close()  # what a killed run left
    FOLDER.mkdir(mode=0o755)
    made = ElasticCluster(machine, stack=stack(TREE, BLOCKS), names={**NAMES, "t-slurmrestd": []})
    try:
        made.prepare()
        for pod in ("t-slurmctld-0", *NODES):
            made.munged(pod)
        made.slurmctld()
        made.reconfigure()
        made.taken()
        made.slurmrestd()
        made.up(*NODES)
        yield made
    finally:
        machine.keep_logs()
        machine.close()


def text(spine: str, leaf: str, number: int | None = None) -> str:
    """A node's places in both topologies."""
    return f"{tree_place('fabric', (spine, leaf))},{block_place('nvlink', None if number is None else block_name('nvlink', number))}"


def place(cluster: ElasticCluster, places: dict[str, str], features: tuple[str, ...] = ()) -> None:
    """Places nodes as the controller does."""

    async def work(client: SlurmClient) -> None:
        for node, there in places.items():
            await client.place_nodes([node], there, features)

    ask(cluster, work, prefix=PREFIX)


def units(cluster: ElasticCluster, topology: str) -> dict[str, str]:
    """The switches or blocks that have nodes, as Slurm shows them."""
    found = re.findall(r"(?:SwitchName|BlockName)=(\S+) .*?Nodes=(\S*)", cluster.slurm("scontrol", "show", "topology", topology))
    return {name: fold(sorted(expand(nodes))) for name, nodes in found if nodes}


def hosts(cluster: ElasticCluster, *options: str) -> list[str]:
    """Where a step of one task on each of two nodes runs."""
    return sorted(cluster.slurm("srun", "--quiet", "--chdir=/tmp", "--nodes=2", *options, "hostname", user=ALICE).split())


def test_nodes_that_nobody_has_placed_are_together_and_take_jobs(cluster: ElasticCluster) -> None:
    assert units(cluster, "fabric") == {"fabric": "el-[0-3],fix-[0-1]", "unplaced": "el-[0-3],fix-[0-1]"}
    assert units(cluster, "nvlink") == {"unplaced": "el-[0-3],fix-[0-1]"}
    assert len(hosts(cluster, "--partition=nvlink")) == 2


def test_two_node_job_gets_one_switch_and_a_segment_one_block(cluster: ElasticCluster) -> None:
    place(cluster, {"el-0": text("a", "1", 0), "el-1": text("a", "2", 1), "el-2": text("b", "1", 1), "el-3": text("a", "1", 0)})
    assert units(cluster, "fabric") == {
        "fabric": "el-[0-3],fix-[0-1]",
        "unplaced": "fix-[0-1]",
        "a": "el-[0-1,3]",
        "a-1": "el-[0,3]",
        "a-2": "el-1",
        "b": "el-2",
        "b-1": "el-2",
    }
    assert units(cluster, "nvlink") == {"nvlink-0": "el-[0,3]", "nvlink-1": "el-[1-2]", "unplaced": "fix-[0-1]"}
    for _ in range(2):
        wait_for("idle nodes", lambda: all(cluster.state(node) == "IDLE+CLOUD" for node in NODES))
        assert hosts(cluster, "--partition=burst", "--switches=1") == ["el-0", "el-3"]
    wait_for("idle nodes", lambda: all(cluster.state(node) == "IDLE+CLOUD" for node in NODES))
    assert hosts(cluster, "--partition=nvlink", "--segment=2") in (["el-0", "el-3"], ["el-1", "el-2"])


def test_job_reads_the_address_that_its_pod_was_told(cluster: ElasticCluster) -> None:
    there = address(tree_place("fabric", ("a", "1")))
    (cluster.machine.folder / "volume-el-0-place" / "address").write_text(there)
    tell = "echo $SLURM_TOPOLOGY_ADDR $SLURM_TOPOLOGY_ADDR_PATTERN"
    said = cluster.slurm("srun", "--quiet", "--chdir=/tmp", "--partition=burst", "--nodelist=el-0", "bash", "-c", tell, user=ALICE)
    assert said.split() == ["fabric.a.a-1.el-0", "switch.switch.switch.node"]


def test_changed_place_touches_no_job_that_runs(cluster: ElasticCluster) -> None:
    job = cluster.running("--partition=burst", "--nodes=2", "--nodelist=el-[0,3]")
    place(cluster, {"el-3": text("b", "9", 1)})
    assert "el-3" in units(cluster, "fabric")["b-9"]
    cluster.slurm("scontrol", "reconfigure")
    assert cluster.job(job) == "RUNNING"
    assert units(cluster, "fabric")["b-9"] == "el-3"  # Slurm keeps it over a reconfigure
    cluster.slurm("scancel", job)


def test_features_are_for_constraints_and_gone_after_a_reconfigure(cluster: ElasticCluster) -> None:
    """So the controller compares them at each reading."""
    place(cluster, {"el-1": text("a", "2", 1)}, ("p5.48xlarge", "ib"))
    assert (
        cluster.slurm("srun", "--quiet", "--chdir=/tmp", "--partition=burst", "--constraint=p5.48xlarge&ib", "hostname", user=ALICE)
        == "el-1\n"
    )
    cluster.slurm("scontrol", "reconfigure")
    assert "AvailableFeatures=(null)" in cluster.node("el-1")


def test_job_that_waits_for_a_feature_outlives_a_reconfigure(cluster: ElasticCluster) -> None:
    """The feature is gone until the controller tells it again; slurmctld looks at the job meanwhile."""
    place(cluster, {"el-1": text("a", "2", 1)}, ("ib",))
    first = cluster.running("--partition=burst", "--nodelist=el-1", "--exclusive")
    waiting = cluster.submit("--partition=burst", "--constraint=ib")
    wait_for("a reason to wait", lambda: cluster.job(waiting, "Reason") in ("Resources", "Priority"))
    cluster.slurm("scontrol", "reconfigure")
    assert "AvailableFeatures=(null)" in cluster.node("el-1")
    wait_for("a look at the job", lambda: cluster.job(waiting, "Reason") not in ("Resources", "Priority", "None"), deadline_s=90)
    assert cluster.job(waiting) == "PENDING"
    place(cluster, {"el-1": text("a", "2", 1)}, ("ib",))
    cluster.slurm("scancel", first)
    wait_for("the job to run", lambda: cluster.job(waiting) == "RUNNING", deadline_s=90)
    assert cluster.job(waiting, "NodeList") == "el-1"
    cluster.slurm("scancel", waiting)


def test_place_that_topology_yaml_has_nothing_for_is_refused(cluster: ElasticCluster) -> None:
    with pytest.raises(SlurmRefused, match="topology"):
        place(cluster, {"el-1": f"{tree_place('fabric', ('a', '1'))},{block_place('nvlink', 'nvlink-7')}"})


@pytest.mark.parametrize(
    "topologies",
    [
        pytest.param((TREE, {**BLOCKS, "block": {**BLOCKS["block"], "count": 1}}), id="a-block-less"),
        pytest.param((BLOCKS,), id="a-topology-less"),
        pytest.param((TREE, BLOCKS, {**TREE, "name": "storage"}), id="a-topology-more"),
        pytest.param((), id="none"),
    ],
)
def test_changed_topologies_are_taken_live_beside_a_running_job(cluster: ElasticCluster, topologies: tuple[dict[str, Any], ...]) -> None:
    """slurmctld would not start with files that have nothing where its nodes are placed; the sidecar has it forget these places first."""
    cluster.configure(stack(TREE, BLOCKS))
    cluster.taken()
    place(cluster, {"el-0": text("a", "1", 1), "el-1": text("a", "2", 0), "el-2": text("a", "1", 1)})
    job = cluster.running("--partition=burst", "--nodelist=el-2")
    cluster.configure(stack(*topologies))
    cluster.taken()
    assert cluster.job(job) == "RUNNING"
    assert hosts(cluster, "--partition=burst", "--nodelist=el-[0-1]") == ["el-0", "el-1"]
    cluster.slurm("scancel", job)
