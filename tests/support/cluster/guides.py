"""The commands that a guide shows, as it shows them: those in indented blocks, and the programs' own in the text.

`commands` and `run` take each by itself, `section` and `follow` a section of a page from its first command to its last.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.cluster.dev_stack import ROOT, STATE, DevStack

_OF_USERS = ("sbatch", "srun")
_OF_THE_PROJECT = ("kubectl", "python", "slipway")
_PROGRAMS = "|".join((*_OF_USERS, *_OF_THE_PROJECT, "sacct", "sacctmgr", "scontrol", "sinfo", "squeue"))
_COMMAND = re.compile(rf"^(?:    )?((?:{_PROGRAMS}) .+)$|`((?:{_PROGRAMS}) [^`]*[^`.])`", re.MULTILINE)


def commands(guide: str) -> list[str]:
    """The commands of a guide, a pipeline over two lines as one. Left out: one with `...`, which stands for something, one with
    $SLURM_JOB_ID, which is for inside a job, or a verb alone, as `kubectl edit` but not `sbatch job.sh`."""
    text = re.sub(r"\|\n\s+", "| ", (ROOT / guide).read_text())
    shown = [one or other for one, other in _COMMAND.findall(text)]
    shown = [command for command in shown if "..." not in command and "$SLURM_JOB_ID" not in command]
    return [command for command in shown if len(command.split()) > (1 if command.startswith(_OF_USERS) else 2)]


def run(stack: DevStack, command: str) -> str:
    """Runs one where a reader would: kubectl and the stack's own verbs in the project's folder, jobs in a login session, with a `job.sh`
    and a `program` in the home, and an administrator's beside slurmctld. Gives its output."""
    program = command.split()[0]
    if program in _OF_USERS:
        return stack.ssh(f"printf '#!/bin/bash\\nhostname\\n' | tee job.sh >program; chmod +x program; {command}")
    if program not in _OF_THE_PROJECT:
        return stack.slurm(command)
    path = f"{STATE / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return stack.run("env", f"PATH={path}", "bash", "-o", "pipefail", "-c", command, timeout_s=400).stdout


_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"(?:^    .*\n)+(?:(?:^\n)+(?:^    .*\n)+)*", re.MULTILINE)


def headings(guide: str) -> list[str]:
    """The sections of a page that have blocks of commands."""
    return [heading for heading in _HEADING.findall((ROOT / guide).read_text()) if section(guide, heading)]


def section(guide: str, heading: str) -> list[list[str]]:
    """The indented blocks below a heading of a page, each as its commands: without comments, and a line that ends in a backslash with the
    next. Raises ValueError where the page has no such heading."""
    text = (ROOT / guide).read_text()
    parts = _HEADING.split(text)
    blocks = _BLOCK.findall(parts[parts.index(heading) + 1])
    whole = [re.sub(r"\\\n\s+", "", block) for block in blocks]
    lines = [[re.sub(r"(^|\s\s+)# .*", "", line).strip() for line in block.splitlines()] for block in whole]
    return [[line for line in block if line] for block in lines]


def follow(stack: DevStack, block: list[str], real: Mapping[str, str], folder: str = "~", state: str = "COMPLETED") -> dict[str, str]:
    """Types a block as a reader does, in a login session: one command after the other, each once the job of the one before is in `state`.
    Gives what each said. `real` has the words that stand for something, such as NUMBER, and what they stand for."""
    said: dict[str, str] = {}
    for command in block:
        typed = command
        for word, meant in real.items():
            typed = typed.replace(word, meant)
        if typed.startswith("cd "):
            folder = typed.removeprefix("cd ")
            continue
        said[command] = stack.ssh(f"cd {folder} && {typed}", timeout_s=400)
        if command.startswith(("sbatch", "./submit")):
            stack.wait_for_job(number(said[command]), state)
    return said


def number(said: str) -> int:
    """The number of the job that was submitted last."""
    return int(re.findall(r"\d+", said)[-1])
