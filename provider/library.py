"""Slipway for Python programs: `from slipway import SlurmCluster`. The wheel has this file as slipway/__init__.py.

Slipway's own modules have the names of the repository: `components`, `configs`, `controllers`, `names`, `programs`, `slurm`. They lie in
this package and are imported once. Then they leave `sys.modules`, so that a program may have a `configs` of its own.
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
_ROOMS = ("components", "configs", "controllers", "names", "programs", "slurm")


def __getattr__(name: str) -> Any:
    """A public name, imported at its first use: the plugin, which lies in this package too, needs none of them."""
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules_of_program, folder = _remove_modules(), str(Path(__file__).parent)
    sys.path.insert(0, folder)
    try:
        globals().update({public: getattr(importlib.import_module(module), public) for public, module in _FROM.items()})
    finally:
        sys.path.remove(folder)
        _remove_modules()
        sys.modules.update(modules_of_program)
    return globals()[name]


def _remove_modules() -> dict[str, Any]:
    """Removes all modules below these names from `sys.modules`; returns them by name."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in _ROOMS}
