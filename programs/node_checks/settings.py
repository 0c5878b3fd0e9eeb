"""The argument of the programs `run` and `groups`, which run checks as jobs; components/health_checks.py writes it."""

import json
from dataclasses import dataclass
from math import inf
from typing import Any

from slurm.causes import Kind, Wish, wish_of


@dataclass(frozen=True)
class CheckedSet:
    """A node set as a check needs it."""

    name: str
    size: int
    """Its nodes are `<name>-<ordinal>`, from 0."""
    gpus: int
    """GPUs of a node that the check's job asks for: all of them for a check of GPUs, else 0."""
    max_drained: int
    """Nodes of the set that all checks together may hold drained when this one drains another."""
    settings: dict[str, Any]
    """What the check's own program reads: limits, and facts of the nodes."""


@dataclass(frozen=True)
class CheckSpec:
    """One check."""

    name: str
    check: str
    """Its kind: a module of this package."""
    timeout_s: int
    """Seconds on a node after which the result is unknown."""
    parallel: int
    """Most nodes that a run checks at a time."""
    deadline_s: int
    """Seconds after which a run begins no further node."""
    cause: Kind
    """What is broken where it fails."""
    node_sets: tuple[CheckedSet, ...]
    wish: Wish = "drain"
    """What a failure asks for: with `none` it drains no node."""
    per: str = "node"
    """`node`, `pair` or `set`: how many nodes a job looks at. See groups.py."""
    after: tuple[str, ...] = ()
    """Checks that have to have passed on a node."""
    budget_node_minutes: int | None = None
    """Most node minutes of the check's jobs in 24 hours."""
    longest_s: float = inf
    """Seconds after which Kubernetes has ended every run."""


def to_json(spec: CheckSpec) -> str:
    """The argument. Optional parts that have their default are left out."""
    always = {
        "name": spec.name,
        "check": spec.check,
        "timeoutS": spec.timeout_s,
        "parallel": spec.parallel,
        "deadlineS": spec.deadline_s,
        "causeKind": spec.cause,
        "nodeSets": [
            {"name": set_.name, "size": set_.size, "gpus": set_.gpus, "maxDrained": set_.max_drained, "settings": set_.settings}
            for set_ in spec.node_sets
        ],
    }
    optional: dict[str, tuple[Any, Any]] = {
        "wish": (spec.wish, "drain"),
        "per": (spec.per, "node"),
        "after": ([*spec.after], []),
        "budgetNodeMinutes": (spec.budget_node_minutes, None),
        "longestS": (spec.longest_s, inf),
    }
    return json.dumps({**always, **{key: value for key, (value, default) in optional.items() if value != default}}, sort_keys=True)


def from_json(text: str) -> CheckSpec:
    """What `to_json` of this version, or of an older one, has written."""
    raw = json.loads(text)
    return CheckSpec(
        *(raw["name"], raw["check"], raw["timeoutS"], raw["parallel"], raw["deadlineS"], raw["causeKind"]),
        node_sets=tuple(CheckedSet(*(item[key] for key in ("name", "size", "gpus", "maxDrained", "settings"))) for item in raw["nodeSets"]),
        wish=wish_of(raw.get("wish")),
        per=raw.get("per", "node"),
        after=tuple(raw.get("after", ())),
        budget_node_minutes=raw.get("budgetNodeMinutes"),
        longest_s=raw.get("longestS", inf),
    )
