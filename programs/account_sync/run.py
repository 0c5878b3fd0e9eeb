"""The program of the `accounts` container: syncs Slurm's accounts, users and QOS with a file, every 30 s and when the file changes.

`python3 -m programs.account_sync.run FILE`, as SlurmUser. It keeps no state: Slurm has our marks. Only a signal ends it.
"""

import grp
import os
import pwd
import signal
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import FrameType

from names import paths
from slurm.logs import teller
from slurm.people import LEAST_ID
from slurm.pump import take_stderr

from .plan import Change, Plan, State, plan_accounts
from .settings import from_json
from .slurm import Refused, Slurm, SlurmError
from .wanted import read_wanted

PERIOD_S = 30
RETRY_S = 5
EARLY_S = 1
"""Until slurmdbd and slurmctld answer: where associations are enforced, users cannot submit jobs without one."""
_LOOK_S = 1
_MOST_ROUNDS = 8
_MOST_COMMANDS = 400
"""Most commands in one tick. The next tick continues."""
_SYSTEM = Path("/etc/passwd")
_PASSWD = Path(f"{paths.USERS}/passwd")
"""The file of people. The image's own users are in the system's file; some have higher uids than people."""


class Reporter:
    """Logs a line when it becomes true, and does not repeat it."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._said: dict[str, frozenset[str]] = {}

    def say(self, line: str) -> None:
        self._write(line)

    def states(self, subject: str, lines: Collection[str]) -> None:
        """Logs the lines that are newly true of a subject."""
        for line in dict.fromkeys(lines):
            if line not in self._said.get(subject, ()):
                self._write(line)
        self._said[subject] = frozenset(lines)


def converge(wanted: State, slurm: Slurm, reporter: Reporter) -> int:
    """Reads, plans and acts until nothing is left to do or no command succeeds. Returns the seconds until the next look.

    Raises SlurmError when slurmdbd does not answer.
    """
    left = _MOST_COMMANDS
    plan, refused = Plan((), ()), dict[Change, str]()
    for _ in range(_MOST_ROUNDS):
        plan = plan_round(wanted, slurm, reporter)
        todo, left, refused = plan.changes[:left], left - len(plan.changes), dict[Change, str]()
        for change in todo:
            refused |= apply(change, slurm, reporter)
        # A refused change may succeed after the others, so another round is worth it if any command succeeded.
        if left <= 0 or sum(len(change.names) for change in refused) == sum(len(change.names) for change in todo):
            break
    reporter.states("waiting", plan.waiting)
    reporter.states("refused", [f"REFUSED: {change}: {why}" for change, why in refused.items()])
    reporter.states("all", [] if plan.changes or plan.waiting else ["all accounts, users and QOS are as the config has them"])
    if plan.is_early:
        return EARLY_S
    return RETRY_S if plan.changes or plan.is_busy else PERIOD_S


def plan_round(wanted: State, slurm: Slurm, reporter: Reporter) -> Plan:
    """The plan of one reading. Asks slurmctld only when something is to be removed."""
    present = slurm.present()
    plan = plan_accounts(wanted, present, None)
    if not plan.is_busy:
        return plan
    try:
        # After the reading that showed it closed, so a job that was accepted before is seen.
        usage = slurm.usage()
    except SlurmError as error:
        reporter.states("usage", [f"slurmctld does not answer, so everything counts as in use: {error}"])
        return plan
    reporter.states("usage", [])
    return plan_accounts(wanted, present, usage)


def apply(change: Change, slurm: Slurm, reporter: Reporter) -> dict[Change, str]:
    """Makes a change. Splits a refused one in halves, so that one name does not block the others. Returns what stays refused, and why."""
    try:
        slurm.apply(change)
    except Refused as error:
        if len(change.names) == 1:
            return {change: str(error)}
        middle = len(change.names) // 2
        first, second = replace(change, names=change.names[:middle]), replace(change, names=change.names[middle:])
        return apply(first, slurm, reporter) | apply(second, slurm, reporter)
    reporter.say(str(change))
    return {}


class Directory:
    """Users and groups as the system knows them, each list read once."""

    @cached_property
    def users(self) -> list[pwd.struct_passwd]:
        """All users. Raises OSError if their file cannot be read: the C library treats that as an empty file."""
        if _PASSWD.parent.is_dir():
            _PASSWD.read_bytes()
        return pwd.getpwall()

    def members_of(self, group: str) -> set[str] | None:
        """Users of a group, including those whose primary group it is. None if there is no such group or the directory does not answer."""
        try:
            entry = grp.getgrnam(group)
        except (KeyError, OSError):
            return None
        return {*entry.gr_mem, *(user.pw_name for user in self.users if user.pw_gid == entry.gr_gid)}

    def people(self) -> list[str]:
        """All users except those of the system."""
        system = {line.partition(":")[0] for line in _SYSTEM.read_text().splitlines()}
        return [user.pw_name for user in self.users if user.pw_uid >= LEAST_ID and user.pw_name not in system]


def tick(file: Path, reporter: Reporter) -> int:
    """Reads the file and Slurm, and makes the changes. Returns the seconds until the next tick."""
    try:
        settings = from_json(file.read_text())
        directory = Directory()
        wanted, notes = read_wanted(settings, directory.members_of, directory.people)
        slurm = Slurm(settings.cluster)
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        reporter.states("file", [f"{file} cannot be read, nothing is changed: {error!r}"])
        return RETRY_S
    reporter.states("file", notes)
    try:
        pause_s = converge(wanted, slurm, reporter)
    except SlurmError as error:
        reporter.states("all", [])
        reporter.states("slurmdbd", [f"slurmdbd does not answer, trying every {EARLY_S} s: {error}"])
        return EARLY_S
    except ValueError as error:
        reporter.states("slurmdbd", [f"sacctmgr showed something that is not understood, nothing is changed: {error}"])
        return RETRY_S
    reporter.states("slurmdbd", [])
    return pause_s


def content(file: Path) -> bytes:
    """The content of the file; empty while it cannot be read."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def main() -> None:
    # Python as process 1 ignores SIGTERM. Ending at once is safe at any point: the next run finishes the work.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end_at_once)
    file = Path(sys.argv[1])
    reporter = Reporter(teller("accounts"))
    while True:
        seen = content(file)
        end = tick(file, reporter) + time.monotonic()
        while time.monotonic() < end and content(file) == seen:
            time.sleep(_LOOK_S)


def _end_at_once(number: int, _: FrameType | None) -> None:
    os._exit(128 + number)


if __name__ == "__main__":
    take_stderr("accounts")
    main()
