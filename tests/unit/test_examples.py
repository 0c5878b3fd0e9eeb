"""What the notebook's job keeps to its user. That its address answers is in tests/soak/test_examples.py, with a real JupyterLab."""

import re
import subprocess
from pathlib import Path

from tests.support.patience import patience

NOTEBOOK = Path(__file__).parents[2] / "examples/jupyter/notebook.sh"
STAND_IN = """#!/bin/bash
tr '\\0' ' ' </proc/$$/cmdline >"$HOME/command"
printf %s "$JUPYTER_TOKEN" >"$HOME/token"
"""


def test_token_of_a_notebook_is_on_no_command_line_and_in_no_public_file(tmp_path: Path) -> None:
    program, said = tmp_path / "envs/jupyter/bin/jupyter", tmp_path / "notebook.out"
    program.parent.mkdir(parents=True)
    program.write_text(STAND_IN)
    program.chmod(0o755)
    said.touch(0o644)
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "SLURM_JOB_ID": "4711"}
    with said.open("w") as output:
        subprocess.run(["bash", NOTEBOOK], env=environment, stdout=output, check=True, timeout=60 * patience())
    [token] = re.findall(r"^Then open: http://localhost:8888/lab\?token=(\w{20,})$", said.read_text(), re.MULTILINE)
    command = (tmp_path / "command").read_text()
    assert "jupyter lab --no-browser" in command
    assert token not in command
    assert (tmp_path / "token").read_text() == token
    assert said.stat().st_mode & 0o777 == 0o600
