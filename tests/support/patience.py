"""How long tests on real programs wait: longer the slower and the fuller the machine is, and never less than was asked for."""

import os
import time
from functools import cache
from hashlib import sha256
from math import ceil
from pathlib import Path

WORK_S = 0.04
"""Processor seconds that the probe takes on the machine that the deadlines were written on."""


def patience() -> float:
    """What to multiply a deadline by, now. Ask at every look at the clock: others may have come since the wait began."""
    return slowness(_work_s(), float(Path("/proc/loadavg").read_text().split()[0]), os.cpu_count() or 1)


def seconds(quiet: float) -> int:
    """A limit for a program that a test runs, in whole seconds: what is enough on a quiet machine, by the pace of this one now."""
    return ceil(quiet * patience())


def slowness(work_s: float, load: float, processors: int) -> float:
    """1 on a machine as fast as that one with little else to do; proportional to what the probe takes and to the processes that want to
    run, by the minute's average, and one more: the waiting test's own."""
    return max(1.0, work_s / WORK_S) * max(1.0, (load + 1) / processors)


def describe() -> str:
    """A line for the head of a report."""
    return f"patience: deadlines times {patience():.1f} at present (the probe took {_work_s() * 1000:.0f} ms, {WORK_S * 1000:.0f} expected)"


@cache
def _work_s() -> float:
    """Processor seconds of a fixed piece of work, once a session, the best of three."""
    return min(_probe() for _ in range(3))


def _probe() -> float:
    began = time.process_time()
    sha256(bytes(10_000_000)).digest()
    total = 0
    for number in range(400_000):
        total += number * number % 7
    return time.process_time() - began
