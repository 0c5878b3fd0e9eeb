"""Two users on one node: what one can try against the other's processes, files and jobs. Both have a job there, and a login session."""

import time
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import pytest

from components.pods import TERMINATION_LOG
from tests.support.patience import patience
from tests.support.slurm.image_pods import wait_for
from tests.support.slurm.image_stack import ALICE, BOB
from tests.support.slurm.root_cluster import CONF, OUTWARD, RootCluster, running

VICTIM = """#!/bin/bash
# secret of the script
echo secret > /tmp/mine; echo secret > /dev/shm/mine; chmod 644 /tmp/mine /dev/shm/mine
sleep 6000
"""


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[RootCluster]:
    """Alice's job runs on gpu-0, with a secret in its environment, its script, its /tmp and its /dev/shm."""
    with running(Path("/var/tmp/slipway-isolation-pods"), "swis-", image_root, ssh_to_nodes=True) as cluster:
        cluster.ssh("chmod 700 .; echo secret > private")
        job = cluster.ssh(f"sbatch --parsable --nodelist=gpu-0 --export=ALL,TOKEN=secret <<'END'\n{VICTIM}END")
        wait_for("Alice's job", lambda: cluster.state(job) == "RUNNING")
        wait_for("its sleep", lambda: "sleep 600" in cluster.inside("gpu-0", "ps -eo args"))
        cluster.ssh("sleep 6000 >/dev/null 2>&1 &")
        yield cluster


@pytest.mark.parametrize("place", ["login", "job"])
@pytest.mark.parametrize(
    ("attempt", "refused"),
    [
        pytest.param("kill -9 $(pgrep -u alice -f 'sleep 600')", "Operation not permitted", id="kill"),
        pytest.param("cat /proc/$(pgrep -u alice -f 'sleep 600' | head -1)/environ", "Permission denied", id="environment"),
        pytest.param("ls /proc/$(pgrep -u alice -f 'sleep 600' | head -1)/root/tmp", "Permission denied", id="root of its process"),
        pytest.param("cat /proc/$(pgrep -u alice -f 'sleep 600' | head -1)/mem", "Permission denied", id="memory"),
        pytest.param("nsenter -t $(pgrep -u alice -f 'sleep 600' | head -1) -m cat /tmp/mine", "not permitted|denied", id="its namespace"),
        pytest.param("cat /home/alice/private", "Permission denied", id="home"),
        pytest.param("ls /var/spool/slurmd/job*", "No such file|Permission denied", id="spool with the script"),
        pytest.param("cat /run/slipway/ssh/ssh_host_ed25519_key", "No such file|Permission denied", id="host key"),
        pytest.param("kill -9 1; kill -9 $(pgrep -o sshd slurmd)", "Operation not permitted", id="kill a daemon"),
        pytest.param("kill -9 -1; sleep 0.5", "", id="kill all"),
    ],
)  # fmt: skip
def test_another_user_is_refused(cluster: RootCluster, attempt: str, refused: str, place: str) -> None:
    said = in_place(cluster, place, f"exec 2>&1; {attempt}")
    assert any(word in said for word in refused.split("|")), said
    assert "secret" not in said
    assert "PRIVATE KEY" not in said
    assert "sleep 600" in cluster.inside("gpu-0", "ps -u alice -o args")
    assert "sleep 600" in cluster.containers["t-login/login"].run("ps", "-u", "alice", "-o", "args")


def in_place(cluster: RootCluster, place: str, script: str) -> str:
    """What a script of bob says in a session, or in a job on the node of alice's."""
    return cluster.ssh(script if place == "login" else f"srun --nodelist=gpu-0 bash -c {quote(script)}", user="bob", check=False)


@pytest.mark.parametrize("place", ["login", "job"])
@pytest.mark.parametrize("attempt", OUTWARD)
def test_no_way_leads_out_of_the_version(cluster: RootCluster, attempt: str, place: str) -> None:
    assert "out" not in in_place(cluster, place, f"{attempt}; true").split()


def test_what_the_attempts_are_for_is_there_where_nothing_is_in_the_way(cluster: RootCluster) -> None:
    """In the pods themselves, and in sessions and jobs outside a version: so the refusals above are refusals."""
    for container in (cluster.containers["t-login/login"], cluster.worker("gpu-0")):
        assert "PRIVATE KEY" in container.run("cat", "/run/slipway/ssh/ssh_host_ed25519_key")
        assert container.run("ls", "/shared/versions").split() == ["v1", "v2"]
    cluster.settings(None)
    try:
        for place in ("login", "job"):
            assert "out" in in_place(cluster, place, "ls /opt/slipway/slurm && echo out").split()
    finally:
        cluster.settings(CONF)


def test_last_words_of_a_pod_are_no_users_to_write(cluster: RootCluster) -> None:
    """By slurmstepd, which opens a job's files in the pod, and by a job that sees the pod itself."""
    cluster.settings(None)
    try:
        said = in_place(cluster, "job", f"exec 2>&1; cat {TERMINATION_LOG}; echo said > {TERMINATION_LOG}")
        job = cluster.ssh(f"sbatch --parsable --nodelist=gpu-0 --output={TERMINATION_LOG} --wrap='echo said'", user="bob")
        cluster.end(job)
    finally:
        cluster.settings(CONF)
    assert said.count("Permission denied") == 2, said
    assert cluster.state(job) == "FAILED"
    assert cluster.termination_log("gpu-0").read_text() == ""


def test_tmp_of_another_job_on_the_node_is_not_there(cluster: RootCluster) -> None:
    said = cluster.ssh(
        "srun --nodelist=gpu-0 bash -c 'ls -A /tmp /var/tmp /dev/shm; cat /tmp/mine /dev/shm/mine 2>&1'", user="bob", check=False
    )
    assert "secret" not in said
    assert said.count("No such file") == 2


def test_sessions_of_a_login_node_share_its_tmp_as_the_guide_says(cluster: RootCluster) -> None:
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):
        cluster.ssh(f"echo readable > {folder}/left")
        said = cluster.ssh(
            f"cat {folder}/left; rm -f {folder}/left; mv {folder}/left {folder}/mine; echo more >> {folder}/left", user="bob", check=False
        )
        assert "readable" in said
        assert said.count("not permitted") == 2
        assert cluster.ssh(f"cat {folder}/left; rm {folder}/left") == "readable"


CONTAINERS = f"/var/spool/slipway/containers/{BOB}"
MAKER = f"""
import os
top, number = "{CONTAINERS}/jobs/4000000000", 0
os.makedirs(top, exist_ok=True)
os.chdir(top)
print("begun", flush=True)
while True:
    number += 1
    try:
        os.makedirs(f"{{number % 1000}}/d", exist_ok=True)
    except OSError:  # its own folder was removed
        os.makedirs(top, exist_ok=True)
        os.chdir(top)
"""
"""Goes on making folders in what looks like those of a job that is gone, by a folder that it has open."""


def test_user_who_goes_on_making_folders_holds_up_no_job(cluster: RootCluster) -> None:
    options = "--nodelist=gpu-1 --ntasks=1 --mem=64"
    usual_s = time_of_job(cluster, options)
    cluster.ssh(f"cat > maker.py <<'END'\n{MAKER}END", user="bob")
    maker = cluster.ssh(f"sbatch --parsable --output=maker.out {options} --wrap='python3 maker.py'", user="bob")
    try:
        wait_for("its folders", lambda: cluster.ssh("cat maker.out", user="bob", check=False) == "begun")
        for _ in range(3):
            assert time_of_job(cluster, options) < 15 * patience() + 4 * usual_s
        assert "DRAIN" not in cluster.slurm("scontrol", "show", "node", "gpu-1")
        cluster.inside("gpu-1", "kill -KILL $(pgrep -x remover)")  # it goes on later
        cluster.ssh(f"srun {options} sh -c 'mkdir -p /tmp/a/b/c; mkfifo /tmp/a/fifo'")
        wait_for("the removal of the other job's files", lambda: trees_left(cluster, ALICE) == "", deadline_s=60)
    finally:
        cluster.slurm("scancel", maker)
    wait_for("the removal of all", lambda: trees_left(cluster, BOB) == "", deadline_s=120)
    assert cluster.inside("gpu-1", f"ls {CONTAINERS}/jobs") == ""


def time_of_job(cluster: RootCluster, options: str) -> float:
    """Seconds that a job of alice's takes that does nothing, from its submission to the end of its epilog."""
    began = time.monotonic()
    assert cluster.ssh(f"srun {options} echo ran") == "ran"
    wait_for("its epilog", lambda: cluster.slurm("squeue", "--noheader", "--states=completing") == "")
    return time.monotonic() - began


def trees_left(cluster: RootCluster, user: int) -> str:
    """What the remover has before it of a user's."""
    return cluster.inside("gpu-1", f"ls -d /var/spool/slipway/*/.gone/{user} /var/spool/slipway/*/.gone/{user}.* 2>/dev/null || true")


def test_job_that_eats_memory_ends_alone(cluster: RootCluster) -> None:
    """A job is held by its cgroup; the node and the other's job live on."""
    eater = "python3 -c 'x = bytearray(6 << 30); print(len(x))'"
    said = cluster.ssh(f"srun --nodelist=gpu-0 --mem=100 {eater}", user="bob", check=False)
    assert str(6 << 30) not in said
    assert "sleep 600" in cluster.inside("gpu-0", "ps -u alice -o args")
