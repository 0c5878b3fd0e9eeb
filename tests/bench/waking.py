"""How soon a node that Slurm wants up has its pod, in a large set: from a node seen waking to its pod made, by its own histogram.

The whole controller runs, against the fake API server in the same process and a Slurm in memory: its figure has both in it.
"""

import asyncio
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import REGISTRY

from controllers.nodeset.controller import Controller
from controllers.nodeset.settings import Settings
from controllers.runtime.api import connect
from controllers.runtime.structs import PODS
from tests.bench.results import Benchmark, Figure, figure
from tests.support.controllers.nodeset.memory_cluster import Cluster
from tests.support.fakes.clock import eventually
from tests.support.fakes.kubernetes import FakeKubernetes

SHARE = 0.99
_HISTOGRAM = "slipway_nodeset_power_up_seconds"


@dataclass(frozen=True)
class Size:
    """Nodes of the set, and those that wake."""

    nodes: int = 1_000
    woken: int = 300


def measure(size: Size) -> Iterator[Figure]:
    """Seconds within which 99 % of the pods were made: the upper end of the histogram's bucket."""
    before = _counts()
    asyncio.run(_wake(size))
    counts = {edge: count - before.get(edge, 0) for edge, count in _counts().items()}
    within = min(edge for edge, count in counts.items() if count >= SHARE * max(counts.values()))
    yield figure(f"POWERING_UP seen to pod made, 99 % of {size.woken} in {size.nodes:,} nodes", 0.5, [within])


async def _wake(size: Size) -> None:
    async with FakeKubernetes() as server:
        cluster = Cluster(server)
        await cluster.process.end()
        cluster.declare(nodes=size.nodes, min=0, max=size.nodes, maxPodsInFlight=size.nodes)
        with tempfile.TemporaryDirectory() as folder:
            settings = Settings(
                cluster="dev",
                namespace="slurm",
                slurmrestd="",
                jwt_key=Path(folder),
                identity="bench",
                port=0,
                probe_port=0,
                log_level="error",
                writes_per_s=1000,
            )
            stop = asyncio.Event()
            controller = Controller(settings, connect(server.config()), cluster.slurm)
            running = asyncio.create_task(controller.run(stop))
            await eventually(lambda: len(controller.nodesets.store) == 1 and controller.poller.snapshot is not None, 30)
            for ordinal in random.Random(1).sample(range(size.nodes), size.woken):
                cluster.slurm.words[f"gpu-{ordinal}"] = {"MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"}
                await asyncio.sleep(0.02)
            await eventually(lambda: len(server.keys(PODS)) == size.woken, 60)
            stop.set()
            await running


def _counts() -> dict[float, float]:
    """Of each bucket of the histogram how many nodes it has counted so far, by its upper end in seconds."""
    samples = [one for metric in REGISTRY.collect() if metric.name == _HISTOGRAM for one in metric.samples if one.name.endswith("_bucket")]
    return {float(one.labels["le"]): one.value for one in samples}


BENCHMARK = Benchmark("waking", measure, Size(), Size(nodes=10, woken=3))
