"""How soon a node that Slurm wants up has its pod, in a set of 1,000: from a node seen waking to its pod made, by its own histogram.

The whole controller runs, against the fake API server in the same process and a Slurm in memory: its figure has both in it.
"""

import asyncio
import random
import sys
import tempfile
from pathlib import Path

from prometheus_client import REGISTRY

from controllers.nodeset.controller import Controller
from controllers.nodeset.settings import Settings
from controllers.runtime.api import connect
from controllers.runtime.structs import PODS
from tests.fakes.clock import eventually
from tests.fakes.kubernetes import FakeKubernetes
from tests.unit.controllers.nodeset.memory_cluster import Cluster

NODES = 1_000
WOKEN = 300
SHARE = 0.99


def measure() -> float:
    """Seconds within which 99 % of the pods were made: the upper end of the histogram's bucket."""
    return asyncio.run(_measure())


async def _measure() -> float:
    async with FakeKubernetes() as server:
        cluster = Cluster(server)
        await cluster.process.end()
        cluster.declare(nodes=NODES, min=0, max=NODES, maxPodsInFlight=NODES)
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
            for ordinal in random.Random(1).sample(range(NODES), WOKEN):
                cluster.slurm.words[f"gpu-{ordinal}"] = {"MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"}
                await asyncio.sleep(0.02)
            await eventually(lambda: len(server.keys(PODS)) == WOKEN, 60)
            stop.set()
            await running
    return _within(SHARE)


def _within(share: float) -> float:
    name = "slipway_nodeset_power_up_seconds"
    total = REGISTRY.get_sample_value(f"{name}_count") or 0
    samples = [one for metric in REGISTRY.collect() if metric.name == name for one in metric.samples if one.name.endswith("_bucket")]
    return min(float(one.labels["le"]) for one in samples if one.value >= share * total)


if __name__ == "__main__":
    sys.stdout.write(f"{measure()}\n")
