"""Packs a check's program into one script for the standard input of a Python on the node, where none of our files is.

The modules beside it that it imports (`from .vendor import ...`) come along; all else is the standard library.
"""

import re
from collections.abc import Mapping
from pathlib import Path

_BESIDE = re.compile(r"^from \.(\w+) import ", re.MULTILINE)
_LOADER = """import sys, types
package = types.ModuleType("node_checks")
package.__path__ = []
sys.modules["node_checks"] = package
for name, source in SOURCES.items():
    module = types.ModuleType("node_checks." + name)
    module.__package__ = "node_checks"
    sys.modules[module.__name__] = module
    exec(compile(source, name + ".py", "exec"), module.__dict__)
module.main()
"""


def bundle(program: Path, variables: Mapping[str, str] | None = None) -> str:
    """The script. `variables` are of its environment, which only the job's own user sees, unlike arguments. Raises OSError if a module is
    missing."""
    sources: dict[str, str] = {}
    _gather(program, sources)
    before = f"import os\nos.environ.update({dict(variables)!r})\n" if variables else ""
    return before + (sources[program.stem] if len(sources) == 1 else f"SOURCES = {sources!r}\n{_LOADER}")


def _gather(module: Path, into: dict[str, str]) -> None:
    """Adds a module's source after those of the modules that it imports."""
    source = module.read_text(encoding="utf-8")
    for name in _BESIDE.findall(source):
        if name not in into:
            _gather(module.with_name(f"{name}.py"), into)
    into[module.stem] = source
