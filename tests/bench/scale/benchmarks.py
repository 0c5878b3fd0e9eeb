"""Real slurmds by the hundred and by the thousand: the benchmarks that run.py measures, each in namespaces of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench.image import unpacked
from tests.bench.results import Benchmark, Figure, figure
from tests.bench.scale import run

_WAY = {
    "pods_made_s": "the controller's part, until the last pod is made",
    "pod_made_to_bound_median_s": "the scheduler's part, a pod made to bound",
    "bound_to_slurmd_median_s": "the machine's part, a pod bound to its slurmd started",
    "slurmd_median_s": "slurmd's part, started to registered",
    "slurmd_worst_s": "slurmd's part, of the slowest",
    "status_after_s": "the controller's part after it, until the set's status says so",
}
"""The way of a set from zero to idle, by who has it: the controller's parts are of the whole set, the others medians of single nodes."""
_SPREAD = {300: 5.0, 1000: 10.0}
"""Slurmds on this machine, and the seconds within which all are to have a changed file."""


@dataclass(frozen=True)
class Size:
    """Nodes, of each of several runs; jobs, for the prolog."""

    numbers: tuple[int, ...]
    image: Path | None = None


def _runs(mode: str, size: Size) -> Iterator[tuple[int, run.Figures]]:
    for number in size.numbers:
        yield number, run.measure(mode, number, size.image or unpacked())


def whole(size: Size) -> Iterator[Figure]:
    """A set from zero to idle and back, beside a loop that starts as many slurmds."""
    for nodes, found in _runs("whole", size):
        say = f"{nodes} real slurmds from zero to idle"
        yield figure(say, None, [found["total_s"]])
        for key, part in _WAY.items():
            yield figure(f"{say}: {part}", None, [found[key]])
        for program in ("controller", "apiserver", "etcd", "scheduler", "slurmctld"):
            yield figure(f"{say}: CPU time of the {program}", None, [found[f"{program}_cpu_s"]])
        yield figure(f"{nodes} idle nodes back to no pod", None, [found["to_zero_s"]])
        yield figure(f"idle controller with {nodes:,} nodes, share of a core", 2, [found["idle_controller_percent"]], unit="%")
        bare = run.measure("bare", nodes, size.image or unpacked())
        yield figure(f"{say}: by a plain loop, no Kubernetes", None, [bare["total_s"]])
        yield figure(f"{say}: slurmd's part by the plain loop", None, [bare["slurmd_median_s"]])


def files(size: Size) -> Iterator[Figure]:
    """A changed line of slurm.conf: where the time goes."""
    for slurmds, found in _runs("files", size):
        say = f"changed line of slurm.conf on {slurmds} real slurmds: in slurmctld's pod to live"
        yield figure(say, _SPREAD.get(slurmds), [found["total_s"]])
        yield figure(f"{say}: the sidecar's and slurmctld's part", None, [found["slurmctld_s"]])
        yield figure(f"{say}: the slurmds' part", None, [found["slurmds_s"]])
        yield figure(f"{say}: CPU time of all slurmds", None, [found["slurmds_cpu_s"]])


def faults(size: Size) -> Iterator[Figure]:
    """Checks that fail on nodes of a set, one after another and all at once, until these are drained."""
    for nodes, found in _runs("faults", size):
        alone = nodes // run.failing.SHARE
        say = f"from a failed check to a drained node at {nodes:,} nodes: 99 % of {alone}"
        yield figure(say, 2, [found["p99_s"]])
        yield figure(f"the same of {nodes - alone} nodes that fail at once: 99 % of them", None, [found["storm_p99_s"]])


def woken(size: Size) -> Iterator[Figure]:
    """Jobs on nodes that are powered down."""
    for _, found in _runs("zero", size):
        yield figure("node given to a job to its pod made", 0.5, [found["allocated_to_pod_median_s"]])
        yield figure("node registered to its job running", None, [found["registered_to_running_median_s"]])


def prolog(size: Size) -> Iterator[Figure]:
    """What slurmctld runs before each job."""
    for _, found in _runs("prolog", size):
        yield figure("PrologSlurmctld of a job on a fixed set", 5, [found["prolog_ms"]], unit="ms")


BENCHMARKS = (
    Benchmark("scale", whole, Size((100, 1000)), Size((4,))),
    Benchmark("woken", woken, Size((20,)), Size((1,))),
    Benchmark("prolog", prolog, Size((200,)), Size((1,))),
    Benchmark("faults", faults, Size((1000,)), Size((10,))),
    Benchmark("files", files, Size(tuple(_SPREAD)), Size((8,))),
)
