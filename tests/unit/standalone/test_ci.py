"""What CI decides before it runs anything. tests/plan/test_ci.py runs the whole of it."""

from pathlib import Path

import pytest

from standalone.ci import stacks_in, wanted


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


def test_project_without_a_list_of_requirements_wants_nothing(tmp_path: Path) -> None:
    assert wanted(tmp_path) == {}
