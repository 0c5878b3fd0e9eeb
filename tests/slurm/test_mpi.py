"""MPI programs that srun starts: over nodes and the parts of heterogeneous steps, through a firewall, and where the PMIx servers of a step
cannot start. Slurm, OpenMPI and the image are real.
"""

import re
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.patience import patience
from tests.support.slurm.image_pods import MPI_SUM, wait_for
from tests.support.slurm.image_stack import STACK
from tests.support.slurm.root_cluster import WORKERS, RootCluster, running

NODES = ("--nodes=2", "--ntasks-per-node=1")
PORTS = "61000-61200"
FIREWALL = f"""
table inet firewall {{
  chain input {{
    type filter hook input priority 0
    tcp dport {PORTS} accept
    tcp dport 32768-65535 tcp flags & (syn | ack) == syn drop
  }}
}}
"""
"""A login pod's, that lets in what srun listens on by slurm.conf, and none of the ports that the kernel chooses."""
MPIRUN = "start the program with mpirun in a batch job or salloc"
ASK = """srun bash -c 'echo "$SLURMD_NODENAME $OMPI_MCA_part"'"""
"""What a program that is not MPI sees of it."""

CLOSED = """
table inet closed {{
  chain input {{
    type filter hook input priority 0
    tcp dport {} {}
  }}
}}
"""
"""Of the pod in which srun runs: what becomes of packets for this port."""
HOLD = """#!/bin/sh
set -- $SLURM_SLIPWAY_MPI
echo $2 > port.made && mv port.made port
until [ -e pass ]; do sleep 0.1; done
"""
"""An srun prolog, after which the step is launched: tells where its hub will listen, and waits until it may go on."""


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[RootCluster]:
    stack = {**STACK, "slurm": {**STACK["slurm"], "settings": {"SrunPortRange": PORTS}}}
    with running(Path("/var/tmp/slipway-mpi-pods"), "swmp-", image_root, stack=stack) as cluster:
        (cluster.machine.folder / "volume-home/alice/mpi_sum.py").write_text(MPI_SUM.read_text())
        yield cluster


@pytest.fixture(autouse=True)
def idle(cluster: RootCluster) -> None:
    """Each test starts with idle workers."""
    wait_for("idle workers", cluster.ready, deadline_s=60)


@contextmanager
def without(cluster: RootCluster, program: str, *nodes: str) -> Generator[None]:
    """As where the image of these nodes lacks a helper of MPI."""
    for node in nodes:
        cluster.inside(node, f"mv /usr/lib/slipway/{program} /usr/lib/slipway/{program}.off")
    try:
        yield
    finally:
        for node in nodes:
            cluster.inside(node, f"mv /usr/lib/slipway/{program}.off /usr/lib/slipway/{program}")


@contextmanager
def without_libpmix(cluster: RootCluster) -> Generator[None]:
    """As in a root of one's own that has no OpenMPI."""
    [library] = cluster.shared.glob("versions/v1/usr/lib/*/libpmix.so.2")
    hidden = library.rename(library.with_suffix(".off"))
    try:
        yield
    finally:
        hidden.rename(library)


def took_s(said: str) -> int:
    """The seconds in the last line of a job that ends with `echo took $SECONDS`."""
    return int(said.split("took ")[-1])


@pytest.mark.parametrize("options", ["", "--mpi=pmix", "--mpi=pmi2"])
def test_openmpi_ranks_on_two_nodes_connect_under_srun_and_leave_nothing(cluster: RootCluster, options: str) -> None:
    job = cluster.batch(
        f"srun {options} python3 mpi_sum.py && echo passed; srun bash -c 'pgrep mpi-server; ls -A /tmp'", *NODES, deadline_s=120
    )
    said = cluster.out(job)
    assert sorted(re.findall(r"rank (\d) of 2 on (gpu-\d): sum 1", said)) == [("0", "gpu-0"), ("1", "gpu-1")]
    assert "passed" in said
    wait_for("the end of its servers", lambda: cluster.inside("gpu-0", "pgrep mpi-server || true") == "")


def test_mpirun_and_single_processes_are_as_without_srun(cluster: RootCluster) -> None:
    script = "srun --ntasks=1 --nodes=1 python3 mpi_sum.py; mpirun python3 mpi_sum.py"
    job = cluster.batch(script, *NODES, deadline_s=300)
    alone, crossing = re.findall(r"rank 0 of 1", cluster.out(job)), re.findall(r"rank \d of 2 on gpu-\d: sum 1", cluster.out(job))
    assert (len(alone), len(crossing)) == (1, 2)


def test_openmpi_without_a_server_fails_and_never_runs_as_singletons(cluster: RootCluster) -> None:
    with without(cluster, "mpi-server", *WORKERS):
        job = cluster.batch("srun python3 mpi_sum.py && echo passed", *NODES, deadline_s=180)
    said = cluster.out(job)
    assert MPIRUN in said
    assert "rank 0 of 1" not in said
    assert "passed" not in said


def test_step_in_a_root_without_libpmix_starts_at_once_and_says_why(cluster: RootCluster) -> None:
    with without_libpmix(cluster):
        job = cluster.batch(f"{ASK}; echo took $SECONDS", *NODES)
    said = cluster.out(job)
    for node in WORKERS:
        assert re.search(rf"^{node} srun has no PMIx server .*\({node}: .*libpmix\.so\.2: cannot open .*\) - {MPIRUN}", said, re.MULTILINE)
    assert took_s(said) < 10 * patience()


def test_node_that_cannot_start_its_server_lets_others_start_at_once(cluster: RootCluster) -> None:
    with without(cluster, "mpi-server", "gpu-1"):
        job = cluster.batch(f"{ASK}; srun python3 mpi_sum.py && echo passed; echo took $SECONDS", *NODES, deadline_s=120)
    said = cluster.out(job)
    assert f"gpu-0 srun has no PMIx server for this step (the PMIx server of gpu-1 ended) - {MPIRUN}" in said
    assert "gpu-1 srun has no PMIx server for this step (gpu-1: cannot start /usr/lib/slipway/mpi-server: No such file" in said
    assert re.search(r"^Component: srun has no PMIx server .*gpu-1", said, re.MULTILINE)
    assert "passed" not in said
    assert took_s(said) < 15 * patience()


@contextmanager
def firewall(cluster: RootCluster, rules: str, *pods: str) -> Generator[None]:
    """These rules in the networks of such pods; the first word after `table` is the family, the second the name."""
    table = rules.split()[1:3]
    inside = [["ip", "netns", "exec", f"{cluster.machine.prefix}{pod}", "nft"] for pod in pods]
    for nft in inside:
        subprocess.run([*nft, "-f", "-"], input=rules, text=True, check=True)
    try:
        yield
    finally:
        for nft in inside:
            subprocess.run([*nft, "delete", "table", *table], check=True)


@pytest.mark.parametrize(
    ("verdict", "why"),
    [
        pytest.param("reject with tcp reset", "Connection refused", id="nobody-listens"),
        pytest.param("drop", "Connection timed out", id="nothing-answers"),
    ],
)
def test_nodes_that_do_not_reach_srun_start_within_seconds_and_say_so(cluster: RootCluster, verdict: str, why: str) -> None:
    home = cluster.machine.folder / "volume-home/alice"
    for name in ("port", "pass"):
        (home / name).unlink(missing_ok=True)
    (home / "hold").write_text(HOLD)
    (home / "hold").chmod(0o755)
    job = cluster.begin(f"SLURM_PROLOG=$HOME/hold {ASK}; echo took $(($(date +%s) - $(stat -c %Y pass)))", *NODES)
    wait_for("srun", (home / "port").exists)
    with firewall(cluster, CLOSED.format((home / "port").read_text().strip(), verdict), "gpu-0"):  # srun runs there
        (home / "pass").touch()
        cluster.end(job)
    said = cluster.out(job)
    for node in WORKERS:
        reason = rf"{node} cannot connect to srun at port \d+ of .*: {why}"
        assert re.search(rf"^{node} srun has no PMIx server for this step \({reason}\) - {MPIRUN}", said, re.MULTILINE), said
    assert took_s(said) < 15 * patience()


@pytest.mark.parametrize(
    ("job", "step"),
    [
        pytest.param("-N2 --ntasks-per-node=2 --mem=400", "-N1 -n1 -w gpu-0 {} : -N1 -n1 -w gpu-1 {}", id="one-task-each"),
        pytest.param("-N2 --ntasks-per-node=2 --mem=400", "-N1 -n2 -w gpu-1 {} : -N1 -n1 -w gpu-0 {}", id="two-and-one"),
        pytest.param("-N1 -n1 -w gpu-0 --mem=400 : -N1 -n2 -w gpu-1 --mem=400", "--het-group=0,1 {}", id="heterogeneous-job"),
    ],
)
def test_parts_of_a_heterogeneous_step_are_one_mpi_program(cluster: RootCluster, job: str, step: str) -> None:
    cluster.ssh(f"cat > step <<'END'\nsrun {step.format(*['python3 mpi_sum.py'] * 2)} && echo passed\nEND")
    said = cluster.ssh(f"salloc --quiet {job} bash step", check=False)
    ranks = 2 if step.count("-n1") == 2 else 3
    total = sum(range(ranks))
    assert sorted(re.findall(rf"rank (\d) of {ranks} on gpu-\d: sum {total}", said)) == [str(rank) for rank in range(ranks)]
    assert "passed" in said


def test_openmpi_step_without_the_jobs_environment_finds_its_ranks(cluster: RootCluster) -> None:
    job = cluster.batch("srun --export=NONE /usr/bin/env HOME=$HOME /usr/bin/python3 mpi_sum.py", *NODES, deadline_s=120)
    assert sorted(re.findall(r"rank (\d) of 2 on gpu-\d: sum 1", cluster.out(job))) == ["0", "1"]


def test_firewall_before_srun_that_lets_its_port_range_pass_lets_mpi_pass(cluster: RootCluster) -> None:
    with firewall(cluster, FIREWALL, "t-login"):
        said = cluster.ssh(f"srun {' '.join(NODES)} --mem=400 bash -c 'echo $SLURM_SLIPWAY_MPI; python3 mpi_sum.py'")
    assert sorted(re.findall(r"rank (\d) of 2 on gpu-\d: sum 1", said)) == ["0", "1"]
    [port] = {int(port) for port in re.findall(r"^[0-9a-f]{32} (\d+) ", said, re.MULTILINE)}
    first, last = map(int, PORTS.split("-"))
    assert first <= port <= last


@pytest.mark.parametrize(
    ("end", "why"),
    [
        pytest.param("mpi.MPI_Abort(world, 7)", "slipway: rank 1 on gpu-1 called MPI_Abort with 7", id="abort"),
        pytest.param("import os; os._exit(3)", "gpu-1: task 1: Exited with exit code 3", id="exit"),
    ],
)
def test_rank_that_ends_early_ends_the_step(cluster: RootCluster, end: str, why: str) -> None:
    program = (cluster.machine.folder / "volume-home/alice/mpi_sum.py").read_text()
    script = program.replace("print(", f"if rank.value == 1: {end}\nmpi.MPI_Barrier(world)\nprint(", 1)
    (cluster.machine.folder / "volume-home/alice/mpi_end.py").write_text(script)
    job = cluster.batch("srun python3 mpi_end.py && echo passed; echo over", *NODES, deadline_s=120)
    said = cluster.out(job)
    assert why in said
    assert "passed" not in said
    assert "over" in said
