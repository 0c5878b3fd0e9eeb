"""The versioned shared root: jobs and logins in it, who sees what, switches while jobs run, and every way to fail. All of Slurm, sshd and
the image are real; what makes versions, and what fills /run/nvidia in a pod, is left to others.
"""

import itertools
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import pytest

from tests.slurm.image_cluster import ALICE, SLURM, STACK
from tests.slurm.image_pods import PodError, wait_for
from tests.slurm.image_root import unpack
from tests.slurm.root_cluster import CONF, PINS, TMP, WORKERS, RootCluster, running

_marks = itertools.count()

MANY = {"name": "many", "nodeSets": ["gpu"], "settings": {"OverSubscribe": "FORCE:32"}}
"""A partition whose jobs share CPUs: many run at once on two small workers."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RootCluster]:
    """Two versions, v1 current."""
    image = tmp_path_factory.mktemp("root-image")
    unpack(image)
    stack = {**STACK, "partitions": [*STACK["partitions"], MANY]}
    with running(Path("/var/tmp/slipway-root-pods"), "swsr-", image, stack=stack) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def idle(cluster: RootCluster) -> None:
    """Each test starts with idle workers, v1 and good settings."""
    cluster.switch("v1")
    cluster.settings(CONF)
    cluster.slurm("scancel", "--user=alice")  # what a failed test left
    wait_for("idle workers", cluster.ready, deadline_s=60)


def left(cluster: RootCluster, node: str) -> str:
    """What a worker has of jobs, outside their namespaces."""
    return cluster.inside(node, f"ls -A {PINS} {TMP} 2>/dev/null | grep -v :; grep -c nsfs /proc/self/mountinfo || true")


def held(cluster: RootCluster, *options: str, then: str = "") -> tuple[str, Path]:
    """Starts a batch job that says `begun`, waits for a file, and does `then`; gives its number and that file."""
    name = f"go{next(_marks)}"
    script = f"until [[ -e {name} ]]; do sleep 0.1; done; {then}"
    job = cluster.ssh(
        f"sbatch --parsable --output=out.%j {' '.join(options)} <<'SCRIPT'\n#!/bin/bash\ncat /etc/version; echo begun; {script}\nSCRIPT"
    )
    wait_for("its start", lambda: "begun" in cluster.ssh(f"cat out.{job}"))
    return job, cluster.machine.folder / "volume-home/alice" / name


def finish(cluster: RootCluster, job: str, go: Path) -> str:
    """Lets a held job go on to its end; gives what it said."""
    go.touch()
    wait_for("its end", lambda: cluster.state(job) not in ("RUNNING", "COMPLETING"), deadline_s=60)
    return cluster.out(job)


def test_job_step_and_login_see_the_current_version(cluster: RootCluster) -> None:
    probe = "cat /etc/version; echo $SLIPWAY_ROOT_VERSION"
    assert cluster.ssh(probe).split() == ["v1", "v1"]
    job = cluster.batch(f"{probe}; srun --nodes=2 bash -c '{probe}'", "--nodes=2")
    assert cluster.out(job).split() == ["v1"] * 6
    assert cluster.ssh(f"srun --nodes=2 bash -c '{probe}'").split() == ["v1"] * 4


def test_running_job_keeps_its_version_after_a_switch_and_new_ones_see_the_new_one(cluster: RootCluster) -> None:
    job, go = held(cluster, then="cat /etc/version; srun cat /etc/version")
    cluster.switch("v2")
    assert cluster.ssh("cat /etc/version; srun cat /etc/version").split() == ["v2", "v2"]
    assert finish(cluster, job, go).split() == ["v1", "begun", "v1", "v1"]


def test_nodes_and_steps_of_a_job_agree_although_the_switch_falls_between(cluster: RootCluster) -> None:
    job = cluster.ssh("sbatch --hold --parsable --nodes=2 --output=out.%j --wrap='srun cat /etc/version; srun cat /etc/version'")
    (cluster.shared / "jobs").mkdir(0o755, exist_ok=True)
    (cluster.shared / "jobs" / job).symlink_to("v1")  # as the node that was first
    cluster.switch("v2")
    cluster.ssh(f"scontrol release {job}")
    wait_for("its end", lambda: cluster.state(job) == "COMPLETED")
    assert cluster.out(job).split() == ["v1"] * 4


def test_job_runs_in_the_version_it_asks_for(cluster: RootCluster) -> None:
    assert cluster.ssh("srun --nodes=2 --root-version=v2 cat /etc/version").split() == ["v2", "v2"]
    assert cluster.out(cluster.batch("cat /etc/version; srun cat /etc/version", "--root-version=v2")).split() == ["v2", "v2"]


def test_step_cannot_leave_the_version_of_its_job(cluster: RootCluster) -> None:
    said = cluster.out(cluster.batch("srun --root-version=v2 cat /etc/version || echo refused"))
    assert re.search(r"job \d+ runs in version v1 of the root, not in v2: a version is chosen when a job is submitted", said)
    assert said.endswith("refused")


def test_unknown_version_is_refused_with_words_and_nodes_stay_idle(cluster: RootCluster) -> None:
    said = cluster.ssh("srun --nodes=2 --root-version=v9 echo ran", check=False)
    assert "the root has no version v9; there are: v1, v2" in said
    assert "ran" not in said.split()
    job = cluster.batch("echo ran", "--root-version=v9")
    assert (cluster.state(job), "ran" in cluster.out(job).split()) == ("FAILED", False)
    wait_for("idle workers", cluster.ready)
    assert not (cluster.shared / "jobs" / job).is_symlink()


@pytest.mark.parametrize("name", [pytest.param("../v1", id="parent"), pytest.param(".v1", id="hidden"), pytest.param("v" * 65, id="long")])
def test_name_that_no_version_can_have_is_refused_before_a_job_is_made(cluster: RootCluster, name: str) -> None:
    said = cluster.ssh(f"sbatch --root-version={name} --wrap=true", check=False)
    assert "--root-version takes the name of a version" in said
    assert "Submitted" not in said


def test_plain_user_reaches_neither_the_pod_nor_other_versions_nor_other_jobs(cluster: RootCluster) -> None:
    job, go = held(cluster, "--nodelist=gpu-0", then="true")
    probe = f"""
        for d in /shared /shared/versions {PINS} {TMP} /proc/1/root /../shared; do ls -A $d; done
        for p in /proc/[0-9]*; do [[ $(stat -c %U $p) == alice ]] && readlink $p/root >/dev/null && cat $p/root/etc/version; done
        unshare --user --map-root-user --mount bash -c 'umount /; umount -l /; ls /shared/versions; cat /etc/version'
        grep -c ' /shared ' /proc/self/mountinfo
    """
    said = cluster.ssh(f"srun --nodelist=gpu-0 bash -c {quote(probe)} 2>/dev/null || true")
    assert set(said.split()) <= {"v1", "0"}
    assert said.split()[-1] == "0"
    job_tmp = cluster.inside("gpu-0", f"ls {TMP}").split()
    assert job in job_tmp
    finish(cluster, job, go)


def test_setuid_program_of_a_version_gets_no_rights_in_a_job(cluster: RootCluster) -> None:
    planted = cluster.shared / "versions/v1/usr/local/bin/who"
    planted.write_bytes((cluster.shared / "versions/v1/usr/bin/id").read_bytes())
    planted.chmod(0o4755)
    try:
        assert cluster.ssh("srun who -u") == str(ALICE)
    finally:
        planted.unlink()


def test_task_inherits_no_folder_of_the_pod(cluster: RootCluster) -> None:
    script = "for f in /proc/self/fd/*; do [[ -d $f ]] && readlink $f; done; true"
    assert cluster.ssh(f"srun bash -c '{script}'") == ""
    assert cluster.ssh(script) == ""


@pytest.mark.parametrize(
    ("folder", "mode", "reason"),
    [
        pytest.param("versions", 0o755, "the shared volume's folder versions is open to all users: chmod 700 it", id="versions-open"),
        pytest.param("", 0o777, "is writable for everybody: chmod o-w it", id="volume-writable"),
        pytest.param(
            "versions/v1", 0o700, "must be readable for everybody and writable for few: chmod 755 its folder", id="version-closed"
        ),
    ],
)
def test_volume_with_rights_that_users_could_misuse_is_refused(cluster: RootCluster, folder: str, mode: int, reason: str) -> None:
    place = cluster.shared / folder
    before = place.stat().st_mode & 0o7777
    place.chmod(mode)
    try:
        assert reason in cluster.ssh("echo in", check=False)
    finally:
        place.chmod(before)


def test_all_processes_of_the_user_on_a_node_are_in_the_root(cluster: RootCluster) -> None:
    job, go = held(cluster, "--nodelist=gpu-0")
    # One that has no root at all has just ended.
    script = f"""for p in /proc/[0-9]*; do
        [[ $(stat -c %u $p 2>/dev/null) == {ALICE} ]] || continue
        said=$(cat $p/root/etc/version 2>&1) || [[ -e $p/root/. ]] || continue
        echo "$said"
    done"""
    assert set(cluster.inside("gpu-0", script).split()) == {"v1"}
    assert cluster.inside("gpu-0", "cat /etc/version 2>&1 || true").endswith("No such file or directory")
    finish(cluster, job, go)


def test_tmp_is_private_to_a_job_and_gone_after_it(cluster: RootCluster) -> None:
    # Deeper than a path can be long, with a link to what must stay, and a name that is a trap for shells.
    make = (
        "d=$(printf d%.0s {1..200}); for n in {1..40}; do mkdir $d; cd $d; done; ln -s /home/alice out; mkdir -p a/b; touch a/b/c -- '-r f'"
    )
    job, go = held(cluster, "--nodelist=gpu-0", then=f"cd /tmp; echo mine > /tmp/mine; touch /var/tmp/mine; srun ls /tmp /var/tmp; {make}")
    other = cluster.ssh("touch kept; srun --nodelist=gpu-0 bash -c 'ls -A /tmp /var/tmp; stat -c %a /tmp /var/tmp; touch /tmp/other'")
    assert other.split() == ["/tmp:", "/var/tmp:", "1777", "1777"]
    assert finish(cluster, job, go).split()[2:] == ["/tmp:", "mine", "/var/tmp:", "mine"]
    wait_for("an empty node", lambda: left(cluster, "gpu-0") == "0")
    assert "kept" in cluster.ssh("ls")
    assert "mine" not in cluster.inside("gpu-0", "ls -A /tmp /var/tmp")


def test_shm_is_shared_by_the_steps_of_a_job_and_by_no_other(cluster: RootCluster) -> None:
    job, go = held(cluster, "--nodelist=gpu-0", then="echo here > /dev/shm/s; srun cat /dev/shm/s; echo done > done.$SLURM_JOB_ID")
    go.touch()
    wait_for("its file", lambda: cluster.ssh(f"ls done.{job}", check=False) == f"done.{job}")
    wait_for("its end", lambda: cluster.state(job) == "COMPLETED")
    assert cluster.out(job).split()[-1] == "here"
    assert cluster.ssh("srun --nodelist=gpu-0 ls -A /dev/shm") == ""


def test_var_log_of_jobs_and_sessions_has_the_folders_of_the_version_and_none_of_its_files(cluster: RootCluster) -> None:
    logs = cluster.shared / "versions/v1/var/log"
    (logs / "daemon").mkdir(0o700, exist_ok=True)
    os.chown(logs / "daemon", 33, 4)
    (logs / "daemon").chmod(0o750)
    (logs / "old.log").write_text("of another node")
    look = "find . -mindepth 1 -maxdepth 1 -type d -printf '%M %U:%G %f\\n'"
    wanted = sorted(subprocess.run(["bash", "-c", look], cwd=logs, capture_output=True, text=True, check=True).stdout.splitlines())
    assert "drwxr-x--- 33:4 daemon" in wanted
    probe = f"cd /var/log; {look}; find . -type f 2>/dev/null; true"
    try:
        for said in (cluster.ssh(probe), cluster.ssh(f"srun bash -c {quote(probe)}")):
            assert sorted(said.splitlines()) == wanted
        assert "Permission denied" in cluster.ssh("srun touch /var/log/mine", check=False)
    finally:
        (logs / "old.log").unlink()
        (logs / "daemon").rmdir()


def test_what_a_job_logs_is_seen_by_its_steps_on_that_node_and_by_nobody_else(cluster: RootCluster) -> None:
    place = cluster.shared / "versions/v1/var/log/open"
    place.mkdir(exist_ok=True)
    place.chmod(0o1777)
    go = cluster.machine.folder / "volume-home/alice" / f"go{next(_marks)}"
    write = "srun bash -c 'echo $SLURMD_NODENAME > /var/log/open/$SLURMD_NODENAME'; srun ls -A /var/log/open"
    script = f"{write}; echo written; until [[ -e {go.name} ]]; do sleep 0.1; done"
    try:
        job = cluster.ssh(f"sbatch --parsable --nodes=2 --ntasks-per-node=1 --output=out.%j <<'SCRIPT'\n#!/bin/bash\n{script}\nSCRIPT")
        wait_for("its files", lambda: "written" in cluster.out(job))
        assert sorted(cluster.out(job).split()) == ["gpu-0", "gpu-1", "written"]
        cluster.ssh("echo of a session > /var/log/open/session")
        assert cluster.ssh("srun --nodes=2 ls -A /var/log/open", user="bob") == ""
        assert cluster.ssh("cat /var/log/open/*", user="bob") == "of a session"
        assert [*place.iterdir()] == []
        finish(cluster, job, go)
        assert cluster.ssh("srun --nodes=2 ls -A /var/log/open; rm /var/log/open/session") == ""
    finally:
        place.rmdir()


def test_version_whose_var_log_is_a_link_keeps_the_link(cluster: RootCluster) -> None:
    logs = cluster.shared / "versions/v2/var/log"
    kept = logs.rename(logs.with_name("logs"))
    logs.symlink_to("logs")
    try:
        assert cluster.ssh("srun --root-version=v2 readlink /var/log") == "logs"
    finally:
        logs.unlink()
        kept.rename(logs)


def test_session_has_a_run_lock_of_its_own_that_its_user_can_write(cluster: RootCluster) -> None:
    assert cluster.ssh("stat -c '%a %U' /run/lock; touch /run/lock/mine; ls /run/lock").split() == ["1777", "root", "mine"]
    assert cluster.ssh("ls -A /run/lock; touch /run/mine 2>/dev/null || echo refused") == "refused"


def test_volume_on_the_disk_of_the_image_can_be_written_and_a_folder_of_the_image_not(cluster: RootCluster) -> None:
    """As where the runtime keeps images, and the kubelet a hostPath, on one disk of the machine: the device says nothing."""
    make = "mkdir -p /opt/data /srv/data; chmod 1777 /opt/data /srv/data; mount --bind /opt/data /srv/data; stat -c %d / /srv/data | uniq"
    pods = [cluster.containers["t-login/login"], cluster.worker("gpu-0")]
    write = "touch /srv/data/mine && echo wrote; touch /opt/data/mine 2>/dev/null || echo refused; ls /opt/data"
    try:
        assert [len(pod.run("bash", "-c", make).split()) for pod in pods] == [1, 1]
        cluster.settings(f"{CONF}mount=/srv/data\nmount=/opt/data\n")
        assert cluster.ssh(write).split() == ["wrote", "refused", "mine"]
        assert cluster.ssh(f"srun --nodelist=gpu-0 bash -c {quote(write)}").split() == ["wrote", "refused", "mine"]
    finally:
        cluster.settings(CONF)
        for pod in pods:
            pod.run("bash", "-c", "umount /srv/data; rm -rf /srv/data /opt/data", check=False)


def test_number_of_an_ended_job_stands_for_no_version_any_more(cluster: RootCluster) -> None:
    job = cluster.batch("true", "--nodes=2")
    assert cluster.state(job) == "COMPLETED"
    wait_for("the link to go", lambda: not (cluster.shared / "jobs" / job).is_symlink())


def test_jobs_of_a_user_who_is_to_stay_outside_look_at_the_node_itself(cluster: RootCluster) -> None:
    look = ("srun", "--nodelist=gpu-0", "--chdir=/", "ls", "/opt/slipway/slurm")
    with pytest.raises(PodError, match="No such file"):
        cluster.slurm(*look)
    cluster.settings(f"{CONF}outside={SLURM}\n")
    try:
        assert "states.py" in cluster.slurm(*look)
        assert "No such file" in cluster.ssh("srun --nodelist=gpu-0 ls /opt/slipway/slurm", check=False)
    finally:
        cluster.settings(CONF)


DAMAGES = [
    pytest.param("mount -t tmpfs -o nr_inodes=1,mode=755 none /shared/jobs; ! ln -s x /shared/jobs/1 2>/dev/null", id="full"),
    pytest.param("mount -o remount,bind,ro /shared; ! ln -s x /shared/jobs/1 2>/dev/null", id="read-only"),
]
MEND = "umount /shared/jobs 2>/dev/null || mount -o remount,bind,rw /shared"


@pytest.mark.parametrize("damage", DAMAGES)
def test_volume_that_takes_no_writes_keeps_no_job_from_running_in_its_version(cluster: RootCluster, damage: str) -> None:
    running, go = held(cluster, "--nodes=2", "--ntasks-per-node=1", then="srun cat /etc/version")
    try:
        for node in WORKERS:
            cluster.inside(node, damage)
        assert finish(cluster, running, go).split() == ["v1", "begun", "v1", "v1"]
        assert cluster.ssh("srun --nodes=2 cat /etc/version").split() == ["v1", "v1"]
        assert cluster.ssh("srun --root-version=v2 cat /etc/version") == "v2"
    finally:
        for node in WORKERS:
            cluster.inside(node, MEND)
    assert cluster.ready() or wait_for("idle workers", cluster.ready) is None


def test_version_without_var_log_on_a_read_only_volume_runs_without_one(cluster: RootCluster) -> None:
    logs = cluster.shared / "versions/v2/var/log"
    kept = logs.rename(logs.with_name("logs"))
    pods = [cluster.containers["t-login/login"], cluster.worker("gpu-0")]
    probe = "cat /etc/version; ls -d /var/log 2>/dev/null || echo none"
    try:
        for pod in pods:
            pod.run("mount", "-o", "remount,bind,ro", "/shared")
        cluster.switch("v2")
        assert cluster.ssh(probe).split() == ["v2", "none"]
        assert cluster.ssh(f"srun --nodelist=gpu-0 bash -c {quote(probe)}").split() == ["v2", "none"]
    finally:
        for pod in pods:
            pod.run("mount", "-o", "remount,bind,rw", "/shared")
        kept.rename(logs)


@pytest.fixture
def version_to_go(cluster: RootCluster) -> Iterator[Path]:
    """A third version, for the cleaner to remove."""
    version = cluster.shared / "versions/v3"
    subprocess.run(["cp", "-al", version.with_name("v2"), version], check=True)
    (version / "etc/version").unlink()
    (version / "etc/version").write_text("v3\n")
    for folder in ("sources", "filling"):
        (cluster.shared / folder).mkdir(exist_ok=True)
    yield version
    subprocess.run(["rm", "-rf", version], check=True)


@pytest.mark.parametrize("damage", DAMAGES)
def test_version_of_a_running_job_stays_although_the_volume_took_no_note_of_it(
    cluster: RootCluster, version_to_go: Path, damage: str
) -> None:
    cluster.inside("gpu-0", damage)
    try:
        job, go = held(cluster, "--nodelist=gpu-0", "--root-version=v3", then="srun cat /etc/version")
    finally:
        cluster.inside("gpu-0", MEND)
    assert not (cluster.shared / "jobs" / job).is_symlink()
    assert f"version v3 stays: nothing says which version these running jobs have: {job}" in cluster.clean("v1 v2")
    assert finish(cluster, job, go).split() == ["v3", "begun", "v3"]
    wait_for("idle workers", cluster.ready)
    assert "version v3 is removed" in cluster.clean("v1 v2", looks=10)
    assert not version_to_go.exists()


def test_version_is_removed_while_others_are_used_and_not_while_slurmctld_is_silent(cluster: RootCluster, version_to_go: Path) -> None:
    jobs = [
        held(cluster, *options)
        for options in (("--root-version=v3", "--nodelist=gpu-0"), ("--nodelist=gpu-1",), ("--nodes=2", "--ntasks=2"))
    ]
    lost = cluster.shared / "jobs/4000000"  # of a job that slurmctld knows nothing of
    lost.symlink_to("v3")
    assert "version v3 is used by 1 jobs; it stays" in cluster.clean("v1 v2")
    assert not lost.is_symlink()
    first, go = jobs.pop(0)
    finish(cluster, first, go)
    wait_for("the link to go", lambda: not (cluster.shared / "jobs" / first).is_symlink())
    assert "version v3 stays: slurmctld does not say which jobs run" in cluster.clean("v1 v2", slurmctld="t-nobody")
    assert version_to_go.exists()
    assert "version v3 is removed" in cluster.clean("v1 v2", looks=10)
    assert not version_to_go.exists()
    for job in jobs:
        finish(cluster, *job)


def test_root_without_a_shell_fails_with_words_and_leaves_the_nodes_idle(cluster: RootCluster) -> None:
    (cluster.shared / "versions/bare").mkdir(0o755, exist_ok=True)
    cluster.switch("bare")
    said = cluster.ssh("true", check=False)
    assert "version bare of the root has no /bin/sh, so it is no whole root file system" in said
    cluster.switch("v1")
    job = cluster.batch("echo ran", "--root-version=bare", "--nodes=2")
    assert cluster.state(job) == "FAILED"
    assert "version bare of the root has no /bin/sh" in cluster.out(job)
    wait_for("idle workers", cluster.ready)
    wait_for("empty nodes", lambda: all(left(cluster, node) == "0" for node in WORKERS))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("mount=home", "root.conf:1: not an absolute path without . and ..: home", id="relative"),
        pytest.param("# x\nmount=/a/../b", "root.conf:2: not an absolute path without . and ..: /a/../b", id="parent"),
        pytest.param(
            "folder=/home",
            "root.conf:1: unknown key; there are shared, mount, mount?, file, file?, tmp, spool, outside: folder",
            id="unknown-key",
        ),
        pytest.param("mount", "root.conf:1: not key=value: mount", id="no-value"),
        pytest.param("outside=slurm", "root.conf:1: not the number of a user: slurm", id="user-by-name"),
        pytest.param("mount=/home\nmount=/home", "root.conf:2: bound a second time: /home", id="twice"),
        pytest.param("mount=/shared", "root.conf:1: would show all versions inside each: /shared", id="all-versions"),
        pytest.param("tmp=/a\ntmp=/b", "root.conf:2: given a second time: /b", id="two-tmps"),
        pytest.param("file=/run/x", "root.conf:1: /proc, /sys, /dev, /run and the tmp folders are bound always: /run/x", id="bound-always"),
        pytest.param("mount=/not/there", "/not/there of the pod: No such file or directory", id="missing-in-the-pod"),
        pytest.param("shared=/not/there", "the shared volume /not/there: No such file or directory", id="missing-volume"),
    ],
)
def test_broken_settings_refuse_sessions_and_jobs_with_words(cluster: RootCluster, text: str, fault: str) -> None:
    cluster.settings(text + "\n")
    with pytest.raises(PodError, match=re.escape(fault)):
        cluster.ssh("echo in")
    wait_for("the reason in the log", lambda: fault in cluster.containers["t-login/login"].log)
    job = submit_outside(cluster, "echo ran")
    wait_for("its end", lambda: cluster.state(job) == "FAILED")
    said = (cluster.machine.folder / f"volume-home/alice/out.{job}").read_text()
    assert fault in said
    assert "ran" not in said.split()
    wait_for("idle workers", cluster.ready)


def submit_outside(cluster: RootCluster, script: str) -> str:
    """Submits a job for alice without a login session."""
    words = ("sbatch", "--parsable", "--chdir=/home/alice", "--output=out.%j", "--wrap", script)
    inside = cluster.containers["t-slurmctld-0/reconfigure"]
    return inside.run(*words, user=ALICE, env={"SLURM_CONF": "/etc/slurm/slurm.conf"}).strip()


def test_without_settings_the_feature_is_off(cluster: RootCluster) -> None:
    cluster.settings(None)
    probe = "ls -d /shared/current; echo [$SLIPWAY_ROOT_VERSION]"
    assert cluster.ssh(probe).split() == ["/shared/current", "[]"]
    assert cluster.ssh(f"srun bash -c '{probe}'").split() == ["/shared/current", "[]"]
    assert "this cluster has no versioned root" in cluster.ssh("srun --root-version=v1 true", check=False)


def stand_in(cluster: RootCluster, node: str, version: str) -> None:
    """A driver in a pod: a library with a name of its own, and a program."""
    script = f"""
        mkdir -p /run/nvidia/lib.new /run/nvidia/bin
        sed 's/libutil\\.so\\.1/libcudx.so.1/g' /usr/lib/*-linux-gnu/libutil.so.1 > /run/nvidia/lib.new/libcudx.so.{version}
        printf 'driver-{version}' >> /run/nvidia/lib.new/libcudx.so.{version}
        ln -s libcudx.so.{version} /run/nvidia/lib.new/libcudx.so.1
        printf '#!/bin/sh\\necho smi-{version}\\n' > /run/nvidia/bin/nvidia-smi
        chmod 755 /run/nvidia/bin/nvidia-smi
        rm -rf /run/nvidia/lib
        mv /run/nvidia/lib.new /run/nvidia/lib
    """
    cluster.inside(node, script)


DRIVER_PROGRAM = """\
import ctypes, os
try:
    ctypes.CDLL("libcudx.so.1")
    found = next(line.split()[-1] for line in open("/proc/self/maps") if "libcudx" in line)
    print(os.environ["SLURMD_NODENAME"], found, open(found, "rb").read()[-10:].decode())
except OSError:
    print(os.environ["SLURMD_NODENAME"], "none")
"""


def test_each_node_finds_its_own_driver_and_nothing_of_it_is_in_the_shared_tree(cluster: RootCluster) -> None:
    (cluster.machine.folder / "volume-home/alice/driver.py").write_text(DRIVER_PROGRAM)

    def seen() -> list[str]:
        said = cluster.ssh("srun --nodes=2 bash -c 'python3 driver.py; nvidia-smi 2>/dev/null; /sbin/ldconfig -p 2>/dev/null | wc -l'")
        assert min(int(word) for word in said.split() if word.isdecimal()) > 50, "the version's own libraries are gone"
        return sorted(line for line in said.splitlines() if not line.isdecimal())

    def files() -> set[str]:
        return {
            f"{path} {path.lstat().st_size}"
            for name in ("etc", "var/cache", "usr/lib", "sbin")
            for path in (cluster.shared / "versions/v1" / name).rglob("*")
        }

    cluster.ssh("srun --nodes=2 true")  # mount points are there
    before = files()
    try:
        stand_in(cluster, "gpu-0", "550")
        assert seen() == ["gpu-0 /run/nvidia/lib/libcudx.so.550 driver-550", "gpu-1 none", "smi-550"]
        stand_in(cluster, "gpu-1", "560")
        one = "gpu-1 /run/nvidia/lib/libcudx.so.560 driver-560"
        assert seen() == ["gpu-0 /run/nvidia/lib/libcudx.so.550 driver-550", one, "smi-550", "smi-560"]
        made = cluster.inside("gpu-0", "stat -c %Y.%i /run/nvidia/cache/v1.cache")
        seen()
        assert cluster.inside("gpu-0", "stat -c %Y.%i /run/nvidia/cache/v1.cache") == made
        stand_in(cluster, "gpu-0", "570")
        assert seen() == ["gpu-0 /run/nvidia/lib/libcudx.so.570 driver-570", one, "smi-560", "smi-570"]
        assert files() == before
    finally:
        for node in WORKERS:
            cluster.inside(node, "rm -rf /run/nvidia")


def test_driver_files_that_the_runtime_has_mounted_are_found_by_jobs(cluster: RootCluster) -> None:
    mounted = """
        lib=$(echo /usr/lib/*-linux-gnu)
        sed 's/libutil\\.so\\.1/libcuda.so.1/g' $lib/libutil.so.1 > /var/tmp/driver
        printf '#!/bin/sh\\necho smi\\n' > /var/tmp/smi; chmod 755 /var/tmp/smi
        touch $lib/libcuda.so.550.54 /usr/bin/nvidia-smi $lib/libother.so.9
        mount --bind /var/tmp/driver $lib/libcuda.so.550.54
        mount --bind /var/tmp/driver $lib/libother.so.9
        mount --bind /var/tmp/smi /usr/bin/nvidia-smi
        bash /opt/slipway/programs/worker/share-driver.sh 2>&1; ls /run/nvidia/lib
    """
    try:
        said = cluster.inside("gpu-0", mounted)
        assert "2 driver files are in /run/nvidia" in said
        assert said.split()[-3:] == ["libcuda.so", "libcuda.so.1", "libcuda.so.550.54"]
        program = "import ctypes; ctypes.CDLL('libcuda.so.1'); print('loaded')"
        assert cluster.ssh(f'srun --nodelist=gpu-0 bash -c "python3 -c \\"{program}\\"; nvidia-smi"').split() == ["loaded", "smi"]
        assert "cannot open shared object" in cluster.ssh(f'srun --nodelist=gpu-1 python3 -c "{program}"', check=False)
    finally:
        undo = "umount /usr/lib/*-linux-gnu/lib{cuda.so.550.54,other.so.9} /usr/bin/nvidia-smi /run/nvidia/lib/* /run/nvidia/bin/*"
        cluster.inside("gpu-0", f"{undo} 2>/dev/null; rm -rf /run/nvidia", check=False)


def test_version_without_a_working_ldconfig_is_refused_where_there_is_a_driver(cluster: RootCluster) -> None:
    stand_in(cluster, "gpu-0", "550")
    program = cluster.shared / "versions/v2/usr/sbin/ldconfig"
    kept = program.rename(program.with_name("ldconfig.kept"))
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    try:
        said = cluster.ssh("srun --nodelist=gpu-0 --root-version=v2 true", check=False)
        assert "the root's /sbin/ldconfig, run for the driver's libraries, gave 3" in said
        assert cluster.ssh("srun --nodelist=gpu-1 --root-version=v2 echo ran") == "ran"
    finally:
        kept.rename(program)
        cluster.inside("gpu-0", "rm -rf /run/nvidia")


def test_ldconfig_of_a_version_has_no_rights_on_the_node(cluster: RootCluster) -> None:
    stand_in(cluster, "gpu-0", "550")
    program = cluster.shared / "versions/v2/usr/sbin/ldconfig"
    kept = program.rename(program.with_name("ldconfig.kept"))
    probe = "id -u; grep -E 'CapEff|CapPrm|NoNewPrivs' /proc/self/status; touch /etc/planted /run/planted /home/planted 2>&1 | wc -l"
    program.write_text(f"#!/bin/sh\n( {probe} ) > /run/nvidia/cache/.work/cache\n")
    program.chmod(0o755)
    try:
        cluster.ssh("srun --nodelist=gpu-0 --root-version=v2 /bin/true", check=False)
        said = cluster.inside("gpu-0", "cat /run/nvidia/cache/v2.cache; stat -c %U:%a /run/nvidia/cache/v2.cache").split()
        assert said == ["65534", "CapPrm:", "0" * 16, "CapEff:", "0" * 16, "NoNewPrivs:", "1", "3", "root:644"]
    finally:
        kept.rename(program)
        cluster.inside("gpu-0", "rm -rf /run/nvidia")


def test_files_that_a_login_session_installs_are_seen_by_jobs_on_all_nodes(cluster: RootCluster) -> None:
    place = cluster.shared / "versions/v1/opt/tools"
    place.mkdir(exist_ok=True)
    place.chmod(0o777)
    cluster.ssh("printf '#!/bin/sh\\necho tool on $(hostname)\\n' > /opt/tools/tool; chmod 755 /opt/tools/tool")
    assert sorted(cluster.ssh("srun --nodes=2 /opt/tools/tool").splitlines()) == ["tool on gpu-0", "tool on gpu-1"]


def test_ssh_command_interactive_session_scp_and_sftp_work(cluster: RootCluster, tmp_path: Path) -> None:
    interactive = cluster.ssh("tty; cat /etc/version", "-tt").split()
    assert (interactive[0].startswith("/dev/pts/"), interactive[1]) == (True, "v1")
    shell = cluster.outside("ssh", *cluster.ssh_options(), "-tt", cluster.login_target, stdin="cat /etc/version; pwd; exit\n")
    assert "v1" in shell.split()
    assert "/home/alice" in shell.split()
    (tmp_path / "sent").write_text("payload\n")
    for more in ([], ["-O"]):
        cluster.outside("scp", *cluster.ssh_options(), *more, str(tmp_path / "sent"), f"{cluster.login_target}:sent")
        cluster.outside("scp", *cluster.ssh_options(), *more, f"{cluster.login_target}:/etc/version", str(tmp_path / "version"))
        assert (cluster.ssh("cat sent; rm sent"), (tmp_path / "version").read_text()) == ("payload", "v1\n")
    listed = cluster.outside(
        "sftp", *cluster.ssh_options(), "-b", "-", cluster.login_target, stdin="ls /shared\nget /etc/version /dev/stdout\n", check=False
    )
    assert "versions" not in listed


def test_sessions_need_one_capability_more_and_are_refused_without_it(cluster: RootCluster) -> None:
    login, key = cluster.containers["t-login/login"], (cluster.machine.folder / "id.pub").read_text()
    assert "bounding set" in login.run("sh", "-c", "echo bounding set; grep CapBnd /proc/self/status")
    login.stop()
    full, cluster.login_capabilities = cluster.login_capabilities, [each for each in cluster.login_capabilities if each != "SYS_ADMIN"]
    try:
        login = cluster.login(key, (cluster.machine.folder / "host").read_text())
        wait_for("sshd", lambda: "listening" in login.log.lower())
        with pytest.raises(PodError, match="unshare: Operation not permitted"):
            cluster.ssh("echo in")
        login.stop()
    finally:
        cluster.login_capabilities = full
        cluster.login(key, (cluster.machine.folder / "host").read_text())
        wait_for("login", lambda: "main" in cluster.ssh("sinfo"))


def test_srun_with_a_terminal_runs_in_the_root(cluster: RootCluster) -> None:
    said = cluster.ssh("srun --pty bash -c 'tty; cat /etc/version'", "-tt").split()
    assert said[-1] == "v1"
    assert any(word.startswith("/dev/pts/") for word in said)


def test_job_starts_in_its_folder_and_in_its_own_tmp_where_that_is_missing(cluster: RootCluster) -> None:
    assert cluster.ssh("mkdir -p deep/er; cd deep/er; srun pwd") == "/home/alice/deep/er"
    assert cluster.ssh("srun --chdir=/not/there bash -c 'pwd; ls -A' 2>/dev/null") == "/tmp"
    said = cluster.ssh("srun --chdir=/opt/slipway/slurm pwd", check=False)  # of the pod, not of the root
    assert "the job has no folder /opt/slipway/slurm (No such file or directory): going to /tmp instead" in said
    assert "/tmp" in said.splitlines()


def test_folder_that_the_user_may_not_enter_is_not_entered_for_them(cluster: RootCluster) -> None:
    closed = cluster.machine.folder / "volume-home/closed"
    closed.mkdir(exist_ok=True)
    closed.chmod(0o700)
    assert cluster.ssh("srun --chdir=/home/closed pwd 2>/dev/null") == "/tmp"


def test_mpi_of_slurm_crosses_nodes_inside_the_root(cluster: RootCluster) -> None:
    program = (Path(__file__).parent / "mpi_sum.py").read_text()
    (cluster.machine.folder / "volume-home/alice/mpi_sum.py").write_text(program)
    assert sorted(cluster.ssh("srun --nodes=2 --mpi=pmi2 bash -c 'echo $PMI_RANK $PMI_SIZE'").splitlines()) == ["0 2", "1 2"]
    job = cluster.batch("mpirun python3 mpi_sum.py", "--nodes=2", "--ntasks-per-node=2", "--time=5", deadline_s=300)
    assert sorted(cluster.out(job).splitlines()) == [f"rank {rank} of 4 on gpu-{rank // 2}: sum 6" for rank in range(4)]


def test_output_that_srun_itself_writes_lies_where_srun_was_called(cluster: RootCluster) -> None:
    """One file for all tasks is srun's own, and in a login session that is the session's /tmp; test_job_limits.py has all others."""
    cluster.ssh("srun --output=step.out echo said; rm -f /tmp/x.out")
    assert cluster.ssh("cat step.out") == "said"
    assert cluster.ssh("srun --nodelist=gpu-0 --output=/tmp/x.out bash -c 'echo said; ls /tmp'") == ""
    assert cluster.ssh("cat /tmp/x.out; rm /tmp/x.out") == "said"


def test_task_prolog_and_users_own_programs_around_a_task(cluster: RootCluster) -> None:
    cluster.ssh("printf '#!/bin/bash\\necho print prolog $(cat /etc/version)\\n' > prolog; chmod 755 prolog")
    assert cluster.ssh("srun --task-prolog=/home/alice/prolog cat /etc/version").split() == ["prolog", "v1", "v1"]


def test_users_epilog_runs_outside_but_sees_no_version(cluster: RootCluster) -> None:
    script = "ls /shared /shared/versions > epilog.out 2>&1; id -u >> epilog.out"
    cluster.ssh(f"printf '#!/bin/bash\\n{script}\\n' > epilog; chmod 755 epilog; rm -f epilog.out")
    cluster.ssh("srun --task-epilog=/home/alice/epilog true")
    said = cluster.ssh("cat epilog.out")
    assert "cannot open directory '/shared/versions': Permission denied" in said
    assert said.split()[-1] == str(ALICE)


def test_slurmd_restart_keeps_running_jobs_in_their_root_and_takes_new_steps(cluster: RootCluster) -> None:
    job, go = held(cluster, "--nodelist=gpu-0", then="srun cat /etc/version")
    worker = cluster.worker("gpu-0")
    # Not killed: a slurmd that cannot write its state forgets that the job's prolog has run, and takes no new step of it, root or not.
    worker.run("pkill", "--signal", "TERM", "^slurmd-wlm|^slurmd$")
    wait_for("a second start", lambda: "starting it again" in worker.log and worker.log.count("slurmd started") >= 2, deadline_s=30)
    cluster.switch("v2")
    assert finish(cluster, job, go).split() == ["v1", "begun", "v1"]
    wait_for("an empty node", lambda: left(cluster, "gpu-0") == "0")


def test_killed_slurmstepd_leaves_nothing_after_the_epilog(cluster: RootCluster) -> None:
    job, _ = held(cluster, "--nodelist=gpu-0", "--no-requeue")
    assert left(cluster, "gpu-0") != "0"
    cluster.inside("gpu-0", f"kill -KILL $(pgrep -f 'slurmstepd: \\[{job}\\.')")
    cluster.slurm("scancel", job)
    wait_for("its end", lambda: cluster.state(job) not in ("RUNNING", "COMPLETING"), deadline_s=60)
    wait_for("an empty node", lambda: left(cluster, "gpu-0") == "0", deadline_s=30)


def test_leftovers_of_a_job_without_an_epilog_go_with_the_next_job(cluster: RootCluster) -> None:
    cluster.inside("gpu-0", f"mkdir -p {TMP}/4000000/tmp/x; touch {TMP}/4000000/tmp/x/y")
    cluster.ssh("srun --nodelist=gpu-0 true")
    wait_for("an empty node", lambda: left(cluster, "gpu-0") == "0")


def test_fifty_running_jobs_keep_their_version_over_a_switch_and_new_ones_see_the_new_one(
    cluster: RootCluster, version_to_go: Path
) -> None:
    home = cluster.machine.folder / "volume-home/alice"
    go = home / f"go{next(_marks)}"
    step = "srun bash -c 'cat /etc/version; echo $SLIPWAY_ROOT_VERSION'"
    script = f"cat /etc/version; echo begun; until [[ -e {go.name} ]]; do sleep 1; done; {step}"
    options = "--partition=many --mem=70 --array=0-49 --output=many.%a"
    array = cluster.ssh(f"rm -f many.*; sbatch --parsable {options} <<'SCRIPT'\n#!/bin/bash\n{script}\nSCRIPT")

    def states() -> list[str]:
        return cluster.slurm("squeue", "--noheader", "--states", "all", "--array", "--job", array, "--format", "%T").split()

    def said() -> list[str]:
        return [file.read_text() for file in home.glob("many.*")]

    wait_for("fifty running jobs", lambda: states() == ["RUNNING"] * 50 and said() == ["v1\nbegun\n"] * 50, deadline_s=180)
    assert "version v2 is current, after v1" in cluster.roll_out("v2")
    assert cluster.ssh("cat /etc/version; srun --partition=many --nodes=2 --mem=70 cat /etc/version").split() == ["v2"] * 3
    assert "version v1 is used by 50 jobs; it stays" in cluster.clean("v2 v3")
    assert "version v3 is removed" in cluster.clean("v1 v2", looks=10)  # so each of the fifty is known
    assert not version_to_go.exists()
    assert states() == ["RUNNING"] * 50
    go.touch()
    wait_for("their end", lambda: states() == ["COMPLETED"] * 50, deadline_s=180)
    assert said() == ["v1\nbegun\nv1\nv1\n"] * 50
    wait_for("empty nodes", lambda: all(left(cluster, node) == "0" for node in WORKERS), deadline_s=60)
