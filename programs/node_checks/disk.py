"""Health check of a node's disks: each path is there, can be written to, and has room. Runs on the node; standard library only.

Settings: `paths`, `minFreeMiB`, `minFreePercent`. A path that is not there is unknown, not failed: a bad setting must not drain a cluster.
"""

import json
import os
import sys
from dataclasses import dataclass
from typing import Any

_MIB = 1024 * 1024


@dataclass(frozen=True)
class Filesystem:
    """What is mounted at a path."""

    path: str
    free_mib: int
    """Free for users other than root, in MiB."""
    total_mib: int
    is_read_only: bool


def judge(filesystems: list[Filesystem], settings: dict[str, Any]) -> tuple[str, str]:
    """`passed` or `failed`, and what was found; every fault is named."""
    faults: list[str] = []
    for each in filesystems:
        needed = max(settings["minFreeMiB"], each.total_mib * settings["minFreePercent"] // 100)
        if each.is_read_only:
            faults.append(f"{each.path} is read-only")
        elif each.free_mib < needed:
            faults.append(f"{each.path} has {each.free_mib} MiB free, {needed} wanted")
    return ("failed", "; ".join(faults)) if faults else ("passed", f"{len(filesystems)} paths have room")


def look(path: str) -> Filesystem:
    """Raises OSError where nothing is at the path."""
    facts = os.statvfs(path)
    return Filesystem(
        path,
        facts.f_bavail * facts.f_frsize // _MIB,
        facts.f_blocks * facts.f_frsize // _MIB,
        bool(facts.f_flag & os.ST_RDONLY),
    )


def main() -> None:
    settings = json.loads(sys.argv[1])
    try:
        result, found = judge([look(path) for path in settings["paths"]], settings)
    except OSError as error:
        result, found = "unknown", f"{error.filename}: {error.strerror}"
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
