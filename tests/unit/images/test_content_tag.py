"""An image's tag follows its content and nothing else."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.images import content_tag, default_reference, folders, reference


def fill(folder: Path, files: dict[str, str]) -> Path:
    """Writes files, making their folders."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


FILES = {"Dockerfile": "FROM x\n", "etc/conf": "a=1\n", "b": ""}


def test_tag_is_twelve_hex_digits_and_part_of_the_reference(tmp_path: Path) -> None:
    tag = content_tag(fill(tmp_path / "images" / "slurm", FILES))
    assert len(tag) == 12
    assert int(tag, 16) >= 0
    assert reference("slurm", tmp_path) == f"localhost/slipway/slurm:{tag}"


def test_further_sources_count_and_are_not_taken_for_the_images_own_files(tmp_path: Path) -> None:
    own, source = fill(tmp_path / "images" / "controllers", FILES), fill(tmp_path / "controllers", {"run.py": "1\n"})
    words = fill(tmp_path / "slurm", {"states.py": "1\n"})
    names = fill(tmp_path / "names", {"ports.py": "1\n"})
    assert folders("controllers", tmp_path) == [own, source, names, words]
    tag = content_tag(own, source, names, words)
    assert tag != content_tag(own)
    assert tag == reference("controllers", tmp_path).rpartition(":")[2]
    fill(tmp_path / "controllers", {"run.py": "2\n"})
    assert content_tag(own, source, names, words) != tag
    inside = fill(tmp_path / "inside", {**FILES, "controllers/run.py": "1\n"})
    assert content_tag(inside) not in (tag, content_tag(own))


def test_default_is_the_local_image_unless_a_release_names_its_own(tmp_path: Path) -> None:
    fill(tmp_path / "images" / "slurm", FILES)
    assert default_reference("slurm", tmp_path) == reference("slurm", tmp_path)
    published = f"registry.example/slipway/slurm:0123@sha256:{'0' * 64}"
    (tmp_path / "images.json").write_text(json.dumps({"slurm": published}))
    assert default_reference("slurm", tmp_path) == published


def test_order_of_writing_times_and_modes_do_not_count(tmp_path: Path) -> None:
    first = fill(tmp_path / "first", FILES)
    second = fill(tmp_path / "second", dict(reversed(FILES.items())))
    (second / "Dockerfile").chmod(0o755)
    os.utime(second / "b", (1, 1))
    assert content_tag(first) == content_tag(second)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("__pycache__/x.cpython-311.pyc", id="bytecode"),
        pytest.param("module.pyc", id="loose-bytecode"),
        pytest.param(".cache/x", id="hidden-folder"),
        pytest.param(".Dockerfile.swp", id="editor-swap"),
        pytest.param("Dockerfile~", id="editor-backup"),
    ],
)
def test_caches_and_leftovers_do_not_count(tmp_path: Path, name: str) -> None:
    before = content_tag(fill(tmp_path, FILES))
    assert content_tag(fill(tmp_path, {name: "x"})) == before


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({**FILES, "b": "x"}, id="content"),
        pytest.param({"Dockerfile": "FROM x\n", "etc/conf": "a=1\n", "c": ""}, id="name"),
        pytest.param({**FILES, "more": ""}, id="one-more-empty-file"),
        pytest.param({"Dockerfile": "FROM x\n", "etc/conf": "a=1\n"}, id="one-less"),
    ],
)
def test_any_change_of_content_counts(tmp_path: Path, change: dict[str, str]) -> None:
    assert content_tag(fill(tmp_path / "old", FILES)) != content_tag(fill(tmp_path / "new", change))


@given(st.dictionaries(st.text("abc", min_size=1, max_size=4), st.text("abc\n", max_size=6), min_size=1, max_size=4))
def test_text_cannot_move_between_name_and_content(tmp_path_factory: pytest.TempPathFactory, files: dict[str, str]) -> None:
    name, content = next(iter(files.items()))
    moved = {**{key: value for key, value in files.items() if key != name}, name + "x": content[:-1]}
    old, new = (fill(tmp_path_factory.mktemp("tag"), each) for each in (files, moved))
    assert content_tag(old) != content_tag(new)


def test_folder_without_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no files to make an image from"):
        content_tag(tmp_path)
