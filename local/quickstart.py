"""`make up`: the images, the local cluster, the stack, the checks. Each step runs a verb that also works alone; none is imported.

KUBECONFIG counts only for a cluster of the user's own, which is named by its context and pulls its images from a registry.
"""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from rich.console import Console
from rich.markup import escape

from local import layout
from local.commands import LocalError
from local.layout import Paths
from local.settings import send_settings

ROOT = Path(__file__).parents[1]
IMAGES = ("slurm", "root", "controllers", "observability")
"""What a stack's pods run: every image that `python -m images` builds."""
ROOT_IMAGE = "root"
"""The one that users work in: it needs what the machine needs."""
SETTINGS = ("images", "settings", "--no-proxy", f"localhost,127.0.0.1,.{layout.CLUSTER_DOMAIN},.svc,{layout.WHOLE_RANGE}")
"""Prints what the root image needs of this machine. Addresses of the cluster bypass the proxy."""


class StepFailedError(Exception):
    """A step of the quickstart failed and has printed why. Carries the step's name and exit code."""

    def __init__(self, command: Sequence[str], code: int) -> None:
        ended = f"gave exit code {code}" if code > 0 else f"was ended by signal {-code}"
        super().__init__(f"stopped: `{shlex.join(command)}` {ended}. Its output is above. Run the same command to resume.")
        self.code = code if code > 0 else 128 - code


@dataclass(frozen=True)
class Target:
    """The one cluster that every step is for."""

    kubectl: str
    context: str
    kubeconfig: Path | None = None
    """None: KUBECONFIG, or kubectl's default."""

    @property
    def where(self) -> list[str]:
        """The options that name the cluster, which kubectl and `slipway` have in common."""
        return [*(["--kubeconfig", str(self.kubeconfig)] if self.kubeconfig else []), "--context", self.context]

    @property
    def command(self) -> list[str]:
        """kubectl for this cluster and no other."""
        return [self.kubectl, *self.where]


def local_target(paths: Paths) -> Target:
    """The cluster that `python -m local up` makes, by its own kubeconfig."""
    return Target(str(paths.bin / "kubectl"), layout.CONTEXT, paths.kubeconfig)


def own_target(context: str, paths: Paths) -> Target:
    """A cluster of the user's own. Raises LocalError when there is no kubectl."""
    candidates = (os.environ.get("KUBECTL"), str(paths.bin / "kubectl"), "kubectl")
    kubectl = next((program for candidate in candidates if candidate and (program := shutil.which(candidate))), None)
    if kubectl is None:
        raise LocalError("There is no kubectl: put it on PATH, or name it in KUBECTL.")
    return Target(kubectl, context)


def step(*module_and_arguments: str) -> None:
    """Runs `python -m ...` with its output shown as it comes. Raises StepFailedError."""
    _run(module_and_arguments, None)


def answer(*module_and_arguments: str) -> str:
    """As `step`; gives what the program printed."""
    return _run(module_and_arguments, subprocess.PIPE)


def _run(arguments: Sequence[str], stdout: int | None) -> str:
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, check=False, stdout=stdout, text=True)
    if done.returncode:
        command = ["slipway", *arguments[1:]] if arguments[0] == "cli" else ["python", "-m", *arguments]
        raise StepFailedError(command, done.returncode)
    return done.stdout or ""


@contextlib.contextmanager
def _beside(*module_and_arguments: str) -> Generator[None]:
    """Runs `python -m ...` in parallel and waits for its end. A later step reports its failures."""
    command = [sys.executable, "-m", *module_and_arguments]
    child = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
        child.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        child.wait()
        raise


def prepare() -> None:
    """A local cluster with the images on every node. Does nothing that is done already."""
    with _beside("local", "programs"):  # they compute for minutes on a bare machine, and images mostly wait for packages
        step("images", "build", *IMAGES)
    step("local", "up")
    archives = dict(zip(IMAGES, _archives(), strict=True))
    _load_root(archives.pop(ROOT_IMAGE))
    step("local", "load-image", *archives.values())


def _load_root(archive: str) -> None:
    """With this machine's settings, which package installs need. A proxy's password must not show in `ps`."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(answer(*SETTINGS))
        file.flush()
        step("local", "load-image", archive, "--files", file.name)


def _archives() -> list[str]:
    """The images of the current files, which may have changed while the cluster came up."""
    try:
        return answer("images", "archive", *IMAGES).splitlines()
    except StepFailedError:
        step("images", "build", *IMAGES)
        return answer("images", "archive", *IMAGES).splitlines()


def push(registry: str, plain_http: bool) -> list[str]:
    """Brings the images to a registry; gives the options of `slipway` that take them from there."""
    pushed = yaml.safe_load(answer("images", "push", registry, *(["--plain-http"] if plain_http else [])))
    return ["--config", f"cluster.images={json.dumps(pushed['images'])}"]


def quickstart(console: Console, stack: str, target: Target, more: list[str], key: Path) -> None:
    """Deploys the stack, runs smoke jobs on it and prints how to log in. Raises StepFailedError.

    `more` are further options of `slipway up`.
    """
    step("cli", "up", "--stack", stack, *target.where, *more)
    who = ("--stack", stack, *target.where, "--key", str(key))
    if target.kubeconfig is not None:
        ssh = [sys.executable, "-m", "cli", "ssh", *who, "--"]
        is_done, message = send_settings(ssh, json.loads(answer(*SETTINGS)))
        if message:
            console.print(f" {'[green]✓[/]' if is_done else '[yellow]![/]'} {escape(message)}", highlight=False, soft_wrap=True)
    step("cli", "check", *who)
    console.print("[green]✓[/] Slurm is ready. Log in:\n")
    for line in answer("cli", "ssh", *who, "--print").splitlines():
        console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
    console.print()
