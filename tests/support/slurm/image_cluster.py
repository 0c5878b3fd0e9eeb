"""A whole Slurm cluster of the real image, with its real programs and start scripts, in pods without Kubernetes.

The files come from `configs.render.slurm`; volumes, users and rights are those that the components ask of Kubernetes.
"""

import base64
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from components.accounts import build_accounts
from components.pods import TERMINATION_LOG, daemon_command, program_command, pump_command
from configs.load import load_cluster
from configs.render.slurm import job_processes, render, render_slurmdbd
from names import paths
from programs.account_sync.settings import FILE
from tests.support.slurm.image_pods import LOGIN_CAPABILITIES, PROJECT, SCRIPTS, Container, Machine, wait_for
from tests.support.slurm.image_stack import ALICE, BOB, MUNGE, MYSQL, NAMES, SLURM, SLURMRESTD, STACK


def write_volume(folder: Path, files: Mapping[str, str | bytes], mode: int = 0o444, group: int = 0) -> Path:
    """Writes files as the kubelet does: into a folder of its own that the link `..data` is swapped to in one step."""
    folder.mkdir(exist_ok=True)
    version = folder / f"..{secrets.token_hex(4)}"
    version.mkdir()
    for name, content in files.items():
        file = version / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.chown(file, 0, group)
        file.chmod(mode)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    link = folder / "..data.new"
    link.symlink_to(version.name)
    link.replace(folder / "..data")
    return folder


STOP = program_command("worker", module="stop")
"""The stop hook of a worker."""


def program_mount(program: str) -> dict[str, tuple[Path, bool]]:
    """Where a container sees one of our programs."""
    return {f"{paths.PACKAGES}/programs/{program}": (PROJECT / "programs" / program, True)}


def is_worker(pod: str) -> bool:
    """True for pods of slurmd, which are called by their nodes' names."""
    return not pod.startswith("t-")


@dataclass
class ImageCluster:
    """The pods by name, and how to start each again."""

    machine: Machine
    containers: dict[str, Container] = field(default_factory=dict[str, Container])
    stack: dict[str, Any] = field(default_factory=lambda: STACK)
    names: Mapping[str, Sequence[str]] = field(default_factory=lambda: NAMES)
    user_mounts: dict[str, tuple[Path, bool]] = field(default_factory=dict[str, tuple[Path, bool]])
    """Further mounts of workers and login nodes: path inside to (path outside, read-only)."""
    ssh_to_nodes: bool = False
    """Workers have sshd; `node-host-keys` and `keys` are volumes then."""
    login_capabilities: Sequence[str] = LOGIN_CAPABILITIES
    job_disks: Mapping[str, str] = field(default_factory=dict[str, str])
    """What jobs have of their node's disk, by the node."""
    has_admins: bool = False
    """As `login.users[].admin` makes it: setuid programs get their rights on login nodes."""
    groups: str = ""
    """Further lines of the users' group file."""
    prolog_slack_s: int = 120
    """Seconds beyond the prologs' own time until a job of which no node was told is started again."""
    key_spread_s: int = 120
    """Seconds that kubelets have to bring a changed munge key to all pods."""

    def prepare(self) -> None:
        """Secrets, configuration and shared folders."""
        key = base64.b64encode(secrets.token_bytes(32))
        password = secrets.token_hex(12)
        users = {
            "passwd": f"alice:x:{ALICE}:{ALICE}::/home/alice:/bin/bash\nbob:x:{BOB}:{BOB}::/home/bob:/bin/bash\n",
            "group": f"alice:x:{ALICE}:\nbob:x:{BOB}:\n{self.groups}",
            "shadow": "alice:*:19700:0:99999:7:::\nbob:*:19700:0:99999:7:::\n",
        }
        key_of_munge = {"munge.key": secrets.token_bytes(1024)}
        self.volume("munge", key_of_munge)
        self.volume("munge-worker", key_of_munge, 0o400)
        self.volume("jwt", {"jwt_hs256.key": key}, 0o440, SLURM)
        self.volume("password-mysql", {"password": password}, 0o440, MYSQL)
        self.volume("password-slurm", {"password": password}, 0o440, SLURM)
        self.volume("users", users)
        self.volume("login", {"limits": "", "banner": ""})
        self.configure(self.stack)
        self.empty("home").chmod(0o755)
        self.machine.open(self.names)

    def slurm(self, *command: str, user: int = SLURM, check: bool = True) -> str:
        """Runs a command in slurmctld's pod, as SlurmUser unless told otherwise, who may do everything."""
        inside = self.containers["t-slurmctld-0/reconfigure"]
        return inside.run(*command, user=user, check=check, env={"SLURM_CONF": "/etc/slurm/slurm.conf"}).strip()

    def cancel_all(self) -> None:
        """Ends every job. A heterogeneous one is cancelled as a whole, as Slurm refuses that for a component."""
        self.slurm("bash", "-c", "squeue --noheader --format=%i | sed 's/+.*//' | sort -u | xargs --no-run-if-empty scancel")

    def saved_at(self) -> float:
        """When slurmctld last wrote its jobs, in seconds since 1970; 0 for the moment in which it replaces the file."""
        try:
            return (self.machine.folder / "volume-state/slurmctld/state/job_state").stat().st_mtime
        except FileNotFoundError:
            return 0

    def configure(self, stack: Mapping[str, Any], extra: str = "") -> None:
        """Writes Slurm's files anew, as a change of the ConfigMap arrives in a pod."""
        cluster = load_cluster(stack, Path(), "Pulumi.test.yaml")
        files = render(cluster)
        self.volume("slurm", {**files, "slurm.conf": files["slurm.conf"] + extra})
        self.volume("slurmdbd", {"slurmdbd.conf": render_slurmdbd(cluster)})
        self.volume("accounts", build_accounts(cluster)["data"])

    def taken(self) -> None:
        """Waits until slurmctld runs with the files written last."""
        version = (self.machine.folder / "volume-slurm" / "..data").readlink().name
        sidecar = self.containers["t-slurmctld-0/reconfigure"]
        wait_for("the new files", lambda: f"runs with the files of /etc/slurm/{version}\n" in sidecar.log)

    def all_have_files(self) -> None:
        """Waits until every slurmd has the files written last: Slurm may forget a job that starts before."""
        self.taken()
        wait_for("all slurmds", lambda: "SlurmdStartTime=None" not in self.slurm("scontrol", "show", "nodes"))

    def volume(self, name: str, files: Mapping[str, str | bytes], mode: int = 0o444, group: int = 0) -> Path:
        """A ConfigMap or Secret as a volume."""
        return write_volume(self.machine.folder / f"volume-{name}", files, mode, group)

    def empty(self, name: str, fs_group: int | None = None) -> Path:
        """A volume that starts out empty, with the rights that the kubelet gives it."""
        folder = self.machine.folder / f"volume-{name}"
        folder.mkdir(exist_ok=True)
        if fs_group:
            os.chown(folder, 0, fs_group)
        folder.chmod(0o2777 if fs_group else 0o777)
        return folder

    def path(self, name: str, read_only: bool = True) -> tuple[Path, bool]:
        """A volume made before, as a mount."""
        return self.machine.folder / f"volume-{name}", read_only

    def munge_key(self, pod: str) -> tuple[Path, bool]:
        """The Secret with munge's key as the pod sees it: in a worker it is root's."""
        return self.path("munge-worker" if is_worker(pod) else "munge")

    def munged(self, pod: str, origin: str = "", more: Mapping[str, str] | None = None) -> None:
        """The sidecar of a pod that has one: workers run munged beside slurmd. `origin` is the Service that its credentials name."""
        if is_worker(pod):
            return
        mounts = {
            "/etc/slipway/munge": self.munge_key(pod),
            "/run/munge": (self.empty(f"{pod}-munge"), False),
            "/var/lib": (self.empty(f"{pod}-munge-state"), False),
            **program_mount("munged"),
        }
        self._start(pod, "munged", daemon_command("munged"), mounts, {"SLIPWAY_ORIGIN": origin, **(more or {})}, user=MUNGE, read_only=True)

    def mariadb(self) -> Container:
        """The accounting database."""
        pod = "t-mariadb-0"
        mounts = {
            "/var/lib/mysql": (self.empty("mysql", MYSQL), False),
            "/etc/slipway/mariadb": self.path("password-mysql"),
            "/run/mysqld": (self.empty(f"{pod}-run", MYSQL), False),
            "/tmp": (self.empty(f"{pod}-tmp", MYSQL), False),
        }
        return self._start(pod, "mariadb", "mariadb.sh", mounts, user=MYSQL, fs_group=MYSQL, read_only=True)

    def slurmdbd(self, more: Mapping[str, tuple[Path, bool]] | None = None) -> Container:
        """The accounting daemon; `more` are further mounts."""
        pod = "t-slurmdbd-0"
        mounts = {
            "/etc/slipway/slurmdbd": self.path("slurmdbd"),
            "/etc/slurm": (self.empty(f"{pod}-etc", SLURM), False),
            "/run/munge": (self.empty(f"{pod}-munge"), True),
            "/var/lib/extrausers": self.path("users"),
            "/etc/slipway/mariadb": self.path("password-slurm"),
            "/etc/slipway/jwt": self.path("jwt"),
            "/run": (self.empty(f"{pod}-run", SLURM), False),
            "/tmp": (self.empty(f"{pod}-tmp", SLURM), False),
            **program_mount("database"),
            **(more or {}),
        }
        env = {"SLIPWAY_MARIADB_HOST": "t-mariadb"}
        return self._start(pod, "slurmdbd", "slurmdbd.sh", mounts, env, user=SLURM, fs_group=SLURM, read_only=True)

    def accounts(self, more: Mapping[str, tuple[Path, bool]] | None = None) -> Container:
        """The sidecar that keeps Slurm's accounts; `more` are further mounts."""
        pod = "t-slurmdbd-0"
        mounts = {
            **program_mount("account_sync"),
            "/etc/slipway/accounts": self.path("accounts"),
            "/etc/slurm": self.path("slurm"),
            "/run/munge": (self.empty(f"{pod}-munge"), True),
            "/var/lib/extrausers": self.path("users"),
            "/tmp": (self.empty(f"{pod}-accounts-tmp", SLURM), False),
            **(more or {}),
        }
        command = program_command("account_sync", f"/etc/slipway/accounts/{FILE}")
        env = {"SLIPWAY_CLUSTER": "t", "SLIPWAY_SLURMCTLD": "t-slurmctld"}
        container = self.machine.start(
            pod, "accounts", command, mounts, env, user=SLURM, fs_group=SLURM, read_only=True, cwd=paths.PACKAGES
        )
        self.containers[f"{pod}/accounts"] = container
        return container

    def slurmctld(self) -> Container:
        """The controller."""
        pod = "t-slurmctld-0"
        mounts = {
            "/etc/slurm": self.path("slurm"),
            "/run/munge": (self.empty(f"{pod}-munge"), True),
            "/var/lib/extrausers": self.path("users"),
            "/var/spool": (self.empty("state", SLURM), False),
            "/etc/slipway/jwt": self.path("jwt"),
            "/run": (self.empty(f"{pod}-run", SLURM), False),
            "/tmp": (self.empty(f"{pod}-tmp", SLURM), False),
            **program_mount("slurmctld"),
            **program_mount("mail"),
        }
        env = {"SLIPWAY_KEY_SPREAD_S": str(self.key_spread_s)}
        return self._start(pod, "slurmctld", daemon_command("slurmctld"), mounts, env, user=SLURM, fs_group=SLURM, read_only=True)

    def reconfigure(self) -> Container:
        """The sidecar that tells the controller of changed files."""
        pod = "t-slurmctld-0"
        mounts = {
            "/etc/slurm": self.path("slurm"),
            "/run/munge": (self.empty(f"{pod}-munge"), True),
            "/var/lib/extrausers": self.path("users"),
            "/var/spool": (self.empty("state", SLURM), False),
            "/tmp": (self.empty(f"{pod}-reconfigure-tmp", SLURM), False),
        }
        mounts |= program_mount("config_sync")
        env = {"SLIPWAY_PROLOG_SLACK_S": str(self.prolog_slack_s)}
        return self._start(pod, "reconfigure", program_command("config_sync"), mounts, env, user=SLURM, fs_group=SLURM, read_only=True)

    def checks(self) -> Container:
        """The sidecar that takes what health checks beside jobs have found."""
        pod = "t-slurmctld-0"
        mounts = {"/etc/slurm": self.path("slurm"), "/run/munge": (self.empty(f"{pod}-munge"), True), **program_mount("node_checks")}
        command = program_command("node_checks", module="collect")
        return self._start(pod, "checks", command, mounts, {"SLURM_CONF": "/etc/slurm/slurm.conf"}, user=SLURM, read_only=True)

    def metrics(self, settings: str) -> Container:
        """The collector of metrics, in slurmctld's pod."""
        pod = "t-slurmctld-0"
        mounts = {"/etc/slurm": self.path("slurm"), "/run/munge": (self.empty(f"{pod}-munge"), True), **program_mount("metrics")}
        command = program_command("metrics", settings)
        return self._start(pod, "metrics", command, mounts, {"SLURM_CONF": "/etc/slurm/slurm.conf"}, user=SLURM, read_only=True)

    def maintenance(self, settings: str) -> Container:
        """The sidecar that warns jobs of maintenance."""
        pod = "t-slurmctld-0"
        mounts = {"/etc/slurm": self.path("slurm"), "/run/munge": (self.empty(f"{pod}-munge"), True), **program_mount("maintenance")}
        command = program_command("maintenance", settings)
        return self._start(pod, "maintenance", command, mounts, {"SLURM_CONF": "/etc/slurm/slurm.conf"}, user=SLURM, read_only=True)

    def mail(self, settings: str, more: Mapping[str, tuple[Path, bool]]) -> Container:
        """The sidecar that sends mail about jobs; `more` are the mounts of its Secrets."""
        mounts = {"/var/spool": (self.empty("state", SLURM), False), **program_mount("mail"), **more}
        command = program_command("mail", settings)
        return self._start("t-slurmctld-0", "mail", command, mounts, user=SLURM, fs_group=SLURM, read_only=True)

    def slurmrestd(self) -> Container:
        """The REST daemon."""
        pod = "t-slurmrestd"
        mounts = {
            "/etc/slurm": self.path("slurm"),
            "/var/lib/extrausers": self.path("users"),
            "/tmp": (self.empty(f"{pod}-tmp"), False),
        }
        return self._start(pod, "slurmrestd", "slurmrestd.sh", mounts, user=SLURMRESTD, read_only=True)

    def running_jobs(self, pod: str = "t-slurmrestd") -> Container:
        """The list of running jobs beside slurmrestd."""
        mounts = {"/etc/slurm": self.path("slurm"), "/var/lib/extrausers": self.path("users"), **program_mount("running_jobs")}
        env = {"SLURM_CONF": "/etc/slurm/slurm.conf"}
        return self._start(pod, "jobs", program_command("running_jobs"), mounts, env, user=SLURMRESTD, read_only=True)

    def ssh_mounts(self) -> dict[str, tuple[Path, bool]]:
        """What lets users go from login nodes and jobs to workers; nothing where `ssh_to_nodes` is off."""
        keys = ("/etc/slipway/keys", "keys"), ("/etc/slipway/node-host-keys", "node-host-keys")
        return {inside: self.path(name) for inside, name in keys} if self.ssh_to_nodes else {}

    def slurmd(self, node: str, drain_grace_s: int = 600, more: Mapping[str, str] | None = None) -> Container:
        """A worker; `more` are further variables of its environment."""
        mounts = {
            "/var/lib/extrausers": self.path("users"),
            "/etc/slipway/munge": self.munge_key(node),
            "/var/spool/slurmd": (self.empty(f"{node}-spool"), False),
            "/var/spool/slipway/containers": (self.empty(f"{node}-containers"), False),
            "/run/slurm": (self.empty(f"{node}-run"), False),
            "/home": self.path("home", read_only=False),
            "/etc/slipway/place": (self.empty(f"{node}-place"), True),
            TERMINATION_LOG: (self.termination_log(node), False),
            **program_mount("munged"),
            **program_mount("worker"),
            **self.ssh_mounts(),
            **self.user_mounts,
        }
        env = {
            "SLIPWAY_NODESET": "gpu",
            "SLIPWAY_DRAIN_GRACE_S": str(drain_grace_s),
            "SLIPWAY_GPUS": "4",
            "SLIPWAY_SIMULATED_GPUS": "4",
            "SLIPWAY_JOB_PROCESSES": job_processes(load_cluster(self.stack, Path(), "Pulumi.test.yaml")),
            **({"SLIPWAY_JOB_DISKS": self.job_disks[node]} if node in self.job_disks else {}),
            **(more or {}),
        }
        return self._start(node, "slurmd", daemon_command("worker"), mounts, env, privileged=True)

    def termination_log(self, pod: str) -> Path:
        """As the kubelet makes it: open to everybody who gets there."""
        file = self.machine.folder / f"{pod}-termination-log"
        file.touch()
        file.chmod(0o666)
        return file

    def login(self, key: str, host_key: str) -> Container:
        """A login node with one key for both users."""
        self.volume("keys", {"alice": key, "bob": key})
        self.volume("host-keys", {"ssh_host_ed25519_key": host_key}, 0o400)
        return self.login_pod("t-login")

    def login_pod(self, pod: str, env: Mapping[str, str] | None = None) -> Container:
        """One replica, with the keys that are there."""
        mounts = {
            "/var/lib/extrausers": self.path("users"),
            "/etc/slipway/keys": self.path("keys"),
            "/etc/slipway/host-keys": self.path("host-keys"),
            "/etc/slipway/login": self.path("login"),
            "/run/slurm": (self.empty(f"{pod}-run"), False),
            "/run/munge": (self.empty(f"{pod}-munge"), True),
            "/home": self.path("home", read_only=False),
            **program_mount("login"),
            **self.ssh_mounts(),
            **self.user_mounts,
        }
        more = {"capabilities": self.login_capabilities, "may_gain": self.has_admins}
        return self._start(pod, "login", daemon_command("login"), mounts, env, **more)

    def _start(
        self,
        pod: str,
        name: str,
        script: str | list[str],
        mounts: Mapping[str, tuple[Path, bool]],
        env: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Container:
        variables = {"SLIPWAY_CLUSTER": "t", "SLIPWAY_SLURMCTLD": "t-slurmctld", **(env or {})}
        command = pump_command(script.removesuffix(".sh"), f"{paths.PACKAGES}/scripts/{script}") if isinstance(script, str) else script
        assert not isinstance(script, str) or (SCRIPTS / script).is_file()
        self.containers[f"{pod}/{name}"] = self.machine.start(pod, name, command, mounts, variables, cwd=paths.PACKAGES, **more)
        return self.containers[f"{pod}/{name}"]
