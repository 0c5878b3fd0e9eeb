"""The example stack files as plain data, and edits of them by path. For tests only."""

import copy
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

import yaml

from configs.load import load_cluster
from configs.models.cluster import Cluster

ROOT = Path(__file__).parents[3]
EXAMPLES = ("dev", "h100")
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDl3Q2nVnQ6j7oQ0mO2cTnC9xS5rB1uV4wX7yZ0aBcDe alice@example.com"

GONE = object()
"""As a value of an edit: the key goes."""


def example(name: str) -> dict[str, Any]:
    """What one example has under slipway:cluster, with keys instead of key files, so that no file is needed."""
    return copy.deepcopy(_example(name))


@cache
def _example(name: str) -> dict[str, Any]:
    raw = yaml.safe_load((ROOT / f"Pulumi.{name}.yaml").read_text())["config"]["slipway:cluster"]
    for user in raw["login"]["users"]:
        if user.pop("sshKeyFiles", None):
            user["sshKeys"] = [KEY]
    return raw


def edited(name: str, edits: Mapping[str, Any]) -> dict[str, Any]:
    """An example with some values replaced: `nodeSets[0].size`, `partitions[+]` for one more at the end."""
    return with_edits(example(name), edits)


def with_edits(config: Mapping[str, Any], edits: Mapping[str, Any]) -> dict[str, Any]:
    """A config with some values replaced."""
    raw = copy.deepcopy(dict(config))
    for path, value in edits.items():
        parts = [int(part) if part.isdecimal() else part for part in re.findall(r"[^.\[\]]+", path)]
        parent: Any = raw
        for part in parts[:-1]:
            parent = parent[part] if isinstance(part, int) else parent.setdefault(part, {})
        last = parts[-1]
        if last == "+":
            cast(list[Any], parent).append(copy.deepcopy(value))
        elif value is GONE:
            del parent[last]
        else:
            parent[last] = copy.deepcopy(value)
    return raw


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place below a value, as keys and positions."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        items = cast(dict[Any, Any], value).items()
    elif isinstance(value, list):
        items = enumerate(cast(list[Any], value))
    return [place for key, inner in items for place in ((*path, key), *places(inner, (*path, key)))]


def cluster(name: str, edits: Mapping[str, Any] | None = None) -> Cluster:
    """An edited example, loaded."""
    return load_cluster(edited(name, edits or {}), ROOT, f"Pulumi.{name}.yaml")
