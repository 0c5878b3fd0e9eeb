"""Stand-ins for programs of vendors, which run on their hardware alone: they print what was recorded, hang, crash or are missing. And what
runs a check's program as Slurm does: as a script on the standard input of an isolated Python."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from programs.node_checks.bundle import bundle
from tests.support.patience import patience

CHECKS = Path(__file__).parents[4] / "programs/node_checks"
RECORD = 'printf "%s " "$@" >"$here/words"'
"""A first line that notes the words that the program was given."""


def stand_in(folder: Path, name: str, output: str, code: int = 0, errors: str = "", first: str = "") -> Path:
    """A program that prints these texts and ends with the code. `first` is a line of shell that comes before."""
    (folder / f"{name}.out").write_text(output)
    (folder / f"{name}.err").write_text(errors)
    program = folder / name
    words = f'here=$(dirname "$0")\n{first}\ncat "$here/{name}.out"\ncat "$here/{name}.err" >&2\nexit {code}\n'
    program.write_text(f"#!/bin/sh\n{words}")
    program.chmod(0o755)
    return program


def run_check(
    check: str, settings: dict[str, Any], folder: Path, timeout_s: float = 30, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The check's job on a node whose PATH has this folder before the system's, ended by timeout(1) as in programs/node_checks/slurm.py,
    by the machine's pace."""
    limit_s = timeout_s * patience()
    return subprocess.run(
        ["timeout", "--kill-after=5", str(limit_s), sys.executable, "-I", "-", json.dumps(settings)],
        input=bundle(CHECKS / f"{check}.py"),
        capture_output=True,
        text=True,
        env={"PATH": f"{folder}{os.pathsep}/usr/bin:/bin", **environment},
        timeout=limit_s + 30 * patience(),
        check=False,
    )


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The last line of a check's output."""
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def wait_until(holds: Callable[[], bool]) -> bool:
    """True once it holds; False where it does not after 10 s, by the machine's pace."""
    began = time.monotonic()
    while not (held := holds()) and time.monotonic() - began < 10 * patience():
        time.sleep(0.01)
    return held


def has_ended(process: str) -> bool:
    """True once a process is gone, or but waits for somebody to take note of its end; False where it is there after 10 s."""

    def is_gone() -> bool:
        try:
            return Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    return wait_until(is_gone)
