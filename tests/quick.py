"""`make quick`: the unit and plan tests that a change can break, nearest first, for at most 45 seconds.

What a change can break follows from imports, whose graph grimp has: the library that import-linter is built on. A changed file that is no
Python counts as a change of the modules beside it and above it.
"""

import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

import grimp
import pytest

ROOT = Path(__file__).parents[1]
ROOMS: tuple[str, ...] = (*tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"], "tests")
ALWAYS: tuple[str, ...] = ("tests.unit.test_documents", "tests.unit.harness.test_layout")
SECONDS = 45


def changed_files() -> list[str]:
    """What is not committed, new files too; where all is, the files of the last commit."""
    now = _git("diff", "--name-only", "HEAD") + _git("ls-files", "--others", "--exclude-standard")
    return now or _git("diff", "--name-only", "HEAD~1", "HEAD")


def modules_of(files: Iterable[str], known: Iterable[str]) -> set[str]:
    """The modules that stand for changed files."""
    known = frozenset(known)
    found: set[str] = set()
    for file in map(PurePosixPath, files):
        module = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
        if file.suffix == ".py" and module in known:
            found.add(module)
            continue
        package = next((".".join(folder.parts) for folder in file.parents if ".".join(folder.parts) in known), "")
        found |= {each for each in known if package and each.rpartition(".")[0] == package}
    return found


def plan_tests(graph: grimp.ImportGraph, changed: Iterable[str]) -> list[str]:
    """Test modules that import a changed one, those with the fewest imports in between first."""
    distances: dict[str, int] = dict.fromkeys(ALWAYS, 1)
    for module in changed:
        reached, edge, steps = {module}, {module}, 0
        while edge:
            for each in filter(_is_quick_test, edge):
                distances[each] = min(steps, distances.get(each, steps))
            edge = {above for each in edge for above in graph.find_modules_that_directly_import(each)} - reached
            reached, steps = reached | edge, steps + 1
    return sorted(distances, key=lambda each: (distances[each], each))


def main(options: Sequence[str]) -> int:
    """pytest's exit code."""
    graph = grimp.build_graph(*ROOMS, cache_dir=None)
    files = changed_files()
    tests = plan_tests(graph, modules_of(files, graph.modules))
    print(f"{len(files)} changed files, {len(tests)} modules of tests; those not reached in {SECONDS} s are left out (make unit runs all)")
    paths = [str(ROOT / f"{test.replace('.', '/')}.py") for test in tests]
    return pytest.main(["-q", f"--session-timeout={SECONDS}", *options, *paths])


def _is_quick_test(module: str) -> bool:
    return module.startswith(("tests.unit.", "tests.plan.")) and module.rpartition(".")[2].startswith("test_")


def _git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
