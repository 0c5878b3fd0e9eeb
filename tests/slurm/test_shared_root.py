"""The versioned shared root: who sees which version, switches while jobs run, and every way to fail. All of Slurm, sshd and the image are
real; what makes versions is left to others, and what else is found in a root is in test_root_view.py.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import pytest

from tests.bench import shared_root
from tests.bench.smallest import assert_yields_figures
from tests.support.slurm.held_jobs import finish, held, left, make_idle, new_mark
from tests.support.slurm.image_pods import PodError, wait_for
from tests.support.slurm.image_root import unpack
from tests.support.slurm.image_stack import ALICE, SLURM, STACK
from tests.support.slurm.root_cluster import CONF, PINS, TMP, WORKERS, RootCluster, running

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
    make_idle(cluster)


def test_job_step_and_login_see_the_current_version(cluster: RootCluster) -> None:
    probe = "cat /etc/version; echo $SLIPWAY_ROOT_VERSION"
    assert cluster.ssh(probe).split() == ["v1", "v1"]
    job = cluster.batch(f"{probe}; srun --nodes=2 bash -c '{probe}'", "--nodes=2")
    assert cluster.out(job).split() == ["v1"] * 6
    assert cluster.ssh(f"srun --nodes=2 bash -c '{probe}'").split() == ["v1"] * 4


def test_running_job_keeps_its_version_over_a_switch_and_new_ones_switch(cluster: RootCluster) -> None:
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


def test_plain_user_reaches_no_pod_no_other_version_and_no_other_job(cluster: RootCluster) -> None:
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
def test_jobs_run_in_their_version_on_a_volume_that_takes_no_writes(cluster: RootCluster, damage: str) -> None:
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
    wait_for("idle workers", cluster.ready)


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
def test_version_of_a_running_job_stays_although_no_note_could_be_written(cluster: RootCluster, version_to_go: Path, damage: str) -> None:
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


def test_version_is_removed_beside_used_ones_but_not_without_slurmctld(cluster: RootCluster, version_to_go: Path) -> None:
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


def test_slurmd_restart_keeps_jobs_in_their_root_and_takes_new_steps(cluster: RootCluster) -> None:
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


def test_fifty_running_jobs_keep_their_version_over_a_switch(cluster: RootCluster, version_to_go: Path) -> None:
    home = cluster.machine.folder / "volume-home/alice"
    go = home / new_mark()
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


def test_benchmark_of_the_root_yields_its_figures(cluster: RootCluster) -> None:
    assert_yields_figures(shared_root.BENCHMARK, cluster=cluster)
