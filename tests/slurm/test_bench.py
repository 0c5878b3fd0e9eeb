"""The benchmarks that need the Slurm image, each at its smallest size; and that of the bare machine, which runs no `make up` here.

What holds is asserted where it happens: every node of a set registers, runs a step, and is drained and gone at the end, for instance.
"""

from pathlib import Path
from typing import Any

from tests.bench.catalogue import BARE, SLURM
from tests.bench.results import Benchmark
from tests.bench.smallest import assert_yields_figures, each_of


@each_of(SLURM)
def test_benchmark_of_slurm_yields_its_figures(bench: Benchmark[Any], image_root: Path) -> None:
    assert_yields_figures(bench, image=image_root)


@each_of(BARE)
def test_bare_machine_runs_a_command(bench: Benchmark[Any]) -> None:
    assert_yields_figures(bench)
