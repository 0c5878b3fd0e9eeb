"""A slurmctld that is killed while it reads files that it refuses comes back, with the files before."""

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.slurm.image_cluster import ImageCluster
from tests.support.slurm.image_pods import Machine, wait_for
from tests.support.slurm.image_stack import NAMES, SLURM, STACK

FOLDER = Path("/var/tmp/slipway-refused-files")
POD = "t-slurmctld-0"
KILLED = """
import os
from pathlib import Path
from programs.config_sync import copies, slurm
os.environ["SLURM_CONF"] = str(copies.ACCEPTED / "slurm.conf")
asked = slurm.reconfigure
def killed():
    try:
        asked()
    except slurm.Refused as refusal:
        print(refusal, flush=True)
    os._exit(137)
slurm.reconfigure = killed
copies.take_over(Path("/etc/slurm"))
"""
"""The sidecar's own take-over, killed between slurmctld's answer and what the sidecar does with it."""
CONF = {"SLURM_CONF": "/var/spool/slurmctld/conf/slurm.conf"}


@pytest.fixture
def cluster(image_root: Path) -> Iterator[ImageCluster]:
    """slurmctld and its sidecar, without accounting."""
    machine = Machine(FOLDER, image_root, "swrf-")
    machine.close()  # what a killed run left
    FOLDER.mkdir(mode=0o755)
    stack = copy.deepcopy({**STACK, "accounting": {"enabled": False}})
    cluster = ImageCluster(machine, names={POD: NAMES[POD]}, stack=stack)
    try:
        cluster.prepare()
        cluster.munged(POD)
        cluster.slurmctld()
        cluster.reconfigure()
        wait_for("the files", lambda: "slurmctld runs with" in cluster.containers[f"{POD}/reconfigure"].log, deadline_s=60)
        yield cluster
    finally:
        machine.keep_logs()
        machine.close()


def test_slurmctld_killed_over_files_it_refuses_starts_again(cluster: ImageCluster) -> None:
    sidecar, controller = cluster.containers[f"{POD}/reconfigure"], cluster.containers[f"{POD}/slurmctld"]
    sidecar.signal("STOP")  # so that it does not meddle; it is killed with the pod
    cluster.configure(cluster.stack, "MinJobAge=soon\n")
    said = sidecar.run("python3", "-c", KILLED, user=SLURM, check=False)
    assert "Unable to process configuration file" in said
    folder = FOLDER / "volume-state/slurmctld"
    assert "MinJobAge=soon" in (folder / "conf/slurm.conf").read_text()
    controller.stop("KILL")
    sidecar.stop("KILL")

    controller = cluster.slurmctld()
    wait_for("slurmctld", lambda: "is UP" in controller.run("scontrol", "ping", user=SLURM, check=False, env=CONF))
    sidecar = cluster.reconfigure()
    wait_for("a refusal", lambda: "REFUSED" in sidecar.log)
    assert "MinJobAge=soon" not in (folder / "conf/slurm.conf").read_text()
    assert "Unable to process configuration file" in sidecar.run("cat", "/tmp/refused")
    cluster.configure(cluster.stack, "MinJobAge=301\n")
    wait_for("the mended files", lambda: "slurmctld runs with" in sidecar.log)
    assert sidecar.run("ls", "/tmp").strip() == ""
    assert "301 sec" in controller.run("scontrol", "show", "config", user=SLURM, env=CONF)
