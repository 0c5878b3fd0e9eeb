"""The commands that a guide shows, as it shows them: those in indented blocks and fences, and Slurm's and kubectl's own in the text."""

import os
import re

from tests.cluster.dev_stack import ROOT, STATE, DevStack

_PROGRAMS = "kubectl|scontrol|sinfo|squeue"
_COMMAND = re.compile(rf"^(?:    )?((?:{_PROGRAMS}) .+)$|`((?:{_PROGRAMS}) [^`]*[^`.])`", re.MULTILINE)


def commands(guide: str) -> list[str]:
    """The commands of a guide, a pipeline over two lines as one. Left out: one with `...`, which stands for something, or a verb alone."""
    text = re.sub(r"\|\n\s+", "| ", (ROOT / guide).read_text())
    shown = [one or other for one, other in _COMMAND.findall(text)]
    return [command for command in shown if "..." not in command and len(command.split()) > 2]


def run(stack: DevStack, command: str) -> str:
    """Runs one: kubectl from the project's folder, Slurm's own beside slurmctld; gives its output."""
    if not command.startswith("kubectl"):
        return stack.slurm(command)
    path = f"{STATE / 'bin'}:{os.environ['PATH']}"
    return stack.run("env", f"PATH={path}", "bash", "-o", "pipefail", "-c", command).stdout
