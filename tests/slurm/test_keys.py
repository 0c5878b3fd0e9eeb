"""Rotation of keys with the real programs: of the munge key, of the JWT key and of the database's password, while jobs run."""

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.slurm.database_cluster import UNTIL_TOLD, DatabaseCluster, running
from tests.support.slurm.image_pods import wait_for

FOLDER = Path("/var/tmp/slipway-keys-pods")


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[DatabaseCluster]:
    with running(FOLDER, "swky-", image_root) as made:
        yield made


@pytest.fixture(autouse=True)
def idle(cluster: DatabaseCluster) -> None:
    cluster.make_idle()


def wait_for_step(cluster: DatabaseCluster, job: str) -> None:
    """Until the job's sleep runs: an srun whose request for a step is cut off by the end of slurmctld does not ask again."""
    wait_for("the job's step", lambda: "sleep" in cluster.slurm("squeue", "--steps", "--noheader", "--format", "%j", "--jobs", job))


@pytest.mark.parametrize(
    "first", [pytest.param("gpu-0", id="worker-has-the-key-first"), pytest.param("t-slurmctld-0", id="slurmctld-has-the-key-first")]
)
def test_munge_key_is_rotated_and_jobs_that_end_meanwhile_are_completed(cluster: DatabaseCluster, first: str) -> None:
    """One job ends while only some pods have the new key, one while slurmctld is silent, one after all of it. No pod is made anew."""
    jobs = [cluster.submit(UNTIL_TOLD, "--mem=50", "--ntasks=1", "--overcommit")]
    wait_for("the job's step", lambda: "bash" in cluster.slurm("squeue", "--steps", "--noheader", "--format", "%j", "--jobs", jobs[0]))
    pods = ("gpu-0", "t-slurmctld-0", "t-slurmdbd-0")
    told = {pod: cluster.munge_log(pod).count("runs with another key") for pod in pods}
    key = secrets.token_bytes(1024)
    cluster.new_munge_key(key, first)
    wait_for("a key that waits", lambda: cluster.munge_log(first).count("it waits until") > told[first])
    cluster.tell(jobs[0])
    for seconds in (9.5, 25.5):  # each is seen on its own: the first may end while the second starts
        job = cluster.submit(f"srun sleep {seconds}")
        wait_for("the job", lambda job=job: cluster.state(job) == "RUNNING", deadline_s=60)
        jobs.append(job)
    cluster.new_munge_key(key, *pods)
    for pod in pods:
        wait_for("the new key", lambda pod=pod: cluster.munge_log(pod).count("runs with another key") > told[pod])
    wait_for("the jobs' ends", lambda: [cluster.state(job) for job in jobs] == ["COMPLETED"] * 3, deadline_s=120)
    wait_for("their records", lambda: [cluster.accounted(job) for job in jobs] == ["COMPLETED"] * 3, deadline_s=60)
    cluster.run_job()


def test_slurmctld_with_a_new_munge_key_is_silent_until_all_pods_have_it(cluster: DatabaseCluster) -> None:
    """Its pod is made anew while a key spreads, as by a rotation of all keys at once: it has the new key before the others."""
    job = cluster.submit("srun sleep 12", "--mem=50", "--ntasks=1", "--overcommit")
    wait_for_step(cluster, job)
    key = secrets.token_bytes(1024)
    told = cluster.munge_log("gpu-0").count("runs with another key")
    cluster.stop("t-slurmctld-0/reconfigure", "t-slurmctld-0/slurmctld", "t-slurmctld-0/munged")
    shutil.rmtree(FOLDER / "volume-t-slurmctld-0-munge-state")
    cluster.new_munge_key(key, "t-slurmctld-0")
    cluster.munged("t-slurmctld-0")
    slurmctld = cluster.slurmctld()
    cluster.reconfigure()
    wait_for("its word", lambda: "another munge key than slurmctld had" in slurmctld.log)
    cluster.new_munge_key(key, "gpu-0", "t-slurmdbd-0")
    wait_for("the key", lambda: cluster.munge_log("gpu-0").count("runs with another key") > told, deadline_s=60)
    wait_for("the job's end", lambda: cluster.state(job) == "COMPLETED", deadline_s=120)
    wait_for("its record", lambda: cluster.accounted(job) == "COMPLETED", deadline_s=60)
    cluster.run_job()


def test_pod_that_gets_the_munge_key_too_late_takes_it_by_itself(cluster: DatabaseCluster) -> None:
    key = secrets.token_bytes(1024)
    others = ("t-slurmctld-0", "t-slurmdbd-0")
    told = {pod: cluster.munge_log(pod).count("runs with another key") for pod in (*others, "gpu-0")}
    cluster.new_munge_key(key, *others)
    for pod in others:
        wait_for("the key", lambda pod=pod: cluster.munge_log(pod).count("runs with another key") > told[pod], deadline_s=60)
    wait_for("slurmctld again", lambda: cluster.slurm("sinfo", "--noheader", "--format", "%R") == "main", deadline_s=60)
    cluster.new_munge_key(key, "gpu-0")
    wait_for("the key", lambda: cluster.munge_log("gpu-0").count("runs with another key") > told["gpu-0"], deadline_s=60)
    wait_for("the worker", cluster.ready, deadline_s=180)  # slurmctld asks one that did not respond every 100 s
    cluster.run_job()


def test_munged_that_ends_comes_back_with_the_key_of_its_pod(cluster: DatabaseCluster) -> None:
    pod = "t-slurmdbd-0"
    told = cluster.munge_log(pod).count("it waits until")
    cluster.new_munge_key(secrets.token_bytes(1024), pod)
    wait_for("a key that waits", lambda: cluster.munge_log(pod).count("it waits until") > told)
    cluster.stop(f"{pod}/munged", signal="KILL")
    cluster.new_munge_key((FOLDER / "volume-munge-gpu-0/munge.key").read_bytes(), pod)
    cluster.munged(pod)
    cluster.run_job()


def test_jwt_key_is_rotated_while_a_job_runs(cluster: DatabaseCluster) -> None:
    job = cluster.submit("srun sleep 10")
    wait_for_step(cluster, job)
    old = cluster.token()
    assert cluster.with_token(old)
    cluster.new_jwt_key()
    cluster.stop("t-slurmctld-0/slurmctld", "t-slurmdbd-0/slurmdbd")
    cluster.slurmdbd()
    cluster.slurmctld()
    wait_for("an answer", lambda: cluster.state(job) in ("RUNNING", "COMPLETING", "COMPLETED"), deadline_s=60)
    assert (cluster.with_token(old), cluster.with_token(cluster.token())) == (False, True)
    wait_for("the job's end", lambda: cluster.state(job) == "COMPLETED", deadline_s=60)
    wait_for("its record", lambda: cluster.accounted(job) == "COMPLETED", deadline_s=60)


@pytest.mark.parametrize("first", ["mariadb", "slurmdbd"])
def test_database_password_rotates_under_jobs_and_no_record_is_lost(cluster: DatabaseCluster, first: str) -> None:
    across = cluster.submit("srun sleep 10")
    wait_for_step(cluster, across)
    cluster.new_password()
    order = [("t-mariadb-0/mariadb", cluster.mariadb), ("t-slurmdbd-0/slurmdbd", cluster.slurmdbd)]
    (name, start), (other, start_other) = order if first == "mariadb" else order[::-1]
    cluster.stop(name)
    start()
    within = cluster.submit("true", "--overcommit", "--mem=10")
    wait_for("its end", lambda: cluster.state(within) == "COMPLETED", deadline_s=60)
    cluster.stop(other)
    start_other()
    wait_for("the job's end", lambda: cluster.state(across) == "COMPLETED", deadline_s=60)
    wait_for("their records", lambda: cluster.accounted(across) == cluster.accounted(within) == "COMPLETED", deadline_s=90)
