"""Use of the cluster over the last day, one point a minute. Pure. A minute without a reading of Slurm has no point: unknown is not idle."""

import json
from collections.abc import Sequence

MOST = 1440
"""Points: a day."""
EVERY_S = 60
_DAY_S = MOST * EVERY_S
_LONG = 7

Point = tuple[int, int, int, int, int, int, int]
"""Seconds since 1970, then nodes in use and in all, CPUs in use and in all, GPUs in use and in all."""


def with_point(points: Sequence[Point], new: Point) -> tuple[Point, ...]:
    """The points of the last day with a new one, which replaces the last if both are of the same minute."""
    recent = [point for point in points if new[0] - _DAY_S < point[0] < new[0]]
    if recent and recent[-1][0] // EVERY_S == new[0] // EVERY_S:
        recent.pop()
    return (*recent, new)[-MOST:]


def dump(points: Sequence[Point]) -> str:
    """The points as `load` reads them."""
    return json.dumps(points, separators=(",", ":"))


def load(text: str) -> tuple[Point, ...]:
    """The points of a file. Empty if the file is not valid, as after a restart in the middle of a write."""
    try:
        rows = [tuple(int(value) for value in row) for row in json.loads(text)]
    except (TypeError, ValueError):
        return ()
    return tuple((a, b, c, d, e, f, g) for a, b, c, d, e, f, g in rows) if all(len(row) == _LONG for row in rows) else ()
