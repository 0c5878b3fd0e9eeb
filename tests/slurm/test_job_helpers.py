"""What Slurm's daemons run and write for a job outside of its tasks: its user's environment, a task's epilog, files of --output.

None of it may do more than the job may. And what a job's tasks are given: devices of the pod, and PMI.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.pods import daemon_command
from names import paths
from tests.support.slurm.image_cluster import program_mount
from tests.support.slurm.image_pods import wait_for
from tests.support.slurm.image_stack import ALICE, STACK
from tests.support.slurm.root_cluster import CONF, TMP, WORKERS, RootCluster, running

WORKER = shlex.join(daemon_command("worker"))
PROGRAMS = program_mount("munged") | program_mount("worker")
PROCESSES = 110
"""Limit of a job with one CPU here."""
EPILOG = """#!/bin/bash
ulimit -u 400  # for a test machine whose epilogs have no limit after all
{ cat /proc/self/cgroup; echo "score $(cat /proc/self/oom_score_adj)"; } > groups.epilog
python3 - <<'END' > grown.epilog
import os, time
children = 0
while children < 200:
    try:
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
            os._exit(0)
    except OSError:
        break
    children += 1
print(children, flush=True)
held = [bytearray(b"x" * (1 << 20)) for _ in range(300)]
print("holds", len(held), "MiB", flush=True)
END
"""
LEAVE = """#!/bin/bash
for folder in /tmp /var/tmp /dev/shm /run/lock; do
  if echo left > $folder/left.epilog; then echo $folder; fi
done > epilog.wrote
"""
HUNTER = """import os, signal, time
tasks, before = %d, set(os.listdir("/proc"))
def forks():
    for pid in set(os.listdir("/proc")) - before:
        try:
            words = dict(line.split(":\\t", 1) for line in open(f"/proc/{pid}/status"))
        except OSError:
            continue
        if words["Name"].startswith("slurmstepd"):
            yield int(pid), int(words["PPid"]), int(words["Uid"].split()[0])
def hunt():
    for _, parent, user in forks():
        if user == 0:
            continue
        try:
            os.kill(parent, signal.SIGSTOP)
        except ProcessLookupError:
            continue
        children = sorted(pid for pid, above, _ in forks() if above == parent)
        if len(children) == tasks:
            os.kill(children[-1], signal.SIGKILL)
            time.sleep(0.05)
        os.kill(parent, signal.SIGCONT)
        return len(children) == tasks
print("hunts", flush=True)
end = time.time() + 20
while time.time() < end and not hunt():
    pass
print("ends", flush=True)
"""
"""Kills the last task of a step before slurmstepd, its parent, goes on, and before the task has become another program."""
WRITER = """import os, time
while True:
    os.makedirs("%s/more", exist_ok=True)
    time.sleep(0.001)
"""
PROFILE = "touch ~/profile.ran; export FROM_PROFILE=1\n"
ROOTED = pytest.mark.parametrize("rooted", [pytest.param(True, id="versioned root"), pytest.param(False, id="no versioned root")])


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[RootCluster]:
    """Two workers with a versioned root; a job of one CPU may have 110 processes."""
    stack = {**STACK, "slurm": {**STACK["slurm"], "processesPerJob": PROCESSES - 10, "processesPerCpu": 10}}
    with running(Path("/var/tmp/slipway-helpers-pods"), "swhe-", image_root, ssh_to_nodes=True, stack=stack) as cluster:
        cluster.ssh("chmod 755 .")
        write(cluster, "epilog", EPILOG)
        yield cluster


@pytest.fixture(autouse=True)
def idle(cluster: RootCluster) -> None:
    """Each test starts with idle workers."""
    cluster.settings(CONF)
    cluster.slurm("scancel", f"--user={ALICE}")
    wait_for("idle workers", cluster.ready, deadline_s=60)


def write(cluster: RootCluster, name: str, content: str) -> None:
    """A program in the home of alice."""
    file = cluster.machine.folder / "volume-home/alice" / name
    file.write_text(content)
    file.chmod(0o755)


def groups(text: str) -> dict[str, str]:
    """Groups by controller, as /proc/<pid>/cgroup has them; the one of v2 has an empty name."""
    lines = (line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2)
    return {controller: group for _, controllers, group in lines for controller in controllers.split(",")}


def leave_in_own_group(cluster: RootCluster, job: str, *command: str) -> str:
    """Puts a process of root's into the job's group that Slurm does not know; gives the group's folder. Only v1 has one."""
    found = cluster.inside("gpu-0", f"find /sys/fs/cgroup -type d -path '*/slipway-jobs/{job}'")
    if found == "":
        pytest.skip("cgroup v2: Slurm kills all in its own group of the job")
    script = f"setsid {shlex.join(command)} >/dev/null 2>&1 </dev/null & echo $! > {found}/cgroup.procs"
    cluster.worker("gpu-0").run("bash", "-c", script)
    return found


@pytest.mark.parametrize("option", ["--export=NONE", "--export=MINE=1", "--export=SLURM_GET_USER_ENV=1"])
def test_environment_of_a_job_is_made_without_its_users_programs(cluster: RootCluster, option: str) -> None:
    """slurmd asks for it before the job has a cgroup: what ran there had no limit, all GPUs, and a way to root."""
    write(cluster, ".profile", PROFILE)
    try:
        job = cluster.batch("env; ls ~/profile.ran", "--nodelist=gpu-0", option)
        said = cluster.out(job).splitlines()
        assert cluster.state(job) == "FAILED"  # of ls
        assert {"HOME=/home/alice", "USER=alice", "LOGNAME=alice", "SHELL=/bin/bash", "LANG=C.UTF-8"} <= set(said)
        assert "FROM_PROFILE=1" not in said
        assert not (cluster.machine.folder / "volume-home/alice/profile.ran").exists()
        job = cluster.ssh(f"sbatch --parsable --wait {option} --output=login.out <<'END'\n#!/bin/bash -l\nenv\nEND")
        assert "FROM_PROFILE=1" in cluster.ssh("cat login.out").splitlines()  # in the job, as the guide says
    finally:
        for name in (".profile", "profile.ran"):
            (cluster.machine.folder / "volume-home/alice" / name).unlink(missing_ok=True)


@ROOTED
def test_task_epilog_is_in_its_steps_groups_and_under_the_jobs_limits(cluster: RootCluster, rooted: bool) -> None:
    cluster.settings(CONF if rooted else None)
    options = "--nodelist=gpu-0 --mem=100"

    def grown() -> list[str]:
        """What the epilog says of itself; nothing where Slurm has ended it before, as it does after 5 s."""
        cluster.ssh(
            f"rm -f grown.epilog; srun {options} --task-epilog=$HOME/epilog bash -c 'cat /proc/self/cgroup > groups.task'", check=False
        )
        return cluster.ssh("cat grown.epilog").split()

    processes = wait_for("an epilog that has come to its end", grown, deadline_s=60)
    said = cluster.ssh("cat groups.epilog")
    of_epilog, of_task = groups(said), groups(cluster.ssh("cat groups.task"))
    held = {controller: group for controller, group in of_task.items() if "/step_" in group or "/slipway-jobs/" in group}
    assert held.keys() >= {"memory", "devices", "freezer", "pids"} or "" in held
    for controller, group in held.items():
        assert of_epilog[controller].removesuffix("/task_0") == group.removesuffix("/task_0"), controller
    assert "score 1000" in said
    assert int(processes[0]) < PROCESSES
    assert "holds" not in processes
    wait_for("the end of its processes", lambda: cluster.inside("gpu-0", f"pgrep -u {ALICE} || true") == "")
    wait_for("idle workers", cluster.ready)


@pytest.mark.parametrize("tasks", [1, 2])
def test_epilog_of_a_task_that_ended_early_has_the_steps_limits(cluster: RootCluster, tasks: int) -> None:
    """On v1 the zombie is in no group of the step. An epilog that cannot be put there does not run. Most of the rounds come in time."""
    write(cluster, "where", "#!/bin/bash\ncat /proc/self/cgroup > groups.$SLURM_PROCID\n")
    for _ in range(3):
        cluster.ssh("rm -f groups.*")
        hunt = f"setsid python3 -c {shlex.quote(HUNTER % tasks)} > /tmp/hunter 2>&1 < /dev/null &"
        cluster.worker("gpu-0").run("bash", "-c", hunt)
        wait_for("the hunter", lambda: "hunts" in cluster.inside("gpu-0", "cat /tmp/hunter"))
        cluster.ssh(f"srun --nodelist=gpu-0 --ntasks={tasks} --overcommit --task-epilog=$HOME/where true", check=False)
        wait_for("its end", lambda: "ends" in cluster.inside("gpu-0", "cat /tmp/hunter"))
        for file in cluster.ssh("ls groups.* 2>/dev/null || true").split():
            held = groups(cluster.ssh(f"cat {file}"))
            assert "/step_" in held.get("memory", held.get("", "")), held
    wait_for("idle workers", cluster.ready)


def test_task_prolog_is_in_its_tasks_groups_and_root(cluster: RootCluster) -> None:
    write(cluster, "prolog", "#!/bin/bash\ncat /proc/self/cgroup > groups.prolog; cat /etc/version >> groups.prolog\n")
    cluster.ssh("srun --nodelist=gpu-0 --task-prolog=$HOME/prolog bash -c 'cat /proc/self/cgroup > groups.task'")
    said = cluster.ssh("sed 's,/job_[^/]*,,' groups.prolog")
    assert groups(said) == groups(cluster.ssh("sed 's,/job_[^/]*,,' groups.task"))
    assert "v1" in said.split()


def test_processes_left_in_a_jobs_group_end_with_the_job(cluster: RootCluster) -> None:
    job = cluster.submit("--nodelist=gpu-0", "--wrap='sleep 600'")
    wait_for("its start", lambda: "sleep 600" in cluster.inside("gpu-0", "ps -eo args"))
    found = leave_in_own_group(cluster, job, "sleep", "500")
    cluster.slurm("scancel", job)
    wait_for("its end", lambda: "sleep 500" not in cluster.inside("gpu-0", "ps -eo args"))
    wait_for("the end of its group", lambda: cluster.inside("gpu-0", f"ls -d {found} 2>/dev/null || true") == "")


def test_processes_left_in_a_jobs_group_end_before_its_tmp_goes(cluster: RootCluster) -> None:
    job = cluster.submit("--nodelist=gpu-0", "--wrap='sleep 600'")
    wait_for("its start", lambda: "sleep 600" in cluster.inside("gpu-0", "ps -eo args"))
    found = leave_in_own_group(cluster, job, "python3", "-c", WRITER % f"{TMP}/{job}/tmp")
    wait_for("its writing", lambda: cluster.inside("gpu-0", f"ls {TMP}/{job}/tmp") == "more")
    cluster.slurm("scancel", job)
    wait_for("the end of its group", lambda: cluster.inside("gpu-0", f"ls -d {found} 2>/dev/null || true") == "")
    wait_for("idle workers", cluster.ready)
    assert job not in cluster.inside("gpu-0", f"ls {TMP}").split()


@ROOTED
@pytest.mark.parametrize("folder", ["/dev/shm", "/run/lock"])
def test_output_in_memory_or_locks_of_the_node_is_refused(cluster: RootCluster, folder: str, rooted: bool) -> None:
    """It stayed there after the job, in memory that counted as nobody's. The node takes it for no fault of its own."""
    cluster.settings(CONF if rooted else None)
    job = cluster.ssh(f"sbatch --parsable --nodelist=gpu-0 --output={folder}/left --wrap 'echo left'")
    wait_for("its end", lambda: cluster.state(job) not in ("PENDING", "RUNNING", "COMPLETING"))
    assert cluster.state(job) == "FAILED"
    said = cluster.ssh(f"srun --nodelist=gpu-0 --output={folder}/left.%t echo left", check=False)
    assert "could not connect IO" in said  # so Slurm words it; its log has the reason
    assert cluster.inside("gpu-0", f"ls -A {folder}") == ""
    wait_for("idle workers", cluster.ready)


@ROOTED
def test_step_that_is_refused_leaves_no_files_on_the_node(cluster: RootCluster, rooted: bool) -> None:
    """Its task's epilog runs, and slurmstepd opens its files, whatever becomes of its tasks. A user can have it refused at will."""
    cluster.settings(CONF if rooted else None)
    write(cluster, "leave", LEAVE)
    options = "--nodelist=gpu-0 --root-version=zzz"
    assert "zzz" in cluster.ssh(f"rm -f epilog.wrote; srun {options} --task-epilog=$HOME/leave true", check=False)
    assert cluster.ssh("cat epilog.wrote").split() == ["/tmp", "/var/tmp"]
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run/lock"):
        cluster.ssh(f"srun {options} --output={folder}/left.%t true", check=False)
    job = cluster.ssh(f"sbatch --parsable {options} --output=/dev/shm/left.batch --wrap true")
    wait_for("its end", lambda: cluster.state(job) not in ("PENDING", "RUNNING", "COMPLETING"))
    assert cluster.state(job) == "FAILED"
    assert cluster.inside("gpu-0", "find /tmp /var/tmp /dev/shm /run/lock -name 'left*'") == ""
    wait_for("idle workers", cluster.ready)


@ROOTED
def test_files_in_run_lock_are_the_jobs_and_go_with_it(cluster: RootCluster, rooted: bool) -> None:
    cluster.settings(CONF if rooted else None)
    assert cluster.ssh("srun --nodelist=gpu-0 bash -c 'touch /run/lock/mine; ls /run/lock'") == "mine"
    assert cluster.ssh("srun --nodelist=gpu-0 ls /run/lock") == ""
    assert cluster.inside("gpu-0", "ls -A /run/lock") == ""


def test_tasks_of_srun_have_what_mpich_asks_for(cluster: RootCluster) -> None:
    """Without a PMI each would be rank 0 of 1, with success. A salloc's own shell is no rank."""
    script = "bash -c 'echo $PMI_RANK $PMI_SIZE ${PMI_FD:+reached}'"
    assert sorted(cluster.ssh(f"srun --nodes=2 {script}").splitlines()) == ["0 2 reached", "1 2 reached"]
    assert cluster.ssh("salloc --quiet --nodes=1 bash -c 'env | grep ^PMI || echo none'") == "none"


@pytest.mark.parametrize(
    "devices",
    [
        pytest.param("nvidia0 nvidiactl nvidia-caps/nvidia-cap1 dri/renderD128 kfd", id="NVIDIA"),
        pytest.param("dri/renderD128 kfd", id="AMD"),
        pytest.param("dri/renderD128", id="Intel"),
    ],
)
def test_node_set_without_gpus_shows_its_jobs_none_of_the_machines(cluster: RootCluster, devices: str) -> None:
    """Slurm guards what gres.conf names, and that has no line for such a set. A privileged pod has the machine's devices."""
    make = f"for each in {devices}; do mkdir -p $(dirname /dev/$each); mknod -m 0666 /dev/$each c 1 3; done"
    command = ["bash", "-c", f"{make}; exec {WORKER}"]
    container = cluster.machine.start(
        "gpu-1", "bare", command, PROGRAMS, {"SLIPWAY_GPUS": "0", "SLIPWAY_SLURMCTLD": "nobody"}, privileged=True, cwd=paths.PACKAGES
    )
    try:
        wait_for("the worker's program", lambda: "waiting for munged" in container.log)
        assert container.run("bash", "-c", "ls -d /dev/nvidia* /dev/dri /dev/kfd 2>/dev/null || true") == ""
        said = container.run("setpriv", f"--reuid={ALICE}", "--clear-groups", "mknod", "/tmp/nvidia0", "c", "195", "0", check=False)
        assert "not permitted" in said
    finally:
        container.stop("KILL")
    for worker in WORKERS:
        assert cluster.inside(worker, "ls /dev/nvidia*").split() == [f"/dev/nvidia{minor}" for minor in range(4)]


def test_worker_of_an_image_older_than_the_scripts_says_so(cluster: RootCluster) -> None:
    command = ["bash", "-c", f"rm /usr/lib/slipway/su; exec {WORKER}"]
    container = cluster.machine.start(
        "gpu-1", "old", command, PROGRAMS, {"SLIPWAY_SLURMCTLD": "nobody"}, privileged=True, cwd=paths.PACKAGES
    )
    try:
        assert container.ended() == 1
        assert "worker: FAILED: this image is older than Slipway's scripts" in container.log
    finally:
        container.stop("KILL")
