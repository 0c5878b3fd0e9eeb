"""A Slurm cluster with a shared root, two login replicas, two users, and workers that take ssh: what tests/slurm/test_login.py needs."""

import contextlib
import copy
import queue
import subprocess
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.patience import patience
from tests.support.slurm.image_pods import LOGIN_CAPABILITIES, Container, Machine, PodError, wait_for
from tests.support.slurm.image_stack import STACK
from tests.support.slurm.root_cluster import CONF, WORKERS, RootCluster, make_versions

LOGINS = ("t-login", "t-login-2")
NAMES = {"t-slurmctld-0": ["t-slurmctld"], "gpu-0": [], "gpu-1": [], **{pod: [] for pod in LOGINS}}
SERVICE = "t-login.slurm.svc"
"""The Service of the login nodes, as their munged looks it up."""
LOGIN_CONF = f"{CONF}file?=/etc/ssh/ssh_config.d/slipway.conf\nmount?=/shared/projects\n"
LAB = "lab:x:20001:alice,bob\nothers:x:20002:bob\n"
"""Groups that users share."""


class Session:
    """An open ssh session: what it says arrives line by line, with a deadline for each wait, by the machine's pace."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.replace("\r", "").rstrip("\n"))
        self._lines.put(None)

    def hear(self, text: str, deadline_s: float = 60) -> str:
        """Waits for a line with the text and gives it. Raises PodError where it does not come."""
        end = time.monotonic() + deadline_s * patience()
        try:
            while (line := self._lines.get(timeout=max(0.0, end - time.monotonic()))) is not None:
                self.said.append(line)
                if text in line:
                    return line
        except queue.Empty:
            pass
        raise PodError(f"no {text!r} from a session that said {self.said}")

    def say(self, line: str) -> None:
        """Gives the session a line of input."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def lives(self) -> bool:
        """True when a session that runs `cat` still answers."""
        self.say("there?")
        return bool(self.hear("there?"))

    def ended(self, deadline_s: float = 60) -> int:
        """Waits for its end; gives ssh's exit code."""
        return self.process.wait(deadline_s * patience())

    def end(self, deadline_s: float = 60) -> int:
        """Closes its input and waits; gives ssh's exit code."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        return self.ended(deadline_s)

    def rest(self, deadline_s: float = 60) -> list[str]:
        """All that it says up to its end, which is awaited."""
        self.end(deadline_s)
        while (line := self._lines.get(timeout=deadline_s * patience())) is not None:
            self.said.append(line)
        return self.said


class LoginCluster(RootCluster):
    """The cluster, with the words that its tests use."""

    def session(
        self, script: str, user: str = "alice", pod: str = "t-login", *options: str, check: bool = True, timeout_s: float = 60
    ) -> str:
        """What a script of a user says on a login node; with `check` off, errors are part of it."""
        return self.outside("ssh", *self.ssh_options(user), *options, self.machine.addresses[pod], script, check=check, timeout_s=timeout_s)

    def open_session(self, script: str, user: str = "alice", pod: str = "t-login", *options: str) -> Session:
        """A session that stays; without a script, an interactive one."""
        ssh = ["ssh", *self.ssh_options(user), *options, self.machine.addresses[pod], *([script] if script else [])]
        return Session(["nsenter", f"--net=/run/netns/{self.machine.prefix}hub", *ssh])

    def start_login(self, pod: str, env: Mapping[str, str] | None = None) -> Container:
        """One replica, answering."""
        login = self.login_pod(pod, env)
        wait_for("login", lambda: "main" in self.session("sinfo", pod=pod), deadline_s=30)
        return login

    def settings_of_login(self, limits: str = "", banner: str = "", projects: str = "") -> None:
        """What the ConfigMap of the login nodes says."""
        self.volume("login", {"limits": limits, "banner": banner, "projects": projects})


@contextmanager
def running(folder: Path, prefix: str, image: Path) -> Generator[LoginCluster]:
    """The cluster, ready, with v1 as the current version; and away again."""
    machine = Machine(folder, image, prefix)
    machine.close()  # what a killed run left
    folder.mkdir(mode=0o755)
    for key in ("id", "host", "node-host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True)
    stack = copy.deepcopy(STACK) | {"accounting": {"enabled": False}}
    cluster = LoginCluster(machine, stack=stack, names=NAMES, ssh_to_nodes=True, groups=LAB)
    cluster.user_mounts = {"/shared": (cluster.shared, False), "/etc/slipway/root": cluster.path("root")}
    cluster.login_capabilities = (*LOGIN_CAPABILITIES, "SYS_ADMIN")
    try:
        make_versions(cluster.shared, image, "v1", "v2")
        cluster.switch("v1")
        cluster.settings(LOGIN_CONF)
        cluster.prepare()
        with (folder / "hosts").open("a") as hosts:  # as cluster DNS has a Service: its address by its name, and its name by the address
            hosts.write(f"198.18.255.200 {SERVICE}.cluster.local {SERVICE}\n")
        cluster.volume("keys", dict.fromkeys(("alice", "bob"), (folder / "id.pub").read_text()))
        cluster.volume("host-keys", {"ssh_host_ed25519_key": (folder / "host").read_text()}, 0o400)
        cluster.volume("node-host-keys", {"ssh_host_ed25519_key": (folder / "node-host").read_text()}, 0o400)
        cluster.settings_of_login()
        for pod in NAMES:
            cluster.munged(pod, SERVICE if pod in LOGINS else "")
        cluster.slurmctld()
        cluster.reconfigure()
        for worker in WORKERS:
            cluster.slurmd(worker)
        for pod in LOGINS:
            cluster.start_login(pod)
        wait_for("idle workers", cluster.ready, deadline_s=90)
        yield cluster
    finally:
        machine.keep_logs()
        machine.close()
