"""`make bench`: the figures of docs/benchmarks.md, measured on this machine, printed as a table and written as JSON.

Each is a whole process as a user would start it. The cold one (`--cold`) runs in a fresh Debian of its own, with a fresh clone and empty
caches: bare_machine.sh.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tests.bench import (
    collector,
    containers,
    forty,
    guard,
    informers,
    live,
    mpi,
    node_checks,
    page,
    plans,
    plots,
    shared_root,
    sleeping,
    waking,
)
from tests.bench.scale import run

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
RESULTS = ROOT / ".slipway" / "bench.json"
WAY = {
    "pods_made_s": "the controller's part, until the last pod is made",
    "pod_made_to_bound_median_s": "the scheduler's part, a pod made to bound",
    "bound_to_slurmd_median_s": "the machine's part, a pod bound to its slurmd started",
    "slurmd_median_s": "slurmd's part, started to registered",
    "slurmd_worst_s": "slurmd's part, of the slowest",
    "status_after_s": "the controller's part after it, until the set's status says so",
}
"""The way of a set from zero to idle, by who has it: the controller's parts are of the whole set, the others medians of single nodes."""

SPREAD = {300: 5.0, 1000: 10.0}
"""Slurmds on this machine, and the seconds within which all have a changed file."""


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


def seconds(*argv: str) -> float:
    """Wall seconds of a command; ends the bench with the command's own words when it fails."""
    begin = time.monotonic()
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    took = time.monotonic() - begin
    if done.returncode:
        sys.exit(f"{' '.join(argv)} gave {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return took


def figure(name: str, promised: float | None, runs: list[float], unit: str = "s") -> Figure:
    """The median and the worst of several runs."""
    return Figure(name, unit, round(statistics.median(runs), 2), round(max(runs), 2), len(runs), promised)


def preview(size: int) -> tuple[float, int]:
    """Seconds of an offline preview of the h100 stack with `size` GPU machines, and how many resources it has."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.json"
        changes = ("nodePools[0].max", size), ("nodePools[0].eks.min", 1), ("nodeSets[0].size", size)
        options = [word for key, value in changes for word in ("--config", f"cluster.{key}={value}")]
        took = seconds(*_standalone("preview", "h100", "--offline", *options, "--json", str(plan)))
        return took, len(json.loads(plan.read_text())["resources"])


def previews() -> list[Figure]:
    """Previews of 10 and of 10,000 machines, in turns, so that a busy moment of the machine meets both."""
    pairs = [(preview(10), preview(10_000)) for _ in range(5)]
    ratio = statistics.median(large[0] for _, large in pairs) / statistics.median(small[0] for small, _ in pairs)
    (_, few), (_, many) = pairs[0]
    return [
        figure("preview offline with 10,000 nodes, relative to 10; medians of 5", 1.1, [ratio], unit=""),
        figure("resources at 10,000 nodes beyond those at 10", 0, [float(many - few)], unit=""),
    ]


def cold() -> float:
    """Seconds of `make up` in a fresh Debian with nothing installed, no cache and a fresh clone."""
    with tempfile.TemporaryDirectory(prefix="slipway-bare-") as folder:
        done = subprocess.run([HERE / "bare_machine.sh", folder, "make up"], capture_output=True, text=True, check=False)
    RESULTS.with_name("bench-cold.log").write_text(done.stdout + done.stderr)
    if done.returncode:
        sys.exit(f"make up on a bare machine gave {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def scaled() -> list[Figure]:
    """Real slurmds by the hundred and by the thousand, side by side with a loop that starts as many; a job on a sleeping node."""
    figures: list[Figure] = []
    small, many, bare_small, bare_many, woken, prolog, faults = run.measure(
        *(("whole", 100), ("whole", 1000), ("bare", 100), ("bare", 1000), ("zero", 20), ("prolog", 200), ("faults", 1000))
    )
    for nodes, whole, bare in ((100, small, bare_small), (1000, many, bare_many)):
        say = f"{nodes} real slurmds from zero to idle"
        figures.append(figure(say, None, [whole["total_s"]]))
        figures.append(figure(f"{say}: by a plain loop, no Kubernetes", None, [bare["total_s"]]))
        figures += [figure(f"{say}: {part}", None, [whole[key]]) for key, part in WAY.items()]
        figures.append(figure(f"{say}: slurmd's part by the plain loop", None, [bare["slurmd_median_s"]]))
        for program in ("controller", "apiserver", "etcd", "scheduler", "slurmctld"):
            figures.append(figure(f"{say}: CPU time of the {program}", None, [whole[f"{program}_cpu_s"]]))
        figures.append(figure(f"{nodes} idle nodes back to no pod", None, [whole["to_zero_s"]]))
    figures.append(figure("idle controller with 1,000 nodes, share of a core", 2, [many["idle_controller_percent"]], unit="%"))
    figures.append(figure("PrologSlurmctld of a job on a fixed set", 5, [prolog["prolog_ms"]], unit="ms"))
    figures.append(figure("from a failed check to a drained node at 1,000 nodes: 99 % of 100", 2, [faults["p99_s"]]))
    figures.append(figure("the same of 900 nodes that fail at once: 99 % of them", None, [faults["storm_p99_s"]]))
    figures.append(figure("node given to a job to its pod made", 0.5, [woken["allocated_to_pod_median_s"]]))
    figures.append(figure("node registered to its job running", None, [woken["registered_to_running_median_s"]]))
    return figures


def spread() -> list[Figure]:
    """A changed line of slurm.conf on real slurmds by the hundred and by the thousand: where the time goes."""
    figures: list[Figure] = []
    for (slurmds, promised), found in zip(SPREAD.items(), run.measure(*(("files", slurmds) for slurmds in SPREAD)), strict=True):
        say = f"changed line of slurm.conf on {slurmds} real slurmds: in slurmctld's pod to live"
        figures.append(figure(say, promised, [found["total_s"]]))
        figures.append(figure(f"{say}: the sidecar's and slurmctld's part", None, [found["slurmctld_s"]]))
        figures.append(figure(f"{say}: the slurmds' part", None, [found["slurmds_s"]]))
        figures.append(figure(f"{say}: CPU time of all slurmds", None, [found["slurmds_cpu_s"]]))
    return figures


def main(cold_too: Annotated[bool, typer.Option("--cold", help="Also the bare-machine figure; takes as long as it says.")] = False) -> None:
    """Measures, prints, writes."""
    key = ".slipway/ssh/id_ed25519"
    python = sys.executable
    figures: list[Figure] = []
    seconds(python, "-m", "local", "down")
    if cold_too:
        figures.append(figure("bare machine to finished job", 900, [cold()]))
    seconds(python, "-m", "local", "prepare")
    seconds(python, "-m", "local", "down")
    figures.append(figure("warm: cluster down to finished job", 90, [seconds(python, "-m", "local", "quickstart", "--key", key)]))
    ways = sleeping.measure()
    figures.append(figure("job on a sleeping node: sbatch to running", None, [way.submit_to_running_s for way in ways]))
    figures.append(figure("worker's container started to slurmd registered", None, [way.start_to_registered_s for way in ways]))
    figures.append(figure("container started to job running, relative to that", 1.5, [way.ratio for way in ways], unit=""))
    figures.append(
        figure("up with nothing changed", 5, [seconds(*_standalone("up", "dev", "--context", "slipway-local")) for _ in range(5)])
    )
    changes = live.measure()
    figures.append(figure("changed line of slurm.conf: written to live", 5, [change.write_to_answer_s for change in changes]))
    figures.append(
        figure(
            "changed line of slurm.conf: of this, to the files in slurmctld's pod", None, [change.write_to_files_s for change in changes]
        )
    )
    guarded = guard.measure()
    figures.append(figure("object edited by hand until it is as deployed", 10, guarded.edit_to_restored_s))
    figures.append(figure("object deleted by hand until it is made again", 10, guarded.delete_to_restored_s))
    figures.append(figure("memory of the guard", 50, [guarded.memory_mb], unit="MB"))
    painted = page.measure()
    figures.append(figure("first paint of the web page at 1,000 nodes and 10,000 jobs", 1, painted.first_paint_s))
    figures.append(figure("all nodes on the web page at 1,000 nodes and 10,000 jobs", None, painted.nodes_shown_s))
    costs_of_mpi = mpi.measure()
    ranks = f"{mpi.RANKS} ranks of OpenMPI on 2 nodes by plain srun"
    figures.append(figure(f"{ranks}: MPI_Init relative to mpirun's; medians of {mpi.INITS}", 1.5, [costs_of_mpi["init"]], unit=""))
    figures.append(figure(f"{ranks}: starts that failed, of {mpi.STARTS}", 0, [costs_of_mpi["failed"]], unit=""))
    for name, what in (("small", "8 bytes"), ("large", "1 MiB")):
        say = f"OpenMPI by plain srun: {what} to another node and back, relative to mpirun's; medians of {mpi.PING_PONGS}"
        figures.append(figure(say, 1.05, [costs_of_mpi[name]], unit=""))
    real = forty.measure()
    figures.append(figure("40 real pods on two kubelets: 1 to 40 idle", 11, [round_.out_s for round_ in real]))
    figures.append(figure("40 real pods on two kubelets: 40 plain pods, 1 to 40 Ready", None, [round_.plain_s for round_ in real]))
    figures.append(figure("40 real pods on two kubelets: relative to the plain pods", None, [round_.ratio for round_ in real], unit=""))
    figures.append(figure("40 real pods on two kubelets: 40 idle nodes to 1 pod", None, [round_.in_s for round_ in real]))
    figures.append(
        figure("preview offline of the h100 stack", 3, [seconds(*_standalone("preview", "h100", "--offline")) for _ in range(5)])
    )
    figures += previews()
    figures.append(figure("all checks beside jobs on a node: processor time of a look", 300, node_checks.measure("interval")[0], unit="ms"))
    figures.append(figure("all checks of a prolog, at once", 1000, node_checks.measure("prolog")[1], unit="ms"))
    costs = [informers.measure() for _ in range(3)]
    figures.append(figure("controllers: list of 5,000 nodes and 10,000 pods", 5, [cost.list_s for cost in costs]))
    figures.append(figure("controllers: one change of a pod", 200, [1e6 / cost.events_per_s for cost in costs], unit="µs"))
    figures.append(figure("controllers: peak memory with these", 300, [cost.rss_mb for cost in costs], unit="MB"))
    figures.append(figure("POWERING_UP seen to pod made, 99 % of 300 in 1,000 nodes", 0.5, [waking.measure()]))
    figures += [figure(name, promised, [*runs]) for name, promised, runs in plans.measure()]
    metrics = collector.measure()
    at = "metrics of 5,000 nodes and 10,000 jobs"
    figures.append(figure(f"{at}: a scrape", 1, [*metrics.scrape_s]))
    figures.append(figure(f"{at}: resident memory of the collector", 60, [metrics.rss_mb], unit="MB"))
    figures.append(figure(f"{at}: the collector at rest with its commands, share of a core", 2, [metrics.rest_percent], unit="%"))
    laws = seconds(python, "-m", "tests.unit.controllers.nodeset.simulation", "--steps", "1000000", "--seed", str(int(time.time())))
    figures.append(figure("1,000,000 steps of the laws' simulation, all held", 600, [laws]))
    figures += scaled()
    figures += spread()
    inside_ms, outside_ms = shared_root.measure()
    figures.append(
        figure("job `srun true` inside the shared root, beyond one outside; means of 500", 20, [inside_ms - outside_ms], unit="ms")
    )
    fills = shared_root.measure_fills()
    for way, ratio in zip(("an image", "a tar, with its digest"), shared_root.fill_ratios(fills), strict=True):
        say = f"version of the root filled from {way}, relative to `tar x`; medians of {shared_root.FILLS}"
        figures.append(figure(say, 1.2, [ratio], unit=""))
    figures.append(figure("switch of the root until a job has run in the new version", 5, shared_root.measure_switches()))
    times = containers.measure()
    for what in ("step", "job"):
        beyond = times[f"{what} container"] - times[f"{what} bare"]
        figures.append(figure(f"{what} `srun true` in a container of 1 GiB that the node has, beyond a bare one", 100, [beyond], unit="ms"))
    ratio = times["first"] / times["by hand"]
    figures.append(figure("first start of that image on a node, relative to skopeo and umoci by hand", 1.3, [ratio], unit=""))
    _print(figures)
    RESULTS.parent.mkdir(exist_ok=True)
    machine = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()}
    results = {"machine": machine, "figures": [asdict(measured) for measured in figures]}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    plots.draw(results)


def _standalone(verb: str, stack: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "standalone", verb, "--stack", stack, *options]


def _print(figures: list[Figure]) -> None:
    table = Table("figure", "median", "worst", "runs", "promised", "")
    for row in figures:
        verdict = "" if row.promised is None else "[green]holds[/]" if row.holds else "[red]missed[/]"
        promised = "" if row.promised is None else f"{row.promised:g} {row.unit}"
        table.add_row(row.name, f"{row.median:g} {row.unit}", f"{row.worst:g} {row.unit}", str(row.runs), promised, verdict)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
