"""What tests of the network between nodes measured, and what that says. Pure.

Limits are absolute, or relative to the median of the first round: a pair far below it is the outlier, whatever the machines are. With a
single pair and no absolute limit there is nothing to compare with, and the result is unknown.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from slurm.check_results import FAILED, PASSED, UNKNOWN


@dataclass(frozen=True)
class Measured:
    """One test of some nodes."""

    bandwidth_mb_per_s: float
    latency_us: float
    is_wrong: bool = False
    """What arrived is not what was sent."""

    def __str__(self) -> str:
        wrong = " and with wrong data" if self.is_wrong else ""
        return f"{self.bandwidth_mb_per_s:.4g} MB/s, {self.latency_us:.4g} us{wrong}"


def read_measured(code: int, output: str) -> Measured | None:
    """From the last line of the program's output. None for all else."""
    try:
        said = json.loads(output.strip().splitlines()[-1])
        return Measured(float(said["bandwidthMBs"]), float(said["latencyUs"]), bool(said["wrong"])) if code == 0 else None
    except (IndexError, KeyError, TypeError, ValueError):
        return None


def baseline(measured: Iterable[Measured]) -> float | None:
    """The median bandwidth of a round, MB/s; None where fewer than two tests gave one."""
    known = [each.bandwidth_mb_per_s for each in measured]
    return median(known) if len(known) > 1 else None


def judge(found: Measured, usual: float | None, settings: Mapping[str, Any]) -> tuple[str, str]:
    """`passed`, `failed` or `unknown`, and why. `usual` is the baseline of this run; a limit of 0 is none."""
    least, most = settings["minBandwidthMBs"], settings["maxLatencyUs"]
    share = settings["minShareOfMedianPercent"]
    if found.is_wrong:
        return FAILED, str(found)
    if found.bandwidth_mb_per_s < least:
        return FAILED, f"{found}, {least} MB/s wanted"
    if 0 < most < found.latency_us:
        return FAILED, f"{found}, {most} us allowed"
    if usual is not None and found.bandwidth_mb_per_s * 100 < usual * share:
        return FAILED, f"{found}, where the median is {usual:.4g} MB/s"
    if not least and not most and (usual is None or not share):
        return UNKNOWN, f"{found}, and nothing to compare with: set minBandwidthMBs"
    return PASSED, str(found)
