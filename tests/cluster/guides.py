"""The commands that a guide shows, as it shows them: those in indented blocks, and the programs' own in the text."""

import os
import re
import sys
from pathlib import Path

from tests.cluster.dev_stack import ROOT, STATE, DevStack

_OF_USERS = ("sbatch", "srun")
_OF_THE_PROJECT = ("kubectl", "python")
_PROGRAMS = "|".join((*_OF_USERS, *_OF_THE_PROJECT, "sacct", "sacctmgr", "scontrol", "sinfo", "squeue"))
_COMMAND = re.compile(rf"^(?:    )?((?:{_PROGRAMS}) .+)$|`((?:{_PROGRAMS}) [^`]*[^`.])`", re.MULTILINE)


def commands(guide: str) -> list[str]:
    """The commands of a guide, a pipeline over two lines as one. Left out: one with `...`, which stands for something, or a verb alone, as
    `kubectl edit` but not `sbatch job.sh`."""
    text = re.sub(r"\|\n\s+", "| ", (ROOT / guide).read_text())
    shown = [one or other for one, other in _COMMAND.findall(text)]
    return [command for command in shown if "..." not in command and len(command.split()) > (1 if command.startswith(_OF_USERS) else 2)]


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
