"""A user's mistakes: what a fault is, how all faults are printed, and wording that messages share. `rules` finds the faults."""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_LONGEST = 80
_MOST_NAMES = 20


@dataclass(frozen=True)
class Fault:
    """One mistake in a stack file."""

    path: str
    """Where, in the user's own spelling: `cluster.nodeSets[1].size`."""
    message: str
    """What was given and what would do."""
    depends: tuple[str, ...] = ()
    """Further paths from which the fault was concluded. If something at or below such a path is broken, the fault is not reported."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class ConfigFaults(Exception):
    """All mistakes of one source, a stack file or a resource of a program; its text is what the user reads."""

    def __init__(self, source: str, faults: Sequence[Fault]) -> None:
        self.source = source
        self.faults = tuple(faults)
        super().__init__(source, self.faults)

    def __str__(self) -> str:
        count = f"{len(self.faults)} mistake{'s' if len(self.faults) > 1 else ''}"
        return "\n".join([f"{self.source}: {count}", *(f"  {fault}" for fault in self.faults)])


def quoted(value: object) -> str:
    """A value for a message: in double quotes, control characters escaped, at most 80 characters."""
    if isinstance(value, float) and value.is_integer():  # programs in other languages have no integers
        value = int(value)
    if value is None or isinstance(value, bool | int | float | str):
        try:
            shown = json.dumps(value, ensure_ascii=False)
        except ValueError:  # an integer of thousands of digits
            return "a number of thousands of digits"
        shown = "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in shown)
    else:
        shown = f"a {kind_of(value)}"
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 4]}..." + ('"' if shown.startswith('"') else "")


def kind_of(value: object) -> str:
    """What a value is, in YAML's words."""
    kinds: tuple[tuple[Any, str], ...] = (
        (bool, "truth value"),
        (int | float, "number"),
        (str, "text"),
        (Sequence, "list"),
        (Mapping, "mapping of keys"),
    )
    return next(
        (word for kind, word in kinds if isinstance(value, kind)), "date" if hasattr(value, "isoformat") else "value of another kind"
    )


def did_you_mean(written: str, allowed: Iterable[str], otherwise: str = "There are: {}.") -> str:
    """`Did you mean "x"?` for the likeliest, else all that is allowed, else that there is nothing."""
    names = sorted(set(allowed))
    if likeliest := closest(written, names):
        return f"Did you mean {quoted(likeliest)}?"
    if not names:
        return "There are none."
    shown = [name if name.isprintable() else quoted(name) for name in names]
    return otherwise.format(", ".join([*shown[:_MOST_NAMES], *(["..."] if len(shown) > _MOST_NAMES else [])]))


_OPPOSITES = (
    ("allow", "deny"),
    ("enable", "disable"),
    ("include", "exclude"),
    ("max", "min"),
    ("prolog", "epilog"),
    ("resume", "suspend"),
)


def closest(written: str, allowed: Iterable[str]) -> str | None:
    """The allowed name that was likely meant, whatever its case; never one that says the opposite."""
    names = {name.lower(): name for name in allowed if not _is_opposite(written.lower(), name.lower())}
    matches = difflib.get_close_matches(written.lower(), names, n=1, cutoff=0.6)
    return names[matches[0]] if matches else None


def _is_opposite(written: str, name: str) -> bool:
    """True where one name negates the other: FAIR_TREE and NO_FAIR_TREE, MinNodes and MaxNodes."""
    if written.startswith(("no_", "non_")) != name.startswith(("no_", "non_")) or ("disable" in written) != ("disable" in name):
        return True
    return any(
        (a in written and b in name and b not in written) or (b in written and a in name and a not in written) for a, b in _OPPOSITES
    )


def repeats(values: Iterable[object]) -> list[tuple[int, int]]:
    """Positions of the values that came before, each with the position where it came first."""
    first: dict[object, int] = {}
    repeated: list[tuple[int, int]] = []
    for position, value in enumerate(values):
        if value in first:
            repeated.append((position, first[value]))
        else:
            first[value] = position
    return repeated
