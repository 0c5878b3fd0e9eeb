"""Golden files: what is rendered now against what was reviewed. `make golden` writes them again; their diff is read like code."""

import os
from pathlib import Path

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
    assert found == texts, "the rendered files changed; if that is meant, run `make golden` and read the diff of tests/golden"
