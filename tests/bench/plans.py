"""What a round decides for a large set to all of whose nodes the same happens at once: processor time of the plan, and of the whole round
without its requests.
"""

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass

from controllers.nodeset.plan import plan_nodeset
from tests.bench.results import Benchmark, Figure, figure
from tests.support.controllers.nodeset.large_sets import CASES, see, tell

MEASURED = {
    "to 0": "scaled to 0",
    "deleted": "deleted",
    "rolled": "with another template",
    "woken": "woken by jobs",
    "second looks": "whose checks failed on other machines",
    "repairs begin": "drained for repairs",
    "disks scaled in": "whose disks go",
}
"""What happens to all nodes, in words."""
PROMISED_S = {"to 0": 0.5, "deleted": 0.5, "rolled": 0.5}
"""For the plan."""


@dataclass(frozen=True)
class Size:
    """Nodes of the set, and how often each plan is made."""

    nodes: int = 10_000
    runs: int = 5


def measure(size: Size) -> Iterator[Figure]:
    """Processor time of each plan, and of the round around it."""
    for case, words in MEASURED.items():
        large, plan_s, round_s = CASES[case](size.nodes), list[float](), list[float]()
        for _ in range(size.runs):
            gc.collect()
            begin = time.process_time()
            observed = see(large)
            observed_at = time.process_time()
            plan = plan_nodeset(large.nodeset, observed)
            plan_s.append(time.process_time() - observed_at)
            tell(large, observed, plan)
            round_s.append(time.process_time() - begin)
        name = f"{size.nodes:,} nodes {words}"
        yield figure(f"{name}: processor time of one plan", PROMISED_S.get(case), plan_s)
        yield figure(f"{name}: of a whole round without its requests", None, round_s)


BENCHMARK = Benchmark("plans", measure, Size(), Size(nodes=10, runs=1))
