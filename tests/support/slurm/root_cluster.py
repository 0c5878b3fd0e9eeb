"""A Slurm cluster whose jobs and logins run in a versioned shared root: slurmctld, two workers and a login node, without accounting.

The versions are hard links of the image's own files, so making one takes a second. Used by the tests and by the benchmark.
"""

import copy
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from components.pods import program_command
from names import paths
from tests.support import ssh
from tests.support.patience import patience
from tests.support.slurm.image_cluster import ImageCluster, program_mount
from tests.support.slurm.image_pods import ADMIN_CAPABILITIES, LOGIN_CAPABILITIES, Container, Machine, PodError, wait_for
from tests.support.slurm.image_stack import STACK

WORKERS = ("gpu-0", "gpu-1")
NAMES = {"t-slurmctld-0": ["t-slurmctld"], "t-login": [], "gpu-0": [], "gpu-1": [], "t-root-clean": []}
CONF = """\
# Of the tests.
shared=/shared
mount=/home
mount=/var/lib/extrausers
mount=/usr/lib/slipway
file=/etc/hosts
mount?=/not/in/this/pod
tmp=/var/spool/slipway/tmp
"""
OUTWARD = [
    pytest.param("ls -d /shared/versions /shared/*/v2 && echo out", id="the volume of the versions"),
    pytest.param("ls /opt/slipway/slurm && echo out", id="the pod's files"),
    pytest.param("nsenter --target 1 --mount ls /opt/slipway/slurm && echo out", id="enter the pod's namespace"),
    pytest.param(
        "for p in /proc/[0-9]*; do for way in root cwd; do ls $p/$way/opt/slipway/slurm && echo out; done; done",
        id="look through every process",
    ),
    pytest.param("unshare --user --map-root-user chroot /proc/1/root ls && echo out", id="another root, in a user namespace"),
    pytest.param(
        "unshare --user --map-root-user --mount sh -c 'for m in /run/slipway/ssh /run/slipway /run /home /proc /; do umount -l $m; done; "
        "ls -d /opt/slipway/slurm /run/slipway/ssh/*key && echo out'",
        id="what is below the mounts, in a user namespace",
    ),
    pytest.param("cat /run/slipway/ssh/ssh_host_ed25519_key && echo out", id="the host key"),
]
"""What a plain user can try to get out of a version, from a session or a job; who succeeds says `out`."""
PINS, TMP = "/run/slipway/ns", "/var/spool/slipway/tmp"


class RootCluster(ImageCluster):
    """The cluster, with the words that its tests use."""

    sudoers: str = ""
    """Who is an admin; empty for nobody."""

    @property
    def shared(self) -> Path:
        """The shared volume, as the node sees it."""
        return self.machine.folder / "volume-shared"

    def switch(self, version: str) -> None:
        """Makes a version the current one, as whoever rolls out does: in one step."""
        link = self.shared / "current.new"
        link.unlink(missing_ok=True)
        link.symlink_to(f"versions/{version}")
        link.replace(self.shared / "current")

    def roll_out(self, version: str) -> str:
        """Makes a version the current one by the Job's own script, in the login pod, which has the volume; gives what it said."""
        script = "/opt/slipway/scripts/root-switch.sh"
        return self.containers["t-login/login"].run("bash", script, env={"SLIPWAY_ROOT_VERSION": version})

    def clean(self, declared: str, looks: int = 1, slurmctld: str = "t-slurmctld") -> str:
        """Runs the cleaner's Job, for which every other version has been undeclared for long enough; gives what it said."""
        mounts = {"/shared": (self.shared, False), "/run/munge": (self.empty("t-root-clean-munge"), True), **program_mount("root_clean")}
        env = {
            "SLIPWAY_SLURMCTLD": slurmctld,
            "SLIPWAY_ROOT_VERSIONS": declared,
            "SLIPWAY_ROOT_KEEP_DAYS": "0",
            "SLIPWAY_ROOT_LOOKS": str(looks),
        }
        rights = ("DAC_OVERRIDE", "FOWNER")
        cleaner = self.machine.start(
            "t-root-clean", "clean", program_command("root_clean"), mounts, env, capabilities=rights, cwd=paths.PACKAGES
        )
        try:
            code = cleaner.ended()
            said = cleaner.log
        finally:
            cleaner.stop("KILL")
        if code:
            raise PodError(f"the cleaner gave {code}: {said}")
        return said

    def current(self) -> str:
        """The current version."""
        return (self.shared / "current").readlink().name

    def settings(self, text: str | None) -> None:
        """Writes root.conf; None takes it away, and with it the whole feature."""
        sudoers = {"sudoers": self.sudoers} if self.sudoers else {}
        folder = self.volume("root", {} if text is None else {"root.conf": text, **sudoers})
        if text is None:
            (folder / "root.conf").unlink(missing_ok=True)

    def worker(self, node: str) -> Container:
        """The container of a worker."""
        return self.containers[f"{node}/slurmd"]

    def inside(self, node: str, script: str, check: bool = True) -> str:
        """Runs a script as root in a worker's pod, outside the root."""
        return self.worker(node).run("bash", "-c", script, check=check).strip()

    def ssh_options(self, user: str = "alice") -> list[str]:
        """What ssh, scp and sftp need to get in."""
        return ["-i", str(self.machine.folder / "id"), *ssh.options("ConnectTimeout=60", "Port=2222", f"User={user}")]

    @property
    def login_target(self) -> str:
        """The login node's address."""
        return self.machine.addresses["t-login"]

    def ssh(self, script: str, *options: str, user: str = "alice", check: bool = True, timeout_s: float = 180, pod: str = "t-login") -> str:
        """Runs a script in a login session; with `check` off, errors are part of what it gives."""
        target = self.machine.addresses[pod]
        return self.outside("ssh", *self.ssh_options(user), *options, target, script, check=check, timeout_s=timeout_s)

    def outside(self, *command: str, stdin: str = "", check: bool = True, timeout_s: float = 180) -> str:
        """Runs a command on the pods' network, but in no pod."""
        full = ["nsenter", f"--net=/run/netns/{self.machine.prefix}hub", *command]
        done = subprocess.run(full, input=stdin, capture_output=True, text=True, timeout=timeout_s * patience(), check=False)
        if check and done.returncode:
            raise PodError(f"{' '.join(command[:1])} gave {done.returncode}: {done.stdout}{done.stderr}")
        return (done.stdout if check else done.stdout + done.stderr).strip()

    def ready(self) -> bool:
        """True when both workers are idle and nothing waits."""
        lines = self.slurm("sinfo", "--noheader", "--Node", "--format", "%N %T").splitlines()
        return dict(line.split() for line in lines) == dict.fromkeys(WORKERS, "idle") and not self.slurm("squeue", "--noheader")

    def state(self, job: str) -> str:
        """State of a job."""
        return self.slurm("squeue", "--noheader", "--states", "all", "--job", job, "--format", "%T")

    def submit(self, *options: str) -> str:
        """Submits a job as alice; gives its number."""
        return self.ssh(f"sbatch --parsable {' '.join(options)}")

    def batch(self, script: str, *options: str, deadline_s: float = 60) -> str:
        """Runs a batch script to its end; gives its number. Its output is `out.<number>` in the home, see `out`."""
        job = self.begin(script, *options)
        self.end(job, deadline_s)
        return job

    def begin(self, script: str, *options: str) -> str:
        """Submits a batch script; gives its number. Its output is as that of `batch`."""
        return self.ssh(f"sbatch --parsable --output=out.%j {' '.join(options)} <<'SCRIPT'\n#!/bin/bash\n{script}\nSCRIPT")

    def end(self, job: str, deadline_s: float = 60) -> None:
        """Waits for the end of a job."""
        wait_for("its end", lambda: self.state(job) not in ("PENDING", "RUNNING", "COMPLETING"), deadline_s=deadline_s)

    def out(self, job: str) -> str:
        """What a job said."""
        return self.ssh(f"cat out.{job}")


def make_versions(shared: Path, image: Path, *versions: str) -> None:
    """Makes versions of the image's files, each with its name in /etc/version."""
    (shared / "versions").mkdir(parents=True, mode=0o700)
    shared.chmod(0o755)
    for version in versions:
        root = shared / "versions" / version
        subprocess.run(["cp", "-al", str(image), str(root)], check=True)
        root.chmod(0o755)
        (root / "etc/version").write_text(f"{version}\n")


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


@contextmanager
def running(
    folder: Path,
    prefix: str,
    image: Path,
    conf: str | None = CONF,
    versions: tuple[str, ...] = ("v1", "v2"),
    sudoers: str = "",
    more_logins: tuple[str, ...] = (),
    ssh_to_nodes: bool = False,
    stack: Mapping[str, Any] = STACK,
    job_disks: Mapping[str, str] | None = None,
    image_disks: int = 0,
) -> Generator[RootCluster]:
    """The cluster, ready, with the first version as the current one; and away again. `sudoers` says who is an admin, `job_disks` what jobs
    have of a node's disk, `image_disks` the MiB of a disk of its own for each node's images.
    """
    machine = Machine(folder, image, prefix)
    machine.close()  # what a killed run left
    folder.mkdir(mode=0o755)
    for key in ("id", "host", "node-host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True)
    names = {**NAMES, **{pod: [] for pod in more_logins}}
    cluster = RootCluster(machine, stack=copy.deepcopy({**stack, "accounting": {"enabled": False}}), names=names)
    cluster.ssh_to_nodes, cluster.job_disks = ssh_to_nodes, job_disks or {}
    # Pods may write their hosts, as those of Kubernetes may.
    hosts = {"/etc/hosts": (folder / "hosts", False)}
    cluster.user_mounts = {"/shared": (cluster.shared, False), "/etc/slipway/root": cluster.path("root"), **hosts}
    cluster.sudoers, cluster.has_admins = sudoers, bool(sudoers)
    cluster.login_capabilities = (*LOGIN_CAPABILITIES, "SYS_ADMIN", *(ADMIN_CAPABILITIES if sudoers else ()))
    try:
        make_versions(cluster.shared, image, *versions)
        cluster.switch(versions[0])
        cluster.settings(conf)
        cluster.prepare()
        cluster.volume("keys", {"alice": (folder / "id.pub").read_text()})
        cluster.volume("node-host-keys", {"ssh_host_ed25519_key": (folder / "node-host").read_text()}, 0o400)
        for pod in names:
            cluster.munged(pod)
        cluster.slurmctld()
        cluster.reconfigure()
        for worker in WORKERS:
            if image_disks:
                machine.lay_disk(cluster.empty(f"{worker}-containers"), image_disks)
            cluster.slurmd(worker)
        cluster.login((folder / "id.pub").read_text(), (folder / "host").read_text())
        for pod in more_logins:
            cluster.login_pod(pod)
        wait_for("idle workers", cluster.ready, deadline_s=90)
        for pod in ("t-login", *more_logins):
            wait_for("login", lambda pod=pod: "main" in cluster.ssh("sinfo", pod=pod), deadline_s=30)
        yield cluster
    finally:
        machine.keep_logs()
        machine.close()
