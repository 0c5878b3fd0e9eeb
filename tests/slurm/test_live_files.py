"""How far changed files are: until each real slurmd has them. The sidecar says so over HTTP."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.patience import seconds
from tests.support.slurm.elastic_cluster import FIXED, NAMES, ElasticCluster, elastic_stack
from tests.support.slurm.image_pods import Machine, wait_for

FOLDER = Path("/var/tmp/slipway-live-files")
PREFIX = "swlf-"


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[ElasticCluster]:
    """Two workers that are up; the elastic nodes are asleep."""
    machine = Machine(FOLDER, image_root, PREFIX)
    machine.close()  # what a killed run left
    FOLDER.mkdir(mode=0o755)
    made = ElasticCluster(machine, stack=elastic_stack(), names={pod: NAMES[pod] for pod in ("t-slurmctld-0", *FIXED)})
    try:
        made.prepare()
        for pod in made.names:
            made.munged(pod)
        made.slurmctld()
        made.reconfigure()
        made.taken()
        made.up(*FIXED)
        yield made
    finally:
        machine.keep_logs()
        machine.close()


def report(cluster: ElasticCluster) -> tuple[str, str]:
    """State and words for the files that were offered last."""
    said = cluster.report()
    return said["state"], said["message"]


def write(cluster: ElasticCluster, line: str) -> None:
    cluster.configure(cluster.stack, f"{line}\n")
    cluster.taken()


def files_of(cluster: ElasticCluster, node: str) -> str:
    """The slurm.conf that a slurmd has fetched."""
    return cluster.containers[f"{node}/slurmd"].run("cat", "/run/slurm/conf/slurm.conf")


def link(cluster: ElasticCluster, node: str, state: str) -> None:
    """Takes the pod's cable out, or puts it in again."""
    number = 10 + list(cluster.names).index(node)
    subprocess.run(["ip", "-n", f"{PREFIX}hub", "link", "set", f"v{number}", state], check=True)


def test_files_are_live_when_every_slurmd_that_is_up_has_them(cluster: ElasticCluster) -> None:
    job = cluster.running("--partition=main", "--nodelist=fix-0")
    write(cluster, "KillWait=61")
    wait_for("live files", lambda: report(cluster) == ("live", "slurmctld runs with these files; all 2 slurmds that answer have them"))
    assert all("KillWait=61" in files_of(cluster, node) for node in FIXED)
    assert cluster.job(job) == "RUNNING"
    cluster.slurm("scancel", job)


def test_slurmd_that_missed_the_files_is_told_again(cluster: ElasticCluster) -> None:
    """Slurm itself leaves it as it is when it answers again: in service, with the old files."""
    sidecar = cluster.containers["t-slurmctld-0/reconfigure"]
    link(cluster, "fix-1", "down")
    try:
        write(cluster, f"KillWait=62\nSlurmdTimeout={12 + seconds(3)}")
        words = "all 1 slurmds that answer have them; of silent slurmds nothing is known: fix-1"
        wait_for("a slurmd that is silent", lambda: report(cluster) == ("live", f"slurmctld runs with these files; {words}"))
    finally:
        link(cluster, "fix-1", "up")
    wait_for("another word", lambda: "slurmctld tells all slurmds again; 1 of 2 slurmds do not have them yet: fix-1" in sidecar.log, 90)
    wait_for("live files", lambda: report(cluster)[1].endswith("all 2 slurmds that answer have them"))
    assert "KillWait=62" in files_of(cluster, "fix-1")


def test_files_that_slurmctld_refuses_are_told_in_its_words(cluster: ElasticCluster) -> None:
    cluster.configure(cluster.stack, "MinJobAge=soon\n")
    wait_for("a refusal", lambda: report(cluster)[0] == "refused")
    assert "slurmctld refused Slurm's changed files and runs with the old ones" in report(cluster)[1]
    write(cluster, "MinJobAge=301")
    wait_for("live files", lambda: report(cluster)[0] == "live")
