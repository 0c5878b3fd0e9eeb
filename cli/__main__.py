"""The command `slipway` of a checkout (see the script beside this file) and of the wheel.

pulumi-kubernetes takes a second to compile, so its bytecode is kept in the user's cache, even if PYTHONDONTWRITEBYTECODE is set.
"""

import gc
import os
import sys
from pathlib import Path

RARELY = (100_000, 50, 100)
"""Thresholds of the garbage collector: with Python's defaults, a sixth of a preview's time went into imported objects, which all stay."""


def main() -> None:
    """Runs one command. Slipway's packages must not hide those of the user's program, so their folder leaves the import path again."""
    gc.set_threshold(*RARELY)
    if sys.pycache_prefix is None:
        sys.pycache_prefix = str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway" / "bytecode")
    sys.dont_write_bytecode = False
    folder = str(Path(__file__).resolve().parents[1])
    sys.path.insert(0, folder)
    try:
        from cli.main import main as run_verb
    finally:
        sys.path.remove(folder)
    run_verb()


if __name__ == "__main__":
    main()
