"""The soak tests, as far as seconds go: `make test` does not run them, so a change must not break them unseen.

Pyright reads them, so a helper that is renamed is found by lint.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.soak import examples, users

ROOT = Path(__file__).parents[3]


def test_every_soak_test_is_collected_with_its_fixtures() -> None:
    command = [sys.executable, "-m", "pytest", "--setup-plan", "-q", "-p", "no:cacheprovider", "tests/soak"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    written = sum(len(re.findall(r"^def test_", file.read_text(), re.MULTILINE)) for file in (ROOT / "tests/soak").glob("test_*.py"))
    assert done.stdout.count("(fixtures used: ") > written > 30


def test_commands_of_pages_that_soak_tests_follow_are_there() -> None:
    assert users.shown().keys() == users.SHOWN.keys()
    assert [len(examples.training()), len(examples.notebook())] == [2, 3]


@pytest.mark.parametrize(
    ("test", "words", "program"),
    [
        pytest.param("users", "munged runs with another key", "programs/munged/daemon.py", id="key-taken"),
        pytest.param("users", "another munge key than slurmctld had", "programs/slurmctld/run.py", id="key-of-slurmctld"),
        pytest.param("users", "WAITING", "programs/backup/plan.py", id="backup-awaited"),
        pytest.param("shared_root", "no shell runs in version", "programs/start/root-switch.sh", id="no-shell"),
        pytest.param("shared_root", "A name is for one image", "programs/root_fill/plan.py", id="one-image"),
        pytest.param("outside", "no archive of the version has ", "programs/root_packages/plan.py", id="no-archive"),
        pytest.param("live_files", " nodes keep their size until no job can be there", "programs/config_sync/run.py", id="size-kept"),
        pytest.param("live_files", "Slurm's files are live", "engine/slurm_files.py", id="files-live"),
        pytest.param("live_files", "Slurm's files are not in use", "engine/slurm_files.py", id="files-refused"),
        pytest.param(
            "live_files", "that had answered ended over these files, or fell silent: ", "programs/config_sync/run.py", id="silent"
        ),
        pytest.param("node_sets", " refused it (", "controllers/nodeset/observe.py", id="kubelet-refused"),
        pytest.param("refusals", " can take it", "engine/readiness.py", id="no-room"),
    ],
)
def test_words_that_soak_tests_look_for_are_those_of_the_program(test: str, words: str, program: str) -> None:
    assert words in (ROOT / f"tests/soak/test_{test}.py").read_text()
    assert words in (ROOT / program).read_text()
