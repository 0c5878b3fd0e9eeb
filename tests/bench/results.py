"""What a run of benchmarks gives: figures, the machine that they were measured on, and benchmarks that failed.

Each figure is printed and written as soon as it is measured. A benchmark that fails keeps the figures that it has given; the others run.
"""

import json
import os
import platform
import statistics
import subprocess
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

Size = TypeVar("Size")
ROOT = Path(__file__).parents[2]
FILE = ROOT / ".slipway" / "bench.json"


@dataclass(frozen=True)
class Figure:
    """One measured figure: the median of `runs` in `unit`, and the most that is promised; None where a figure only informs."""

    name: str
    unit: str
    median: float
    worst: float
    runs: int
    promised: float | None

    @property
    def holds(self) -> bool:
        """True when the median is within the promise, or there is none."""
        return self.promised is None or self.median <= self.promised

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        more = [f"worst of {self.runs}: {self.worst:g}"] if self.runs > 1 else []
        if self.promised is not None:
            more.append(f"promised {self.promised:g}: {'holds' if self.holds else 'MISSED'}")
        about = f" ({', '.join(more)})" if more else ""
        return f"{f'{self.median:g}{unit}':>12}  {self.name}{about}"


def figure(name: str, promised: float | None, runs: Sequence[float], unit: str = "s") -> Figure:
    """The median and the worst of several runs."""
    return Figure(name, unit, round(statistics.median(runs), 2), round(max(runs), 2), len(runs), promised)


@dataclass(frozen=True)
class Benchmark(Generic[Size]):
    """One benchmark: how it is measured, in which size for docs/explain/benchmarks.md, and in which by `make test`."""

    name: str
    measure: Callable[[Size], Iterable[Figure]]
    full: Size
    smallest: Size


@dataclass(frozen=True)
class Machine:
    """What figures depend on."""

    processor: str
    cores: int
    memory_gib: int
    kernel: str
    python: str
    load: float
    """Of the minute before the first benchmark."""
    at: str
    """When that began, in UTC."""

    def __str__(self) -> str:
        load = f"load {self.load:g} at the start"
        return f"{self.cores} cores ({self.processor}), {self.memory_gib} GiB, Linux {self.kernel}, Python {self.python}, {load}, {self.at}"


def describe_machine() -> Machine:
    """This one, now."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    about = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))}
    family = f", family {about['cpu family']}, model {about['model']}" if "cpu family" in about else ""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return Machine(
        f"{about.get('model name', platform.machine())}{family}",
        os.cpu_count() or 1,
        round(memory),
        platform.release(),
        platform.python_version(),
        round(os.getloadavg()[0], 1),
        time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
    )


@dataclass
class Results:
    """Of one run, as `.slipway/bench.json` has them."""

    machine: Machine
    figures: list[Figure] = field(default_factory=list[Figure])
    failed: dict[str, str] = field(default_factory=dict[str, str])
    """The last line of each benchmark's error, by its name."""

    def as_dict(self) -> dict[str, Any]:
        """For the file, and for the plots."""
        return asdict(self)


def measure_all(benchmarks: Iterable[Benchmark[Any]], file: Path, say: Callable[[str], None]) -> Results:
    """One benchmark after another, in full size."""
    results = Results(describe_machine())
    say(f"Machine: {results.machine}")
    for benchmark in benchmarks:
        say(f"\n{benchmark.name}")
        for told in _figures_or_error(benchmark):
            if isinstance(told, Figure):
                results.figures.append(told)
                say(str(told))
            else:
                results.failed[benchmark.name] = str(told).strip().partition("\n")[0] or type(told).__name__
                say("".join(traceback.format_exception(told)))
            _write(results, file)
    return results


def _figures_or_error(benchmark: Benchmark[Any]) -> Iterator[Figure | Exception]:
    try:
        yield from benchmark.measure(benchmark.full)
    except Exception as error:
        yield error


def _write(results: Results, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(results.as_dict(), indent=2) + "\n")
    new.replace(file)


def seconds(*argv: str) -> float:
    """Wall seconds of a command. Raises RuntimeError with the command's own words when it fails."""
    begin = time.monotonic()
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    took = time.monotonic() - begin
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)} gave {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return took
