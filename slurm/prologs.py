"""How long the prologs of a cluster may take on a node: by Slurm's settings, or by what Slipway's own scripts hold to. Pure."""

import json
import re
from collections.abc import Mapping

CHECKS = "slipway-checks.sh"
"""Runs health checks beside jobs. A script without a path is sent to the nodes by slurmctld. Source: slurm.conf(5), Prolog."""
GPU_JOBS = "slipway-gpu-jobs.sh"
"""Notes which job has which GPU."""
_UNLIMITED = 65_534
_TIMEOUTS = ("PrologTimeout", "PrologEpilogTimeout")
"""Where there is the first, the second is not used for prologs. Source: slurm.conf(5)."""
_SPEC = re.compile(r"<<'END'\n(.*?)\nEND$", re.DOTALL | re.MULTILINE)


def longest_s(config: Mapping[str, str], checks: str) -> float | None:
    """The most seconds that a job's prologs take on a node. None if nothing limits them, or if no extern step shows that they are over.

    `config` is the output of `scontrol show config` by key, `checks` the text of the script `CHECKS`, if any. Slurm's limit is per script.
    Without one, Slipway's scripts limit themselves; others have no limit.
    """
    if "Contain" not in config.get("PrologFlags", ""):
        return None
    scripts = {value for key, value in config.items() if re.fullmatch(r"Prolog(\[\d+\])?", key) and value != "(null)"}
    limits = [int(match[0]) for key in _TIMEOUTS if (match := re.match(r"\d+", config.get(key, "")))]
    if limits and limits[0] < _UNLIMITED and not any("*" in script for script in scripts):
        return limits[0] * max(1, len(scripts))
    if not scripts <= {CHECKS, GPU_JOBS}:
        return None
    return _checks_s(checks) if CHECKS in scripts else 0


def _checks_s(script: str) -> float | None:
    """All checks of a prolog run at once, each with its own limit."""
    match = _SPEC.search(script)
    try:
        checks = [check for checks in json.loads(match[1])["nodeSets"].values() for check in checks] if match else None
        return max((check["timeoutS"] for check in checks if "prolog" in check["contexts"]), default=0) if checks is not None else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
