"""Which slurmds have the files that slurmctld has taken, and when to look and to tell them again. Pure.

At a reconfigure, slurmctld forgets when each slurmd started. So a start that it knows again, other than before, shows that the slurmd has
the files. A slurmd that could not be reached keeps the old files until the next reconfigure.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from slurm.states import NodeState, is_registered, waits_for_power

from .plan import some

AGAIN_S = 20.0
"""Seconds after a word to the slurmds until it is said again, or until slurmds without the files are a fault. By then slurmctld has given
up those that it cannot reach: 13 s (measured)."""
_SOON_S, _LATER_S, _SELDOM_S = 0.25, 2.0, 15.0


@dataclass(frozen=True)
class Slurmd:
    """A node's slurmd as slurmctld knows it."""

    state: NodeState
    started: int | None
    """Seconds since 1970 by the node's own clock; None for a slurmd that has not registered since slurmctld last read its files."""


@dataclass(frozen=True)
class Told:
    """That slurmctld has told all slurmds of new files."""

    at: float
    """Seconds since 1970."""
    before: Mapping[str, int]
    """When each slurmd that was known had started."""
    done: frozenset[str] = frozenset()
    """Nodes that were seen with the files."""
    twice: frozenset[str] = frozenset()
    """Nodes that were behind when slurmctld was asked to tell all of them again: once for each."""
    answered: frozenset[str] = frozenset()
    """Nodes whose slurmd answered before slurmctld took the files."""


def starts_of(slurmds: Mapping[str, Slurmd]) -> dict[str, int]:
    """When each slurmd with a known start has started."""
    return {name: slurmd.started for name, slurmd in slurmds.items() if slurmd.started is not None}


def note_done(slurmds: Mapping[str, Slurmd], told: Told) -> Told:
    """`told` with the slurmds that have the files by now."""
    ready = {name for name, slurmd in slurmds.items() if _has_files(slurmd.started, told.before.get(name), told.at)}
    return replace(told, done=told.done | ready)


def tell_again(slurmds: Mapping[str, Slurmd], told: Told, now: float) -> Told:
    """`told` after slurmctld was asked to tell them once more. Slurmds that have the files are not awaited again."""
    return replace(told, at=now, before={**told.before, **starts_of(slurmds)}, twice=told.twice | set(find_behind(slurmds, told)))


def find_awaited(slurmds: Mapping[str, Slurmd]) -> list[str]:
    """Nodes whose slurmd answers. Any other fetches the files when it starts."""
    return sorted(name for name, slurmd in slurmds.items() if is_registered(slurmd.state))


def find_behind(slurmds: Mapping[str, Slurmd], told: Told) -> list[str]:
    """Nodes whose slurmd answers and has not the files yet."""
    return [name for name in find_awaited(slurmds) if name not in told.done]


def find_silent(slurmds: Mapping[str, Slurmd], told: Told) -> list[str]:
    """Nodes whose slurmd does not answer now, and may come back with the files that it had."""
    gone = [name for name, slurmd in slurmds.items() if not is_registered(slurmd.state) and not waits_for_power(slurmd.state)]
    return sorted(name for name in gone if name not in told.done)


def find_lost(slurmds: Mapping[str, Slurmd], told: Told) -> list[str]:
    """Nodes whose slurmd answered before, and is silent since it was sent the files."""
    return [name for name in find_silent(slurmds, told) if name in told.answered]


def are_files_at_fault(lost: list[str], told: Told) -> bool:
    """True if more than half of a node set's slurmds were lost: a gres.conf that does not match ends each of them. Fewer may be lost by
    chance."""
    before, gone = (Counter(name.rpartition("-")[0] for name in names) for names in (told.answered, lost))
    return any(2 * count > before[name] for name, count in gone.items())


def is_to_be_told_again(behind: list[str], told: Told, now: float) -> bool:
    """True if slurmds have been behind for long, and telling them again may help."""
    return is_late(told, now) and not told.twice.issuperset(behind)


def is_late(told: Told, now: float) -> bool:
    """True if slurmds have had the time to take the files."""
    return now - told.at >= AGAIN_S


def look_after_s(age_s: float) -> float:
    """Seconds until the next look, `age_s` seconds after the files were taken: often at first, seldom for slurmds that stay behind."""
    return _SOON_S if age_s < 10 else _LATER_S if age_s < 4 * AGAIN_S else _SELDOM_S


def describe(behind: list[str], awaited: int, silent: list[str]) -> str:
    """How far the files are, for people."""
    have = f"all {awaited} slurmds that answer have them" if awaited else "no slurmd answers"
    message = f"{len(behind)} of {awaited} slurmds do not have them yet: {some(behind)}" if behind else have
    return message + (f"; of silent slurmds nothing is known: {some(silent)}" if silent else "")


def _has_files(started: int | None, before: int | None, told_at: float) -> bool:
    if started is None:
        return False
    # Of a slurmd that was not known before, its own clock has to do: it may have fetched the old files just before.
    return started != before if before is not None else started >= int(told_at)
