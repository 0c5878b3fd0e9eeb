"""Builds and runs the C programs of tests/unit/root: the shared root's code with AddressSanitizer and UndefinedBehaviorSanitizer around it.

Needs gcc, make and libc6-dev, and installs them where they are missing. What they are made of is in images/slurm/root/Makefile.
"""

import os
import shutil
import subprocess
from pathlib import Path

from local import packages
from tests.support.patience import patience

PROJECT = Path(__file__).parents[3]
HERE = PROJECT / "tests/unit/root"
ROOT = PROJECT / "images/slurm/root"
NEEDED = {"gcc": "gcc", "make": "make", "ar": "binutils"}
"""Programs of the build, and the Debian packages they come in."""

TARGETS = {
    "conf": "conf",
    "version-name": "version",
    "version-current": "version",
    "version-of-job": "version",
    "version-wanted": "version",
    "proc-cgroup": "group",
    "mountinfo": "group",
    "proc-status": "group",
    "cgroup-procs": "group",
    "group-list": "group",
    "adopted-cgroup": "adopted",
    "adopted-job": "adopted",
    "locale": "sshd",
    "limit": "limit",
    "mig-list": "mig",
    "command": "mpi_frame",
    "mpi-frames": "mpi_frame",
    "mpi-ranks": "mpi_frame",
    "mpi-place": "mpi_net",
    "script": "enter",
    "job-folder": "enter",
    "answer": "enter",
    "driver-mark": "driver",
    "target": "paths",
    "reason": "paths",
    "container-mounts": "container_words",
    "container-words": "container_words",
    "container-size": "container_evict",
    "disks": "disk",
    "usage": "efficiency",
}
"""Each file that the C reads and each name that it accepts, and the program that fuzzes it."""

PLANTED = "planted"
"""The program whose targets are faults on purpose."""


def build(folder: Path) -> Path:
    """Builds all programs into the folder. Raises CalledProcessError, with the compiler's words on stderr."""
    if any(shutil.which(program) is None for program in NEEDED):
        packages.install([*packages.find_missing(), *NEEDED.values(), "libc6-dev"])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "CFLAGS"}
    command = ["make", "--silent", "-C", str(ROOT), f"OUT={folder}", f"TESTS={HERE}", "sanitized"]
    subprocess.run(command, env=environment, check=True, timeout=300 * patience())
    return folder


def run(program: Path, *words: str, hang_s: int = 20, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    """Runs one of them; folders that it makes are beside it."""
    environment = dict(os.environ) | {"TMPDIR": str(program.parent), "HANG_S": str(hang_s)}
    limit_s = timeout_s * patience()
    return subprocess.run([str(program), *words], capture_output=True, text=True, env=environment, check=False, timeout=limit_s)


def fuzz(folder: Path, target: str, seconds: float, seed: int) -> subprocess.CompletedProcess[str]:
    """Searches for an input that breaks a target of TARGETS. What is found is on stderr: the fault, the seed, and the input in hex."""
    return run(folder / TARGETS[target], "fuzz", target, str(seconds), str(seed), timeout_s=seconds + 120)
