"""Decides which files slurmctld starts with, what follows from a look at it, and which nodes are still on their way up. Pure.

What cannot be read is not missing: the ConfigMap's files may take nodes away that run jobs, and a munge key may not be everybody's yet.
"""

import re
from enum import Enum

from slurm.records import record

_MISSES = 10
"""Looks in a row, half a second each, that find no slurmctld before it counts as ended: a reconfigure changes the process."""
_SETTLED_S = 10
"""Seconds after which a slurmctld that runs has taken its files."""
_EARLY_S = 15
"""One that ends before has not read its files."""


class Found(Enum):
    """What there is of a file."""

    MISSING = 1
    UNREADABLE = 2
    READABLE = 3


class Files(Enum):
    """Which files slurmctld starts with."""

    BEFORE = 1
    """Those that the link `conf.before` names: the pod was killed while slurmctld read others. It may have refused those, and would end
    with them now."""
    OFFERED = 2
    """Those of the ConfigMap."""
    KEPT = 3
    """Its copy."""
    NONE = 4
    """It does not start."""


def plan_files(has_before: bool, copy: Found) -> Files:
    """Which files slurmctld starts with. Going back is a step of its own, after which `copy` is another."""
    if has_before:
        return Files.BEFORE
    return {Found.MISSING: Files.OFFERED, Found.UNREADABLE: Files.NONE, Found.READABLE: Files.KEPT}[copy]


def setting(text: str, key: str) -> str:
    """The value of a line of slurm.conf as it is rendered, the last one's; empty where there is none."""
    values = re.findall(rf"^{key}=(.*)$", text, re.MULTILINE)
    return values[-1] if values else ""


def is_to_forget(has_accounting: bool, saved: frozenset[str]) -> bool:
    """True when the file `clustername` among what slurmctld `saved` has to go.

    Slurm saves the usage of associations every few minutes and at its end. A slurmctld that ended before the first time, killed or over a
    QOS that was not in slurmdbd yet, would never start again ("No Assoc usage file to recover"): it asks for what is missing because of
    this file, which it makes again with the same id, that of slurmdbd. What else it has saved, jobs and nodes, is recovered all the same.
    """
    return has_accounting and "clustername" in saved and not saved & {"assoc_usage", "assoc_usage.old"}


def must_await_key(last: str, current: str) -> bool:
    """True when this pod is new and has another munge key than slurmctld had: the others take it while nothing listens here."""
    return last not in ("", current)


def is_key_due(waits_since: float | None, now: float, spread_s: float) -> bool:
    """True when another munge key waits in this pod, and every kubelet has had the time to bring it to the others."""
    return waits_since is not None and now - waits_since >= spread_s


class Step(Enum):
    """What follows from one look at slurmctld."""

    WATCH = 1
    TELL = 2
    """Signal it: it saves its state, then ends."""
    CHANGE_KEY = 3
    LEAVE = 4
    """It has ended as it was told to."""
    FAIL = 5
    """It has ended by itself."""


@record
class Watch:
    """What earlier looks have left."""

    misses: int = 0
    is_told: bool = False


def plan_look(watch: Watch, is_there: bool, is_stopping: bool, is_due: bool) -> tuple[Step, Watch]:
    """What to do now, and what to remember. `is_there` says whether slurmctld has a process, `is_due` whether a key is."""
    if is_there:
        if is_stopping:
            return (Step.WATCH if watch.is_told else Step.TELL), Watch(0, is_told=True)
        return (Step.CHANGE_KEY if is_due else Step.WATCH), Watch()
    if is_stopping:
        return Step.LEAVE, watch
    misses = watch.misses + 1
    return (Step.FAIL if misses >= _MISSES else Step.WATCH), Watch(misses, watch.is_told)


def has_settled(age_s: float) -> bool:
    """True when this Slurm, which has run so long, has read its files."""
    return age_s > _SETTLED_S


def cannot_read_files(age_s: float, is_new: bool) -> bool:
    """True when a slurmctld that ended so soon may not read the files of its predecessor, because it `is_new`: of another version."""
    return age_s < _EARLY_S and is_new


def unready_nodes(states: str) -> list[str]:
    """The nodes that are not up in sinfo's lines of state and node name.

    The mark after a state: * does not respond, # powering up, ~ powered down, % powering down, ! power down asked for. Source: sinfo(1).
    """
    return sorted(set(re.findall(r"^[a-z]*[*#~%!] (.*)$", states, re.MULTILINE)))
