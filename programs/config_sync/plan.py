"""Decides whether slurmctld may take changed files now: which nodes and partitions they remove, and what has to end first. Pure.

Unknown is busy. Files that cannot be read are a fault: read as empty, they would remove all nodes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from slurm.states import NodeState, may_be_removed

_LINE = r"^[ \t]*{key}[ \t]*=[ \t]*(?:\"([^\"\n]*)\"|([^\s#]+))"
_SHOWN = 5


class ConfigError(ValueError):
    """slurmctld must not get these files."""


@dataclass(frozen=True)
class Declared:
    """What files declare."""

    nodes: frozenset[str]
    partitions: frozenset[str]


@dataclass(frozen=True)
class Job:
    """A job that runs or waits."""

    number: str
    partitions: tuple[str, ...]
    """It needs one of them."""
    nodes: str
    """The nodes it asks for by name, as a hostlist; empty for any."""


@dataclass(frozen=True)
class Going:
    """What slurmctld has and the files do not declare, by name."""

    nodes: Mapping[str, NodeState]
    partitions: Mapping[str, str]


def names_in(text: str, key: str) -> list[str]:
    """The names on a key's lines of a slurm.conf, as they are written; DEFAULT does not count. Keys are case-insensitive."""
    values = re.findall(_LINE.format(key=key), text, re.IGNORECASE | re.MULTILINE)
    return [name for quoted, plain in values if (name := quoted or plain).lower() != "default"]


def check_config(text: str) -> None:
    """Raises ConfigError for a text that is not a complete slurm.conf: taken as one, it would remove all nodes."""
    for key in ("ClusterName", "NodeName", "PartitionName"):
        if not names_in(text, key):
            raise ConfigError(f"slurm.conf has no line {key}=; it is empty, cut or not Slurm's")


def find_going(nodes: Mapping[str, NodeState], partitions: Mapping[str, str], declared: Declared) -> Going:
    """What goes by new files, with the states that slurmctld has now."""
    return Going(
        {name: state for name, state in sorted(nodes.items()) if name not in declared.nodes},
        {name: state for name, state in sorted(partitions.items()) if name not in declared.partitions},
    )


def plan_closing(going: Going) -> list[str]:
    """Partitions that take no further jobs from now on; jobs that are already there may still run."""
    return [name for name, state in going.partitions.items() if state == "UP"]


def plan_drains(going: Going) -> list[str]:
    """Nodes that only power saving keeps jobs off: Slurm could wake one between a reading and the change."""
    return [name for name, state in going.nodes.items() if "DRAIN" not in state.flags]


def find_obstacles(going: Going, jobs: Sequence[Job], wanted: frozenset[str]) -> list[str]:
    """What the files have to wait for, an item each. `wanted` are the nodes that jobs ask for by name."""
    obstacles = [f"node {name} ({state})" for name, state in going.nodes.items() if not may_be_removed(state)]
    if stranded := [job.number for job in jobs if job.partitions and going.partitions.keys() >= set(job.partitions)]:
        obstacles.append(f"jobs {some(stranded)} of partitions {some(going.partitions)}")
    if asked_for := [name for name in going.nodes if name in wanted]:
        obstacles.append(f"jobs that ask for {some(asked_for)} by name")
    return obstacles


def some(items: Iterable[str]) -> str:
    """The first few of a list, and how many more there are."""
    names = list(items)
    hidden = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {hidden} more" if hidden > 0 else "")
