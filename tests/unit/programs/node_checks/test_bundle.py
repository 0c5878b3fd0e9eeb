"""A check's program as one script: alone, with modules beside it, and from a Python that has no file of ours."""

import subprocess
import sys
from pathlib import Path

import pytest

from programs.node_checks.bundle import bundle
from tests.unit.programs.node_checks.vendors import CHECKS


def test_program_without_modules_is_sent_as_it_is() -> None:
    assert bundle(CHECKS / "disk.py") == (CHECKS / "disk.py").read_text()


def test_modules_come_before_those_that_import_them(tmp_path: Path) -> None:
    (tmp_path / "low.py").write_text("from dataclasses import dataclass\n\n@dataclass\nclass Low:\n    text: 'str' = \"it's \\\\ \"\n")
    (tmp_path / "middle.py").write_text("from .low import Low\n\nMIDDLE = Low()\n")
    (tmp_path / "top.py").write_text(
        "import sys\nfrom .middle import MIDDLE\nfrom .low import Low\n\n"
        "def main():\n    print(MIDDLE == Low(), MIDDLE.text + sys.argv[1])\n\nif __name__ == '__main__':\n    main()\n"
    )
    done = subprocess.run([sys.executable, "-I", "-", "x"], input=bundle(tmp_path / "top.py"), capture_output=True, text=True, check=True)
    assert done.stdout == "True it's \\ x\n"


@pytest.mark.parametrize("program", ["nccl", "dcgm", "burn", "ib", "command", "mpi", "stream", "storage", "gpu", "network"])
def test_program_of_every_check_loads_without_our_files(program: str) -> None:
    """Without its settings it fails only then."""
    done = subprocess.run([sys.executable, "-I", "-"], input=bundle(CHECKS / f"{program}.py"), capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "IndexError: list index out of range"
