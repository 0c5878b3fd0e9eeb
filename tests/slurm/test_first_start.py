"""A new cluster with accounts, QOS and enforcement from the first: slurmctld's first start fails, and it comes up all the same."""

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.slurm.image_cluster import ImageCluster
from tests.support.slurm.image_pods import Container, Machine, wait_for
from tests.support.slurm.image_stack import NAMES, SLURM, STACK

FOLDER = Path("/var/tmp/slipway-first-start")
PODS = {pod: NAMES[pod] for pod in ("t-mariadb-0", "t-slurmdbd-0", "t-slurmctld-0")}
CONF = {"SLURM_CONF": "/var/spool/slurmctld/conf/slurm.conf"}


@pytest.fixture
def cluster(image_root: Path) -> Iterator[ImageCluster]:
    """The accounting side of a cluster that has no state yet; a partition has a QOS that is not in slurmdbd."""
    machine = Machine(FOLDER, image_root, "swfs-")
    machine.close()  # what a killed run left
    FOLDER.mkdir(mode=0o755)
    stack = copy.deepcopy(STACK)
    accounts = [{"name": "ml", "users": ["alice"]}]
    stack["accounting"] = {"enforce": ["associations", "limits", "qos", "safe"], "accounts": accounts, "qos": [{"name": "small"}]}
    stack["partitions"].append({"name": "more", "nodeSets": ["gpu"], "qos": "small", "allowAccounts": ["ml"]})
    cluster = ImageCluster(machine, names=PODS, stack=stack)
    try:
        cluster.prepare()
        for pod in ("t-slurmdbd-0", "t-slurmctld-0"):
            cluster.munged(pod)
        cluster.mariadb()
        daemon = cluster.slurmdbd()
        wait_for("slurmdbd", lambda: "slurmdbd version" in daemon.log, deadline_s=60)
        yield cluster
    finally:
        machine.close()


def slurm(controller: Container, *command: str) -> str:
    return controller.run(*command, user=SLURM, check=False, env=CONF)


def is_up(controller: Container) -> bool:
    return controller.process.poll() is None and "is UP" in slurm(controller, "scontrol", "ping")


def has_saved_job(state: Path) -> bool:
    """Whether slurmctld has written the one job; False for the moment in which it replaces the file."""
    try:
        return b"wrap" in (state / "job_state").read_bytes()  # the job's name
    except FileNotFoundError:
        return False


def test_slurmctld_starts_once_its_qos_exists_and_after_an_early_kill(cluster: ImageCluster) -> None:
    controller = cluster.slurmctld()
    wait_for("its end", lambda: controller.process.poll() is not None, deadline_s=60)
    assert "invalid qos (small)" in controller.log
    controller.stop()
    keeper = cluster.accounts()
    wait_for("the QOS", lambda: "add qos small" in keeper.log, deadline_s=30)
    controller = cluster.slurmctld()  # as Kubernetes starts it again
    wait_for("slurmctld", lambda: is_up(controller), deadline_s=60)
    wait_for("the accounts", lambda: "all accounts, users and QOS are as the config has them" in keeper.log, deadline_s=60)
    assert "small" in slurm(controller, "scontrol", "show", "partition", "more")
    job = slurm(controller, "sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", "--hold", "--wrap=true").strip()
    state = FOLDER / "volume-state/slurmctld/state"
    wait_for("the job on disk", lambda: has_saved_job(state))
    assert not (state / "assoc_usage").exists()
    kept = (state / "clustername").read_text()
    controller.stop("KILL")
    controller = cluster.slurmctld()
    wait_for("slurmctld", lambda: is_up(controller), deadline_s=60)
    assert slurm(controller, "squeue", "--noheader", "--format", "%i").strip() == job
    assert (state / "clustername").read_text() == kept
