"""What jobs and sessions find in the shared root: their own folders, the node's driver, and Slurm's and ssh's ways to start a program.
All of Slurm, sshd and the image are real; what fills /run/nvidia in a pod is left to others.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import pytest

from tests.support.slurm.held_jobs import finish, held, left, make_idle, new_mark
from tests.support.slurm.image_pods import MPI_SUM, PodError, wait_for
from tests.support.slurm.image_stack import ALICE
from tests.support.slurm.root_cluster import CONF, WORKERS, RootCluster, running, stand_in


@pytest.fixture(scope="module")
def cluster(image_root: Path) -> Iterator[RootCluster]:
    """Two versions, v1 current."""
    with running(Path("/var/tmp/slipway-root-view"), "swrv-", image_root) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def idle(cluster: RootCluster) -> None:
    """Each test starts with idle workers, v1 and good settings."""
    make_idle(cluster)


def test_task_inherits_no_folder_of_the_pod(cluster: RootCluster) -> None:
    script = "for f in /proc/self/fd/*; do [[ -d $f ]] && readlink $f; done; true"
    assert cluster.ssh(f"srun bash -c '{script}'") == ""
    assert cluster.ssh(script) == ""


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


def test_var_log_has_the_folders_of_the_version_and_none_of_its_files(cluster: RootCluster) -> None:
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


def test_log_of_a_job_is_seen_only_by_its_steps_on_that_node(cluster: RootCluster) -> None:
    place = cluster.shared / "versions/v1/var/log/open"
    place.mkdir(exist_ok=True)
    place.chmod(0o1777)
    go = cluster.machine.folder / "volume-home/alice" / new_mark()
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


def test_volume_on_the_images_disk_is_writable_and_image_folders_are_not(cluster: RootCluster) -> None:
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


DRIVER_PROGRAM = """\
import ctypes, os
try:
    ctypes.CDLL("libcudx.so.1")
    found = next(line.split()[-1] for line in open("/proc/self/maps") if "libcudx" in line)
    print(os.environ["SLURMD_NODENAME"], found, open(found, "rb").read()[-10:].decode())
except OSError:
    print(os.environ["SLURMD_NODENAME"], "none")
"""


def test_each_node_finds_its_own_driver_and_the_shared_tree_has_none(cluster: RootCluster) -> None:
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


def test_version_without_a_working_ldconfig_is_refused_beside_a_driver(cluster: RootCluster) -> None:
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


def test_files_installed_in_a_login_session_are_seen_by_jobs_on_all_nodes(cluster: RootCluster) -> None:
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


def test_job_starts_in_its_folder_or_in_its_own_tmp_if_that_is_missing(cluster: RootCluster) -> None:
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
    program = MPI_SUM.read_text()
    (cluster.machine.folder / "volume-home/alice/mpi_sum.py").write_text(program)
    assert sorted(cluster.ssh("srun --nodes=2 --mpi=pmi2 bash -c 'echo $PMI_RANK $PMI_SIZE'").splitlines()) == ["0 2", "1 2"]
    job = cluster.batch("mpirun python3 mpi_sum.py", "--nodes=2", "--ntasks-per-node=2", "--time=60", deadline_s=300)
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
