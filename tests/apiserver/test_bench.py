"""The benchmarks that need a browser, each at its smallest size."""

from typing import Any

from tests.bench.catalogue import BROWSER
from tests.bench.results import Benchmark
from tests.bench.smallest import assert_yields_figures, each_of


@each_of(BROWSER)
def test_benchmark_in_a_browser_yields_its_figures(bench: Benchmark[Any]) -> None:
    assert_yields_figures(bench)
