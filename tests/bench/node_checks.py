"""What all checks beside jobs cost a node: the processor time of one look, as slurmd runs it each minute, and the wall time of a prolog.

Each run is `python3 -m programs.node_checks.beside` with all children that it waits for. Nobody takes the report: a node tells news alone.
Hardware that this machine lacks is looked for and not found.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from programs.node_checks.kinds import KINDS
from tests.bench.results import ROOT, Benchmark, Figure, figure

_FACTS: dict[str, dict[str, Any]] = {
    "disk": {"paths": ["/tmp", "/var"]},
    "memory": {"configuredMiB": 1, "minAvailablePercent": 0},
    "gpu": {"vendor": "nvidia", "count": 0, "simulated": True},
    "mounts": {"paths": ["/proc"]},
    "kernel": {"xids": [], "ignoredXids": [], "patterns": {}},
    "network": {"efaDevices": 0},
    "shm": {"leastUser": 1000, "accounts": []},
}


def spec(context: str) -> dict[str, Any]:
    """Every check that can run in the context, with its defaults, on the node n-0."""
    checks = [
        {
            "name": name,
            "check": name,
            "contexts": [context],
            "timeoutS": 60,
            "causeKind": check.cause,
            "maxDrained": 1,
            "passes": 1,
            "settings": {**check.limits, **_FACTS.get(name, {})},
        }
        for name, check in KINDS.items()
        if context in check.contexts
    ]
    return {"collector": ["127.0.0.1", 1], "slurmUser": 64030, "nodeSets": {"n": checks}}


def measure(runs: int) -> Iterator[Figure]:
    """Of some looks the processor time, and of some prologs how long a job waits for them."""
    yield figure("all checks beside jobs on a node: processor time of a look", 300, _look("interval", runs)[0], unit="ms")
    yield figure("all checks of a prolog, at once", 1000, _look("prolog", runs)[1], unit="ms")


def _look(context: str, runs: int) -> tuple[list[float], list[float]]:
    """Of each run the milliseconds of processor time, and of wall time."""
    environment = {
        "PATH": "/nowhere",
        "SLURMD_NODENAME": "n-0",
        **({"SLURM_SCRIPT_CONTEXT": "prolog_slurmd"} if context == "prolog" else {}),
    }
    command = [sys.executable, "-EsSB", "-m", "programs.node_checks.beside"]
    text = json.dumps(spec(context)).encode()
    cpu: list[float] = []
    wall: list[float] = []
    for _ in range(runs):
        before, began = _used_s(), time.monotonic()
        subprocess.run(command, input=text, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        wall.append(1000 * (time.monotonic() - began))
        cpu.append(1000 * (_used_s() - before))
    return cpu, wall


def _used_s() -> float:
    """Seconds of processor time of all children that were waited for, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


BENCHMARK = Benchmark("node-checks", measure, 20, 1)
