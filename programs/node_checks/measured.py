"""What tests of the network between nodes measured, and what that means. Pure.

Limits are absolute, or relative to the median of the first round. With a single pair and no absolute limit there is nothing to compare
with: unknown.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from slurm.check_results import FAILED, PASSED, UNKNOWN

_KEYS = {"bandwidthMBs": "MB/s", "busBandwidthGBs": "GB/s"}
"""The units of what programs print: mpi.py and nccl.py."""
_LIMITS = {"MB/s": "minBandwidthMBs", "GB/s": "minBusBandwidthGBs"}
"""The limits of a bandwidth, by its unit."""


@dataclass(frozen=True)
class Measured:
    """One test of some nodes."""

    bandwidth: float
    latency_us: float
    """0 where the test does not look at it."""
    is_wrong: bool = False
    """The data that arrived differ from the data that were sent."""
    unit: str = "MB/s"
    """The unit of the bandwidth."""

    def __str__(self) -> str:
        latency = f", {self.latency_us:.4g} us" if self.latency_us else ""
        return f"{self.bandwidth:.4g} {self.unit}{latency}{' and with wrong data' if self.is_wrong else ''}"


def read_measured(code: int, output: str) -> Measured | None:
    """Reads the last line of the program's output. None for all else."""
    try:
        answer = json.loads(output.strip().splitlines()[-1])
        key, unit = next((key, unit) for key, unit in _KEYS.items() if key in answer)
        return Measured(float(answer[key]), float(answer["latencyUs"]), bool(answer["wrong"]), unit) if code == 0 else None
    except (IndexError, KeyError, StopIteration, TypeError, ValueError):
        return None


def baseline(measured: Iterable[Measured]) -> float | None:
    """The median bandwidth of a round; None with fewer than two tests."""
    known = [test.bandwidth for test in measured]
    return median(known) if len(known) > 1 else None


def judge(found: Measured, usual: float | None, settings: Mapping[str, Any]) -> tuple[str, str]:
    """`passed`, `failed` or `unknown`, and why. `usual` is the baseline of this run; a limit of 0 is none."""
    key, unit = _LIMITS[found.unit], found.unit
    least, most, share = settings[key], settings.get("maxLatencyUs", 0), settings["minShareOfMedianPercent"]
    if found.is_wrong:
        return FAILED, str(found)
    if found.bandwidth < least:
        return FAILED, f"{found}, {least} {unit} wanted"
    if 0 < most < found.latency_us:
        return FAILED, f"{found}, {most} us allowed"
    if usual is not None and found.bandwidth * 100 < usual * share:
        return FAILED, f"{found}, where the median is {usual:.4g} {unit}"
    if not least and not most and (usual is None or not share):
        return UNKNOWN, f"{found}, and nothing to compare with: set {key}"
    return PASSED, str(found)
