"""Golden files: what is rendered now against what was reviewed. `make golden` writes them again; their diff is read like code."""

import difflib
import os
from collections.abc import Iterable
from pathlib import Path

from configs.render.slurm import render, render_slurmdbd
from tests.support.configs.stacks import cluster

GOLDEN = Path(__file__).parents[2] / "golden"


def assert_golden(folder: str, texts: dict[str, str]) -> None:
    """Compares texts with the files of a folder below tests/golden, or writes these where SLIPWAY_GOLDEN=write."""
    place = GOLDEN / folder
    if os.environ.get("SLIPWAY_GOLDEN") == "write":
        place.mkdir(parents=True, exist_ok=True)
        for old in place.iterdir():
            if old.name not in texts:
                old.unlink()
        for name, text in texts.items():
            (place / name).write_text(text)
    found = {file.name: file.read_text() for file in place.iterdir()} if place.is_dir() else {}
    changed = [name for name in sorted(found.keys() | texts.keys()) if found.get(name) != texts.get(name)]
    diffs = ["\n".join(_diff(name, found.get(name, ""), texts.get(name, ""))) for name in changed]
    told = f"{', '.join(changed)} of tests/golden/{folder} changed; if that is meant, run `make golden` and read their diff"
    assert not changed, "\n".join([told, *diffs])


def _diff(name: str, golden: str, now: str) -> Iterable[str]:
    return difflib.unified_diff(golden.splitlines(), now.splitlines(), f"golden {name}", "now", lineterm="", n=2)


def slurm_files(stack: str) -> dict[str, str]:
    """The files of tests/golden/slurm as an example stack has them now."""
    example = cluster(stack)
    return {**render(example), "slurmdbd.conf": render_slurmdbd(example)}
