"""How tests are named, and what they import (CONTRIBUTING.md, section Tests)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
LONGEST_NAME = 69
SHARED = ("support", "bench", "quick.py", "release.py")
"""What any test may import: the helpers of several folders, and the programs of this folder."""
FOLDERS = sorted({file.parent for file in TESTS.rglob("*.py")})


def names_of(file: Path) -> list[str]:
    nodes = ast.walk(ast.parse(file.read_text()))
    names = [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [name for name in names if name.startswith("test_")]


def imported_files(file: Path) -> Iterator[Path]:
    """Files and folders of tests/ that a file imports, or imports names of."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            modules = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [f"{node.module}.{name.name}" for name in node.names]
        else:
            continue
        for module in modules:
            if module.startswith("tests."):
                path = TESTS.parent.joinpath(*module.split("."))
                yield next(each for each in (path.with_suffix(".py"), path.parent.with_suffix(".py"), path) if each.exists())


def may_import(file: Path, imported: Path) -> bool:
    if any(imported.is_relative_to(TESTS / name) for name in SHARED):
        return not file.is_relative_to(TESTS / "support") or imported.is_relative_to(TESTS / "support")
    return imported.parent == file.parent and not imported.name.startswith(("test_", "conftest"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(TESTS)))
def test_every_name_says_once_and_in_under_70_characters_what_holds(folder: Path) -> None:
    tests = {file.name: names_of(file) for file in folder.glob("test_*.py")}
    too_long = [f"{file}::{name} ({len(name)})" for file, names in tests.items() for name in names if len(name) > LONGEST_NAME]
    assert not too_long, "\n".join(["these names have 70 characters or more:", *too_long])
    repeated = [f"{file}::{name}" for file, names in tests.items() for name in {*names} if names.count(name) > 1]
    assert not repeated, "\n".join(["pytest runs only the last of two tests with one name:", *repeated])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(TESTS)))
def test_helpers_come_from_tests_support_or_from_the_tests_own_folder(folder: Path) -> None:
    wrong = [
        f"{file.relative_to(TESTS)} imports {imported.relative_to(TESTS)}"
        for file in folder.glob("*.py")
        for imported in imported_files(file)
        if not may_import(file, imported)
    ]
    assert not wrong, "\n".join(["move what is shared to tests/support:", *wrong])
