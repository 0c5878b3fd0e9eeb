"""The web page at 1,000 nodes in a real Chromium, from the request to paint, with Slurm and Kubernetes played by this process."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.browser import Browser, install
from tests.unit.controllers.page.served import example

NODES, JOBS, RUNS = 1000, 10_000, 5
_FIRST = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
_SHOWN = "performance.getEntriesByName('shown')[0]?.startTime"


@dataclass(frozen=True)
class Painted:
    """Seconds from the start of each load."""

    first_paint_s: list[float]
    nodes_shown_s: list[float]
    """Until the frame in which all nodes stand."""


def measure() -> Painted:
    install()
    first: list[float] = []
    shown: list[float] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Browser(Path(folder) / "profile") as browser,
        example(Path(folder), NODES, JOBS) as served,
    ):
        for _ in range(RUNS):
            page = browser.open(served.url)
            shown.append(page.until(_SHOWN) / 1000)
            first.append(page.until(_FIRST) / 1000)
    return Painted(first, shown)
