"""Health check of the links between GPUs: an all-reduce by nccl-tests, over all GPUs of one node, or of several. Runs on the nodes.

Settings: `gpus` of a node, `minBusBandwidthGBs`, `messageMiB`, `rounds` of pairs, `command`. With `ranks` it is one task of several, which
MPI connects, and rank 0 prints what it measured for measured.py. Else it judges by itself: both bus bandwidths of the largest message have
to reach the limit. RCCL's tests, for AMD, print the same.
"""

import json
import os
import re
import sys
from dataclasses import dataclass
from typing import Any

from .vendor import CannotRunError, Ended, find, hardware_fault, run

_FOLDERS = ("/opt/nccl-tests/build", "/opt/rccl-tests/build")
_REMEDY = "install nccl-tests where the worker finds it (docs/reference/checks.md), built with MPI=1 for tests of several nodes"
_RANK = re.compile(r"^#?\s*Rank\s+\d+\b.*\bdevice\b", re.MULTILINE)
_WRONG = re.compile(r"^#?\s*Out of bounds values\s*:\s*(\d+)\s+(OK|FAILED)", re.MULTILINE)
_AVERAGE = re.compile(r"^#?\s*Avg bus bandwidth\s*:\s*([\d.]+)\s*$", re.MULTILINE)
_FIGURES = 8
"""Columns of a line from the right: time, algbw, busbw and #wrong, out of place and in place."""


@dataclass(frozen=True)
class Table:
    """What nccl-tests printed."""

    size: int
    """The largest message, in bytes."""
    out_of_place_gbs: float
    """Bus bandwidth, GB/s, of the largest message."""
    in_place_gbs: float
    average_gbs: float
    """Over all messages."""
    wrong: int
    """Values that are not the sum."""
    ranks: int
    """GPUs that took part."""

    @property
    def least_gbs(self) -> float:
        return min(self.out_of_place_gbs, self.in_place_gbs)


def read(text: str) -> "Table | None":
    """The table; None for one without figures, or without its end."""
    wrong, average = _WRONG.search(text), _AVERAGE.search(text)
    rows = [row for row in map(_row, text.splitlines()) if row is not None]
    if not wrong or not average or not rows:
        return None
    try:
        size, out_of_place, in_place = max(rows)
        count = max(int(wrong[1]), int(wrong[2] != "OK"))
        return Table(size, out_of_place, in_place, float(average[1]), count, len(_RANK.findall(text)))
    except ValueError:
        return None


def _row(line: str) -> "tuple[int, float, float] | None":
    """Size in bytes and both bus bandwidths. Versions differ in the columns between: some have no root."""
    columns = line.split()
    if len(columns) < _FIGURES + 4 or not (columns[0].isdecimal() and columns[1].isdecimal()):
        return None
    try:
        row = int(columns[0]), float(columns[-6]), float(columns[-2])
    except ValueError:
        return None
    return row if all(0 <= figure < float("inf") for figure in row) else None


def judge(ended: Ended, gpus: int, settings: "dict[str, Any]") -> "tuple[str, str]":
    """`passed`, `failed` or `unknown` and what was found, of one node's run."""
    table = read(ended.output)
    if table is None or table.ranks != gpus:
        return could_not_measure(ended, table, gpus)
    found = (
        f"all-reduce of {gpus} GPUs at {table.out_of_place_gbs:g} GB/s out of place, {table.in_place_gbs:g} in place, "
        f"{table.average_gbs:g} on average"
    )
    if table.wrong:
        return "failed", f"{found}, and {table.wrong} wrong values"
    least = settings["minBusBandwidthGBs"]
    return ("passed", found) if table.least_gbs >= least else ("failed", f"{found}, {least} wanted")


def could_not_measure(ended: Ended, table: "Table | None", gpus: int) -> "tuple[str, str]":
    """The result of a run without the whole table, or with other GPUs: broken hardware is a failure, all else is unknown."""
    if fault := hardware_fault(ended.text):
        return "failed", fault
    if table is None:
        return "unknown", f"all_reduce_perf {ended.how}"
    return "unknown", f"all_reduce_perf used {table.ranks} GPUs, {gpus} expected: over several nodes it has to be built with MPI=1"


def arguments(settings: "dict[str, Any]") -> "list[str]":
    size = f"{settings['messageMiB']}M"
    return ["-b", size, "-e", size, "-g", str(settings["gpus"]), "-c", "1"]


def main() -> None:
    settings = json.loads(sys.argv[1])
    gpus = settings["gpus"] * settings.get("ranks", 1)
    is_first = "ranks" not in settings or os.environ.get("SLURM_PROCID", "0") == "0"
    try:
        ended = run([*find(settings["command"], "all_reduce_perf", _FOLDERS, _REMEDY), *arguments(settings)])
    except CannotRunError as error:
        answer: dict[str, Any] = {"result": "unknown", "found": str(error)}
    else:
        table = read(ended.output)
        if "ranks" in settings and table is not None and table.ranks == gpus:
            answer = {"busBandwidthGBs": table.least_gbs, "latencyUs": 0, "wrong": table.wrong > 0}
        else:
            answer = dict(zip(("result", "found"), judge(ended, gpus, settings), strict=True))
    if is_first:
        print(json.dumps(answer))


if __name__ == "__main__":
    main()
