"""The verbs as whole processes, as a user would start them: `make up` on a bare machine and on a warm one, `up` again, offline previews,
and the simulation of the laws.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench.results import ROOT, Benchmark, Figure, figure, seconds

_BARE = Path(__file__).with_name("bare_machine.sh")
_LOG = ROOT / ".slipway" / "bench-cold.log"
_KEY = ".slipway/ssh/id_ed25519"


def cold(command: str) -> Iterator[Figure]:
    """A command in a fresh Debian with nothing installed, no cache and a fresh clone."""
    if command == COLD.full:  # it brings a cluster of its own up, at the same addresses
        seconds(sys.executable, "-m", "local", "down")
    with tempfile.TemporaryDirectory(prefix="slipway-bare-") as folder:
        done = subprocess.run([_BARE, folder, command], capture_output=True, text=True, check=False)
    _LOG.parent.mkdir(exist_ok=True)
    _LOG.write_text(done.stdout + done.stderr)
    if done.returncode:
        raise RuntimeError(f"{command} on a bare machine gave {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    yield figure("bare machine to finished job", 900, [float(done.stdout.split()[-1])])


def warm(more: tuple[str, ...]) -> Iterator[Figure]:
    """From a cluster that is down. With `--help` the verb reads its options and does nothing: tests/cluster/test_first_job.py runs it."""
    quickstart = (sys.executable, "-m", "local", "quickstart", "--key", _KEY, *more)
    if "--help" not in more:
        for verb in ("prepare", "down"):
            seconds(sys.executable, "-m", "local", verb)
    yield figure("warm: cluster down to finished job", 90, [seconds(*quickstart)])


def unchanged(runs: int) -> Iterator[Figure]:
    """`up` of a stack that is as declared."""
    yield figure("up with nothing changed", 5, [seconds(*_slipway("up", "dev", "--context", "slipway-local")) for _ in range(runs)])


@dataclass(frozen=True)
class Previews:
    """Machines of the large stack and of the small one, and how often each is previewed."""

    runs: int = 5
    small: int = 10
    large: int = 10_000


def previews(size: Previews) -> Iterator[Figure]:
    """Offline previews of the h100 stack as it is; then of few and of many machines, in turns, so that a busy moment meets both."""
    yield figure("preview offline of the h100 stack", 3, [seconds(*_slipway("preview", "h100", "--offline")) for _ in range(size.runs)])
    pairs = [(_preview(size.small), _preview(size.large)) for _ in range(size.runs)]
    ratio = statistics.median(large[0] for _, large in pairs) / statistics.median(small[0] for small, _ in pairs)
    (_, few), (_, many) = pairs[0]
    say = f"preview offline with {size.large:,} nodes, relative to {size.small}; medians of {size.runs}"
    yield figure(say, 1.1, [ratio], unit="")
    yield figure(f"resources at {size.large:,} nodes beyond those at {size.small}", 0, [float(many - few)], unit="")


def _preview(machines: int) -> tuple[float, int]:
    """Seconds of an offline preview of the h100 stack with so many GPU machines, and how many resources it has."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.json"
        changes = ("nodePools[0].max", machines), ("nodePools[0].eks.min", 1), ("nodeSets[0].size", machines)
        options = [word for key, value in changes for word in ("--config", f"cluster.{key}={value}")]
        took = seconds(*_slipway("preview", "h100", "--offline", *options, "--json", str(plan)))
        return took, len(json.loads(plan.read_text())["resources"])


def laws(steps: int) -> Iterator[Figure]:
    """The simulation that tries to break the controllers' laws, with another seed each time."""
    simulation = "tests.support.controllers.nodeset.simulation"
    took = seconds(sys.executable, "-m", simulation, "--steps", str(steps), "--seed", str(int(time.time())))
    yield figure(f"{steps:,} steps of the laws' simulation, all held", 600, [took])


def _slipway(verb: str, stack: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "cli", verb, "--stack", stack, *options]


COLD = Benchmark("cold", cold, "make up", "make --version")
WARM = Benchmark("warm", warm, full=(), smallest=("--help",))
UNCHANGED = Benchmark("unchanged", unchanged, 5, 1)
PREVIEWS = Benchmark("previews", previews, Previews(), Previews(runs=1, small=2, large=4))
LAWS = Benchmark("laws", laws, 1_000_000, 1_000)
