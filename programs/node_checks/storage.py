"""Health check of storage: writes a file with fsync and reads it again, in each folder. Runs on the node; standard library only.

Settings: `paths`, `sizeMiB`, `minWriteMBs`, `minReadMBs`, `maxFsyncMs`. Before the file is read, the kernel is asked to drop it from the
page cache. A folder that is missing, full or read-only is unknown: the checks `mounts` and `disk` judge that. Data that come back
changed are a failure, whatever the limits.
"""

import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

_MIB = 1024 * 1024
_FSYNCS = 5


@dataclass(frozen=True)
class Speed:
    """What was measured in one folder."""

    path: str
    write_mb_per_s: float
    read_mb_per_s: float
    fsync_ms: float
    """The median of small writes with fsync."""
    is_changed: bool = False
    """The data that were read differ from the data that were written."""


def judge(speeds: "list[Speed]", settings: "dict[str, Any]") -> "tuple[str, str]":
    """`passed` or `failed`, and what was found; every fault is named. A limit of 0 is none."""
    faults: list[str] = []
    for speed in speeds:
        if speed.is_changed:
            faults.append(f"{speed.path} gives back other data than were written")
        if speed.write_mb_per_s < settings["minWriteMBs"]:
            faults.append(f"{speed.path} writes at {speed.write_mb_per_s:.0f} MB/s, {settings['minWriteMBs']} wanted")
        if speed.read_mb_per_s < settings["minReadMBs"]:
            faults.append(f"{speed.path} reads at {speed.read_mb_per_s:.0f} MB/s, {settings['minReadMBs']} wanted")
        if 0 < settings["maxFsyncMs"] < speed.fsync_ms:
            faults.append(f"{speed.path} takes {speed.fsync_ms:.0f} ms for an fsync, {settings['maxFsyncMs']} allowed")
    fine = (f"{speed.path}: {speed.write_mb_per_s:.0f} MB/s written, {speed.read_mb_per_s:.0f} read" for speed in speeds)
    return ("failed", "; ".join(faults)) if faults else ("passed", "; ".join(fine))


def measure(path: str, size_mib: int) -> Speed:
    """Raises OSError if the folder takes no file."""
    block = os.urandom(_MIB)
    with tempfile.TemporaryFile(dir=path) as file:
        began = time.perf_counter()
        for _ in range(size_mib):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        write_s = time.perf_counter() - began
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        is_changed = False
        began = time.perf_counter()
        for _ in range(size_mib):
            is_changed |= file.read(_MIB) != block
        read_s = time.perf_counter() - began
        took: list[float] = []
        for _ in range(_FSYNCS):
            began = time.perf_counter()
            file.write(block[:4096])
            file.flush()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    bytes_ = size_mib * _MIB / 1e6
    return Speed(path, bytes_ / write_s, bytes_ / read_s, sorted(took)[_FSYNCS // 2] * 1000, is_changed)


def main() -> None:
    settings = json.loads(sys.argv[1])
    speeds: list[Speed] = []
    path = ""
    try:
        for path in settings["paths"]:
            speeds.append(measure(path, settings["sizeMiB"]))
        result, found = judge(speeds, settings)
    except OSError as error:
        result, found = "unknown", f"{path}: {error.strerror}"
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
