"""Slipway for Python programs: `from slipway import SlurmCluster`. The wheel has this file as slipway/__init__.py.

Slipway's own modules are called as in the repository: `components`, `configs`, `slurm`. They lie inside this package, are imported once,
and do not stay among the program's modules under these names, so that a program may have a `configs` of its own.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

_FROM = {
    "ConfigFaults": "configs.faults",
    "SlurmCluster": "components.cluster",
    "SlurmClusterArgs": "configs.cluster_args",
    "parse_cluster": "configs.load",
}
_ROOMS = ("components", "configs", "slurm")


def __getattr__(name: str) -> Any:
    """One of the public names: not before it is asked for, as the plugin, which lies in this package, needs none."""
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    theirs, folder = _taken_out(), str(Path(__file__).parent)
    sys.path.insert(0, folder)
    try:
        globals().update({public: getattr(importlib.import_module(module), public) for public, module in _FROM.items()})
    finally:
        sys.path.remove(folder)
        _taken_out()
        sys.modules.update(theirs)
    return globals()[name]


def _taken_out() -> dict[str, Any]:
    """All modules of these names, which are no longer among the imported ones."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in _ROOMS}
