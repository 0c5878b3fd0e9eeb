"""What slurmctld loses. It starts with an empty disk while jobs run: it knows none of them, and they run on to their end. Or it starts a
job and takes over files before it has told the job's node: nobody would run that job, ever.
"""

import contextlib
import shutil
import subprocess
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from programs.config_sync.untold import AGAIN, ENDED
from slurm.job_marks import read_marks
from tests.support.patience import seconds
from tests.support.slurm.elastic_cluster import NAMES, ElasticCluster, elastic_stack
from tests.support.slurm.image_pods import Machine, wait_for
from tests.support.slurm.image_stack import ALICE, SLURM

FOLDER = Path("/var/tmp/slipway-lost-state-pods")
PREFIX = "swls-"


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[ElasticCluster]:
    """slurmctld and a fixed worker for several jobs at once."""
    machine = Machine(FOLDER, image_root, PREFIX)
    machine.close()
    FOLDER.mkdir(mode=0o755)
    stack = elastic_stack(fixed=1)
    stack["partitions"][0]["settings"] = {"OverSubscribe": "FORCE:2"}
    made = ElasticCluster(
        machine, prolog_slack_s=5 + seconds(5), stack=stack, names={name: NAMES[name] for name in ("t-slurmctld-0", "fix-0")}
    )
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


@contextlib.contextmanager
def unplugged(node: str) -> Generator[None]:
    """A node that nobody reaches, as slurmctld has not yet found out."""
    link = ("ip", "-n", f"{PREFIX}{node}", "link", "set", "eth0")
    subprocess.run([*link, "down"], check=True)
    try:
        yield
    finally:
        subprocess.run([*link, "up"], check=True)


def processes(cluster: ElasticCluster) -> str:
    return cluster.containers["fix-0/slurmd"].run("ps", "-e", "-o", "args")


def test_jobs_no_node_was_told_about_start_again_and_srun_ends_with_words(cluster: ElasticCluster) -> None:
    """They start in the moment in which slurmctld takes over files. A node that is cut off makes that moment long enough to meet."""

    def record(job: str, field: str) -> str:
        return cluster.slurm("squeue", "--noheader", f"--jobs={job}", f"--Format={field}:0").strip()

    def submit(*options: str) -> str:
        given = ("--parsable", "--partition=main", "--mem=10", "--output=/dev/null", "--chdir=/tmp", *options)
        return cluster.slurm("sbatch", *given, user=ALICE).strip()

    def states() -> list[str]:
        return sorted(cluster.slurm("squeue", "--noheader", "--format=%T %r").splitlines())

    array = submit("--array=1-2", "--hold", "--wrap=sleep 600")
    cluster.slurm("scontrol", "release", f"{array}_1")
    wait_for("a task that runs", lambda: "RUNNING None" in states())
    cluster.slurm("scontrol", "update", f"JobId={array}_2", "AdminComment=said before")
    with ThreadPoolExecutor() as beside:
        with unplugged("fix-0"):
            cluster.slurm("scontrol", "release", f"{array}_2")
            other = submit("--no-requeue", "--wrap=true")
            srun = beside.submit(cluster.slurm, "srun", "--partition=main", "--mem=10", "--chdir=/tmp", "true", user=ALICE, check=False)
            wait_for("jobs that wait", lambda: states() == ["RUNNING None", *["RUNNING Prolog"] * 3])
            cluster.slurm("scontrol", "reconfigure")
        assert ENDED in srun.result(timeout=seconds(120))
    for job, may_requeue, text in ((f"{array}_2", "1", f"said before; {AGAIN}"), (other, "0", AGAIN)):
        wait_for("its wait", lambda job=job: record(job, "State") == "PENDING", deadline_s=60)
        wait_for("words", lambda job=job, text=text: read_marks(record(job, "admin_comment")).text == text)
        assert not read_marks(record(job, "admin_comment")).lent_requeue
        assert record(job, "Requeue") == may_requeue
    assert record(f"{array}_1", "State") == "RUNNING"
    assert record(f"{array}_1", "RestartCnt") == "0"
    cluster.slurm("scontrol", "update", f"JobId={other}", "StartTime=now")  # Slurm lets a requeued job wait for two minutes
    wait_for("its end", lambda: "JobState=COMPLETED" in cluster.slurm("scontrol", "show", "job", other), deadline_s=60)
    cluster.slurm("scancel", array)
    wait_for("no job", lambda: not states(), deadline_s=60)


def test_forgotten_job_runs_to_its_end_and_its_node_comes_back(cluster: ElasticCluster) -> None:
    """A registration would end it; the job's extern step, which nobody ends any more, keeps the node out of service no longer."""
    job_s = 37 + seconds(8)  # longer than a worker waits before it would register again, also where slurmctld comes back slowly
    command = f"sleep {job_s}.0"
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
    assert time.monotonic() - began > job_s - 5
    wait_for("what it does last", lambda: (FOLDER / "volume-home/alice/ended").exists())
    wait_for("the node in service", lambda: cluster.state("fix-0") == "IDLE+CLOUD", deadline_s=90)
