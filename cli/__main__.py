"""The command `slipway`, of a checkout (see the script beside this file) and of the wheel, where the package lies in the folder `slipway/`.

pulumi-kubernetes takes a second to compile, and installers may leave that to the first import: the bytecode is kept in the user's cache,
whatever PYTHONDONTWRITEBYTECODE says about the source tree.
"""

import gc
import os
import sys
from pathlib import Path

RARELY = (100_000, 50, 100)
"""When the garbage collector looks: with Python's defaults, a sixth of a preview's time went into what was imported and stays."""


def main() -> None:
    """Runs one verb. Slipway's other packages may not hide those of the program, so their folder does not stay on the import path."""
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
