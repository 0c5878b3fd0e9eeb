"""Where a test run's time goes: wall clock and processor seconds of every test, by module at the end of the report, by test in a file.

`SLIPWAY_TIMES=path` writes the figures of every test as JSON. "own" counts this process and the children it has waited for; "machine" all
that ran meanwhile, daemons and pods as well: it means something only when nothing else runs.
"""

import json
import os
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

SHOWN = 12
"""Modules in the report."""


@dataclass(frozen=True)
class Times:
    """Seconds: at a moment, or between two."""

    wall: float = 0.0
    own: float = 0.0
    machine: float = 0.0

    def __sub__(self, other: "Times") -> "Times":
        return Times(self.wall - other.wall, self.own - other.own, self.machine - other.machine)

    def __add__(self, other: "Times") -> "Times":
        return Times(self.wall + other.wall, self.own + other.own, self.machine + other.machine)


def now() -> Times:
    """The clocks as they stand."""
    return Times(time.monotonic(), sum(os.times()[:4]), busy_s(Path("/proc/stat").read_text(), os.sysconf("SC_CLK_TCK")))


def busy_s(stat: str, ticks_per_s: int) -> float:
    """Seconds that the machine's processors have worked since boot, from the text of /proc/stat: all but idle and waiting for disks."""
    user, nice, system, _idle, _iowait, irq, softirq = (int(word) for word in stat.split()[1:8])
    return (user + nice + system + irq + softirq) / ticks_per_s


def module_lines(tests: dict[str, Times], shown: int = SHOWN) -> list[str]:
    """The modules that took longest, and the sum of all, a line each."""
    modules: defaultdict[str, Times] = defaultdict(Times)
    for test, taken in tests.items():
        modules[test.partition("::")[0]] += taken
    longest = sorted(modules.items(), key=lambda entry: -entry[1].wall)[:shown]
    rows = [*longest, ("all", sum(modules.values(), Times()))]
    return [f"{taken.wall:8.1f} s, processor {taken.own:7.1f} s own {taken.machine:7.1f} s machine  {name}" for name, taken in rows]


def save(tests: dict[str, Times], path: Path) -> None:
    """Adds the figures of every test to a file of JSON: `make test` has three sessions."""
    before: dict[str, dict[str, float]] = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(before | {test: asdict(taken) for test, taken in tests.items()}, indent=1))
