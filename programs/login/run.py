"""A login node: sshd on port 2222, and sackd, which keeps slurmctld's configuration in /run/slurm/conf.

`python3 -m programs.login.run`, as root, below an init. sackd is started again when it ends, and so is sshd as long as sessions are open;
else its end is the pod's. A pod that is told to go takes no new sessions, and gives open ones SLIPWAY_DRAIN_GRACE_S seconds to end.
"""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from names import paths, ports, variables
from slurm.commands import SlurmError, call
from slurm.people import ACCOUNTS
from slurm.pump import Pump, take_stderr
from slurm.signals import Signals

from . import limits
from .limits import say
from .plan import Next, may_set_capabilities, plan_end
from .projects import Projects
from .state import write_state

_DIAL_S = 3
_AGAIN_S = 3
_STATE_S = 30
_PROJECTS_S = 10
_FAILED_S = 10
_HOST_KEY = "ssh_host_ed25519_key"
_HOST_KEYS = Path(paths.HOST_KEYS)
_NODE_KEYS = Path(paths.NODE_HOST_KEYS)
_OWN = Path(paths.RUN)
_LOCALE = f"{paths.PLUGINS}/sshd_locale.so"
"""Clients' locales: images/slurm/root/sshd.c."""


class Login:
    """One login pod. The main thread runs sshd and handles signals. Other threads keep sackd, what sessions show, and the folders of
    projects."""

    def __init__(self, signals: Signals, controller: str, grace_s: int) -> None:
        self._signals = signals
        self._controller = controller
        self._grace_s = grace_s
        self._sackd: subprocess.Popen[bytes] | None = None
        self._logs = {name: Pump(name) for name in ("sshd", "sackd")}
        self._is_over = False
        """True once the last session has ended: until then sackd is started again."""

    def run(self) -> int:
        """Runs until the pod ends. Returns its exit code."""
        for keep in (self._keep_configuration, self._keep_state, self._keep_projects):
            threading.Thread(target=keep, daemon=True).start()
        # sshd reads such a file as its user, and none that others could have written (StrictModes). These options come before
        # sshd_config.
        keys = ["-o", "AuthorizedKeysFile=.ssh/authorized_keys"] if os.environ.get(variables.HOME_KEYS) else []
        code = self._keep_sshd(["/usr/sbin/sshd", "-D", "-e", *keys])
        if self._signals.is_stopping:
            self._await_sessions()
            code = 0
        self._is_over = True
        if self._sackd is not None:
            self._sackd.terminate()
        for log in self._logs.values():
            log.close()
        return code

    def _keep_sshd(self, command: list[str]) -> int:
        code, out = 0, self._logs["sshd"].fd
        while not self._signals.is_stopping:
            sshd = subprocess.Popen(command, env={**os.environ, "LD_PRELOAD": _LOCALE}, stdout=out, stderr=out)
            is_told = False
            while sshd.poll() is None:
                if self._signals.is_stopping and not is_told:
                    sshd.terminate()  # it closes its port and leaves its sessions alone
                    is_told = True
                self._signals.wait(None)
            code = _exit_code(sshd.returncode)
            match plan_end(self._signals.is_stopping, count_sessions()):
                case Next.LEAVE:
                    return 0
                case Next.FAIL:
                    return code
                case Next.AGAIN:
                    say(f"sshd ended with code {code}; open sessions continue, and it is started again in 1 s")
                    self._pause(1)
        return code

    def _await_sessions(self) -> None:
        end, is_told = time.monotonic() + self._grace_s, False
        while (sessions := count_sessions()) and time.monotonic() < end:
            if not is_told:
                say(f"no new sessions; waiting up to {self._grace_s} s for the open ones to end")
                minutes, seconds = divmod(self._grace_s, 60)
                tell(
                    f"This login node ends in {minutes} min {seconds} s, and with it this session. "
                    "A new login goes to another one. Jobs run on."
                )
                is_told = True
            time.sleep(0.5)
        if sessions:
            say(f"{self._grace_s} s are over: open sessions end with this pod")

    def _keep_configuration(self) -> None:
        # In a session an admin can become user slurm, and sackd has the pod's own root. Nobody looks into a process that has a capability
        # that the looker lacks, and sessions never have SETPCAP. (File mode 0711 does not help: a restarted sackd could still be
        # inspected.) Where the pod itself lacks SETPCAP, no session can change its user.
        apart = (
            ["--inh-caps", "+setpcap", "--ambient-caps", "+setpcap"] if may_set_capabilities(Path("/proc/self/status").read_text()) else []
        )
        become = ["setpriv", "--reuid", "slurm", "--regid", "slurm", "--clear-groups", *apart]
        # By its full path, which it runs again at a reconfigure.
        command = [*become, "/usr/sbin/sackd", "-D", "--conf-server", f"{self._controller}:{ports.SLURMCTLD}"]
        environment = {name: value for name, value in os.environ.items() if name != "SLURM_CONF"}
        tries, out = 0, self._logs["sackd"].fd
        while True:
            if not (_has_munge() and self._answers()):
                if tries % 15 == 0:
                    say(f"waiting for munged and for slurmctld at {self._controller}:{ports.SLURMCTLD}")
                tries += 1
                time.sleep(1)
                continue
            try:
                self._sackd = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
                end = f"sackd ended with code {_exit_code(self._sackd.wait())}"
            except OSError as error:  # of too many processes, for instance
                end = f"sackd cannot be started: {error.strerror}"
            if self._is_over:
                return
            say(f"{end}; starting it again in {_AGAIN_S} s")
            time.sleep(_AGAIN_S)

    def _keep_state(self) -> None:
        """Writes what sessions show of the cluster. A full disk for a minute must not end it for good."""
        told = ""
        while True:
            pause_s, now = _STATE_S, ""
            try:
                write_state(self._controller)
            except SlurmError as error:
                now = f"what sessions show of the cluster grows old: {error}"
            except OSError as error:
                pause_s, now = _FAILED_S, f"what sessions show of the cluster cannot be written: {error}"
            try:
                if not limits.TOP.is_dir():
                    limits.write_pam_limits()
            except OSError as error:
                now = f"the limits of users cannot be written: {error}"
            if now and now != told:
                say(now)
            told = now
            time.sleep(pause_s)

    def _keep_projects(self) -> None:
        """Has a thread of its own, as a file server that is away blocks it."""
        projects = Projects(say)
        while True:
            projects.look()
            time.sleep(_PROJECTS_S)

    def _answers(self) -> bool:
        try:
            socket.create_connection((self._controller, ports.SLURMCTLD), _DIAL_S).close()
        except OSError:
            return False
        return True

    def _pause(self, seconds: float) -> None:
        """Returns early if the pod is told to go."""
        until = time.monotonic() + seconds
        while not self._signals.is_stopping and (left := until - time.monotonic()) > 0:
            self._signals.wait(left)


def prepare() -> None:
    """Prepares folders, keys and limits. Raises OSError, SlurmError."""
    for folder, mode in ((_OWN, 0o755), (Path("/run/sshd"), 0o755), (Path(paths.SLURM_RUN), 0o755), (_OWN / "ssh", 0o700)):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(mode)
    os.chown(paths.SLURM_RUN, ACCOUNTS["slurm"], ACCOUNTS["slurm"])
    _write(_OWN / "ssh" / _HOST_KEY, (_HOST_KEYS / _HOST_KEY).read_text(), 0o600)
    if _NODE_KEYS.exists():
        # By what ssh knows this cluster's nodes: the public half of the host key that all of them have. Without the file, ssh takes no name
        # for a node's.
        public = call("ssh-keygen", "-y", "-f", str(_NODE_KEYS / _HOST_KEY), timeout_s=10)
        _write(_OWN / "ssh_known_hosts", f"slipway-node {public.strip()}\n", 0o644)
    try:
        limits.prepare()
    except OSError as error:
        say(f"users get no limits of their own: {error}")


def count_sessions(processes: Path = Path("/proc")) -> int:
    """Counts sshd processes of sessions: two per session, one per login in progress."""
    count = 0
    for entry in os.scandir(processes):
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):  # ended meanwhile
                count += (Path(entry.path) / "comm").read_bytes() == b"sshd-session\n"
    return count


def tell(text: str, terminals: Path = Path("/dev/pts")) -> None:
    """Writes to all terminals; one that nobody reads does not block."""
    for terminal in terminals.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            opened = os.open(terminal, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
            try:
                os.write(opened, f"\r\n{text}\r\n".encode())
            finally:
                os.close(opened)


def _write(file: Path, text: str, mode: int) -> None:
    new_file = file.with_name(f"{file.name}.new")
    new_file.unlink(missing_ok=True)
    opened = os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(opened, "w") as out:
        out.write(text)
    new_file.chmod(mode)
    new_file.replace(file)


def _has_munge() -> bool:
    try:
        return subprocess.run(["munge", "--no-input", "--output", "/dev/null"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def _exit_code(code: int) -> int:
    return code if code >= 0 else 128 - code


def main() -> int:
    signals = Signals(has_children=True)
    try:
        prepare()
        os.environ["SLURM_CONF"] = paths.CACHED_CONF
        return Login(signals, os.environ[variables.SLURMCTLD], int(os.environ.get(variables.DRAIN_GRACE_S) or 0)).run()
    except (OSError, SlurmError) as error:
        say(f"FAILED: {error}")
        return 1


if __name__ == "__main__":
    take_stderr("slipway-login")
    sys.exit(main())
