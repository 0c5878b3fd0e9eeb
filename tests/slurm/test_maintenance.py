"""Real jobs before a real reservation for maintenance: who hears of it, who is requeued, and what a kill at any write leaves behind."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm.job_marks import read_marks
from slurm.maintenance import Policy, write_policy
from tests.support.slurm.image_cluster import ImageCluster
from tests.support.slurm.image_pods import Machine, wait_for
from tests.support.slurm.image_stack import ALICE, NAMES, SLURM, STACK

FOLDER = Path("/var/tmp/slipway-maintenance")
NODES = ("gpu-0", "gpu-1")
NOT_YET = Policy(warn_before_s=1)
WARNS = Policy(warn_before_s=3600, requeue_before_s=60)
REQUEUES = Policy(warn_before_s=3600, requeue_before_s=3600)
HELD = ("ReqNodeNotAvail", "Reservation", "Resources")
"""Why Slurm does not start a job whose time limit would take it into the reservation."""
CHECKPOINTS = """#!/bin/bash
#SBATCH --requeue
#SBATCH --time=2:00:00
trap 'echo saved >> /home/alice/$SLURM_JOB_ID.checkpoint' URG
[[ ! -e /home/alice/$SLURM_JOB_ID.checkpoint ]] || echo "goes on, restart $SLURM_RESTART_COUNT" >> /home/alice/$SLURM_JOB_ID.goes-on
touch /home/alice/$SLURM_JOB_ID.ready
while :; do sleep 0.2; done
"""
KILLED = """
import os, signal, sys
from programs.maintenance import run, slurm
from slurm.maintenance import read_policy

def killed_after(write):
    def writes_and_dies(*args):
        write(*args)
        os.kill(os.getpid(), signal.SIGKILL)
    return writes_and_dies

setattr(slurm.Slurm, sys.argv[1], killed_after(getattr(slurm.Slurm, sys.argv[1])))
run.one_round(slurm.Slurm(), read_policy(sys.argv[2]), print)
"""
"""One round of the program, which is killed right after one of its writes."""


class MaintenanceCluster(ImageCluster):
    """The cluster, with the words that its tests use."""

    def alice(self, *command: str) -> str:
        return self.containers["gpu-0/slurmd"].run(*command, user=ALICE, env={"SLURM_CONF": "/run/slurm/conf/slurm.conf"}).strip()

    def batch(self, *options: str, script: str = "") -> str:
        """Submits a job of one CPU, and waits until it runs; gives its number."""
        text = script or '#!/bin/bash\ntouch "/home/alice/$SLURM_JOB_ID.ready"\nwhile :; do sleep 0.2; done\n'
        file = self.machine.folder / "volume-home" / "alice" / "job.sh"
        file.write_text(text)
        words = (
            "sbatch",
            "--parsable",
            "--chdir=/home/alice",
            "--output=%j.out",
            "--open-mode=append",
            "--mem=50",
            *options,
            "/home/alice/job.sh",
        )
        job = self.alice(*words)
        wait_for(f"job {job}", lambda: self.file(job, "ready"))
        return job

    def file(self, job: str, kind: str) -> Path | None:
        file = self.machine.folder / "volume-home" / "alice" / f"{job}.{kind}"
        return file if file.exists() else None

    def lines(self, job: str, kind: str = "out") -> list[str]:
        file = self.file(job, kind)
        return file.read_text().splitlines() if file else []

    def warnings(self, job: str) -> int:
        """How often the job read of the maintenance."""
        return sum("Maintenance weekly" in line for line in self.lines(job))

    def job(self, job: str) -> dict[str, Any]:
        return json.loads(self.slurm("scontrol", "show", "job", job, "--json"))["jobs"][0]

    def state(self, job: str) -> str:
        return self.job(job)["job_state"][0]

    def wait_until_queued(self, job: str) -> None:
        """Until Slurm has ended a requeue, and not only begun it."""
        wait_for(f"{job} in the queue", lambda: self.job(job)["job_state"] == ["PENDING"], 60)

    def wait_until_saved(self, job: str) -> None:
        """Until the job has heeded its signal."""
        wait_for(f"the checkpoint of {job}", lambda: self.lines(job, "checkpoint"))

    def reserve(self, minutes: int = 30, nodes: str = "gpu-[0-1]") -> None:
        start = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 60 * minutes))
        words = ("ReservationName=weekly", f"Nodes={nodes}", "Users=root", f"StartTime={start}", "Duration=60", "Flags=MAINT,IGNORE_JOBS")
        self.slurm("scontrol", "create", "reservation", *words, check=True)

    def restart(self, policy: Policy) -> None:
        """Kills the program, and starts it with other settings: it has made a round once it is idle."""
        if (running := self.containers.pop("t-slurmctld-0/maintenance", None)) is not None:
            running.stop("KILL")
        self.maintenance(write_policy(policy))

    def round_killed_after(self, write: str, policy: Policy) -> None:
        inside = self.containers["t-slurmctld-0/maintenance"]
        words = ("python3", "-EB", "-c", KILLED, write, write_policy(policy))
        inside.run(*words, user=SLURM, check=False, env={"SLURM_CONF": "/etc/slurm/slurm.conf", "PYTHONPATH": "/opt/slipway"})


@pytest.fixture(scope="module")
def started(image_root: Path) -> Iterator[MaintenanceCluster]:
    machine = Machine(FOLDER, image_root, "swmnt-")
    machine.close()  # what a killed run left
    FOLDER.mkdir(mode=0o755)
    stack = {**STACK, "accounting": {"enabled": False}}
    cluster = MaintenanceCluster(machine, stack=stack, names={pod: NAMES[pod] for pod in ("t-slurmctld-0", *NODES)})
    try:
        cluster.prepare()
        home = FOLDER / "volume-home" / "alice"
        home.mkdir()
        home.chmod(0o777)
        for pod in cluster.names:
            cluster.munged(pod)
        cluster.slurmctld()
        cluster.reconfigure()
        for node in NODES:
            cluster.slurmd(node)
        wait_for("idle nodes", lambda: cluster.slurm("sinfo", "--noheader", "--Node", "--format=%T") == "idle\nidle", 60)
        yield cluster
    finally:
        machine.close()


@pytest.fixture
def cluster(started: MaintenanceCluster) -> Iterator[MaintenanceCluster]:
    started.restart(NOT_YET)
    yield started
    started.slurm("scontrol", "delete", "ReservationName=weekly", check=False)
    started.cancel_all()
    wait_for("an empty queue", lambda: started.slurm("squeue", "--noheader") == "", 60)


def test_declared_job_saves_its_work_is_requeued_and_resumes_afterwards(cluster: MaintenanceCluster) -> None:
    job = cluster.batch(script=CHECKPOINTS)
    spoke = cluster.batch("--comment=nightly,requeue-for-maintenance")
    plain, short = cluster.batch(), cluster.batch("--time=10")
    cluster.reserve()
    cluster.restart(WARNS)
    for warned in (job, spoke, plain):
        wait_for(f"the warning of {warned}", lambda: cluster.warnings(warned) == 1)  # noqa: B023 - called at once
    wait_for("the checkpoint", lambda: cluster.file(job, "checkpoint"))
    assert "is requeued at" in cluster.lines(job)[-1]
    assert "is not requeued by itself" in cluster.lines(plain)[-1]
    assert (cluster.warnings(short), cluster.state(short)) == (0, "RUNNING")
    assert {cluster.state(each) for each in (job, spoke, plain)} == {"RUNNING"}

    cluster.restart(REQUEUES)
    for requeued in (job, spoke):
        cluster.wait_until_queued(requeued)
        cluster.slurm("scontrol", "update", f"JobId={requeued}", "StartTime=now")
    assert {cluster.state(each) for each in (plain, short)} == {"RUNNING"}
    wait_for("Slurm keeps the job for after the maintenance", lambda: cluster.job(job)["state_reason"] in HELD)
    cluster.slurm("scontrol", "delete", "ReservationName=weekly")
    wait_for("the job's next start", lambda: cluster.lines(job, "goes-on") == ["goes on, restart 1"], 60)
    assert [cluster.warnings(each) for each in (job, spoke, plain)] == [1, 1, 1]


def test_jobs_are_warned_once_and_requeued_whichever_write_came_last(cluster: MaintenanceCluster) -> None:
    saved = dict[str, tuple[int, int]]()
    for write in ("note", "signal", "notify"):
        job = cluster.batch(script=CHECKPOINTS)
        cluster.reserve()
        cluster.round_killed_after(write, WARNS)
        assert read_marks(cluster.job(job)["admin_comment"]).warned
        cluster.round_killed_after("requeue", WARNS)  # a whole round: it has nothing to requeue
        if write != "note":
            cluster.wait_until_saved(job)
        if write == "notify":
            wait_for("the job's word of it", lambda: cluster.warnings(job))  # noqa: B023 - called at once
        saved[write] = (len(cluster.lines(job, "checkpoint")), cluster.warnings(job))
        cluster.round_killed_after("requeue", REQUEUES)
        wait_for("the job in the queue", lambda: cluster.state(job) == "PENDING")  # noqa: B023
        cluster.slurm("scancel", job)
        cluster.slurm("scontrol", "delete", "ReservationName=weekly")
    assert all(signals <= 1 and words <= 1 for signals, words in saved.values()), saved
    assert saved["notify"] == (1, 1)


def test_moved_reservation_warns_again_and_a_deleted_one_requeues_nothing(cluster: MaintenanceCluster) -> None:
    job = cluster.batch(script=CHECKPOINTS)
    cluster.reserve()
    cluster.restart(WARNS)
    wait_for("the first warning", lambda: cluster.warnings(job) == 1)
    cluster.slurm("scontrol", "delete", "ReservationName=weekly")
    cluster.reserve(minutes=45)
    cluster.restart(WARNS)
    wait_for("the second warning", lambda: cluster.warnings(job) == 2)
    cluster.slurm("scontrol", "delete", "ReservationName=weekly")
    cluster.round_killed_after("requeue", REQUEUES)
    assert cluster.state(job) == "RUNNING"


def test_array_tasks_and_heterogeneous_jobs_are_requeued_as_slurm_wants(cluster: MaintenanceCluster) -> None:
    array = cluster.alice(
        "sbatch", "--parsable", "--requeue", "--array=1", "--chdir=/home/alice", "--mem=50", "--time=120", "--wrap=sleep 999"
    )
    mixed = cluster.alice(
        *("sbatch", "--parsable", "--requeue", "--chdir=/home/alice", "--mem=50", "--time=120"),
        *(":", "--mem=50", "--wrap=sleep 998"),
    )
    running = ("squeue", "--noheader", "--states=RUNNING", "--format=%i")
    names = {f"{array}_1", f"{mixed}+0", f"{mixed}+1"}
    wait_for("all of them", lambda: set(cluster.slurm(*running).split()) == names, 60)
    cluster.reserve()
    for policy in (WARNS, REQUEUES):
        cluster.round_killed_after("requeue", policy)
    wait_for("none of them", lambda: not cluster.slurm(*running))
    queued = ("squeue", "--noheader", "--array", "--states=PENDING,COMPLETING", "--format=%i")
    assert set(cluster.slurm(*queued).split()) == names


def test_user_cannot_write_what_the_program_notes(cluster: MaintenanceCluster) -> None:
    job = cluster.batch()
    with pytest.raises(Exception, match="denied"):
        cluster.alice("scontrol", "update", f"JobId={job}", "AdminComment=[slipway: requeue]")
    assert not read_marks(cluster.job(job)["admin_comment"]).asked_for_requeue
