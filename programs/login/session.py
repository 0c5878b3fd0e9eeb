"""sshd's PAM stack runs this as root when a session opens on a login node, before it enters the shared root: `python3 -m
programs.login.session`.

It puts the session into its user's cgroup, and prints what interactive sessions show (sshd hides it from others). No failure here costs a
login, so that an administrator can look. It asks for nothing but the quota of home, with a deadline (`quota`).
"""

import contextlib
import os
import pwd
import subprocess
import sys
import time
from pathlib import Path

from names import paths, variables
from slurm.logs import line

from . import quota
from .plan import UNREADABLE_LIMITS, cgroup_files, group_folders, read_limits, render_message

CGROUPS = Path(paths.LOGIN_CGROUPS)
SETTINGS = Path(paths.LOGIN)
STATE = Path(paths.LOGIN_STATE)
LOG = Path("/proc/1/fd/1")
ENVIRONMENT = Path("/proc/1/environ")
_WITHOUT_LIMITS = {"cpus": 1, **UNREADABLE_LIMITS}


class Session:
    """A session of a user that opens now."""

    def __init__(self, user: str) -> None:
        self._user = user

    def say(self, text: str) -> None:
        """Writes a line to the pod's log."""
        with contextlib.suppress(OSError):
            for entry in ENVIRONMENT.read_bytes().split(b"\0"):
                if entry.startswith(f"{variables.CLUSTER}=".encode()):  # PAM gives a session's programs none of the pod's variables
                    os.environ[variables.CLUSTER] = entry.partition(b"=")[2].decode(errors="replace")
        with contextlib.suppress(OSError), LOG.open("a") as log:
            log.write(line("slipway-login-session", f"{self._user}: {text}", user=self._user) + "\n")

    def limit(self, cgroups: Path, process: int) -> None:
        """Puts sshd's process of this session, and with it the whole session, into the user's group."""
        try:
            uid = pwd.getpwnam(self._user).pw_uid
        except KeyError:
            self.say("cannot find the user's number: the session has no limits")
            return
        is_v2 = (cgroups / "v2").is_dir()
        folders = [cgroups / folder for folder in group_folders(uid, is_v2)]
        limits = self._read_limits()
        if limits is not None or not _has_processes(folders[-1]):
            for folder in folders:
                folder.mkdir(parents=True, exist_ok=True)
            for file, value in cgroup_files(uid, is_v2, _WITHOUT_LIMITS if limits is None else limits).items():
                self._write(cgroups / file, value)
        for folder in folders:
            self._write(folder / "cgroup.procs", str(process))

    def _read_limits(self) -> dict[str, int] | None:
        file = SETTINGS / "limits"
        try:
            limits = read_limits(file.read_text(errors="replace"))
        except OSError:
            limits = None
        if limits is None:
            self.say(f"cannot read {file}: a user with open sessions keeps the limits of these, others get 1 CPU, 1 GiB and 100 tasks")
            show(
                "slipway: the limits of this login node cannot be read. Tell an administrator; until then, a first session has 1 CPU, 1 GiB"
                " and 100 tasks.\n"
            )
        return limits

    def _write(self, file: Path, value: str) -> None:
        try:
            file.write_text(f"{value}\n")
        except OSError:
            self.say(f"cannot write {value} to {file}")

    def message(self, now_s: float) -> str:
        """The state of the cluster and the user's jobs; empty before the first reading. Raises OSError, ValueError."""
        if not all((STATE / name).is_file() for name in ("read", "cluster")):
            return ""
        cluster, read_at = ((STATE / name).read_text(errors="replace") for name in ("cluster", "read"))
        jobs = (STATE / "jobs").read_text(errors="replace") if (STATE / "jobs").is_file() else None
        return render_message(cluster, jobs, int(now_s) - int(read_at), self._user)

    def home(self, now_s: float) -> str:
        """What the user stores at home and may store there; empty without a quota, or while the file server is silent. Raises OSError."""
        try:
            entry = pwd.getpwnam(self._user)
        except KeyError:
            return ""
        try:
            return quota.describe(entry.pw_dir, entry.pw_uid, entry.pw_gid, STATE / "quota-silent", now_s)
        except subprocess.TimeoutExpired:
            minutes = quota.SILENT_FOR_S // 60
            self.say(f"no answer about the quota of {entry.pw_dir} within {quota.DEADLINE_S} s; logins ask again in {minutes} minutes")
            return ""

    def home_keys(self) -> str:
        """A hint if the user has keys at home that do not count on this cluster; else empty. Raises OSError."""
        environment = ENVIRONMENT.read_bytes().split(b"\0")
        if any(entry.startswith(f"{variables.HOME_KEYS}=".encode()) for entry in environment):
            return ""
        try:
            listed = os.lstat(Path(pwd.getpwnam(self._user).pw_dir, ".ssh/authorized_keys")).st_size
        except (KeyError, FileNotFoundError, PermissionError):
            return ""
        return (
            "Keys in ~/.ssh/authorized_keys do not count on this cluster: send further public keys to an administrator.\n" if listed else ""
        )


def _has_processes(group: Path) -> bool:
    try:
        return bool((group / "cgroup.procs").read_text())
    except OSError:
        return False


def show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def main() -> None:
    if os.environ.get("PAM_TYPE") != "open_session":
        return
    session = Session(os.environ["PAM_USER"])
    if CGROUPS.is_dir():
        try:
            session.limit(CGROUPS, os.getppid())
        except OSError as error:
            session.say(f"the session has no limits: {error}")
    if (SETTINGS / "banner").is_file():
        show((SETTINGS / "banner").read_text(errors="replace"))
    try:
        show(session.message(time.time()))
    except (OSError, ValueError) as error:
        session.say(f"cannot show the state of the cluster: {error}")
    try:
        show(session.home(time.time()))
    except OSError as error:
        session.say(f"cannot show the quota of home: {error}")
    try:
        show(session.home_keys())
    except OSError as error:
        session.say(f"cannot look for keys at home: {error}")


if __name__ == "__main__":
    main()
