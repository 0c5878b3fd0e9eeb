"""The benchmarks on the dev stack, each at its smallest size."""

from typing import Any

from tests.bench.catalogue import STACK
from tests.bench.results import Benchmark
from tests.bench.smallest import assert_yields_figures, each_of
from tests.support.cluster.dev_stack import DevStack


@each_of(STACK)
def test_benchmark_of_the_stack_yields_its_figures(restored: DevStack, bench: Benchmark[Any]) -> None:
    assert_yields_figures(bench)
