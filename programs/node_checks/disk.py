"""Health check of a node's disks: each path exists, can be written to, and has room. Runs on the node; standard library only.

Settings: `paths`, `minFreeMiB`, `minFreePercent`. A missing path is unknown, not failed: a wrong setting must not drain a cluster.
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
    for filesystem in filesystems:
        needed = max(settings["minFreeMiB"], filesystem.total_mib * settings["minFreePercent"] // 100)
        if filesystem.is_read_only:
            faults.append(f"{filesystem.path} is read-only")
        elif filesystem.free_mib < needed:
            faults.append(f"{filesystem.path} has {filesystem.free_mib} MiB free, {needed} wanted")
    return ("failed", "; ".join(faults)) if faults else ("passed", f"{len(filesystems)} paths have room")


def look(path: str) -> Filesystem:
    """Raises OSError if nothing is at the path."""
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
