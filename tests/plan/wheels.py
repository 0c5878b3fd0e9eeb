"""The wheel of this checkout, and where an environment has what was installed from one."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.project import ROOT


def built_wheel(folder: Path, **variables: str) -> Path:
    """A wheel of this checkout, built into the folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, check=True)
    [built] = folder.glob("*.whl")
    return built


def packages(environment: Path) -> Path:
    """Where a virtual environment has its packages."""
    [found] = environment.glob("lib/python*/site-packages")
    return found
