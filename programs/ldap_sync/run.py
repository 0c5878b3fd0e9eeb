"""The program of the Deployment `<cluster>-identity`: asks LDAP regularly and writes the files that all pods read.

`python3 -m programs.ldap_sync.run '<settings>'`. The last good files stay while LDAP is away or its answer cannot be trusted. /tmp/ready
exists while the last answer was good, and each round touches /tmp/alive.
"""

import grp
import os
import pwd
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from names import paths
from slurm.logs import teller
from slurm.people import RESERVED, TAKEN
from slurm.pump import take_stderr

from .accounts import Accounts, Configured, merge, removal_fault
from .entries import USERS_GID, Entry, Rules, read_accounts
from .files import Folder, read_folder
from .settings import Settings, from_json

Read = Callable[[], tuple[list[Entry], list[Entry]]]
"""Returns the entries of users and of groups, or raises an Exception with the reason as its text."""

_LONGEST_PAUSE_S = 60
_MOST_REMARKS = 100
_READ_AGAIN_S = 600
_CONFIG = Path(paths.STACK_USERS)
_CONFIG_KEYS = Path(paths.STACK_USER_KEYS)
_FOLDER = Path("/identity")
_SIGNS = Path("/tmp")  # noqa: S108 - a volume of the pod's own
_tell = teller("identity")


def say(text: str) -> None:
    """Writes one line to the log, even if the text has line breaks from a server."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    _tell(plain)


@dataclass
class Keeper:
    """Runs the rounds, and keeps what one round leaves for the next."""

    folder: Folder
    read: Read
    configured: Callable[[], Configured]
    rules: Rules
    max_removed_percent: int
    say: Callable[[str], None] = say
    accepted: Accounts | None = None
    fault: str = ""
    """What was wrong in the last round; empty if it was good."""
    _remarks: tuple[str, ...] = ()
    _told: set[str] = field(default_factory=set[str])
    _opened: float | None = None
    _good: bool = False

    def round(self, now: float) -> bool:
        """Asks once and writes what changed; True if all went well. Never raises an Exception. `now` is in seconds, of any clock."""
        fault = ""
        try:
            if self._opened is None or now - self._opened > _READ_AGAIN_S:
                self.folder.open()
                self._opened = now
                self.accepted = self.accepted or self._accepted_before()
            fault = self._ask()
            self._write()
        except OSError as error:
            self._opened = None
            fault = f"{fault}; and " if fault else ""
            fault += f"the files cannot be read or written: {error}"
        except Exception as error:
            # A bug of ours must not end the program either: the written users still work.
            self._opened = None
            fault = f"{type(error).__name__}: {error}"
        self._tell_fault(fault)
        return not fault

    def _accepted_before(self) -> Accounts | None:
        """The last answer before this program started. None if it was lost: the files do not tell it."""
        return self.folder.accepted() or (None if self.folder.has_users() else Accounts())

    def _ask(self) -> str:
        try:
            users, groups = self.read()
        except Exception as error:
            return str(error) or type(error).__name__
        reading = read_accounts(users, groups, self.rules, self.accepted)
        fault = removal_fault(self.accepted, reading.accounts, self.max_removed_percent)
        if not fault:
            self.accepted = reading.accounts
        self._remarks = reading.remarks
        return fault

    def _write(self) -> None:
        if self.accepted is None:
            return  # the files stay until LDAP answers
        merged = merge(self.configured(), self.accepted)
        changes = self.folder.write(merged, self.accepted)
        self._tell_remarks([*self._remarks, *merged.remarks])
        if changes:
            users, groups = (len(merged.files[name].splitlines()) for name in ("passwd", "group"))
            self.say(f"{changes} files changed: now {users} users, {len(merged.keys)} of them with keys, and {groups} groups")

    def _tell_fault(self, fault: str) -> None:
        if fault and fault != self.fault:
            self.say(f"{fault}. The last good files stay; trying on.")
        elif not fault and not self._good:
            self.say("LDAP answers" + (" again" if self.fault else ""))
        self.fault, self._good = fault, not fault

    def _tell_remarks(self, remarks: list[str]) -> None:
        new = [remark for remark in remarks if remark not in self._told]
        for remark in new[:_MOST_REMARKS]:
            self.say(remark)
        if len(new) > _MOST_REMARKS:
            self.say(f"and {len(new) - _MOST_REMARKS} more of that kind")
        self._told = {*remarks}


def pause_s(refresh_s: float, failures: int) -> float:
    """Seconds until the next round: longer with each failure, but a removal takes effect within a minute after LDAP is back."""
    return min(refresh_s * 2 ** min(failures, 10), max(refresh_s, _LONGEST_PAUSE_S / 2))


def system_rules(settings: Settings) -> Rules:
    """Rules that reserve the image's own names and numbers."""
    users, groups = pwd.getpwall(), grp.getgrall()
    return Rules(
        min_uid=settings.min_uid,
        min_gid=settings.min_gid,
        key_attribute=settings.key_attribute.lower(),
        taken_names=RESERVED | {user.pw_name for user in users} | {group.gr_name for group in groups},
        taken_uids={*TAKEN, *(user.pw_uid for user in users)},
        taken_gids={*TAKEN, *(group.gr_gid for group in groups)} - {USERS_GID},
        has_shell=lambda path: Path(path).is_file() and os.access(path, os.X_OK),
    )


def read_configured() -> Configured:
    """The users of the config, from the mounted ConfigMaps. Raises OSError."""
    files = read_folder(_CONFIG)
    return Configured(files["passwd"], files["group"], files["shadow"], read_folder(_CONFIG_KEYS))


def main() -> int:
    from .directory import read_directory  # needs python-ldap, which only the image has

    settings = from_json(sys.argv[1])
    os.umask(0o022)
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    # A write to a slow volume counts as alive while it makes progress.
    folder = Folder(_FOLDER, before_step=lambda _: (_SIGNS / "alive").touch())
    keeper = Keeper(folder, lambda: read_directory(settings), read_configured, system_rules(settings), settings.max_removed_percent)
    failures = 0
    (_SIGNS / "ready").unlink(missing_ok=True)  # of an earlier start of the container
    while not stop.is_set():
        is_good = keeper.round(time.monotonic())
        failures = 0 if is_good else failures + 1
        (_SIGNS / "alive").touch()
        if is_good:
            (_SIGNS / "ready").touch()
        else:
            (_SIGNS / "ready").unlink(missing_ok=True)
        stop.wait(pause_s(settings.refresh_s, failures))
    return 0


if __name__ == "__main__":
    take_stderr("identity")
    sys.exit(main())
