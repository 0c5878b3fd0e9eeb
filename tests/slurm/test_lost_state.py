"""slurmctld starts with an empty disk while jobs run: it knows none of them, and they run on to their end."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.elastic_cluster import NAMES, ElasticCluster, elastic_stack
from tests.slurm.image_cluster import ALICE, SLURM
from tests.slurm.image_pods import Machine, wait_for

FOLDER = Path("/var/tmp/slipway-lost-state-pods")
PREFIX = "swls-"
JOB_S = 45
"""Longer than a worker waits before it would register again."""


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[ElasticCluster]:
    """slurmctld and a fixed worker."""
    machine = Machine(FOLDER, image_root, PREFIX)
    machine.close()
    FOLDER.mkdir(mode=0o755)
    made = ElasticCluster(machine, stack=elastic_stack(fixed=1), names={name: NAMES[name] for name in ("t-slurmctld-0", "fix-0")})
    try:
        made.prepare()
        for pod in ("t-slurmctld-0", "fix-0"):
            made.munged(pod)
        made.slurmctld()
        made.reconfigure()
        made.taken()
        made.up("fix-0")
        home = FOLDER / "volume-home/alice"
        home.mkdir()
        shutil.chown(home, ALICE, ALICE)
        yield made
    finally:
        machine.keep_logs()
        machine.close()


def processes(cluster: ElasticCluster) -> str:
    return cluster.containers["fix-0/slurmd"].run("ps", "-e", "-o", "args")


def test_forgotten_job_runs_to_its_end_and_its_node_comes_back(cluster: ElasticCluster) -> None:
    """A registration would end it; the job's extern step, which nobody ends any more, keeps the node out of service no longer."""
    command = f"sleep {JOB_S}.0"
    script = ("--output=/dev/null", "--chdir=/tmp", f"--wrap={command} && touch /home/alice/ended")
    cluster.slurm("sbatch", "--partition=main", *script, user=ALICE)
    wait_for("the job's process", lambda: command in processes(cluster), deadline_s=60)
    began = time.monotonic()
    assert ".extern]" in processes(cluster)
    for name in ("slurmctld", "reconfigure"):
        cluster.containers.pop(f"t-slurmctld-0/{name}").stop("KILL")
    shutil.rmtree(FOLDER / "volume-state")
    cluster.empty("state", SLURM)
    cluster.slurmctld()
    cluster.reconfigure()
    wait_for("an empty slurmctld", lambda: cluster.state("fix-0") == "IDLE+CLOUD+POWERED_DOWN", deadline_s=60)
    assert not cluster.slurm("squeue", "--noheader")
    assert command in processes(cluster)
    wait_for("the end of the job", lambda: command not in processes(cluster), deadline_s=90)
    assert time.monotonic() - began > JOB_S - 5
    wait_for("what it does last", lambda: (FOLDER / "volume-home/alice/ended").exists())
    wait_for("the node in service", lambda: cluster.state("fix-0") == "IDLE+CLOUD", deadline_s=90)
