"""Nodes on which every launch fails: what Slurm makes of it, what the check `launch` finds, and what becomes of the jobs. The tests are the
NodeSet controller: they lift a drain once nothing that is noted holds the node.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm.check_results import LAUNCH, Failure
from tests.support.slurm.checks_cluster import ChecksCluster, running
from tests.support.slurm.image_pods import wait_for

FOLDER = Path("/var/tmp/slipway-launches")
NODE, SOUND = "gpu-1", "gpu-0"
"""The node that tests break, and the one of tests that are to find nothing: a node may tell of its last failure when its test is over."""
SPOOL, GROUPS = "/var/spool/slurmd", "/sys/fs/cgroup/memory"
SLURMD = "'^slurmd(-wlm)?$'"
"""Its name for pgrep: it is slurmd-wlm once it has read changed files."""
READ_ONLY = 'mount --bind "{0}" "{0}" && mount -o remount,bind,ro "{0}"'
STEPD = 'mv "$(readlink -f /usr/sbin/slurmstepd)" /root/slurmstepd'
STEPD_BACK = 'mv /root/slurmstepd "$(readlink -m /usr/sbin/slurmstepd)"'
FULL = 'mount -t tmpfs -o size=64k none "{0}" && ! head -c 100k /dev/zero 2>/dev/null >"{0}/fill"'


@pytest.fixture(scope="module")
def started(image_root: Path) -> Iterator[ChecksCluster]:
    with running(FOLDER, "swlch-", image_root) as cluster:
        yield cluster


@pytest.fixture
def cluster(started: ChecksCluster) -> ChecksCluster:
    """As each test starts: nothing noted, no drain, and no test job that has passed a moment ago."""
    started.cancel_all()
    started.containers["t-slurmctld-0/checks"].stop("KILL")
    for held in re.findall(r"ReservationName=(\S+)", started.slurm("scontrol", "show", "reservation")):
        wait_for("no reservation", lambda: started.slurm("scontrol", "delete", f"ReservationName={held}") == "")  # noqa: B023 - called at once
    started.slurm("scontrol", "update", f"NodeName={NODE}", "Extra={}")
    started.slurm("scontrol", "update", f"NodeName={NODE}", "State=RESUME", check=False)
    started.collect()
    started.idle()
    return started


def shell(cluster: ChecksCluster, script: str, node: str = NODE) -> str:
    return cluster.containers[f"{node}/slurmd"].run("bash", "-c", script)


def failure(cluster: ChecksCluster, node: str = NODE) -> Failure | None:
    noted = cluster.noted(node, LAUNCH)
    return noted.failure if noted else None


def is_drained(cluster: ChecksCluster, node: str = NODE) -> bool:
    return "DRAIN" in cluster.node(node)["state"]


def is_sound(cluster: ChecksCluster) -> bool:
    """True where nothing was found on the node that no test breaks."""
    return failure(cluster, SOUND) is None and not is_drained(cluster, SOUND)


def is_back(cluster: ChecksCluster, job: str) -> bool:
    """True for a job that waits for nothing but a node."""
    record = cluster.job(job)
    return record["job_state"] == ["PENDING"] and not record["hold"] and record["state_reason"] not in ("BeginTime", "JobHeldUser")


def starts(cluster: ChecksCluster) -> int:
    """How often slurmctld has given a job to the node."""
    return cluster.containers["t-slurmctld-0/slurmctld"].log.count(f"NodeList={NODE}")


@pytest.mark.parametrize(
    ("breaks", "mends", "reasons"),
    [
        pytest.param(
            READ_ONLY.format(SPOOL), f"umount {SPOOL}", (f"slipway: check launch: {SPOOL} cannot be written to: ",), id="spool-read-only"
        ),
        pytest.param(FULL.format(SPOOL), f"umount {SPOOL}", (f"slipway: check launch: {SPOOL}", "SlurmdSpoolDir is full"), id="spool-full"),
        pytest.param(
            READ_ONLY.format(GROUPS),
            f"umount {GROUPS}",
            ("slipway: check launch: slurmd could not start a job", "batch job complete failure"),
            id="cgroups-read-only",
        ),
        pytest.param(STEPD, STEPD_BACK, ("Prolog error",), id="no-slurmstepd"),
    ],
)
def test_node_that_starts_no_job_is_drained_and_gives_its_jobs_back(
    cluster: ChecksCluster, breaks: str, mends: str, reasons: tuple[str, ...]
) -> None:
    shell(cluster, breaks)
    try:
        before = starts(cluster)
        job = cluster.batch(f"--nodelist={NODE}")
        wait_for("the drain", lambda: is_drained(cluster), 60)
        assert cluster.node(NODE)["reason"].startswith(reasons)
        if reasons != ("Prolog error",):  # slurmd has not tried to launch it, and Slurm itself has it wait
            wait_for("the job's place", lambda: is_back(cluster, job), 60)
            assert f"did not start on {NODE}" in cluster.comment(job)
        later = cluster.batch("--exclusive", "--nodelist=gpu-[0-1]", "--nodes=1")
        assert starts(cluster) - before <= 2  # with a test job
        cluster.slurm("scancel", later)
        cluster.slurm("scontrol", "update", f"JobId={job}", "ReqNodeList=gpu-0")
        if reasons != ("Prolog error",):
            wait_for("the job elsewhere", lambda: cluster.job(job)["job_state"] == ["COMPLETED"], 60)
    finally:
        shell(cluster, mends)


def test_node_that_starts_jobs_again_returns_to_service(cluster: ChecksCluster) -> None:
    shell(cluster, READ_ONLY.format(SPOOL))
    try:
        cluster.batch(f"--nodelist={NODE}")
        wait_for("the failure", lambda: failure(cluster), 60)
    finally:
        shell(cluster, f"umount {SPOOL}")
    cluster.containers["t-slurmctld-0/checks"].stop("KILL")
    cluster.collect()  # which looks at its start, and each minute
    wait_for("no failure", lambda: failure(cluster) is None, 90)
    wait_for("no reservation", lambda: "No reservations" in cluster.slurm("scontrol", "show", "reservation"), 60)
    cluster.slurm("scontrol", "update", f"NodeName={NODE}", "State=RESUME")
    cluster.idle()
    said = cluster.alice("srun", "--chdir=/tmp", f"--nodelist={NODE}", "hostname")
    assert said.splitlines()[-1] == NODE  # a late report of the failure may have srun wait first, which it says


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--output=/nonexistent/x",), id="output"),
        pytest.param(("--chdir=/nonexistent",), id="folder"),
        pytest.param(("--mem=1",), id="memory"),
        pytest.param(("--export=NONE", "--wrap=/nonexistent"), id="program"),
    ],
)
def test_mistake_of_a_user_drains_nothing(cluster: ChecksCluster, options: tuple[str, ...]) -> None:
    jobs = [cluster.batch(f"--nodelist={SOUND}", *options) for _ in range(2)]
    ended = ("COMPLETED", "FAILED", "OUT_OF_MEMORY", "CANCELLED")
    wait_for("their ends", lambda: all(cluster.job(job)["job_state"][0] in ended for job in jobs), 60)
    assert is_sound(cluster)


def test_line_in_slurmds_log_has_one_test_job_run_and_drains_nothing(cluster: ChecksCluster) -> None:
    """slurmd's log quotes what users write, so any line may be a user's."""
    worker = cluster.containers[f"{SOUND}/slurmd"]
    before, launched = worker.log.count("a job of Slurm is tried"), worker.log.count("Launching batch JobId=")
    shell(cluster, f"echo 'error: slurmstepd return code -1: Unspecified error' >/proc/$(pgrep -o {SLURMD})/fd/2", SOUND)
    wait_for("the report", lambda: worker.log.count("a job of Slurm is tried") > before, 30)
    wait_for("the test job", lambda: worker.log.count("Launching batch JobId=") > launched, 30)
    wait_for("its end", lambda: "No reservations" in cluster.slurm("scontrol", "show", "reservation"), 60)
    assert is_sound(cluster)


def test_check_whose_job_cannot_be_started_is_no_skip(cluster: ChecksCluster) -> None:
    shell(cluster, READ_ONLY.format(GROUPS))
    try:
        check = cluster.check_as_job("site", "true")
        assert check.ended() == 0
        assert '"skipped"' not in check.lines[-1]
        wait_for("the drain", lambda: is_drained(cluster), 60)
    finally:
        shell(cluster, f"umount {GROUPS}")


def test_no_job_takes_slurmds_port_while_slurmd_is_down(cluster: ChecksCluster) -> None:
    thief = (
        "import socket, time\n"
        "while True:\n"
        "    try:\n"
        "        taken = socket.socket(socket.AF_INET6)\n"
        "        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        "        taken.bind(('::', 6818))\n"
        "        taken.listen()\n"
        "        print('taken', flush=True)\n"
        "        time.sleep(600)\n"
        "    except OSError:\n"
        "        taken.close()\n"
        "        time.sleep(0.01)\n"
    )
    job = cluster.batch(f"--nodelist={SOUND}", script=f"python3 -c {shlex.quote(thief)}")
    wait_for("the thief", lambda: shell(cluster, "pgrep -c -u alice python3 || true", SOUND).strip() == "1", 60)
    before = cluster.containers[f"{SOUND}/slurmd"].log.count("slurmd started on")
    shell(cluster, f"pkill -KILL {SLURMD}", SOUND)
    wait_for("slurmd", lambda: cluster.containers[f"{SOUND}/slurmd"].log.count("slurmd started on") > before, 60)
    assert shell(cluster, f"cat /tmp/{job}.out", SOUND) == ""


def test_batch_job_is_not_lost_while_munge_is_away(cluster: ChecksCluster) -> None:
    """slurmd ends with munged: what it cannot verify it refuses, and Slurm takes that for the failure of the job."""
    shell(cluster, "mv /usr/sbin/munged /root && pkill -KILL -x munged")
    try:
        wait_for("slurmd's end", lambda: shell(cluster, f"pgrep -c {SLURMD} || true").strip() == "0")
        job = cluster.batch(f"--nodelist={NODE}")
        wait_for("Slurm to take it back", lambda: cluster.job(job)["restart_cnt"] == 1, 120)
    finally:
        shell(cluster, "mv /root/munged /usr/sbin")
    wait_for("slurmd", lambda: shell(cluster, f"pgrep -c {SLURMD} || true").strip() == "1")
    assert "PENDING" in cluster.job(job)["job_state"]
