"""What one job can do to its node, to other users' jobs, and to itself: memory that no process holds, processes without end, locks, setuid
programs, and files in /tmp that Slurm itself writes. Slurm, the image and the kernel are real.
"""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import pytest

from configs.load import load_cluster
from configs.render.slurm import render
from tests.support.patience import patience, seconds
from tests.support.slurm.image_pods import PROJECT, PodError, wait_for
from tests.support.slurm.image_stack import ALICE, BOB, STACK
from tests.support.slurm.root_cluster import CONF, PINS, TMP, WORKERS, RootCluster, running, stand_in

DISKS = {"gpu-1": "tmp=24 scratch=40"}
"""What jobs have of a node's disk there, in MiB; on the other node they have no more than folders of their own."""
PROCESSES = 150
"""Limit of a job with one CPU here."""
FILL = """#!/bin/bash
for i in {1..300}; do head -c 4000000 /dev/zero > /dev/shm/f$i; done
echo survived
"""
SEGMENTS = """
import ctypes, os
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for number in range(60):
    if os.fork() == 0:
        ctypes.memset(libc.shmat(libc.shmget(0x5000 + number, 8 << 20, 0o1600), None, 0), 1, 8 << 20)
        os._exit(0)
    os.wait()
print("survived")
"""
BOMB = """
import os, resource, time
resource.setrlimit(resource.RLIMIT_NPROC, (600, 600))  # for a test machine whose jobs have no limit after all
end = time.monotonic() + 600
while time.monotonic() < end:
    try:
        os.fork()
    except OSError:
        time.sleep(1)
"""
HOLD = """
import fcntl, os, time
held = []
for top in ("/run", "/dev/shm", "/tmp", "/var", "/etc/slipway", "/home"):
    for folder, _, files in os.walk(top):
        for path in (folder, *(os.path.join(folder, name) for name in files)):
            try:
                file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held.append(file)
            except OSError:
                pass
print("holds", len(held), flush=True)
time.sleep(6000)
"""
_marks = itertools.count()


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[RootCluster]:
    """Two workers with a versioned root; a job of one CPU may have 150 processes."""
    many = {"name": "many", "nodeSets": ["gpu"], "settings": {"OverSubscribe": "FORCE:4"}}
    settings = {**STACK["slurm"].get("settings", {}), "JobAcctGatherType": "jobacct_gather/cgroup"}  # as where there is accounting
    slurm = {**STACK["slurm"], "settings": settings, "processesPerJob": PROCESSES - 10, "processesPerCpu": 10}
    stack = {**STACK, "partitions": [*STACK["partitions"], many], "slurm": slurm}
    with running(Path("/var/tmp/slipway-limits-pods"), "swjb-", image_root, ssh_to_nodes=True, stack=stack, job_disks=DISKS) as cluster:
        home = cluster.machine.folder / "volume-home"
        cluster.ssh("chmod 755 .")
        cluster.ssh("true", user="bob")
        for worker in WORKERS:
            cluster.inside(worker, f"mkdir -p {TMP}")  # the volume of the pod
        files = {"fill": FILL, "segments": SEGMENTS, "bomb": BOMB, "hold": HOLD}
        for name, content in files.items():
            (home / "alice" / name).write_text(content)
            (home / "alice" / name).chmod(0o755)
        yield cluster


@pytest.fixture(autouse=True)
def idle(cluster: RootCluster) -> None:
    """Each test starts with idle workers."""
    cluster.settings(CONF)
    for user in ("alice", "bob"):
        cluster.slurm("scancel", f"--user={user}")
    wait_for("idle workers", cluster.ready, deadline_s=60)


def ended(cluster: RootCluster, job: str, deadline_s: float = 60) -> str:
    """Waits for a job's end; gives its state."""
    wait_for("its end", lambda: cluster.state(job) not in ("PENDING", "RUNNING", "COMPLETING"), deadline_s=deadline_s)
    return cluster.state(job)


def background(cluster: RootCluster, command: str, said: str, *options: str, user: str = "alice") -> str:
    """Starts a job and waits until it has said something; gives its number."""
    name = f"background.{next(_marks)}"
    job = cluster.ssh(f"sbatch --parsable --output={name} {' '.join(options)} --wrap {quote(command)}", user=user)
    wait_for("its start", lambda: said in cluster.ssh(f"cat {name}", user=user, check=False))
    return job


@pytest.mark.parametrize("memory", [pytest.param("--mem=150", id="asked"), pytest.param("", id="not asked")])
def test_job_that_fills_dev_shm_ends_at_once_as_out_of_memory(cluster: RootCluster, memory: str) -> None:
    """No process holds that memory, so the kernel kills on, and slurmstepd was among the largest: `head` is smaller."""
    job = cluster.ssh(f"sbatch --parsable --nodelist=gpu-0 --output=out.%j {memory} --wrap ./fill")
    assert ended(cluster, job) == "OUT_OF_MEMORY"
    said = cluster.ssh(f"srun --nodelist=gpu-0 {memory} ./fill", check=False)
    assert "Out Of Memory" in said
    wait_for("idle workers", cluster.ready)


def test_memory_left_without_a_process_ends_the_step_not_its_daemon(cluster: RootCluster) -> None:
    try:
        said = cluster.ssh("srun --nodelist=gpu-0 --mem=150 python3 segments", check=False)
        assert "Out Of Memory" in said
        assert "survived" not in said
        wait_for("idle workers", cluster.ready)
    finally:
        cluster.inside("gpu-0", "ipcrm --all=shm")


def test_kernel_takes_tasks_and_sessions_of_a_job_before_its_daemons(cluster: RootCluster) -> None:
    background(cluster, "echo begun; sleep 600", "begun", "--nodelist=gpu-0")
    scores = "for p in $(pgrep slurmstepd) $(pgrep -x slurmd-wlm); do cat /proc/$p/oom_score_adj; done"
    assert max(int(score) for score in cluster.inside("gpu-0", scores).split()) <= 0
    assert cluster.ssh("ssh gpu-0 cat /proc/self/oom_score_adj") == "1000"
    assert cluster.ssh("srun --overlap --jobid=$(squeue --me --noheader --format=%A) cat /proc/self/oom_score_adj") == "1000"


def test_slurmstepd_of_a_job_is_not_in_the_jobs_memory_group(cluster: RootCluster) -> None:
    """On v1 and v2 alike; the daemon of the extern step, which ssh sessions belong to, too."""
    background(cluster, "echo begun; sleep 600", "begun", "--nodelist=gpu-0")
    script = "for p in $(pgrep slurmstepd); do grep -E ':memory:|^0::' /proc/$p/cgroup | head -1; done"
    groups = cluster.inside("gpu-0", script).splitlines()
    assert len(groups) >= 2
    assert not [group for group in groups if "job_" in group or "/step_" in group]


def test_slurmstepd_of_a_rooted_job_runs_in_the_pods_root_for_slurmd(cluster: RootCluster) -> None:
    """Else scancel would reach none of the job's processes."""
    job = background(cluster, "echo begun; sleep 600", "begun", "--nodelist=gpu-0")
    roots = cluster.inside("gpu-0", "for p in $(pgrep slurmstepd); do ls -d /proc/$p/root/opt/slipway/slurm; done").splitlines()
    assert len(roots) >= 2
    assert not [root for root in roots if "No such file" in root]
    cluster.slurm("scancel", job)
    assert ended(cluster, job) == "CANCELLED"
    wait_for("the end of its processes", lambda: cluster.inside("gpu-0", f"pgrep slurmstepd; pgrep -u {ALICE} || true") == "")


ROOTED = pytest.mark.parametrize("rooted", [pytest.param(True, id="versioned root"), pytest.param(False, id="no versioned root")])


@ROOTED
def test_output_and_sent_files_in_tmp_are_the_jobs_and_go_with_it(cluster: RootCluster, rooted: bool) -> None:
    cluster.settings(CONF if rooted else None)
    lines = [
        "echo said; echo sent > in; ls /tmp/x.out",
        "sbcast --force in /tmp/cast; srun cat /tmp/cast",
        "srun --bcast=/var/tmp/prog /bin/echo ran",
        "srun --output=/tmp/step.%t echo stepped; cat /tmp/step.*",
        "cp /tmp/x.out kept",
    ]
    script = "\n".join(["#!/bin/bash", *lines])
    cluster.ssh(f"cat > script <<'END'\n{script}\nEND\nrm -f kept")
    job = cluster.ssh("sbatch --parsable --nodelist=gpu-0 --output=/tmp/x.out script")
    assert ended(cluster, job) == "COMPLETED"
    assert cluster.ssh("cat kept").split() == ["said", "/tmp/x.out", "sent", "ran", "stepped"]
    wait_for(
        "the end of its /tmp",
        lambda: cluster.inside("gpu-0", f"ls -A /tmp /var/tmp {TMP} {TMP}/.gone | grep -vx .gone | grep -v : || true") == "",
    )


@ROOTED
def test_two_users_give_their_output_the_same_name_in_tmp(cluster: RootCluster, rooted: bool) -> None:
    cluster.settings(CONF if rooted else None)
    jobs = {
        user: background(cluster, "echo begun", "", "--partition=many", "--mem=100", "--nodelist=gpu-0", "--output=/tmp/same", user=user)
        for user in ("alice", "bob")
    }
    assert {ended(cluster, job) for job in jobs.values()} == {"COMPLETED"}


def test_steps_and_sessions_share_the_jobs_tmp_without_a_versioned_root(cluster: RootCluster) -> None:
    cluster.settings(None)
    script = "touch /tmp/mine /var/tmp/mine /dev/shm/mine; echo begun; sleep 600"
    options = ("--partition=many", "--mem=100", "--nodelist=gpu-0")
    probe = "ls /tmp /var/tmp /dev/shm | grep -c mine"
    job = background(cluster, script, "begun", *options)
    assert cluster.ssh(f"srun --jobid={job} --overlap bash -c '{probe}'") == "3"
    assert cluster.ssh(f"ssh gpu-0 '{probe}'") == "3"
    other = f"{probe}; ls /opt/slipway/slurm/*.py | wc -l; echo [$SLIPWAY_ROOT_VERSION]; pwd"
    said = cluster.ssh(f"srun {' '.join(options)} bash -c '{other}'", user="bob").split()
    assert said[0] == "0"
    assert int(said[1]) == len(list((PROJECT / "slurm").glob("*.py")))  # all else is the pod's
    assert said[2:] == ["[]", "/home/bob"]
    cluster.slurm("scancel", job)
    wait_for("the end of its /tmp", lambda: cluster.inside("gpu-0", f"ls {TMP} {TMP}/.gone {PINS} | grep -v : || true") == "")


FULL = """
for place in /tmp /scratch; do
  dd if=/dev/zero of=$place/full bs=1M count=100 2>&1 | grep -o 'No space left on device'
  echo $(($(stat --format=%s $place/full) >> 20))
done
echo begun; sleep 600
"""


@ROOTED
def test_disk_filled_by_a_job_is_its_own_and_of_the_node_sets_size(cluster: RootCluster, rooted: bool) -> None:
    cluster.settings(CONF if rooted else None)
    options = ("--partition=many", "--mem=100", "--nodelist=gpu-1")
    job = background(cluster, FULL, "begun", *options)
    said = cluster.ssh("cat $(ls -t background.* | head -1)").split("\n")
    assert [said[0], said[2]] == ["No space left on device"] * 2
    assert 18 <= int(said[1]) <= 24
    assert 30 <= int(said[3]) <= 40
    probe = "ls -A /tmp /var/tmp /scratch; dd if=/dev/zero of=/scratch/mine bs=1M count=20 2>&1 | tail -1; stat --format=%a /scratch /tmp"
    other = cluster.ssh(f"srun {' '.join(options)} bash -c '{probe}'", user="bob")
    assert other.split("\n")[:5] == ["/scratch:", "", "/tmp:", "", "/var/tmp:"]
    assert "20971520 bytes" in other
    assert other.split()[-2:] == ["1777", "1777"]
    assert cluster.ssh(f"srun --jobid={job} --overlap ls /scratch") == "full"
    assert cluster.ssh("ssh gpu-1 ls /tmp /scratch").split() == ["/scratch:", "full", "/tmp:", "full"]
    cluster.slurm("scancel", job)
    wait_for("the end of its disks", lambda: disks_in_use(cluster) == [])
    wait_for("the end of its folder", lambda: cluster.inside("gpu-1", f"ls {TMP} {TMP}/.gone {PINS} | grep -v : || true") == "")


def test_scratch_of_a_job_is_its_tmp_on_nodes_without_such_a_disk(cluster: RootCluster) -> None:
    """Nodes of all sets share the root's folders, so a /scratch that only some nodes fill would be there, and closed, on the others."""
    cluster.settings(CONF)
    script = "touch /scratch/mine; ls /tmp; rm /tmp/mine; ls /scratch"
    assert cluster.ssh(f"srun --partition=many --mem=100 --nodelist=gpu-0 bash -c '{script}'") == "mine"
    assert cluster.ssh(script) == "mine"  # in a session, too


def test_disks_of_a_job_whose_daemons_are_killed_go_with_it(cluster: RootCluster) -> None:
    job = background(cluster, "echo begun; sleep 600", "begun", "--mem=100", "--nodelist=gpu-1")
    assert len(disks_in_use(cluster)) == 2
    cluster.inside("gpu-1", f"pkill -KILL -f 'slurmstepd: \\[{job}[.]'")
    cluster.slurm("scancel", job)
    wait_for("the end of its disks", lambda: disks_in_use(cluster) == [], deadline_s=60)


def test_scratch_gives_no_right_to_set_uid_programs_and_devices(cluster: RootCluster) -> None:
    look = r"findmnt --noheadings --output TARGET,OPTIONS --list | grep -E '^/(scratch|tmp|var/tmp) '"
    said = cluster.ssh(f"srun --mem=100 --nodelist=gpu-1 bash -c {quote(look)}").splitlines()
    assert len(said) == 3
    assert all("nosuid" in line and "nodev" in line for line in said)


def test_job_without_room_on_the_nodes_disk_says_so_and_leaves_nothing(cluster: RootCluster) -> None:
    cluster.inside("gpu-1", f"mount -t tmpfs -o size=30m tmpfs {TMP}")
    try:
        said = cluster.ssh("srun --mem=100 --nodelist=gpu-1 echo ran 2>&1", check=False)
        assert "setting 40 MiB of the node's disk aside for the job: No space left on device" in said
        assert "ran" not in said.split()
        wait_for("no disk", lambda: disks_in_use(cluster) == [])
    finally:
        cluster.inside("gpu-1", f"umount --lazy {TMP}")


def test_machine_that_cannot_make_a_jobs_disk_is_reported_with_the_reason(cluster: RootCluster) -> None:
    """The worker's program asks so before it starts slurmd."""
    small = "mkdir -p /mnt/small; mount -t tmpfs -o size=4m tmpfs /mnt/small"
    said = cluster.inside("gpu-1", f"{small}; /usr/lib/slipway/disk-check /mnt/small 2>&1; echo $?; umount -l /mnt/small")
    assert "setting 8 MiB of the node's disk aside for the job: No space left on device" in said
    assert said.endswith("\n1")


def disks_in_use(cluster: RootCluster) -> list[str]:
    """Loop devices over files of jobs: their names are gone from the folder already."""
    return [
        line
        for line in cluster.inside("gpu-1", "losetup --list --noheadings --output NAME,BACK-FILE").splitlines()
        if TMP in line or ".disk" in line
    ]


@pytest.fixture
def reporting(cluster: RootCluster) -> Iterator[RootCluster]:
    """The cluster with `slurm.efficiencyReport`."""
    folder = cluster.machine.folder / "volume-slurm"
    before = {path.name: path.read_text() for path in folder.iterdir() if not path.name.startswith("..")}
    slurm = {**cluster.stack["slurm"], "efficiencyReport": True}
    rendered = render(load_cluster({**cluster.stack, "slurm": slurm}, PROJECT, "Pulumi.test.yaml"))
    cluster.volume("slurm", {**before, "plugstack.conf": rendered["plugstack.conf"]})
    cluster.all_have_files()
    try:
        yield cluster
    finally:
        cluster.volume("slurm", before)
        cluster.all_have_files()


@ROOTED
def test_output_of_a_batch_job_ends_with_what_it_used(reporting: RootCluster, rooted: bool) -> None:
    reporting.settings(CONF if rooted else None)
    busy = "srun true; end=$((SECONDS + 3)); while ((SECONDS < end)); do :; done; echo of the job"
    job = reporting.batch(busy, "--mem=100", "--nodelist=gpu-1")
    said = reporting.out(job)
    words, _, report = said.partition("\n\n")
    assert words == "of the job"
    assert report.startswith(f"Job {job} on gpu-1, ")
    [share] = re.findall(r"^CPU Efficiency: ([\d.]+)% of ", report, re.MULTILINE)
    assert 5 / patience() < float(share) <= 120  # of a core that it shares with other tests
    assert re.search(r"^Memory Efficiency: [\d.]+% of 100.00 MB$", report, re.MULTILINE)


def test_report_disturbs_no_job_whose_output_is_no_file_or_has_gone(reporting: RootCluster) -> None:
    for script, output in (("true", "/dev/null"), ("rm gone.$SLURM_JOB_ID", "gone.%j"), ("exec >&-", "closed.%j")):
        job = reporting.ssh(f"sbatch --parsable --mem=100 --output={output} --wrap '{script}'")
        assert ended(reporting, job) == "COMPLETED"
    assert reporting.ssh("srun --mem=100 echo ran; ls gone.* 2>/dev/null; true") == "ran"


def test_without_a_versioned_root_jobs_of_the_slurm_user_see_the_node(cluster: RootCluster) -> None:
    """Health checks: what others leave in /dev/shm is for them to find."""
    cluster.settings(None)
    cluster.inside("gpu-0", "touch /dev/shm/left /tmp/left")
    try:
        said = cluster.slurm("srun", "--nodelist=gpu-0", "--chdir=/", "ls", "/dev/shm", "/tmp")
        assert said.split().count("left") == 2
    finally:
        cluster.inside("gpu-0", "rm /dev/shm/left /tmp/left")


@ROOTED
def test_job_that_locks_all_it_can_open_holds_up_no_other(cluster: RootCluster, rooted: bool) -> None:
    stand_in(cluster, "gpu-0", "550")
    try:
        cluster.ssh("srun --nodelist=gpu-0 true")
        cluster.settings(CONF if rooted else None)
        options = ("--partition=many", "--mem=100", "--nodelist=gpu-0")
        background(cluster, "python3 hold", "holds", *options)
        stand_in(cluster, "gpu-0", "560")  # the next job makes the loader's cache anew, under its lock
        cluster.settings(CONF)
        assert cluster.ssh(f"timeout {seconds(30)} srun {' '.join(options)} bash -c nvidia-smi", user="bob") == "smi-560"
    finally:
        cluster.inside("gpu-0", "rm -rf /run/nvidia")


def test_lock_that_cannot_be_had_ends_with_words_instead_of_waiting_on(cluster: RootCluster) -> None:
    """As where a process of the node hangs with it: it ends, and the job's own error says what was waited for."""
    holder = "exec 9</run/slipway/ns; flock 9; echo locked; sleep 6000"
    inside = cluster.worker("gpu-0")
    inside.run("bash", "-c", f"setsid bash -c '{holder}' >/run/holder 2>&1 </dev/null & echo $! >/run/holder.pid")
    try:
        wait_for("the lock", lambda: "locked" in cluster.inside("gpu-0", "cat /run/holder"))
        job = cluster.ssh("sbatch --parsable --nodelist=gpu-0 --output=out.%j --wrap 'echo ran'")
        assert ended(cluster, job, deadline_s=120) == "FAILED"
        assert "another process of this node has held the lock of /run/slipway/ns for 20 s" in cluster.out(job)
    finally:
        cluster.inside("gpu-0", "kill -- -$(cat /run/holder.pid) || kill $(cat /run/holder.pid); rm -f /run/holder*", check=False)


@ROOTED
def test_setuid_programs_of_homes_and_of_later_mounts_get_no_rights(cluster: RootCluster, rooted: bool) -> None:
    """Before, they did where there was no versioned root, and on what was mounted after slurmd's start everywhere."""
    planted = cluster.machine.folder / "volume-home/alice/who"
    planted.write_bytes((cluster.shared / "versions/v1/usr/bin/id").read_bytes())
    planted.chmod(0o4755)
    probe = "/home/alice/who -u; /home/later/who -u"
    cluster.settings(CONF if rooted else None)
    mount = "mkdir -p /home/later; mount -t tmpfs none /home/later; cp --preserve=mode /home/alice/who /home/later/who"
    try:
        cluster.inside("gpu-0", mount)
        as_bob = f"setpriv --reuid={BOB} --clear-groups /home/later/who -u"
        assert cluster.inside("gpu-0", as_bob) == "0", "it cannot fail: the program gets its rights nowhere"
        assert cluster.ssh(f"srun --nodelist=gpu-0 bash -c '{probe}'", user="bob").split() == [str(BOB)] * 2
        epilog = "#!/bin/bash\n/home/later/who -u > $HOME/epilog.out\n"
        cluster.ssh(f"printf {quote(epilog)} > epilog; chmod 755 epilog; srun --nodelist=gpu-0 --task-epilog=$HOME/epilog true", user="bob")
        assert cluster.ssh("cat epilog.out", user="bob") == str(BOB)
        background(cluster, "echo begun; sleep 600", "begun", "--nodelist=gpu-0", user="bob")
        assert cluster.ssh(f"ssh gpu-0 '{probe}'", user="bob").split() == [str(BOB)] * 2
    finally:
        cluster.inside("gpu-0", "umount --lazy /home/later; rmdir /home/later", check=False)
        planted.unlink()


def test_fork_bomb_ends_at_the_jobs_limit_and_the_node_goes_on(cluster: RootCluster) -> None:
    options = ("--partition=many", "--mem=1500", "--nodelist=gpu-0")
    job = background(cluster, "echo begun; python3 bomb", "begun", *options)
    count = f"ps -u {ALICE} -o pid= | wc -l"
    wait_for("its growth", lambda: int(cluster.inside("gpu-0", count)) > PROCESSES // 2)
    try:
        assert cluster.ssh("srun --partition=many --mem=100 --nodelist=gpu-0 echo ran", user="bob") == "ran"
        background(cluster, "echo begun; sleep 600", "begun", "--partition=many", "--mem=100", "--nodelist=gpu-0", user="bob")
        assert cluster.ssh("ssh gpu-0 echo in", user="bob") == "in"
        assert int(cluster.inside("gpu-0", count)) <= PROCESSES
    finally:
        cluster.slurm("scancel", job)
    assert ended(cluster, job) == "CANCELLED"
    wait_for("the end of its processes", lambda: int(cluster.inside("gpu-0", count)) == 0)


def test_jobs_get_all_the_locked_memory_that_the_container_may_give(cluster: RootCluster) -> None:
    """Without CAP_SYS_RESOURCE, as here, that is the container's own limit, and the log says so."""
    for node in WORKERS:
        limit = cluster.ssh(f"srun --nodelist={node} bash -c 'ulimit -l'")
        if limit != "unlimited":
            assert f"jobs may lock no more than {limit} KiB of memory each" in cluster.worker(node).log
            with pytest.raises(PodError, match="cannot modify limit"):
                cluster.inside(node, "ulimit -l unlimited")
