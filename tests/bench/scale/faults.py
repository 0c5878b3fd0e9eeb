"""From what a node tells of a check that fails to the node's drain: the real collector beside slurmctld, and the NodeSet controller.

The nodes' own part is left out: here, one machine would have to seal what a thousand machines do. So credentials are made beforehand.
"""

import asyncio
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any

from components.pods import SLURM_UID
from names import ports
from tests.bench.scale.slurm import ADDRESS, Slurm

CHECK: dict[str, Any] = {"name": "mounts", "check": "mounts", "contexts": ["epilog"], "nodeSets": ["node"], "maxDrained": "100%"}
"""For the stack: so all nodes may be drained. No job ends here, so no slurmd runs it."""
SHARE = 10
"""One of so many nodes fails by itself; then all others fail at once."""
_PAUSE_S = 0.2
_DEADLINE_S = 300.0


async def measure(slurm: Slurm, number: int) -> dict[str, float]:
    """Seconds from a failure that is told to the node's drain by slurmctld's log: of nodes that fail one after another, five a second, and
    of those that fail at once. All nodes are idle before."""
    slurm.start_checks()
    alone, together = [f"node-{at}" for at in range(number // SHARE)], [f"node-{at}" for at in range(number // SHARE, number)]
    sealed = {node: _sealed(slurm, node) for node in alone}
    told: dict[str, float] = {}
    sending: list[asyncio.Task[None]] = []
    for node in alone:
        sending.append(asyncio.create_task(_tell(node, sealed[node], told)))
        await asyncio.sleep(_PAUSE_S)
    await asyncio.gather(*sending)
    waits = await _waits(slurm, alone, told)
    sealed = {node: _sealed(slurm, node) for node in together}
    await asyncio.gather(*(_tell(node, sealed[node], told) for node in together))
    storm = await _waits(slurm, together, told)
    return {"p99_s": p99(waits), "worst_s": max(waits), "storm_p99_s": p99(storm), "storm_worst_s": max(storm)}


def p99(values: Iterable[float]) -> float:
    """The value that 99 % of them do not exceed."""
    ordered = sorted(values)
    return ordered[ceil(0.99 * len(ordered)) - 1]


def _sealed(slurm: Slurm, node: str) -> bytes:
    """A report with a text of its own, as root of the node seals it."""
    result = {
        "check": CHECK["name"],
        "result": "failed",
        "found": f"/home of {node} is not mounted",
        "kind": "node",
        "maxDrained": 1_000_000,
    }
    report = {"node": node, "context": "interval", "job": "", "results": [result]}
    return slurm.call("munge", f"--restrict-uid={SLURM_UID}", stdin=json.dumps(report)).strip().encode()


async def _tell(node: str, sealed: bytes, told: dict[str, float]) -> None:
    told[node] = time.time()
    reader, writer = await asyncio.open_connection(ADDRESS, ports.CHECKS)
    writer.write(sealed + b"\n")
    answer = json.loads(await reader.readline())
    assert "error" not in answer, answer
    writer.close()


async def _waits(slurm: Slurm, nodes: Sequence[str], told: Mapping[str, float]) -> list[float]:
    end, drained = time.monotonic() + _DEADLINE_S, slurm.drained()
    while left := [node for node in nodes if drained.get(node, 0.0) < told[node]]:  # they were drained before the set grew, too
        assert time.monotonic() < end, f"never drained: {left[:10]}"
        await asyncio.sleep(0.5)
        drained = slurm.drained()
    return [drained[node] - told[node] for node in nodes]
