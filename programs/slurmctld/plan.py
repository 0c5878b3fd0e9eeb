"""Decides which files slurmctld starts with, what to do after a look at it, and which nodes are not up yet. Pure.

An unreadable file does not count as missing: the ConfigMap's files may remove nodes that run jobs, and other pods may lack this munge key.
"""

import re
from enum import Enum

from slurm.records import record

_MISSES = 10
"""Looks in a row, half a second apart, without slurmctld before it counts as ended: a reconfigure changes the process."""
_SETTLED_S = 10
"""Seconds after which a running slurmctld has taken its files."""
_EARLY_S = 15
"""Seconds: a slurmctld that ends earlier has not read its files."""


class Found(Enum):
    """The state of a file."""

    MISSING = 1
    UNREADABLE = 2
    READABLE = 3


class Files(Enum):
    """Which files slurmctld starts with."""

    BEFORE = 1
    """The files of the link `conf.before`: the pod was killed while slurmctld read newer ones, which it may refuse."""
    OFFERED = 2
    """The files of the ConfigMap."""
    KEPT = 3
    """slurmctld's own copy."""
    NONE = 4
    """It does not start."""


def plan_files(has_before: bool, copy: Found) -> Files:
    """Decides on the files. After BEFORE, the caller goes back and asks again."""
    if has_before:
        return Files.BEFORE
    return {Found.MISSING: Files.OFFERED, Found.UNREADABLE: Files.NONE, Found.READABLE: Files.KEPT}[copy]


def setting(text: str, key: str) -> str:
    """The value of a key in the rendered slurm.conf; empty if there is none. The last line counts."""
    values = re.findall(rf"^{key}=(.*)$", text, re.MULTILINE)
    return values[-1] if values else ""


def is_to_forget(has_accounting: bool, saved: frozenset[str]) -> bool:
    """True if the file `clustername` has to be removed. `saved`: names of slurmctld's state files.

    slurmctld saves the usage of associations every few minutes and at its end. If it ends before the first save, it never starts again ("No
    Assoc usage file to recover") while this file exists. It makes the file again, with the same id from slurmdbd; jobs and nodes are
    recovered without it.
    """
    return has_accounting and "clustername" in saved and not saved & {"assoc_usage", "assoc_usage.old"}


def must_await_key(last: str, current: str) -> bool:
    """True if slurmctld last had another munge key than this pod: the other pods take the key while nothing listens here."""
    return last not in ("", current)


def is_key_due(waits_since: float | None, now: float, spread_s: float) -> bool:
    """True if another munge key waits in this pod, and every kubelet had time to bring it to the other pods."""
    return waits_since is not None and now - waits_since >= spread_s


class Step(Enum):
    """What to do after one look at slurmctld."""

    WATCH = 1
    TELL = 2
    """Signal it, so that it saves its state and ends."""
    CHANGE_KEY = 3
    LEAVE = 4
    """It has ended after our signal."""
    FAIL = 5
    """It has ended by itself."""


@record
class Watch:
    """State between looks."""

    misses: int = 0
    is_told: bool = False


def plan_look(watch: Watch, is_there: bool, is_stopping: bool, is_due: bool) -> tuple[Step, Watch]:
    """What to do now, and what to remember. `is_there`: slurmctld has a process. `is_due`: a munge key is due."""
    if is_there:
        if is_stopping:
            return (Step.WATCH if watch.is_told else Step.TELL), Watch(0, is_told=True)
        return (Step.CHANGE_KEY if is_due else Step.WATCH), Watch()
    if is_stopping:
        return Step.LEAVE, watch
    misses = watch.misses + 1
    return (Step.FAIL if misses >= _MISSES else Step.WATCH), Watch(misses, watch.is_told)


def has_settled(age_s: float) -> bool:
    """True if a slurmctld of this age has read its files."""
    return age_s > _SETTLED_S


def cannot_read_files(age_s: float, is_new: bool) -> bool:
    """True if slurmctld ended so early that it may not understand its predecessor's files. `is_new`: it is another version."""
    return age_s < _EARLY_S and is_new


def unready_nodes(states: str) -> list[str]:
    """Nodes that are not up, from sinfo's lines of state and node name.

    The mark after a state: * does not respond, # powering up, ~ powered down, % powering down, ! power down asked for. Source: sinfo(1).
    """
    return sorted(set(re.findall(r"^[a-z]*[*#~%!] (.*)$", states, re.MULTILINE)))
