"""The parsers and file operations of the shared root's C under ASan and UBSan: tables, then random inputs. `make soak` searches longer."""

import os
import re
import time
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support.patience import patience
from tests.support.root.programs import HERE, PLANTED, ROOT, TARGETS, build, fuzz, run

PROGRAMS = sorted({each.name.removesuffix("_test.c") for each in HERE.glob("*_test.c")} - {PLANTED})
FOUND = {
    "overflow": "heap-buffer-overflow",
    "undefined": "signed integer overflow",
    "descriptor": "a descriptor is not closed",
    "memory": "memory is not freed",
    "hang": "takes too long",
    "crash": "ABRT",
    "untrue": "does not hold: !is_met(text)",
}
"""The planted faults, and what the search says of each."""
MOMENT_S = 0.3


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built programs."""
    return build(tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="module")
def seed() -> int:
    """Another one each time, but in CI, where a failure must be of the change."""
    return 1 if os.environ.get("CI") else int(time.time())


@pytest.mark.parametrize("program", PROGRAMS)
def test_checks_of_program_hold(programs: Path, program: str) -> None:
    done = run(programs / program, "check")
    assert (done.returncode, done.stderr) == (0, "")


def test_every_target_is_fuzzed(programs: Path) -> None:
    listed = {target: program for program in PROGRAMS for target in run(programs / program, "list").stdout.split()}
    assert listed == TARGETS


@pytest.mark.parametrize("target", TARGETS)
def test_no_input_breaks_target_in_a_moment(programs: Path, target: str, seed: int) -> None:
    done = fuzz(programs, target, MOMENT_S * patience(), seed)
    assert (done.returncode, done.stderr) == (0, "")
    runs = re.fullmatch(rf"target {target}, seed {seed}: (\d+) runs, \d+ inputs kept\n", done.stdout)
    assert runs is not None
    assert int(runs[1]) > 10


@pytest.mark.parametrize(("fault", "words"), FOUND.items())
def test_planted_fault_is_found_and_comes_back(programs: Path, fault: str, words: str) -> None:
    """The input that the search prints breaks the target again."""
    done = run(programs / PLANTED, "fuzz", fault, f"{30 * patience():.0f}", "7", hang_s=1)
    printed = re.search(rf"target {fault}, seed 7, run \d+, input in hex: ((?:[0-9a-f]{{2}})+)\n", done.stderr)
    assert done.returncode != 0
    assert words in done.stderr
    assert printed is not None
    again = run(programs / PLANTED, "replay", fault, printed[1], hang_s=1)
    assert again.returncode != 0
    assert words in again.stderr


def test_check_that_does_not_hold_ends_the_program(programs: Path) -> None:
    assert run(programs / PLANTED, "check").returncode != 0


def includes(name: str) -> set[str]:
    """The files whose headers a file of the root, or its own header, includes."""
    text = "".join(each.read_text() for each in ROOT.glob(f"{name}.[ch]"))
    return set(re.findall(r'^#include "(\w+)\.h"', text, re.MULTILINE)) - {name}


def test_no_two_files_of_the_root_need_each_other() -> None:
    needs = {name: includes(name) for name in {each.stem for each in ROOT.glob("*.[ch]")}}
    assert {"mount", "reason"} < needs["log"]
    TopologicalSorter(needs).prepare()
