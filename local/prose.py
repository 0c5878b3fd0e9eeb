"""Checks the English of documents, docstrings and messages with Vale, for `make lint`: `python -m local.prose [OPTION...] FILE...`.

The rules are in `.vale/styles/Slipway`, and `.vale.ini` sets which of them are errors where. The first use builds Vale.
"""

import os
import sys
from pathlib import Path
from shutil import which

from local import layout, packages
from local.binaries import VALE, Cache
from local.commands import LocalError


def program() -> Path:
    """Vale, built if it has to be; installs g++ for that if it is missing. Raises LocalError."""
    cache = Cache(layout.find_paths(Path(__file__).parents[1]).cache, [VALE])
    built = cache.find()
    if not built:
        if not which("g++"):
            packages.install(["g++"])
        built = cache.build(lambda text: print(text, file=sys.stderr))
    return built["vale"]


def main(arguments: list[str]) -> None:
    """Becomes Vale. Ends with one message where that cannot be built."""
    try:
        vale = program()
    except LocalError as error:
        sys.exit(f"local: {error}")
    os.execv(vale, ["vale", "--no-global", *arguments])  # noqa: S606 (becomes Vale)


if __name__ == "__main__":
    main(sys.argv[1:])
