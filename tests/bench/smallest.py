"""How `make test` runs a benchmark: at its smallest size, for its figures, whatever these are."""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import pytest

from tests.bench.results import Benchmark


def each_of(benchmarks: Sequence[Benchmark[Any]]) -> pytest.MarkDecorator:
    """A test for each of them, by its name."""
    return pytest.mark.parametrize("bench", [pytest.param(each, id=each.name) for each in benchmarks])


def assert_yields_figures(bench: Benchmark[Any], **more: Any) -> None:
    """Runs it through what `make bench` calls. `more` are fields of its size."""
    figures = list(bench.measure(replace(bench.smallest, **more) if more else bench.smallest))
    assert figures
    assert len({figure.name for figure in figures}) == len(figures)
    assert all(isfinite(figure.median) and figure.runs > 0 for figure in figures)
