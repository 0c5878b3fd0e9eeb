"""The rules of backups: their names, which of them stay, which one a restore takes, and what makes one whole. Pure.

A backup is one file, called after the moment when it was begun (UTC), so that names sort as times do. A name later than now comes from a
clock that was wrong: the real time is not known. Such a backup is kept, and reported as a fault. It counts neither for the age of the
newest one nor for what stays. A restore takes it only if restoreFrom gives its very name. Clocks may differ by minutes.
"""

import re
import time
from calendar import timegm
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

DATABASE, STATE = ".sql.zst", ".tar.zst"
"""How the names of files end."""
STATE_FILES = frozenset({"job_state", "node_state", "part_state", "clustername"})
"""What slurmctld's state always has."""
MARKER = "slipway_restore"
"""A table that an external database has while a restore fills it: all else is half a restore then."""
_FORMAT = "%Y-%m-%dT%H-%M-%SZ"
_NAME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}Z")
_SLACK_S = 300
_SHOWN = 3
_HARMLESS = (": No such file or directory", ": File removed before we read it", ": file changed as we read it", ": socket ignored")
_DUMP_ENDS = "-- Dump completed"


def name_of(moment: float) -> str:
    """The name of a backup that begins at a time, in seconds since 1970."""
    return time.strftime(_FORMAT, time.gmtime(moment))


def moment_of(name: str) -> int:
    """When a backup was begun, in seconds since 1970. Raises ValueError for a day or an hour that there is not."""
    return timegm(time.strptime(name, _FORMAT))


@dataclass(frozen=True)
class Backups:
    """The backups of one folder, by their names."""

    past: tuple[str, ...]
    """The newest first."""
    future: tuple[str, ...]
    """Dated in the future, the oldest first."""

    @property
    def newest(self) -> str:
        """Empty where there is none."""
        return self.past[0] if self.past else ""


def sort_backups(files: Iterable[str], ending: str, now: float) -> Backups:
    """The backups among the files of a folder. `now` is in seconds since 1970."""
    names = sorted(file.removesuffix(ending) for file in files if file.endswith(ending) and _NAME.fullmatch(file.removesuffix(ending)))
    latest = name_of(now + _SLACK_S)
    return Backups(tuple(name for name in reversed(names) if name <= latest), tuple(name for name in names if name > latest))


def age_s(backups: Backups, now: float) -> float | None:
    """Age of the newest backup in seconds; None where there is none. Infinite if its name is not a valid time."""
    try:
        return now - moment_of(backups.newest) if backups.newest else None
    except ValueError:
        return float("inf")


def is_due(backups: Backups, interval_s: int, now: float) -> bool:
    """True where no backup is younger than the interval."""
    age = age_s(backups, now)
    return age is None or age >= interval_s


def plan_pruning(backups: Backups, keep: int, days: int = 0) -> list[str]:
    """The backups that go: the newest `keep` stay, and of each of the newest `days` days the last one."""
    gone: list[str] = []
    seen: list[str] = []
    for place, name in enumerate(backups.past):
        day = name.partition("T")[0]
        is_last_of_day = day not in seen
        if is_last_of_day:
            seen.append(day)
        if place >= keep and not (is_last_of_day and len(seen) <= days):
            gone.append(name)
    return gone


@dataclass(frozen=True)
class Choice:
    """What a restore does."""

    name: str = ""
    """The backup that it takes; empty for an empty start."""
    waits: str = ""
    """What it waits for, where nobody has decided; else empty."""


def choose(backups: Backups, restore_from: str, what: str) -> Choice:
    """What an empty database or disk (`what`) is filled from. `restore_from` is latest, a time, nothing, or empty while undecided."""
    if restore_from == "nothing" or (not restore_from and not backups.past and not backups.future):
        return Choice()
    if restore_from in backups.future:
        return Choice(restore_from)
    if restore_from == "latest" and backups.past:
        return Choice(backups.newest)
    if restore_from and restore_from != "latest" and (until := [name for name in backups.past if name <= restore_from]):
        return Choice(until[0])
    if restore_from:
        there = " ".join(backups.past) or "none"
        waits = (
            f"WAITING: {what} is empty, and there is no backup for backup.restoreFrom: {restore_from}. There are: {there}."
            " `nothing` starts with an empty one"
        )
    elif not backups.past:
        waits = (
            f"WAITING: {what} is empty, and all backups that there are are dated in the future."
            " Set backup.restoreFrom to the name of a backup, or to `nothing`; then deploy"
        )
    else:
        newest = backups.newest
        waits = (
            f"WAITING: {what} is empty, but there are {len(backups.past)} backups, the newest {newest}."
            f" Set backup.restoreFrom to `latest`, to a time such as {newest}, or to `nothing`; then deploy"
        )
    if backups.future:
        waits += f". Dated in the future, by a clock that was wrong, and taken only by its very name: {' '.join(backups.future)}"
    return Choice(waits=waits)


def tell_future(backups: Backups, folder: str) -> str:
    """The fault of backups that are dated in the future; empty where there are none."""
    if not backups.future:
        return ""
    return (
        f"FAILED: dated in the future, by a clock that was wrong: {' '.join(backups.future)} in {folder}."
        " Look at the clocks of the machines; then rename or remove these files. Restores leave them out"
    )


def find_fault(tables: Sequence[str], host: str) -> str:
    """Why a database is not backed up; empty where it may be.

    An empty one is the loss that backups are for: it must not take the place of a good one.
    """
    if MARKER in tables:
        return f"FAILED: the database at {host} is being restored; the older backups stay as they are"
    return "" if tables else f"FAILED: the database at {host} has no tables; the older backups stay as they are"


def is_whole_dump(last_line: str) -> bool:
    """True for the line that mariadb-dump ends with."""
    return last_line.startswith(_DUMP_ENDS)


def unread(said: str) -> list[str]:
    """The first few lines of tar about files that it could not read. A name may be gone by now: that is not a fault."""
    return [line for line in said.splitlines() if line and not line.endswith(_HARMLESS)][:_SHOWN]


def is_whole_state(members: Iterable[str]) -> bool:
    """True for a tar that has all of slurmctld's files. Between slurmctld's unlink and link a name is missing for a moment."""
    return frozenset(members) >= STATE_FILES


def retry_s(failures: int) -> int:
    """Seconds until the next try. A single one may meet a file between two names; from the second on it is a fault."""
    return 2 if failures < 2 else 60
