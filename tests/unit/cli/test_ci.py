"""What CI decides before it runs anything. tests/plan/test_ci.py runs the whole of it."""

import subprocess
from pathlib import Path

import pytest

from cli.ci import lint, package_of, stacks_in, wanted
from cli.comment import MISTAKES


def test_stacks_are_those_of_the_stack_files(tmp_path: Path) -> None:
    for name in ("Pulumi.yaml", "Pulumi.prod.yaml", "Pulumi.dev.yaml", "Pulumi.dev.yaml.bak", "other.yaml"):
        (tmp_path / name).touch()
    assert stacks_in(tmp_path) == ["dev", "prod"]


@pytest.mark.parametrize(
    ("name", "text", "is_same"),
    [
        pytest.param("README.md", "new", True, id="another-file"),
        pytest.param("requirements.txt", "./slipway.whl\nruff\n", False, id="another-package"),
        pytest.param("slipway.whl", "new", False, id="another-wheel-of-the-same-name"),
    ],
)
def test_base_has_packages_of_its_own_where_its_requirements_differ(tmp_path: Path, name: str, text: str, is_same: bool) -> None:
    folders = [tmp_path / "base", tmp_path / "head"]
    for folder in folders:
        folder.mkdir()
        (folder / "requirements.txt").write_text("# The wheel\n./slipway.whl\n")
        (folder / "slipway.whl").write_text("old")
    (folders[1] / name).write_text(text)
    assert (wanted(folders[0]) == wanted(folders[1])) == is_same


@pytest.mark.parametrize("package", ["cli", "standalone"])
def test_commit_older_than_the_command_is_planned_with_its_own_package(tmp_path: Path, package: str) -> None:
    (tmp_path / package).mkdir()
    assert package_of(tmp_path) == package


def test_project_without_a_list_of_requirements_wants_nothing(tmp_path: Path) -> None:
    assert wanted(tmp_path) == {}


def test_every_python_file_that_git_knows_or_would_take_is_parsed(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    files = {
        "__main__.py": "import json\n",
        "pools/extra.py": "def sizes(:\n",
        "null.py": "\0",
        "venv/theirs.py": "(",
        ".gitignore": "venv/\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    [report] = lint(tmp_path)
    assert report.code == MISTAKES
    lines = report.text.splitlines()
    assert "pools/extra.py:1: invalid syntax" in lines
    assert any(line.startswith("null.py") for line in lines)
    assert not any("theirs" in line or "__main__" in line for line in lines)
    for name in ("pools/extra.py", "null.py"):
        (tmp_path / name).unlink()
    assert lint(tmp_path) == []
