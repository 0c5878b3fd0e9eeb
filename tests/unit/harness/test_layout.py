"""How tests are named (CONTRIBUTING.md, section Tests)."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
LONGEST_NAME = 69
STILL_LONG = (TESTS / "plan", TESTS / "unit/controllers/nodeset")
FILES = sorted(file for file in TESTS.rglob("test_*.py") if not any(file.is_relative_to(folder) for folder in STILL_LONG))


@pytest.mark.parametrize("folder", sorted({file.parent for file in FILES}), ids=lambda folder: str(folder.relative_to(TESTS)))
def test_every_name_says_once_and_in_under_70_characters_what_holds(folder: Path) -> None:
    too_long: list[str] = []
    repeated: list[str] = []
    for file in folder.glob("test_*.py"):
        names = [node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        tests = [name for name in names if name.startswith("test_")]
        too_long += [f"{file.name}::{name} ({len(name)})" for name in tests if len(name) > LONGEST_NAME]
        repeated += [f"{file.name}::{name}" for name in {*tests} if tests.count(name) > 1]
    assert not too_long, "\n".join(["these names have 70 characters or more:", *too_long])
    assert not repeated, "\n".join(["pytest runs only the last of two tests with one name:", *repeated])
