"""The collector of metrics at thousands of nodes and jobs: time of a scrape, resident memory, and its share of a core at rest.

The real program; scontrol and squeue are played: they print text as recorded, after as much processor time as the real ones take for it
(0.07 s for 1,000 nodes, 0.2 s for 50,000 jobs: docs/explain/slurm-facts.md), so the share has all that the collector causes beside
slurmctld.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from names import ports
from programs.metrics.settings import Settings, to_json
from tests.bench.results import ROOT, Benchmark, Figure, figure
from tests.support.patience import patience
from tests.support.programs.metrics.recorded import job, node, of

_STATES = ("IDLE+CLOUD", "MIXED+CLOUD", "ALLOCATED+CLOUD", "IDLE+CLOUD+DRAIN", "IDLE+CLOUD+POWERED_DOWN")
_REASONS = ("Priority", "Resources", "Dependency", "QOSMaxGRESPerUser", "ReqNodeNotAvail, UnavailableNodes:gpu-17")
_FAKE = """#!{python} -EsSB
import sys, time
while time.process_time() < {cpu_s}: pass
sys.stdout.write(open({file!r}).read())
"""


@dataclass(frozen=True)
class Size:
    """Of the cluster that it reads, and of the measurement."""

    nodes: int = 5_000
    jobs: int = 10_000
    accounts: int = 400
    scrapes: int = 20
    rest_s: float = 120.0
    """How long it is left alone with its commands."""


def nodes_text(size: Size) -> str:
    """Nodes with 8 GPUs and results of four checks; one in fifty fails one."""
    at = "2026-11-24T17:00:00Z"
    failure = {"since": at, "found": "/tmp has 12 MiB free, less than 512 MiB", "kind": "node", "drains": True}
    lines: list[str] = []
    for number in range(size.nodes):
        results = {check: {"result": "passed", "at": at} for check in ("disk", "memory", "gpu", "mounts")}
        failed = {"disk": {"result": "failed", "at": at, "failure": failure}} if number % 50 == 0 else {}
        extra = json.dumps({"slipway": {**results, **failed}}, separators=(",", ":"))
        state = _STATES[number % len(_STATES)]
        used = (96, 8) if state.startswith("ALLOC") else (12, 1) if state.startswith("MIXED") else (0, 0)
        lines.append(node(f"set{number % 10}-{number // 10}", state, (used[0], 96), (used[1], 8), extra))
    return "\n".join(lines) + "\n"


def jobs_text(size: Size) -> str:
    """Jobs of some accounts; every other one waits."""
    lines = [
        job(
            str(number),
            "PENDING",
            Account=f"account{number % size.accounts}",
            Reason=_REASONS[number % len(_REASONS)],
            EligibleTime=1_795_500_000,
        )
        if number % 2
        else job(str(number), Account=f"account{number % size.accounts}", Partition=f"part{number % 8}")
        for number in range(size.jobs)
    ]
    return "\n".join(lines) + "\n"


def measure(size: Size) -> Iterator[Figure]:
    """Starts the program, waits for its first reading, scrapes it, and leaves it alone."""
    each = {"disk": "job", "gpu": "job", "memory": "job", "mounts": "job"}
    checks = {f"set{number}": each for number in range(10)}
    settings = Settings(accounting=True, accounts=100, checks=checks)
    texts = {
        "scontrol": (nodes_text(size), 0.07 * size.nodes / 1000),
        "squeue": (jobs_text(size), 0.2 * size.jobs / 50_000),
        "sacct": ("", 0.02),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, cpu_s) in texts.items():
            file = Path(folder) / f"{name}.txt"
            file.write_text(text)
            (Path(folder) / name).write_text(_FAKE.format(python=sys.executable, cpu_s=cpu_s, file=os.fspath(file)))
            (Path(folder) / name).chmod(0o755)
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        command = [sys.executable, "-EsSB", "-m", "programs.metrics.run", to_json(settings)]
        process = subprocess.Popen(command, cwd=ROOT, env=environment)
        try:
            yield from _watch(process, size)
        finally:
            process.terminate()
            process.wait(10 * patience())


def _watch(process: subprocess.Popen[bytes], size: Size) -> Iterator[Figure]:
    began = time.monotonic()
    while "\nslipway_slurm_up 1\n" not in (page := _scrape()):
        if process.poll() is not None or time.monotonic() - began > 60 * patience():
            raise RuntimeError(f"the collector has read nothing; its exit code is {process.poll()}")
        time.sleep(0.2)
    if sum(of(page, "slipway_nodes").values()) != size.nodes or sum(of(page, "slipway_jobs").values()) != size.jobs:
        raise RuntimeError("the page does not have all nodes and jobs")
    at = f"metrics of {size.nodes:,} nodes and {size.jobs:,} jobs"
    took: list[float] = []
    for _ in range(size.scrapes):
        began = time.monotonic()
        page = _scrape()
        took.append(time.monotonic() - began)
    yield figure(f"{at}: a scrape", 1, took)
    before, began = of(page, "process_cpu_seconds_total")[""], time.monotonic()
    time.sleep(size.rest_s)
    page = _scrape()
    share = (of(page, "process_cpu_seconds_total")[""] - before) / (time.monotonic() - began)
    yield figure(f"{at}: resident memory of the collector", 60, [of(page, "process_resident_memory_bytes")[""] / 1e6], unit="MB")
    yield figure(f"{at}: the collector at rest with its commands, share of a core", 2, [100 * share], unit="%")


def _scrape() -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{ports.METRICS}/metrics", timeout=10 * patience()) as answer:
            return answer.read().decode()
    except OSError:
        return ""


BENCHMARK = Benchmark("collector", measure, Size(), Size(nodes=50, jobs=20, accounts=4, scrapes=1, rest_s=1))
