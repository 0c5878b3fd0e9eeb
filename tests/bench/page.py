"""The web page of a large cluster in a real Chromium, from the request to paint, with Slurm and Kubernetes played by this process."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench.results import Benchmark, Figure, figure
from tests.support.browser import Browser, install
from tests.support.controllers.page.served import example

_FIRST = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
_SHOWN = "performance.getEntriesByName('shown')[0]?.startTime"


@dataclass(frozen=True)
class Size:
    """Of the cluster, and how often the page is loaded."""

    nodes: int = 1_000
    jobs: int = 10_000
    runs: int = 5


def measure(size: Size) -> Iterator[Figure]:
    """Seconds from the start of each load: to the first paint, and to the frame that has all nodes."""
    install()
    first: list[float] = []
    shown: list[float] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Browser(Path(folder) / "profile") as browser,
        example(Path(folder), size.nodes, size.jobs) as served,
    ):
        for _ in range(size.runs):
            page = browser.open(served.url)
            shown.append(page.until(_SHOWN) / 1000)
            first.append(page.until(_FIRST) / 1000)
    at = f"on the web page at {size.nodes:,} nodes and {size.jobs:,} jobs"
    yield figure(f"first paint {at}", 1, first)
    yield figure(f"all nodes {at}", None, shown)


BENCHMARK = Benchmark("page", measure, Size(), Size(nodes=10, jobs=20, runs=1))
