"""`make up`: the local cluster, the images, the stack, the first job; each step is a verb that also works alone.

Runs the other verbs as a user would (this package imports none of them). With a context of the user's own, the first two steps are
left out: that cluster pulls its images itself.
"""

import subprocess
import sys
from pathlib import Path

from rich.console import Console

from local import first_job

ROOT = Path(__file__).parents[1]
IMAGES = ("slurm", "controllers")
"""What a stack's pods run: every image that `python -m images` builds."""


class StepFailedError(Exception):
    """A step of the quickstart failed; it has already said why. Carries its exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit {code}")
        self.code = code


def step(*module_and_arguments: str) -> None:
    """Runs `python -m ...` with its output shown as it comes. Raises StepFailedError with its exit code."""
    done = subprocess.run([sys.executable, "-m", *module_and_arguments], cwd=ROOT, check=False)
    if done.returncode:
        raise StepFailedError(done.returncode)


def prepare() -> None:
    """A local cluster with the images on every node. Does nothing that is done already."""
    for image in IMAGES:
        step("images", "build", image)
    step("local", "up")
    for image in IMAGES:
        command = [sys.executable, "-m", "images", "archive", image]
        archive = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
        step("local", "load-image", archive)


def quickstart(console: Console, stack: str, kubectl: list[str], context: str | None, namespace: str, user: str, key: Path) -> None:
    """Everything from a bare machine to a finished job, then how to log in. Raises StepFailedError or first_job.FirstJobError."""
    if context is None:
        prepare()
    step("standalone", "up", "--stack", stack, *(["--context", context] if context else []))
    login = first_job.find_login(kubectl, namespace, user, key)
    with console.status("first jobs, over ssh"):
        output = first_job.run_jobs(login)
    console.print(output, highlight=False, markup=False, soft_wrap=True)
    console.print("[green]✓[/] Slurm is ready. Log in:\n")
    console.print("  " + " ".join(login.command()) + "\n", highlight=False, soft_wrap=True)
