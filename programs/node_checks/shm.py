"""Health check of leftovers in memory: files in /dev/shm of users who have no process on the node any more. Runs on the node; standard
library only.

Settings: `maxLeftoverMiB`, `leastUser` (the lowest number of a person), and `accounts` (numbers that do not belong to a person). It looks
at the pod's /dev/shm: jobs in the shared root have their own.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

_MIB = 1024 * 1024
_MOST = 100_000
"""Files that one look counts."""


def judge(used: dict[int, int], alive: set[int], settings: dict[str, Any]) -> tuple[str, str]:
    """The result, and what was found, from the bytes of each user, and the users who have a process."""
    alive = alive | {*settings["accounts"]}
    left = {user: size for user, size in used.items() if user >= settings["leastUser"] and user not in alive}
    left_mib = sum(left.values()) // _MIB
    if left_mib > settings["maxLeftoverMiB"]:
        users = ", ".join(str(user) for user in sorted(left))
        return "failed", f"{left_mib} MiB in /dev/shm of users without a job here ({users}), {settings['maxLeftoverMiB']} allowed"
    return "passed", f"{left_mib} MiB in /dev/shm of users without a job here"


def measure(folder: str, most: int = _MOST) -> dict[int, int]:
    """The bytes that files below a folder take, by user; links are not followed. Raises OSError, OverflowError for too many files."""
    used: dict[int, int] = {}
    folders, seen = [folder], 0
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                seen += 1
                if seen > most:
                    raise OverflowError(f"more than {most} files")
                try:
                    facts = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # removed meanwhile
                used[facts.st_uid] = used.get(facts.st_uid, 0) + facts.st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return used


def users_alive(proc: Path) -> set[int]:
    """The users who have a process here."""
    users: set[int] = set()
    for process in proc.glob("[0-9]*"):
        try:
            users.add(process.stat().st_uid)
        except OSError:
            continue  # it has ended
    return users


def main() -> None:
    try:
        used = measure("/dev/shm")  # noqa: S108 - a folder to look at
        result, found = judge(used, users_alive(Path("/proc")), json.loads(sys.argv[1]))
    except (OSError, OverflowError) as error:
        result, found = "unknown", f"files in memory cannot be read: {error}"
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
