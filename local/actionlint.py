"""Checks GitHub's workflows and their scripts, for `make lint`: `python -m local.actionlint FILE...`. Its first use builds the program."""

import os
import sys
from pathlib import Path

from local import layout
from local.binaries import ACTIONLINT, Cache
from local.commands import LocalError


def main(files: list[str]) -> None:
    """Becomes actionlint. Ends with one message where that cannot be built."""
    cache = Cache(layout.find_paths(Path(__file__).parents[1]).cache, [ACTIONLINT])
    try:
        program = (cache.find() or cache.build(lambda text: print(text, file=sys.stderr)))["actionlint"]
    except LocalError as error:
        sys.exit(f"local: {error}")
    os.execv(program, ["actionlint", "-pyflakes=", *files])  # noqa: S606 (becomes actionlint)


if __name__ == "__main__":
    main(sys.argv[1:])
