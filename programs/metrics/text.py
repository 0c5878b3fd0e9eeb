"""Prometheus' text format: families of samples, and bounded label values. Pure.

Not `prometheus-client`: docs/explain/architecture.md, Metrics, has the reason. Source: Prometheus' "Exposition formats", text format 0.0.4.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
"""The label value for all values beyond the limit."""

_IN_VALUE = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_IN_HELP = str.maketrans({"\\": r"\\", "\n": r"\n"})

Values = tuple[str, ...]


@dataclass(frozen=True)
class Family:
    """All series of one metric."""

    name: str
    help: str
    labels: tuple[str, ...]
    samples: Mapping[Values, float]
    """By label values, in the order of `labels`."""
    kind: str = "gauge"


class Bounded:
    """Passes the first `most` values through for the life of the process, so that a counter keeps its labels."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def __call__(self, value: str) -> str:
        if value not in self._known:
            if len(self._known) >= self._most:
                return OTHER
            self._known.add(value)
        return value


def largest(sizes: Mapping[str, float], most: int) -> frozenset[str]:
    """The names with the largest sizes; ties go in alphabetical order."""
    return frozenset(sorted(sizes, key=lambda name: (-sizes[name], name))[:most])


def render(families: Iterable[Family]) -> str:
    """The families as text. Families without samples are left out."""
    return "".join(line for family in families if family.samples for line in _lines(family))


class Histogram:
    """Counts of observed values up to each bound, by label values."""

    def __init__(self, name: str, help_: str, labels: tuple[str, ...], bounds: Sequence[float]) -> None:
        self._about = (name, help_)
        self._labels, self._bounds = labels, tuple(bounds)
        self._counts: dict[Values, list[int]] = {}
        self._sums: dict[Values, float] = {}

    def observe(self, values: Values, amount: float) -> None:
        """Adds one value."""
        counts = self._counts.setdefault(values, [0] * (len(self._bounds) + 1))
        counts[next((at for at, bound in enumerate(self._bounds) if amount <= bound), len(self._bounds))] += 1
        self._sums[values] = self._sums.get(values, 0.0) + amount

    def render(self) -> str:
        """The histogram as text; empty before the first value."""
        if not self._counts:
            return ""
        name = self._about[0]
        lines = _head(*self._about, "histogram")
        for values, counts in sorted(self._counts.items()):
            total = 0
            for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
                total += count
                lines.append(_line(f"{name}_bucket", (*self._labels, "le"), (*values, _number(bound)), total))
            lines.append(_line(f"{name}_sum", self._labels, values, self._sums[values]))
            lines.append(_line(f"{name}_count", self._labels, values, total))
        return "".join(lines)


def _lines(family: Family) -> Iterable[str]:
    yield from _head(family.name, family.help, family.kind)
    for values, amount in family.samples.items():
        yield _line(family.name, family.labels, values, amount)


def _head(name: str, help_: str, kind: str) -> list[str]:
    return [f"# HELP {name} {help_.translate(_IN_HELP)}\n", f"# TYPE {name} {kind}\n"]


def _line(name: str, labels: Sequence[str], values: Values, amount: float) -> str:
    pairs = ",".join(f'{label}="{value.translate(_IN_VALUE)}"' for label, value in zip(labels, values, strict=True))
    return f"{name}{{{pairs}}} {_number(amount)}\n" if pairs else f"{name} {_number(amount)}\n"


def _number(amount: float) -> str:
    if amount == float("inf"):
        return "+Inf"
    return str(int(amount)) if amount == int(amount) else repr(float(amount))
