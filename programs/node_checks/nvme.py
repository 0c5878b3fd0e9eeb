"""Health check of NVMe disks and of arrays of disks (md): every controller is live, and no array lacks a disk. Runs on the node; standard
library only.

Settings: `minDisks` (0: as many as are there), `maxDegraded`. The check is skipped if nothing is there and nothing was asked for.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

_PASSING = ("new", "connecting", "resetting", "deleting", "deleting (no IO)")
"""States that a controller leaves again by itself: they tell nothing. Source: the kernel's drivers/nvme/host/sysfs.c."""
_ARRAY = re.compile(r"^(md\S+) : (\w+).*\n.*?\[(\d+)/(\d+)\] \[([U_]+)\]", re.MULTILINE)


def judge(states: dict[str, str], arrays: dict[str, tuple[int, int]], settings: dict[str, Any]) -> tuple[str, str]:
    """The result, and what was found, from the states of the controllers, and by array the disks that it should have and has."""
    faults = [f"{name} is {state}" for name, state in states.items() if state != "live" and state not in _PASSING]
    if len(states) < settings["minDisks"]:
        faults.append(f"{len(states)} NVMe disks, {settings['minDisks']} wanted")
    degraded = [f"{name} has {has} of {wanted} disks" for name, (wanted, has) in arrays.items() if has < wanted]
    if len(degraded) > settings["maxDegraded"]:
        faults += degraded
    if faults:
        return "failed", "; ".join(faults)
    if not states and not arrays:
        return "skipped", "no NVMe disk and no array is here"
    passing = [f"{name} is {state}" for name, state in states.items() if state != "live"]
    if passing:
        return "unknown", "; ".join(passing)
    return "passed", f"{len(states)} NVMe disks are live, {len(arrays)} arrays are whole"


def read_states(folder: Path) -> dict[str, str]:
    """The state of each controller, from sysfs. Raises OSError."""
    return {controller.name: (controller / "state").read_text().strip() for controller in sorted(folder.glob("nvme*"))}


def read_arrays(mdstat: str) -> dict[str, tuple[int, int]]:
    """By array with redundancy the disks that it should have, and those that work, from the text of /proc/mdstat."""
    return {match[1]: (int(match[3]), match[5].count("U")) for match in _ARRAY.finditer(mdstat)}


def main() -> None:
    mdstat = Path("/proc/mdstat")
    try:
        arrays = read_arrays(mdstat.read_text()) if mdstat.exists() else {}
        result, found = judge(read_states(Path("/sys/class/nvme")), arrays, json.loads(sys.argv[1]))
    except OSError as error:
        result, found = "unknown", f"the disks cannot be read: {error}"
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
