"""Jobs that go on without one of their nodes: later steps reach the nodes that are left, each alone and all together.

Slurm 26.05.5 lists the addresses of a job's nodes when it starts, and takes none out of that list. cli_filter.lua and
images/slurm/root/spank.c keep srun from going by it.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.slurm.elastic_cluster import ElasticCluster, elastic_stack
from tests.support.slurm.image_pods import Machine, PodError, wait_for
from tests.support.slurm.image_stack import ALICE

FOLDER = Path("/var/tmp/slipway-resized-pods")
PREFIX = "swrs-"
FIXED, ELASTIC = ("fix-0", "fix-1", "fix-2"), ("el-0", "el-1")
NAMES = {"t-slurmctld-0": ["t-slurmctld"], **{node: [] for node in (*FIXED, *ELASTIC)}}
ELSEWHERE = 100
"""End of the address that a pod has on another machine."""

Loss = Callable[[ElasticCluster, str, str], None]
"""Takes a node (the last argument) from a job."""


@pytest.fixture(scope="module")
def running(image_root: Path) -> Iterator[ElasticCluster]:
    machine = Machine(FOLDER, image_root, PREFIX)
    machine.close()  # what a killed run left
    FOLDER.mkdir(mode=0o755)
    cluster = ElasticCluster(machine, stack=elastic_stack(fixed=3, least=0, most=2), names=NAMES)
    try:
        cluster.prepare()
        for pod in NAMES:
            cluster.munged(pod)
        cluster.slurmctld()
        cluster.reconfigure()
        cluster.taken()
        yield cluster
    finally:
        machine.keep_logs()
        machine.close()


@pytest.fixture
def cluster(running: ElasticCluster) -> ElasticCluster:
    """The cluster without a job, its fixed nodes up."""
    settle(running)
    return running


def settle(cluster: ElasticCluster) -> None:
    """Ends all jobs, and has the fixed nodes up."""
    cluster.cancel_all()
    wait_for("an empty queue", lambda: not cluster.slurm("squeue", "--noheader").strip())
    wait_for("nodes without a job", lambda: not any("COMPLETING" in cluster.state(node) for node in FIXED))
    cluster.up(*FIXED)


def allocate(cluster: ElasticCluster, *options: str) -> str:
    """A job without a shell, as `salloc` makes one; gives its number once its nodes are ready."""
    said = cluster.slurm("salloc", "--no-shell", "--no-kill", *options, user=ALICE)
    return said.partition("Granted job allocation ")[2].split()[0]


def step(cluster: ElasticCluster, job: str, *options: str) -> list[str]:
    """The nodes that a step of one task each reached. Raises PodError with srun's words."""
    said = cluster.slurm("srun", f"--jobid={job}", "--chdir=/tmp", "--quiet", *options, "hostname", user=ALICE)
    return sorted(said.split())


def reaches(cluster: ElasticCluster, job: str, *nodes: str) -> None:
    """Asserts that steps run on each of the nodes, and on all."""
    assert step(cluster, job, f"--nodes={len(nodes)}") == sorted(nodes)
    for node in nodes:
        assert step(cluster, job, "--nodes=1", "--ntasks=1", f"--nodelist={node}") == [node]


def give_back(cluster: ElasticCluster, job: str, node: str) -> None:
    """The job's user returns a node of three."""
    keep(cluster, job, ",".join(each for each in FIXED if each != node))


def keep(cluster: ElasticCluster, job: str, nodes: str) -> None:
    """The job's user returns all nodes but these."""
    cluster.slurm("bash", "-c", f"cd /tmp && scontrol update JobId={job} NodeList={nodes}", user=ALICE)


def lose(cluster: ElasticCluster, job: str, node: str) -> None:
    """The node's pod is killed, and slurmctld takes the node for down."""
    cluster.containers.pop(f"{node}/slurmd").stop("KILL")
    cluster.slurm("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=gone")


def replace(cluster: ElasticCluster, job: str, node: str) -> None:
    """A new pod has the name and the address of the old one."""
    cluster.containers.pop(f"{node}/slurmd").stop("KILL")
    cluster.worker(node)


def move(cluster: ElasticCluster, job: str, node: str) -> None:
    """A new pod has the name of the old one and another address, as on another machine."""
    cluster.containers.pop(f"{node}/slurmd").stop("KILL")
    machine, namespace = cluster.machine, f"{PREFIX}{node}"
    old = machine.addresses[node]
    subprocess.run(["ip", "-n", namespace, "address", "flush", "dev", "eth0"], check=True)
    machine.add_address(node, namespace, "eth0", ELSEWHERE)
    names = machine.folder / "hosts"
    names.write_text(names.read_text().replace(f"{old} ", f"{machine.addresses[node]} "))
    cluster.worker(node)


@pytest.mark.parametrize(
    ("loss", "lost"),
    [
        pytest.param(give_back, "fix-0", id="first-returned"),
        pytest.param(lose, "fix-1", id="middle-lost"),
        pytest.param(replace, "fix-1", id="replaced"),
        pytest.param(move, "fix-1", id="moved"),
    ],
)
def test_steps_reach_every_node_that_a_job_has_left(cluster: ElasticCluster, loss: Loss, lost: str) -> None:
    """And those of a later job reach the node that went as well."""
    job = allocate(cluster, "--nodelist=fix-[0-2]")
    loss(cluster, job, lost)
    wait_for("the loss", lambda: cluster.job(job, "NumNodes") == "2", deadline_s=60)
    reaches(cluster, job, *(node for node in FIXED if node != lost))
    settle(cluster)
    assert step(cluster, allocate(cluster, "--nodelist=fix-[0-2]"), "--nodes=3") == [*FIXED]


def test_nodes_returned_before_and_after_a_restart_of_slurmctld(cluster: ElasticCluster) -> None:
    job = allocate(cluster, "--nodelist=fix-[0-2]")
    keep(cluster, job, "fix-1,fix-2")
    cluster.containers["t-slurmctld-0/slurmctld"].stop()
    cluster.slurmctld()
    wait_for("slurmctld", lambda: "is UP" in cluster.slurm("scontrol", "ping"))
    reaches(cluster, job, "fix-1", "fix-2")
    keep(cluster, job, "fix-2")
    reaches(cluster, job, "fix-2")


def test_program_that_srun_sends_reaches_every_node_that_is_left(cluster: ElasticCluster) -> None:
    job = allocate(cluster, "--nodelist=fix-[0-2]")
    give_back(cluster, job, "fix-0")
    sent = ("--bcast=/tmp/sent", "--nodes=2", "/bin/hostname")
    assert sorted(cluster.slurm("srun", f"--jobid={job}", "--chdir=/tmp", "--quiet", *sent, user=ALICE).split()) == ["fix-1", "fix-2"]


def test_part_of_a_heterogeneous_job_that_loses_a_node_goes_on(cluster: ElasticCluster) -> None:
    job = allocate(cluster, "--nodelist=fix-[0-1]", ":", "--no-kill", "--nodelist=fix-2")
    assert step(cluster, job, "--het-group=0,1", "--nodes=1") == ["fix-0", "fix-2"]
    lose(cluster, job, "fix-0")
    wait_for("the loss", lambda: cluster.job(job, "NumNodes") == "1")
    assert step(cluster, job, "--het-group=0,1") == ["fix-1", "fix-2"]


def test_job_on_woken_nodes_goes_on_without_one_of_them(cluster: ElasticCluster) -> None:
    """A job that waits for its nodes has no list of addresses at its start."""
    for node in ELASTIC:
        assert cluster.state(node) == "IDLE+CLOUD+POWERED_DOWN"
    job = cluster.submit("--partition=mix", "--no-kill", "--nodelist=el-[0-1],fix-0")
    wait_for("the request", lambda: all("POWERING_UP" in cluster.state(node) for node in ELASTIC))
    for node in ELASTIC:
        cluster.worker(node)
    wait_for("the job", lambda: cluster.job(job) == "RUNNING", deadline_s=60)
    reaches(cluster, job, "el-0", "el-1", "fix-0")
    lose(cluster, job, "el-1")
    wait_for("the loss", lambda: cluster.job(job, "NumNodes") == "2")
    reaches(cluster, job, "el-0", "fix-0")


def test_srun_without_our_cli_filter_fails_behind_the_missing_node(cluster: ElasticCluster) -> None:
    """Once it does not, Slurm has mended its list, and our part can go."""
    job = allocate(cluster, "--nodelist=fix-[0-2]")
    give_back(cluster, job, "fix-1")
    stock = 'cp -rL "$(dirname "$SLURM_CONF")" /tmp/stock && chmod -R u+w /tmp/stock && sed -i /^CliFilterPlugins/d /tmp/stock/slurm.conf'
    srun = f"SLURM_CONF=/tmp/stock/slurm.conf srun --jobid={job} --chdir=/tmp --nodes=1 --ntasks=1 --nodelist=fix-2 hostname"
    said = cluster.slurm("bash", "-c", f"rm -rf /tmp/stock; {stock} && {srun}", user=ALICE, check=False)
    assert "Invalid node name specified" in said


def test_slurm_adds_no_node_to_a_running_job(cluster: ElasticCluster) -> None:
    job = allocate(cluster, "--nodelist=fix-0")
    with pytest.raises(PodError, match="Requested operation not supported"):
        cluster.slurm("salloc", "--no-shell", f"--dependency=expand:{job}", "--nodelist=fix-1", user=ALICE)
