"""The image with its programs and start scripts, every role for real: containers as Kubernetes would make them, a plain user's jobs
over ssh.

What Kubernetes adds (volumes, probes, scheduling) is left to tests/cluster. Needs root, runc and the built image, as `make test` has them.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ssh
from tests.support.patience import patience
from tests.support.slurm.image_cluster import STOP, ImageCluster
from tests.support.slurm.image_pods import MPI_SUM, Machine, PodError, wait_for
from tests.support.slurm.image_stack import ALICE, MUNGE, NAMES, SLURM, STACK

FOLDER = Path("/var/tmp/slipway-image-pods")
PREFIX = "swip-"
WORKERS = ("gpu-0", "gpu-1")


class Cluster(ImageCluster):
    """The cluster of this module, with the words that its tests use."""

    key: Path

    def ssh(self, script: str, user: str = "alice", timeout_s: float = 180) -> str:
        """Runs a script as a user over ssh, as someone outside the pods would."""
        command = ["ssh", "-p", "2222", "-i", str(self.key), *ssh.options("ConnectTimeout=60")]
        return self.outside(*command, f"{user}@{self.machine.addresses['t-login']}", "bash", "-s", stdin=script, timeout_s=timeout_s)

    def outside(self, *command: str, stdin: str = "", timeout_s: float = 180) -> str:
        """Runs a command on the pods' network, but in no pod. Raises PodError when it fails."""
        full = ["nsenter", f"--net=/run/netns/{PREFIX}hub", *command]
        done = subprocess.run(full, input=stdin, capture_output=True, text=True, timeout=timeout_s * patience(), check=False)
        if done.returncode:
            raise PodError(f"{' '.join(command[:1])} gave {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def states(self) -> dict[str, str]:
        """Node name to state, as slurmctld has it now."""
        lines = self.slurm("sinfo", "--noheader", "--Node", "--format", "%N %T").split("\n")
        return dict(line.split() for line in lines if line)

    def ready(self) -> bool:
        """True when all workers are idle."""
        return self.states() == dict.fromkeys(WORKERS, "idle")

    def job_state(self, job: str) -> str:
        """State of a job, from slurmctld."""
        return self.slurm("squeue", "--noheader", "--states", "all", "--job", job, "--format", "%T").strip()

    def start_job(self, name: str, command: str, *options: str) -> str:
        """Submits a job whose step says so and runs a command, then its script says `whole`; gives its number once the step runs.

        A job that slurmd is still launching does not survive slurmd: its prolog is known to the running slurmd only.
        """
        script = f'srun bash -c \\"echo begun; {command}\\"; echo whole'
        job = self.submit(*options, f"--output={name}.%j", f'--wrap="{script}"')
        wait_for("the job's step", lambda: "begun" in self.ssh(f"cat {name}.{job}"))
        return job

    def held(self) -> str:
        """A command that lasts until `go` is called."""
        (self.machine.folder / "volume-home/alice/go").unlink(missing_ok=True)
        return "until [[ -e go ]]; do sleep 0.2; done"

    def go(self) -> None:
        """Ends what was held."""
        (self.machine.folder / "volume-home/alice/go").touch()

    def submit(self, *options: str) -> str:
        """Submits a job as alice; gives its number."""
        return self.ssh(f"sbatch --parsable {' '.join(options)}").strip()


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[Cluster]:
    """Every role running, both workers idle."""
    machine = Machine(FOLDER, image_root, PREFIX)
    machine.close()  # what a killed run left
    FOLDER.mkdir(mode=0o755)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(FOLDER / "id")], check=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(FOLDER / "host")], check=True)
    cluster = Cluster(machine)
    cluster.key = FOLDER / "id"
    try:
        cluster.prepare()
        for pod in NAMES:
            if pod not in {"t-mariadb-0", "t-slurmrestd"}:  # slurmrestd passes its clients' tokens on and has no key of its own
                cluster.munged(pod)
        for start in (cluster.mariadb, cluster.slurmdbd, cluster.slurmctld, cluster.reconfigure, cluster.slurmrestd):
            start()
        for worker in WORKERS:
            cluster.slurmd(worker)
        cluster.login((FOLDER / "id.pub").read_text(), (FOLDER / "host").read_text())
        wait_for("idle workers", cluster.ready, deadline_s=90)
        wait_for("login", lambda: "main" in cluster.ssh("sinfo"), deadline_s=30)
        yield cluster
    finally:
        machine.keep_logs()
        machine.close()


@pytest.fixture(autouse=True)
def idle(cluster: Cluster) -> None:
    """Each test starts with both workers idle and nothing queued."""
    wait_for("idle workers", cluster.ready, deadline_s=60)


def test_user_logs_in_with_a_key_and_gets_a_private_home(cluster: Cluster) -> None:
    said = cluster.ssh("id -un; stat -c '%a %U' ~; echo $SLURM_CONF")
    assert said.split() == ["alice", "700", "alice", "/run/slurm/conf/slurm.conf"]


@pytest.mark.parametrize(
    "user", [pytest.param("root", id="root"), pytest.param("slurm", id="service-account"), pytest.param("mallory", id="unknown")]
)
def test_nobody_else_logs_in(cluster: Cluster, user: str) -> None:
    with pytest.raises(PodError, match="Permission denied"):
        cluster.ssh("true", user=user)


def test_batch_job_of_a_plain_user_runs_on_two_nodes_and_is_accounted(cluster: Cluster) -> None:
    job = cluster.submit("--wait", "--nodes=2", "--output=out.%j", "--wrap='srun bash -c \"hostname; id -u\"'")
    assert sorted(cluster.ssh(f"cat out.{job}").split()) == sorted([*WORKERS, str(ALICE), str(ALICE)])
    record = f"sacct -n -X -P -j {job} -o user,state,alloccpus"
    wait_for("an accounting record", lambda: cluster.ssh(record).strip() == "alice|COMPLETED|2")


def test_gpu_job_sees_its_devices_and_no_other(cluster: Cluster) -> None:
    probe = 'echo "$CUDA_VISIBLE_DEVICES"; for n in 0 1 2 3; do exec 3</dev/nvidia$n; done 2>&1 | grep -o "not permitted\\|No such device"'
    said = cluster.ssh(f"srun --gres=gpu:2 bash -c '{probe}'").split("\n")
    # A device of the job's own is let through to a driver that is not there; another is refused before.
    assert said[:5] == ["0,1", "No such device", "No such device", "not permitted", "not permitted"]


def test_mpirun_crosses_two_nodes_without_ssh_between_them(cluster: Cluster) -> None:
    program = MPI_SUM.read_text()
    cluster.ssh(f"cat > mpi_sum.py <<'PROGRAM'\n{program}\nPROGRAM")
    job = cluster.submit("--wait", "--time=60", "--nodes=2", "--ntasks-per-node=2", "--output=mpi.%j", "--wrap='mpirun python3 mpi_sum.py'")
    assert sorted(cluster.ssh(f"cat mpi.{job}").splitlines()) == [f"rank {rank} of 4 on gpu-{rank // 2}: sum 6" for rank in range(4)]


def test_rest_answers_a_token_and_refuses_a_stranger(cluster: Cluster) -> None:
    token = cluster.slurm("scontrol", "token", "username=slurm", "lifespan=1200").strip().removeprefix("SLURM_JWT=")
    url = f"http://{cluster.machine.addresses['t-slurmrestd']}:6820/slurm/v0.0.45"
    ask = ["curl", "--silent", "--max-time", "60", "--write-out", "\n%{http_code}", "--header", "X-SLURM-USER-NAME: slurm"]
    body, code = cluster.outside(*ask, "--header", f"X-SLURM-USER-TOKEN: {token}", f"{url}/nodes/").rsplit("\n", 1)
    assert (code, sorted(node["name"] for node in json.loads(body)["nodes"])) == ("200", list(WORKERS))
    for header in ("X-SLURM-USER-TOKEN: nonsense", "X-Other: none"):
        body, code = cluster.outside(*ask, "--header", header, f"{url}/nodes/").rsplit("\n", 1)
        assert (code == "200", "gpu-0" in body) == (False, False)


@pytest.mark.parametrize(
    ("pod", "port", "command"),
    [
        pytest.param("t-mariadb-0", 3306, ("sacctmgr", "--noheader", "show", "cluster", "format=cluster"), id="mariadb"),
        pytest.param("t-slurmctld-0", 6817, ("sinfo", "--noheader"), id="slurmctld"),
        pytest.param("t-slurmrestd", 6820, (), id="slurmrestd"),
    ],
)
def test_idle_connections_of_a_user_keep_nobody_out(cluster: Cluster, pod: str, port: int, command: tuple[str, ...]) -> None:
    """300 of them. By default MariaDB and slurmrestd serve nobody beside 125. slurmdbd cannot be helped: docs/explain/security.md."""
    with cluster.machine.held(pod, port):
        if command:
            assert cluster.slurm(*command).split()
        else:
            ask = ["curl", "--silent", "--max-time", "60", "--output", "/dev/null", "--write-out", "%{http_code}"]
            assert cluster.outside(*ask, f"http://{cluster.machine.addresses[pod]}:{port}/slurm/v0.0.45/ping/") == "401"


def test_private_data_closes_slurmctlds_metrics_and_the_logins_job_count(cluster: Cluster) -> None:
    url = f"http://{cluster.machine.addresses['t-slurmctld-0']}:6817/metrics/jobs-users-accts"
    login = cluster.containers["t-login/login"]

    def code() -> str:
        return cluster.outside("curl", "--silent", "--max-time", "60", "--output", "/dev/null", "--write-out", "%{http_code}", url)

    def shown() -> list[str]:
        return login.run("ls", "/run/slipway/login").split()

    assert code() == "200"
    wait_for("the count of jobs", lambda: "jobs" in shown(), deadline_s=60, pause_s=1)
    try:
        cluster.configure(STACK, "PrivateData=jobs\n")
        wait_for("no metrics", lambda: code() == "401", deadline_s=60)
        login.run("sh", "-c", "rm /run/slipway/login/read")
        wait_for("what logins are shown", lambda: shown() == ["cluster", "read"], deadline_s=60, pause_s=1)
    finally:
        cluster.configure(STACK)
        wait_for("metrics", lambda: code() == "200", deadline_s=60)


def test_probes_of_slurmctld_answer_over_http(cluster: Cluster) -> None:
    for path in ("livez", "readyz", "metrics"):
        cluster.outside(
            "curl", "--silent", "--fail", "--max-time", "60", f"http://{cluster.machine.addresses['t-slurmctld-0']}:6817/{path}"
        )


def test_changed_files_are_taken_over_while_a_job_runs(cluster: Cluster) -> None:
    job = cluster.start_job("long", "sleep 3000", "--nodes=2")
    cluster.configure(STACK, "PartitionName=extra Nodes=gpu-[0-1]\n")
    wait_for("the new partition", lambda: "extra" in cluster.slurm("sinfo", "--noheader", "--format", "%R"))
    wait_for("the new partition in a login session", lambda: "extra" in cluster.ssh("cat $SLURM_CONF; sinfo"))
    assert cluster.job_state(job) == "RUNNING"
    cluster.configure(STACK)
    wait_for("the old partitions", lambda: "extra" not in cluster.slurm("sinfo", "--noheader", "--format", "%R"))
    assert cluster.job_state(job) == "RUNNING"
    cluster.slurm("scancel", job)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("Bogus=1\n", id="unknown-key"),
        pytest.param("PartitionName=extra Nodes=nothere-[0-1]\n", id="unknown-nodes"),
    ],
)
def test_files_that_slurmctld_refuses_are_reported_and_change_nothing(cluster: Cluster, line: str) -> None:
    sidecar = cluster.containers["t-slurmctld-0/reconfigure"]
    said_before = sidecar.log.count("REFUSED")
    job = cluster.start_job("long", "sleep 3000", "--nodes=2")
    cluster.configure(STACK, line)
    wait_for("a refusal in the sidecar's log", lambda: sidecar.log.count("REFUSED") == said_before + 1)
    assert "RUNNING" in cluster.ssh(f"squeue --noheader --format %T --job {job}")
    cluster.configure(STACK)
    wait_for("the good files", lambda: sidecar.log.rstrip().splitlines()[-1].startswith("config-sync: slurmctld runs with"))
    assert cluster.job_state(job) == "RUNNING"
    cluster.slurm("scancel", job)


def test_killed_slurmctld_comes_back_to_a_job_that_ran_on(cluster: Cluster) -> None:
    job = cluster.start_job("kill", cluster.held(), "--nodes=2")
    # slurmctld writes its state some seconds after a change, so a kill loses what was newer. One more change, and its writing is awaited.
    changed = time.time()
    cluster.slurm("scontrol", "update", f"JobId={job}", "Comment=seen")
    wait_for("saved state", lambda: cluster.saved_at() > changed)
    cluster.containers["t-slurmctld-0/slurmctld"].stop("KILL")
    cluster.slurmctld()
    wait_for("an answer", lambda: cluster.job_state(job) == "RUNNING", deadline_s=30)
    cluster.go()
    wait_for("the job's end", lambda: cluster.job_state(job) == "COMPLETED", deadline_s=60)
    assert cluster.ssh(f"cat kill.{job}").split()[-1] == "whole"
    wait_for("its record", lambda: "COMPLETED" in cluster.ssh(f"sacct -n -X -j {job} -o state"), deadline_s=30)


def test_slurmctld_ends_in_time_on_a_signal(cluster: Cluster) -> None:
    assert cluster.containers["t-slurmctld-0/slurmctld"].stop(timeout_s=30) == 0
    cluster.slurmctld()


def test_job_steps_outlive_their_slurmd(cluster: Cluster) -> None:
    job = cluster.start_job("steps", cluster.held(), "--nodelist=gpu-0")
    worker = cluster.containers["gpu-0/slurmd"]
    starts = worker.log.count("slurmd started")
    worker.run("pkill", "--signal", "KILL", "^slurmd")
    wait_for("a second start", lambda: "starting it again" in worker.log and worker.log.count("slurmd started") > starts)
    cluster.go()
    wait_for("the job's end", lambda: cluster.job_state(job) == "COMPLETED", deadline_s=60)
    assert cluster.ssh(f"cat steps.{job}").split()[-1] == "whole"


def test_stopping_worker_drains_waits_for_its_job_and_returns_to_service(cluster: Cluster) -> None:
    job = cluster.start_job("drain", "sleep 6", "--nodelist=gpu-1")
    worker = cluster.containers["gpu-1/slurmd"]
    worker.run(*STOP, timeout_s=60)
    assert cluster.job_state(job) == "COMPLETED"
    assert "slipway: pod stopping" in cluster.slurm("sinfo", "--noheader", "--Node", "--nodes", "gpu-1", "--format", "%E")
    worker.stop()
    cluster.slurmd("gpu-1")
    wait_for("its drain to be lifted", lambda: cluster.states()["gpu-1"] == "idle", deadline_s=60)


def test_drain_of_someone_else_survives_a_stop_and_a_start(cluster: Cluster) -> None:
    cluster.slurm("scontrol", "update", "NodeName=gpu-1", "State=DRAIN", "Reason=bad fan")
    worker = cluster.containers["gpu-1/slurmd"]
    worker.run(*STOP, timeout_s=60)
    worker.stop()
    worker = cluster.slurmd("gpu-1")
    wait_for("slurmd", lambda: "slurmd started" in worker.log)
    wait_for("its answer", lambda: "NOT_RESPONDING" not in cluster.slurm("scontrol", "show", "node", "gpu-1"))
    node = cluster.slurm("scontrol", "--oneliner", "show", "node", "gpu-1")
    assert "DRAIN" in node
    assert "Reason=bad fan" in node
    cluster.slurm("scontrol", "update", "NodeName=gpu-1", "State=UNDRAIN")


def test_worker_counts_as_busy_while_slurmctld_is_silent(cluster: Cluster) -> None:
    cluster.containers["gpu-1/slurmd"].stop()
    worker = cluster.slurmd("gpu-1", drain_grace_s=8)
    wait_for("slurmd", lambda: "slurmd started" in worker.log)  # Slurm knows of no pause
    wait_for("both workers", cluster.ready, deadline_s=60)
    controller = cluster.containers["t-slurmctld-0/slurmctld"]
    controller.run("pkill", "--signal", "STOP", "^slurmctld", user=SLURM)
    try:
        said = worker.run(*STOP, timeout_s=90)
    finally:
        controller.run("pkill", "--signal", "CONT", "^slurmctld", user=SLURM)
    assert "no job is left" not in worker.log + said
    assert "does not answer, so the node counts as busy" in worker.log + said
    assert "gave up after 8 s" in worker.log + said
    worker.stop()
    cluster.slurmd("gpu-1")


def test_slurmd_that_does_not_end_does_not_hold_up_the_end_of_its_pod(cluster: Cluster) -> None:
    """One that is told to end right after its start hangs now and then."""
    worker = cluster.containers["gpu-1/slurmd"]
    wait_for("slurmd", lambda: "slurmd started" in worker.log)  # before, a second one asks for the files
    wait_for("slurmd", lambda: worker.run("pkill", "--signal", "STOP", "--exact", "--count", "slurmd", check=False).strip() == "1")
    begin = time.monotonic()
    assert worker.stop() == 0
    assert time.monotonic() - begin < 15 * patience()
    assert "slurmd did not end within 5 s; killing it" in worker.log
    worker = cluster.slurmd("gpu-1")
    wait_for("slurmd", lambda: "slurmd started" in worker.log)  # the node counts as idle before


def test_munged_that_ends_in_a_worker_is_started_again_and_has_no_rights(cluster: Cluster) -> None:
    worker = cluster.containers["gpu-0/slurmd"]
    before, starts = worker.run("pgrep", "--exact", "munged"), worker.log.count("slurmd started")
    status = worker.run("cat", f"/proc/{before.strip()}/status")
    assert f"Uid:\t{MUNGE}\t{MUNGE}\t{MUNGE}\t{MUNGE}" in status
    assert "CapBnd:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    assert worker.run("stat", "--file-system", "--format=%T", "/var/lib/munge").strip() == "tmpfs", "the key is on no disk"
    worker.run("pkill", "--signal", "KILL", "--exact", "munged")
    wait_for("another munged", lambda: worker.run("pgrep", "--exact", "munged", check=False) not in ("", before), deadline_s=30)
    wait_for(
        "its socket", lambda: worker.run("bash", "-c", "munge -n | unmunge | grep -c Success", check=False).strip() == "1", deadline_s=30
    )
    assert "munged ended with code" in worker.log
    wait_for("slurmd, which has ended with it", lambda: worker.log.count("slurmd started") > starts)
    assert cluster.ssh("srun --nodelist=gpu-0 hostname").strip() == "gpu-0"


def test_worker_waits_for_slurmctld_without_ending(cluster: Cluster) -> None:
    cluster.containers["t-slurmctld-0/slurmctld"].stop()
    cluster.containers["gpu-0/slurmd"].stop()
    worker = cluster.slurmd("gpu-0")
    wait_for("a clear line", lambda: "waiting for munged and for slurmctld at t-slurmctld:6817" in worker.log)
    assert worker.process.poll() is None
    cluster.slurmctld()
    wait_for("slurmd", lambda: "slurmd started" in worker.log)  # the node counts as idle before


def test_database_killed_in_its_first_start_starts_again(cluster: Cluster) -> None:
    cluster.containers["t-mariadb-0/mariadb"].stop()
    data = FOLDER / "volume-mysql" / "data"
    kept = data.rename(data.with_name("kept"))
    half = cluster.mariadb()
    wait_for("half a data folder", lambda: data.with_name("data.partial").exists())
    half.stop("KILL")
    again = cluster.mariadb()
    wait_for("the database", lambda: "ready for connections" in again.log, deadline_s=60)
    assert data.exists()
    again.stop()
    shutil.rmtree(data)
    kept.rename(data)
    back = cluster.mariadb()
    wait_for("the database", lambda: "ready for connections" in back.log, deadline_s=60)
    job = cluster.submit("--wait", "--wrap=true")
    wait_for("records again", lambda: "COMPLETED" in cluster.ssh(f"sacct -n -X -j {job} -o state"), deadline_s=60)


def test_image_is_the_expected_series_of_slurm(image_root: Path) -> None:
    versions = dict(line.split("=", 1) for line in (image_root / "usr/share/slipway/versions").read_text().split())
    assert versions["slurm"].startswith("26.05.")
    assert set(versions) == {"slurm", "munge", "openmpi", "openssh", "mariadb", "nfs-ganesha"}


def test_every_line_is_json_and_names_its_cluster_node_daemon_and_job(cluster: Cluster) -> None:
    """Of every container: docs/operate/logs.md says what agents rely on."""
    job = cluster.start_job("logged", "sleep 600", "--nodelist=gpu-0")
    cluster.ssh(f"scancel {job}")

    def steps(name: str) -> set[str | None]:
        lines = [json.loads(line) for line in cluster.containers[name].lines]
        return {line.get("step") for line in lines if line.get("job") == job}

    wait_for("its lines of slurmctld", lambda: steps("t-slurmctld-0/slurmctld"))
    wait_for("its step's lines of slurmd", lambda: {None, "0"} <= steps("gpu-0/slurmd"))
    daemons = set[str]()
    for name, container in cluster.containers.items():
        for line in map(json.loads, container.lines):
            daemons.add(line["daemon"])
            assert list(line)[:5] == ["time", "level", "cluster", "node", "daemon"], (name, line)
            assert (line["cluster"], line["node"], bool(line["message"])) == ("t", name.partition("/")[0], True), (name, line)
    assert {"slurmctld", "slurmd", "slurmdbd", "munged", "sshd", "sackd", "mariadb", "worker", "config-sync"} <= daemons


def test_plugins_with_threads_stay_loaded(image_root: Path) -> None:
    """Slurm unloads its plugins while a thread of theirs may be about to begin: a short prolog ended with a fault, and drained its node."""
    for name in ("slipway_root.so", "slipway_container.so"):
        file = image_root / "usr/lib/slipway" / name
        assert "NODELETE" in subprocess.run(["readelf", "--dynamic", str(file)], capture_output=True, text=True, check=True).stdout, name
