"""The JSONPath that `kubectl wait` and the Pulumi provider take, as far as waits need it: names, positions, `[*]`, filters for equality.

`{.status.phase}`, `{.status.conditions[?(@.type=="Ready")].status}`, `{.spec['a.b'][0]}`. No ranges, unions, slices or descent.
Source: https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from standalone.faults import StandaloneError

_NAME = r"(?:[\w-]|\\\.)+"
_STEP = re.compile(
    rf"\.(?P<name>{_NAME})"
    r"|\[(?P<at>\d+)\]"
    r"|(?P<all>\[\*\])"
    r"|\[['\"](?P<quoted>[^'\"]+)['\"]\]"
    rf"|\[\?\(@(?P<path>(?:\.{_NAME})+)\s*==\s*(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<bare>[\w.-]+))\)\]"
)


@dataclass(frozen=True)
class Filter:
    """Items of a list whose value at `path` is `value`, as text."""

    path: tuple[str, ...]
    value: str


Step = str | int | Filter | None
"""A field, a position, some items, or (None) all items."""


@dataclass(frozen=True)
class Path:
    """One expression, taken apart."""

    text: str
    steps: tuple[Step, ...]

    def find(self, value: Any) -> list[Any]:
        """Every value that the path leads to; none where a part of the way is missing."""
        found = [value]
        for step in self.steps:
            found = [below for one in found for below in _below(one, step)]
        return found


def parse(text: str) -> Path:
    """An expression, with its braces or without. Raises StandaloneError for what this package cannot follow."""
    inner = text.strip().removeprefix("{").removesuffix("}").strip().removeprefix("$")
    inner = inner if inner.startswith((".", "[")) else f".{inner}"
    steps: list[Step] = []
    at = 0
    while at < len(inner):
        match = _STEP.match(inner, at)
        if match is None:
            raise StandaloneError(f"jsonpath={text}: cannot be followed from {inner[at:]!r} on; only the pulumi CLI may know how.")
        steps.append(_step(match))
        at = match.end()
    return Path(text, tuple(steps))


def _step(match: re.Match[str]) -> Step:
    if match["all"]:
        return None
    if match["at"]:
        return int(match["at"])
    if match["path"]:
        values = (match["double"], match["single"], match["bare"])
        names = re.findall(_NAME, match["path"])
        return Filter(tuple(_unescaped(name) for name in names), next(one for one in values if one is not None))
    return match["quoted"] or _unescaped(match["name"])


def _unescaped(name: str) -> str:
    return name.replace("\\.", ".")


def _below(value: Any, step: Step) -> list[Any]:
    if isinstance(step, str):
        fields = cast(Mapping[str, Any], value) if isinstance(value, Mapping) else dict[str, Any]()
        return [fields[step]] if fields.get(step) is not None else []
    items = cast(list[Any], value) if isinstance(value, list) else []
    if isinstance(step, int):
        return items[step : step + 1]
    if isinstance(step, Filter):
        return [one for one in items if [as_text(found) for found in Path("", step.path).find(one)] == [step.value]]
    return items


def as_text(value: Any) -> str:
    """A plain value as kubectl prints it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
