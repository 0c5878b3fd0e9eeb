"""Parses the daemons' log lines into time, level and message. A line in an unknown format is a message of level info. Pure.

Measured on Slurm 26.05 (every LogTimeFormat), munge 0.5, OpenSSH 10, MariaDB 11.8 and nfs-ganesha.
"""

import re
import time
from collections.abc import Callable

from slurm.logs import CRITICAL, DEBUG, ERROR, INFO, WARNING, level_of
from slurm.records import record

SLURM = ("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "sackd")
UNSHARED = frozenset({"slurmctld", "slurmd", "slurmrestd", "sackd", "sshd", "munged"})
"""Daemons whose pipe no program of ours writes to. They quote what users write, and do not escape it: what looks like a line of ours there
is none."""


@record
class Read:
    """A daemon's line, taken apart."""

    message: str
    level: str = INFO
    at: float | None = None
    """Unix time; None where the line has none, or none that says which day it was."""


def read(daemon: str, text: str) -> Read:
    """A line of the daemon, or of the script that starts it. Every text gives a message."""
    reading = _start(daemon, text)
    if reading is None:
        reading = _READERS.get(daemon, _plain)(text)
    return reading if reading.message else Read(text.strip(), reading.level, reading.at)


_SLURM_HEAD = re.compile(
    r"(?:\[(?P<time>\d{4}-\d\d-\d\d[T ][^\]]{8,24}|[A-Z][a-z]{2} [^\]]{0,20}?\d\d:\d\d:\d\d[^\]]{0,20}|\d+)\] ?)?"
    r"(?:(?P<program>slurmctld|slurmd|slurmdbd|slurmrestd|sackd|slurmstepd)(?:-[\w-]+)?: )?"
    r"(?P<step>\[\d+(?:[_+]\d+)?\.\w+(?:\+\d+)?\] )?"
    r"(?P<thread>\[\d+\] )?"
    r"(?:(?P<level>fatal|error|warning|debug[2345]?|verbose): )?"
)
_SLURM_LEVELS = {"fatal": CRITICAL, "error": ERROR, "warning": WARNING, "verbose": INFO}
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ] ?(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")
_MUNGE = re.compile(r"munged: (Emergency|Alert|Critical|Error|Warning|Notice|Info|Debug): +")
_MUNGE_LEVELS = {"Emergency": CRITICAL, "Alert": CRITICAL, "Critical": CRITICAL, "Error": ERROR, "Warning": WARNING, "Debug": DEBUG}
_SSHD = re.compile(r"(?:sshd[\w-]*(?:\[\d+\])?: )?(fatal|error|debug[123]): ")
_MARIADB = re.compile(r"(\d{4}-\d\d-\d\d +\d{1,2}:\d\d:\d\d) +\d+ +\[(Note|Warning|ERROR)\] ")
_MARIADB_LEVELS = {"Note": INFO, "Warning": WARNING, "ERROR": ERROR}
_GANESHA = re.compile(
    r"(?P<day>\d\d)/(?P<month>\d\d)/(?P<year>\d{4}) (?P<clock>\d\d:\d\d:\d\d) : epoch [0-9a-f]+ : \S+ : [^\[]*\[(?P<thread>[^\]]*)\] "
    r"(?P<function>\S+) :(?P<component>[^:]*):(?P<level>\w+) :"
)
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):|[A-Z]\w*(?:\.\w+)*(?:Error|Exception|Interrupt)\b")
_GANESHA_LEVELS = {"FATAL": CRITICAL, "MAJ": CRITICAL, "CRIT": ERROR, "WARN": WARNING, "EVENT": INFO, "INFO": INFO, "NULL": INFO}


def _start(daemon: str, text: str) -> Read | None:
    """A line of a start script: `mariadb.sh: making the data folder`."""
    head = f"{daemon}.sh: "
    if not text.startswith(head):
        return None
    message = text.removeprefix(head)
    return Read(message, level_of(message))


def _slurm(text: str) -> Read:
    match = _SLURM_HEAD.match(text)
    if match is None:  # every part may be missing
        return Read(text)
    level = match["level"] or ""
    # Which step a slurmstepd belongs to stays in the message: it is where the job is read from.
    message = (match["step"] or "") + text[match.end() :]
    return Read(message, _SLURM_LEVELS.get(level, DEBUG if level else INFO), _slurm_time(match["time"] or ""))


def _slurm_time(text: str) -> float | None:
    """The forms of LogTimeFormat that name a moment: ISO 8601, RFC 5424 and RFC 3339."""
    return iso_time(text) if text[:4].isdecimal() and "-" in text else None


def iso_time(text: str) -> float | None:
    """Unix time of a date and time, in this machine's zone if none is given. None for an invalid time."""
    match = _ISO.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    if not (year >= 1970 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61):
        return None
    fraction = float(f"0.{match[7] or 0}")
    parts = (year, month, day, hour, minute, second, 0, 1, -1)
    zone = match[8]
    try:
        if zone is None:
            return time.mktime(parts) + fraction
        ahead = 0 if zone == "Z" else int(f"{zone[0]}1") * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)
        return _utc(year, month, day) + hour * 3600 + minute * 60 + second - ahead + fraction
    except (OverflowError, ValueError):
        return None


def _utc(year: int, month: int, day: int) -> int:
    """Unix time of the day's start in UTC, as calendar.timegm gives it; importing that takes long."""
    year -= month <= 2
    days = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return (365 * year + year // 4 - year // 100 + year // 400 + days - 719_468) * 86_400


def _munged(text: str) -> Read:
    match = _MUNGE.match(text)
    return Read(text[match.end() :], _MUNGE_LEVELS.get(match[1], INFO)) if match else Read(text)


def _sshd(text: str) -> Read:
    match = _SSHD.match(text)
    if match is None:
        return Read(text)
    return Read(text[match.end() :], {"fatal": CRITICAL, "error": ERROR}.get(match[1], DEBUG))


def _mariadb(text: str) -> Read:
    match = _MARIADB.match(text)
    return Read(text[match.end() :], _MARIADB_LEVELS[match[2]], iso_time(match[1])) if match else Read(text)


def _ganesha(text: str) -> Read:
    match = _GANESHA.match(text)
    if match is None:
        return Read(text)
    at = iso_time(f"{match['year']}-{match['month']}-{match['day']} {match['clock']}")
    return Read(f"{match['function']}: {text[match.end() :].strip()}", _GANESHA_LEVELS.get(match["level"], DEBUG), at)


def _plain(text: str) -> Read:
    """Output that a program of ours did not log itself: a traceback, or the output of a program that it ran."""
    return Read(text, ERROR if _TRACEBACK.match(text) else level_of(text))


_READERS: dict[str, Callable[[str], Read]] = {
    **dict.fromkeys(SLURM, _slurm),
    "munged": _munged,
    "sshd": _sshd,
    "mariadb": _mariadb,
    "nfs-ganesha": _ganesha,
}
