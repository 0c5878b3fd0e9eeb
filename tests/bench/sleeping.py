"""A job on a node that is powered down, on the local cluster's dev stack: from sbatch to running, and what of it is slurmd's own start."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from tests.bench.results import Benchmark, Figure, figure
from tests.support.cluster.dev_stack import DevStack, eventually
from tests.support.log_lines import NODE_HEARD, times_of

_SCRIPT = """#!/bin/bash
read -r up _ </proc/uptime
printf '%s %s %s\\n' "$(date +%s.%N)" "$up" "$(sed 's/.*) //' /proc/1/stat | cut -d' ' -f20)"
"""
"""Now, the machine's uptime, and when PID 1 of the pod started: field 22 of stat, in 1/100 s after the machine's start. Source: proc(5)."""


@dataclass(frozen=True)
class Way:
    """Of one job, in seconds."""

    submit_to_running_s: float
    start_to_registered_s: float
    """From the worker container's start until slurmctld heard its slurmd."""
    start_to_running_s: float

    @property
    def ratio(self) -> float:
        """How much longer the job waits for the container than slurmd itself takes."""
        return self.start_to_running_s / self.start_to_registered_s


def measure(most: int) -> Iterator[Figure]:
    """One job on each sleeping node, one after another."""
    stack = DevStack()
    nodes = sorted(name for name in stack.nodes() if name.startswith("burst-"))[:most]
    eventually("asleep", lambda: all(stack.nodes()[node].endswith("POWERED_DOWN") for node in nodes), 300)
    ways = [_measure(stack, node) for node in nodes]
    yield figure("job on a sleeping node: sbatch to running", None, [way.submit_to_running_s for way in ways])
    yield figure("worker's container started to slurmd registered", None, [way.start_to_registered_s for way in ways])
    yield figure("container started to job running, relative to that", 1.5, [way.ratio for way in ways], unit="")


def _measure(stack: DevStack, node: str) -> Way:
    begin = time.time()
    job = stack.submit(_SCRIPT, "--partition=burst", f"--nodelist={node}", f"--output=way-{node}.out")
    stack.wait_for_job(job)
    now, up, ticks = (float(word) for word in stack.ssh(f"cat way-{node}.out").split())
    started = now - up + ticks / 100
    log = stack.kubectl("logs", "dev-slurmctld-0", "-c", "slurmctld", "--since=10m")
    registered = min(at for name, at in times_of(NODE_HEARD, log) if name == node and at >= begin)
    return Way(now - begin, registered - started, now - started)


BENCHMARK = Benchmark("sleeping", measure, 2, 1)
