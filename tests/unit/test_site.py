"""The site of docs/, as mkdocs.yml describes it: its build finds what leads nowhere, and its navigation mirrors the folders."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def build(folder: Path) -> tuple[int, str]:
    """Exit code and output, without colours, of the command that CI runs, in a folder with mkdocs.yml and docs/."""
    zensical = Path(sys.executable).parent / "zensical"
    ended = subprocess.run([zensical, "build", "--strict"], cwd=folder, capture_output=True, text=True, timeout=300)
    return ended.returncode, re.sub(r"\x1b\[[\d;]*m", "", ended.stdout + ended.stderr)


def test_site_is_built_without_a_warning(tmp_path: Path) -> None:
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(DOCS, tmp_path / "docs")
    code, said = build(tmp_path)
    assert code == 0, said
    built = {str(page.relative_to(tmp_path / "site").with_suffix(".md")) for page in (tmp_path / "site").rglob("*.html")}
    assert {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - built == {"README.md"}  # which becomes index.html


@pytest.mark.parametrize(
    "link",
    [
        pytest.param("other.md", id="page"),
        pytest.param("README.md#no-such-heading", id="anchor"),
        pytest.param("../CONTRIBUTING.md", id="outside"),
    ],
)
def test_link_that_leads_nowhere_fails_the_build(link: str, tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text().partition("nav:")[0])
    (tmp_path / "CONTRIBUTING.md").write_text("# How to\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "README.md").write_text(f"# Title\n\nSee [there]({link}).\n")
    code, said = build(tmp_path)
    assert (code, f"[there]({link})" in said, "does not exist" in said) == (1, True, True)


def _pages(nav: list[Any], folder: str = "") -> Iterator[tuple[str, str]]:
    """Each page of the navigation with the folder that its sections name."""
    for each in nav:
        if isinstance(each, str):
            yield folder, each
        else:
            for title, inner in each.items():
                yield from _pages(inner, f"{folder}{title.lower()}/")


def test_navigation_mirrors_the_folders() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    pages = list(_pages(settings["nav"]))
    assert [page for folder, page in pages if folder + Path(page).name != page] == []
    assert sorted(page for _, page in pages) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
