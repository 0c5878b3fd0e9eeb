"""Every command that a guide shows is run as it stands: kubectl from the project's folder, Slurm's own beside slurmctld."""

import os
import re

import pytest

from tests.cluster.dev_stack import ROOT, STATE, DevStack

_COMMAND = re.compile(r"^    ((?:kubectl|scontrol|sinfo|squeue) .+)$|`((?:kubectl|scontrol|sinfo|squeue) [^`]*[^`.])`", re.MULTILINE)
GUIDES = ("docs/node-sets.md",)


@pytest.mark.parametrize("guide", GUIDES)
def test_commands_of_a_guide_work_as_they_stand(restored: DevStack, guide: str) -> None:
    shown = [one or other for one, other in _COMMAND.findall((ROOT / guide).read_text())]
    # A name that stands for something (`...`) is no command, and a verb alone is its name.
    commands = [command for command in shown if "..." not in command and len(command.split()) > 2]
    assert commands
    path = f"{STATE / 'bin'}:{os.environ['PATH']}"
    for command in commands:
        if command.startswith("kubectl"):
            restored.run("env", f"PATH={path}", "bash", "-c", command)
        else:
            restored.slurm(command)
