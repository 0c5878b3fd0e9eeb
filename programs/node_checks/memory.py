"""Health check of a node's memory: its size, what an idle node has free, and counted errors (EDAC). Runs on the node; standard library
only.

Settings: `configuredMiB` (what Slurm hands out), `minAvailablePercent` of it, `maxUncorrectableErrors` and `maxCorrectableErrors` since
boot.
"""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Memory:
    """The machine's memory, in MiB, and the error counts of all memory controllers; None where the kernel does not count."""

    total_mib: int
    available_mib: int
    uncorrectable: int | None
    correctable: int | None


def judge(memory: Memory, settings: dict[str, Any]) -> tuple[str, str]:
    """`passed` or `failed`, and what was found; every fault is named."""
    faults: list[str] = []
    configured = settings["configuredMiB"]
    needed = configured * settings["minAvailablePercent"] // 100
    if memory.total_mib < configured:
        faults.append(f"{memory.total_mib} MiB of memory, {configured} configured")
    elif memory.available_mib < needed:
        faults.append(f"{memory.available_mib} MiB of memory available on an idle node, {needed} wanted")
    if (memory.uncorrectable or 0) > settings["maxUncorrectableErrors"]:
        faults.append(f"{memory.uncorrectable} uncorrectable memory errors")
    if (memory.correctable or 0) > settings["maxCorrectableErrors"]:
        faults.append(f"{memory.correctable} correctable memory errors, {settings['maxCorrectableErrors']} allowed")
    counted = "no errors counted here" if memory.uncorrectable is None else f"{memory.correctable} correctable errors"
    return ("failed", "; ".join(faults)) if faults else ("passed", f"{memory.available_mib} of {memory.total_mib} MiB available, {counted}")


def read_memory(meminfo: str, edac: Path) -> Memory:
    """From the text of /proc/meminfo and the folder of EDAC's memory controllers. Raises KeyError or OSError."""
    kib = {match[1]: int(match[2]) for match in re.finditer(r"^(\w+):\s+(\d+) kB$", meminfo, re.MULTILINE)}
    return Memory(kib["MemTotal"] // 1024, kib["MemAvailable"] // 1024, _count(edac, "ue_count"), _count(edac, "ce_count"))


def _count(edac: Path, name: str) -> int | None:
    counters = sorted(edac.glob(f"mc[0-9]*/{name}"))
    return sum(int(counter.read_text()) for counter in counters) if counters else None


def main() -> None:
    try:
        memory = read_memory(Path("/proc/meminfo").read_text(), Path("/sys/devices/system/edac/mc"))
        result, found = judge(memory, json.loads(sys.argv[1]))
    except (KeyError, OSError, ValueError) as error:
        result, found = "unknown", f"memory could not be read: {error!r}"
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
