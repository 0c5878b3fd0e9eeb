"""Slurm's daemons from the image, with their own programs and scripts, in one root. Each worker is a slurmd with its own port."""

import os
import re
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from components.pods import MUNGE_UID, SLURM_UID, SLURMRESTD_UID, program_command
from configs.models.cluster import Cluster
from configs.render.slurm import render
from names import paths, ports
from tests.support.log_lines import NODE_HEARD, times_of
from tests.support.slurm.image_cluster import write_volume

ADDRESS = "198.18.255.1"
"""Slurm looks up no names for the loopback's."""
_FIRST_PORT = 20_000
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_PROJECT = Path(__file__).parents[3]
_SCRIPTS = _PROJECT / "programs" / "start"
_ALIVE_S = 60.0
_DRAINED = r"update_node: node (\S+) state set to DRAIN"
_ALLOCATED = r"sched: Allocate JobId=\d+ NodeList=(\S+)"

_ONE_MACHINE = {
    "SlurmdPidFile": "/run/slurm/slurmd-%n.pid",
    "SlurmdSpoolDir": "/var/spool/slurmd/%n",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "LogTimeFormat": "iso8601_ms",
    "SlurmctldDebug": "verbose",
}
"""Lines of the rendered slurm.conf that many slurmds on one machine without cgroups need otherwise; and a log that tells who registers."""


class LabError(Exception):
    """A program of the lab does not do what it should; the text has the end of its log."""


@dataclass
class Slurm:
    """slurmctld, slurmrestd and munged of one cluster. Needs mount, network, process and host name namespaces of its own."""

    cluster: Cluster
    image: Path
    """The unpacked root of the image."""
    folder: Path
    """For the lab's own root, its logs and its keys."""
    more: Sequence[str] = ()
    """Further lines of slurm.conf."""
    configless: bool = False
    """Workers fetch the files from slurmctld, as in pods, and each has folders of its own for them."""
    programs: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict[str, subprocess.Popen[bytes]])
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict[str, subprocess.Popen[bytes]])
    started: dict[str, float] = field(default_factory=dict[str, float])
    """When each worker was started, in seconds since 1970."""

    @property
    def root(self) -> Path:
        """The root that all programs see."""
        return self.folder / "root"

    @property
    def url(self) -> str:
        """Of slurmrestd."""
        return f"http://{ADDRESS}:6820"

    @property
    def jwt_key(self) -> Path:
        """The key that signs tokens."""
        return self.root / "etc/slipway/jwt/jwt_hs256.key"

    def start(self) -> None:
        """Makes the root and starts the daemons; returns when slurmrestd listens and slurmctld answers."""
        self._make_root()
        self._write_files()
        self._run("munged", program_command("munged"), MUNGE_UID)
        self._run("slurmctld", program_command("slurmctld"), SLURM_UID)
        self._run("slurmrestd", [f"{paths.SCRIPTS}/slurmrestd.sh"], SLURMRESTD_UID)
        self._await("slurmctld", lambda: "UP" in self.call("scontrol", "ping", check=False))
        self._await("slurmrestd", lambda: _listens(6820))

    def call(self, *command: str, check: bool = True, stdin: str | None = None, env: Mapping[str, str] | None = None) -> str:
        """Runs a command in the lab's root; gives what it printed."""
        variables = {"PATH": _PATH, **(env or {})}
        done = subprocess.run(
            ["chroot", str(self.root), *command], capture_output=True, text=True, check=False, timeout=120, input=stdin, env=variables
        )
        if check and done.returncode:
            raise LabError(f"{' '.join(command)} gave {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def start_worker(self, node: str) -> None:
        """Starts a slurmd as the worker's program does for a node that Slurm has powered down: as a node that has just booted."""
        command = ["chroot", str(self.root), "/usr/sbin/slurmd", "-D", "-b", "-N", node]
        if self.configless:
            own = "; ".join(f"mount -t tmpfs tmpfs {self.root}/{folder}" for folder in ("etc/slurm", "var/spool/slurmd", "run/slurm"))
            server = f"{self.cluster.name}-slurmctld:{ports.SLURMCTLD}"
            command = ["unshare", "--mount", "sh", "-c", f'{own}; exec "$@"', "sh", *command, "--conf-server", server]
        log = (self.folder / "workers.log").open("ab")
        self.started[node] = time.time()
        self.workers[node] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": _PATH})
        log.close()

    def start_sidecar(self) -> None:
        """slurmctld's sidecar, which follows the files in /etc/slurm; returns when slurmctld runs with these."""
        self.offer("")
        self._run("config_sync", program_command("config_sync"), SLURM_UID)
        self._await("config_sync", lambda: "slurmctld runs with the files of" in self.log("config_sync"))

    def start_checks(self) -> None:
        """The collector of what checks beside jobs find; returns when it listens."""
        self._run("checks", program_command("node_checks", module="collect"), SLURM_UID)
        self._await("checks", lambda: _listens(ports.CHECKS))

    def offer(self, more: str) -> None:
        """Slurm's files with a further line of slurm.conf, in one step, as the kubelet brings them."""
        folder = self.root / "etc/slurm"
        files = {file.name: file.read_text() for file in folder.iterdir() if not file.name.startswith("..") and file.is_file()}
        for name in files:
            if not (folder / name).is_symlink():
                (folder / name).unlink()
        write_volume(folder, {**files, "slurm.conf": f"{files['slurm.conf']}{more}"})

    def is_listening(self, node: str) -> bool:
        """What the pod's readiness probe asks."""
        return _listens(_FIRST_PORT + int(node.rpartition("-")[2]))

    def stop_worker(self, node: str) -> None:
        """Ends a slurmd; returns when it is gone."""
        worker = self.workers.pop(node)
        worker.terminate()
        try:
            worker.wait(10)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait(10)

    def registered(self) -> dict[str, float]:
        """When each node was last heard for the first time after a silence, in seconds since 1970, by slurmctld's own log."""
        return self._said(NODE_HEARD)

    def allocated(self) -> dict[str, float]:
        """When each node was given to its last job, in seconds since 1970; for jobs of one node."""
        return self._said(_ALLOCATED)

    def drained(self) -> dict[str, float]:
        """When each node was last drained, in seconds since 1970."""
        return self._said(_DRAINED)

    def _said(self, of_node: str) -> dict[str, float]:
        """When slurmctld last said this of each node."""
        return dict(times_of(of_node, self.log("slurmctld")))

    def log(self, program: str) -> str:
        """What a program has said so far."""
        return (self.folder / f"{program}.log").read_text(errors="replace")

    def _make_root(self) -> None:
        layers = self.folder / "layers"
        layers.mkdir()
        _mount("-t", "tmpfs", "tmpfs", layers)
        for part in (layers / "upper", layers / "work", self.root):
            part.mkdir()
        _mount("-t", "overlay", "overlay", "-o", f"lowerdir={self.image},upperdir={layers}/upper,workdir={layers}/work", self.root)
        _mount("-t", "proc", "proc", self.root / "proc")
        _mount("--rbind", "/dev", self.root / "dev")
        scripts = self.root / "opt/slipway/scripts"
        owners = {"run/slurm": SLURM_UID, "run/munge": MUNGE_UID, "var/lib/munge": MUNGE_UID, "var/spool/slurmctld": SLURM_UID}
        for folder in ("opt/slipway/scripts", "var/spool/slurmd", "etc/slipway/jwt", "etc/slipway/munge", *owners):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
            os.chown(self.root / folder, owners.get(folder, 0), owners.get(folder, 0))
        for script in _SCRIPTS.glob("*.sh"):
            (scripts / script.name).write_bytes(script.read_bytes())
            (scripts / script.name).chmod(0o755)
        for package in ("names", "slurm", "programs/munged", "programs/slurmctld", "programs/config_sync", "programs/node_checks"):
            shutil.copytree(_PROJECT / package, self.root / paths.PACKAGES.lstrip("/") / package)

    def _write_files(self) -> None:
        name = self.cluster.name
        hosts = [f"{ADDRESS} {name}-slurmctld-0 {name}-slurmctld", "127.0.0.1 localhost", ""]
        (self.root / "etc/hosts").write_text("\n".join(hosts))
        (self.root / "etc/slipway/munge/munge.key").write_bytes(secrets.token_bytes(1024))
        self.jwt_key.write_bytes(secrets.token_bytes(32))
        os.chown(self.jwt_key, SLURM_UID, SLURM_UID)
        self.jwt_key.chmod(0o400)
        files = {**render(self.cluster), "cgroup.conf": "CgroupPlugin=disabled\n"}
        for file, text in files.items():
            (self.root / "etc/slurm" / file).write_text(_for_one_machine(text, self.more) if file == "slurm.conf" else text)

    def _run(self, name: str, command: Sequence[str], user: int) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            os.fchown(log.fileno(), user, user)  # slurmctld opens it again
            self.programs[name] = subprocess.Popen(
                ["chroot", f"--userspec={user}:{user}", str(self.root), "env", f"--chdir={paths.PACKAGES}", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": _PATH, "SLIPWAY_SLURMCTLD": f"{self.cluster.name}-slurmctld"},
            )

    def _await(self, program: str, is_up: Callable[[], bool]) -> None:
        end = time.monotonic() + _ALIVE_S
        while not is_up():
            if time.monotonic() > end or self.programs[program].poll() is not None:
                raise LabError(f"{program} is not up:\n{self.log(program)[-2000:]}")
            time.sleep(0.1)


def _for_one_machine(text: str, more: Sequence[str]) -> str:
    for key, value in _ONE_MACHINE.items():
        text = re.sub(rf"^{key}=.*\n", "", text, flags=re.MULTILINE) + f"{key}={value}\n"
    text = re.sub(r"^PrologFlags=.*\n", "", text, flags=re.MULTILINE)
    return re.sub(r"^NodeName=\S+\[0-(\d+)\]", _with_ports, text, flags=re.MULTILINE) + "".join(f"{line}\n" for line in more)


def _with_ports(found: re.Match[str]) -> str:
    return f"{found[0]} NodeAddr={ADDRESS} Port=[{_FIRST_PORT}-{_FIRST_PORT + int(found[1])}]"


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        tried.settimeout(1)
        return tried.connect_ex((ADDRESS, port)) == 0


def _mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True, capture_output=True)
