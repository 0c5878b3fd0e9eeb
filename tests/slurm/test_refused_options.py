"""Options that Slurm would accept and then ignore are refused in words, unless the config makes them work: for every client and REST."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.slurm.image_pods import Machine, wait_for
from tests.support.slurm.image_stack import ALICE, NAMES, STACK
from tests.support.slurm.refusing_cluster import STACK_HERE, Cluster

FOLDER = Path("/var/tmp/slipway-refused-options")
PODS = {pod: names for pod, names in NAMES.items() if pod in {"t-slurmctld-0", "t-slurmrestd", "gpu-0"}}
CONTAINER = "--container: no OCI runtime is configured here"
MAIL = "--mail-type has no effect: this cluster sends no mail"
RECEIVER = "--comment=notify:nosuch: there is no receiver of that name. This cluster has none"
DISK = "--tmp: no node declares the size of its local disk"
NOT_SUPPORTED = "Requested operation not supported on this system"


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[Cluster]:
    """slurmctld, slurmrestd and one worker."""
    machine = Machine(FOLDER, image_root, "swro-")
    machine.close()  # what a killed run left
    FOLDER.mkdir(mode=0o755)
    cluster = Cluster(machine, stack=STACK_HERE, names=PODS)
    try:
        cluster.prepare()
        for pod in ("t-slurmctld-0", "gpu-0"):
            cluster.munged(pod)
        for start in (cluster.slurmctld, cluster.reconfigure, cluster.slurmrestd):
            start()
        cluster.slurmd("gpu-0")
        wait_for("an idle worker", lambda: cluster.shell("sinfo --noheader --format=%T") == "idle", deadline_s=90)
        yield cluster
    finally:
        machine.keep_logs()
        machine.close()


@pytest.mark.parametrize("command", ["sbatch {} --wrap hostname", "srun {} hostname", "salloc {} srun hostname"])
@pytest.mark.parametrize(
    ("option", "why"),
    [
        pytest.param("--container=/tmp/bundle", CONTAINER, id="container"),
        pytest.param("--container-id=box", CONTAINER, id="container-id"),
        pytest.param("--tmp=100", DISK, id="tmp"),
        pytest.param("--comment='a notify:nosuch'", RECEIVER, id="receiver-of-news"),
    ],
)
def test_option_that_would_be_ignored_is_refused_in_words(cluster: Cluster, command: str, option: str, why: str) -> None:
    said = cluster.alice(command.format(option))
    assert why in said
    assert "Submitted" not in said
    assert "gpu-0" not in said
    assert cluster.shell("squeue --noheader") == ""


@pytest.mark.parametrize("command", ["sbatch --get-user-env", "SBATCH_GET_USER_ENV=1 sbatch"])
def test_login_files_before_the_job_are_refused_in_words(cluster: Cluster, command: str) -> None:
    said = cluster.alice(f"{command} --wrap hostname")
    assert "#!/bin/bash -l runs them inside the job" in said
    assert "Submitted" not in said
    for accepted in ("sbatch --wait --export=NONE", "sbatch --wait --export=MINE=1", "sbatch --wait"):
        assert "Submitted" in cluster.alice(f"{accepted} --output=/dev/null --wrap true")


@pytest.mark.parametrize("command", ["sbatch --wait {} --output=/dev/null --wrap true", "srun {} hostname", "salloc {} srun hostname"])
def test_mail_on_a_cluster_without_mail_is_a_warning(cluster: Cluster, command: str) -> None:
    said = cluster.alice(command.format("--mail-type=END,FAIL"))
    assert MAIL in said
    assert "gpu-0" in said or "Submitted" in said


@pytest.mark.parametrize(
    ("command", "is_warned"),
    [
        pytest.param("sbatch --output=/tmp/x", True, id="file-in-tmp"),
        pytest.param("sbatch --output=/dev/null --error=/scratch/e", True, id="errors-in-scratch"),
        pytest.param("cd /tmp; sbatch", True, id="submitted-in-tmp"),
        pytest.param("cd /; sbatch --chdir=/var/tmp", True, id="folder-in-var-tmp"),
        pytest.param("cd /; sbatch --output=/dev/null", False, id="no-output"),
        pytest.param("cd /; sbatch --output=/tmpfiles", False, id="folder-of-a-similar-name"),
        pytest.param("cd /; sbatch --output=/scratch/project/x", False, id="volume-below-scratch"),
        pytest.param("cd /tmp; sbatch --chdir=/ --output=/dev/null", False, id="folder-elsewhere"),
    ],
)
def test_output_that_would_be_lost_is_a_warning(cluster: Cluster, command: str, is_warned: bool) -> None:
    said = cluster.alice(f"{command} --hold --wrap true")
    assert ("which each job has for itself and loses at its end" in said) == is_warned, said
    assert "Submitted" in said
    cluster.alice("scancel --user=$(id -un)")


def test_step_inside_a_job_is_refused_its_container(cluster: Cluster) -> None:
    said = cluster.alice("salloc --quiet srun --container=/tmp/bundle hostname")
    assert CONTAINER in said
    assert "gpu-0" not in said


def test_jobs_without_these_options_are_accepted(cluster: Cluster) -> None:
    assert cluster.alice("srun --quiet hostname") == "gpu-0\n"
    assert cluster.alice("srun --quiet --mail-user=a@example.com --mail-type=NONE --tmp=0 hostname") == "gpu-0\n"


def test_rest_clients_are_refused_the_same(cluster: Cluster) -> None:
    """In Slurm's words alone: slurmrestd of 26.05 does not pass a plugin's on."""
    wait_for("an empty queue", lambda: cluster.shell("squeue --noheader") == "")  # a job of the test before may be completing
    token = cluster.shell("scontrol token username=alice lifespan=600").removeprefix("SLURM_JWT=")
    headers = ("X-SLURM-USER-NAME: alice", f"X-SLURM-USER-TOKEN: {token}", "Content-Type: application/json")
    url = f"http://{cluster.machine.addresses['t-slurmrestd']}:6820/slurm/v0.0.45/job/submit"
    for more in ({"container": "/tmp/bundle"}, {"comment": "notify:nosuch"}, {"temporary_disk_per_node": 100}):
        job = {"script": "#!/bin/bash\ntrue\n", "current_working_directory": "/tmp", "environment": ["PATH=/usr/bin"], **more}
        options = [word for header in headers for word in ("--header", header)]
        asked = ("curl", "--silent", "--max-time", "60", *options, "--data", json.dumps({"job": job}), url)
        said = cluster.containers["gpu-0/slurmd"].run(*asked, user=ALICE)
        assert NOT_SUPPORTED in said, said
        assert cluster.shell("squeue --noheader") == ""


def test_a_waiting_job_cannot_be_given_them_either(cluster: Cluster) -> None:
    job = cluster.alice("sbatch --parsable --hold --output=/dev/null --wrap true").strip()
    assert MAIL in cluster.alice(f"scontrol update jobid={job} mailtype=END")
    assert DISK in cluster.alice(f"scontrol update jobid={job} mintmpdisknode=5")
    assert RECEIVER in cluster.alice(f"scontrol update jobid={job} comment=notify:nosuch")
    assert cluster.alice(f"scontrol update jobid={job} comment=x") == ""
    cluster.alice(f"scancel {job}")


def test_mail_program_and_declared_disk_lift_the_refusals(cluster: Cluster) -> None:
    cluster.settle(slurm={**STACK["slurm"], "settings": {"MailProg": "/usr/bin/true"}}, slurmd={"TmpDisk": "1000"})
    try:
        assert cluster.alice("srun --quiet --mail-type=END --tmp=500 hostname") == "gpu-0\n"
        said = cluster.alice("srun --tmp=2000 hostname")
        assert "Temporary disk specification can not be satisfied" in said
    finally:
        cluster.settle()


def test_plugins_of_the_users_own_take_the_place_of_ours(cluster: Cluster) -> None:
    settings = {"JobSubmitPlugins": "all_partitions", "CliFilterPlugins": "user_defaults"}
    cluster.settle(slurm={**STACK["slurm"], "settings": settings})
    try:
        assert cluster.alice("srun --quiet --mail-type=END hostname") == "gpu-0\n"
    finally:
        cluster.settle()
