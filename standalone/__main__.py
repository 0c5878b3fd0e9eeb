"""`python -m standalone`: see cli.py.

pulumi-kubernetes takes a second to compile, and installers may leave that to the first import: the bytecode is kept in the user's cache,
whatever PYTHONDONTWRITEBYTECODE says about the source tree.
"""

import os
import sys
from pathlib import Path

if sys.pycache_prefix is None:
    sys.pycache_prefix = str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slipway" / "bytecode")
    sys.dont_write_bytecode = False

from standalone.cli import main

main()
