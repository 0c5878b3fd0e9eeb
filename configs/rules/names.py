"""The names that a stack file gives its parts, references to them, and names that are taken.

A part refused for another mistake keeps its name, so that references to it are not reported too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from configs.faults import Fault, did_you_mean, quoted, repeats

PROGRAMS = frozenset(
    {
        "ec2",
        "guard",
        "identity",
        "login",
        "mariadb",
        "metrics",
        "nfs",
        "nodeset-controller",
        "page",
        "prometheus",
        "slurmctld",
        "slurmd",
        "slurmdbd",
        "slurmrestd",
    }
)
"""The cluster's own programs: their pods, Services and disruption budgets are called `<cluster>-<program>`."""

RESERVED_BY_SLURM = ("all", "default", "localhost")
"""Names with a meaning of their own for nodes and partitions."""

Known = frozenset[str] | None
"""Names of one kind; None when they are unknown, so that no reference to them is called wrong."""


@dataclass(frozen=True)
class Names:
    """Every name that can be referred to."""

    pools: Known
    node_sets: Known
    mounts: Known
    groups: Known
    users: Known
    accounts: Known
    qos: Known


def names_in(data: Mapping[str, Any]) -> Names:
    """The names in the plain data of a stack file."""
    return Names(
        pools=_names(data.get("nodePools")),
        node_sets=_names(data.get("nodeSets")),
        mounts=_names_below(data, "storage", "mounts"),
        groups=_names_below(data, "login", "groups"),
        users=_names_below(data, "login", "users"),
        accounts=_names_below(data, "accounting", "accounts"),
        qos=_names_below(data, "accounting", "qos"),
    )


def check_references(path: str, kind: str, references: Iterable[str], known: Known) -> list[Fault]:
    """Faults of a list of references: unknown names, and names that are listed twice."""
    references = list(references)
    unknown = [
        Fault(f"{path}[{at}]", f"no {kind} is called {quoted(name)}. {did_you_mean(name, known)}")
        for at, name in enumerate(references)
        if known is not None and name not in known
    ]
    return unknown + check_distinct(path, references)


def check_distinct(path: str, values: Iterable[object]) -> list[Fault]:
    """Faults of values that are listed twice."""
    values = list(values)
    return [Fault(f"{path}[{at}]", f"{quoted(values[at])} is listed twice.") for at, _ in repeats(values)]


def check_unique(path: str, kind: str, names: Iterable[str]) -> list[Fault]:
    """Faults of parts in a list that share a name."""
    names = list(names)
    return [
        Fault(f"{path}[{at}].name", f"{quoted(names[at])} is the name of {path}[{first}] already. Each {kind} needs its own.")
        for at, first in repeats(names)
    ]


def _names(parts: object) -> Known:
    if not isinstance(parts, list):
        return None
    names: set[str] = set()
    for part in cast(list[Any], parts):
        name: Any = cast(Mapping[str, Any], part).get("name") if isinstance(part, Mapping) else part
        if not isinstance(name, str):
            return None
        names.add(name)
    return frozenset(names)


def _names_below(data: Mapping[str, Any], section: str, key: str) -> Known:
    """None (unknown) for a section without a value or with a wrong one: that is its own mistake."""
    part = data.get(section, {})
    return _names(cast(Mapping[str, Any], part).get(key, [])) if isinstance(part, Mapping) else None
