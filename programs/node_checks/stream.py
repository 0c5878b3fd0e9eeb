"""Health check of a node's memory bandwidth: STREAM's Copy, by all of the job's CPUs at once. Runs on the node; standard library only.

Settings: `minBandwidthMBs`, `arrayMiB` for each of the two arrays of a CPU, `seconds`. ctypes frees Python's lock during memcpy, so the
threads run side by side. As in STREAM, a copied byte counts twice, and the best round counts.
"""

import ctypes
import json
import os
import sys
import time
from threading import Barrier, Thread
from typing import Any

_MIB = 1024 * 1024
_ROUNDS = 10


def judge(mb_per_s: float, threads: int, settings: "dict[str, Any]") -> "tuple[str, str]":
    """`passed` or `failed`, and what was found."""
    least = settings["minBandwidthMBs"]
    found = f"memory copies at {mb_per_s:.0f} MB/s by {threads} CPUs"
    return ("passed", found) if mb_per_s >= least else ("failed", f"{found}, {least} wanted")


def measure(threads: int, array_mib: int, seconds: float) -> float:
    """MB/s of the best round. Raises MemoryError if the arrays find no room."""
    size = array_mib * _MIB
    arrays = [(ctypes.create_string_buffer(size), ctypes.create_string_buffer(size)) for _ in range(threads)]
    together = Barrier(threads + 1)
    is_done = False

    def copy(source: "ctypes.Array[Any]", to: "ctypes.Array[Any]") -> None:
        ctypes.memset(source, 1, size)  # pages of its own, near this thread
        ctypes.memset(to, 2, size)
        while True:
            together.wait()
            if is_done:
                return
            ctypes.memmove(to, source, size)
            together.wait()

    workers = [Thread(target=copy, args=pair, daemon=True) for pair in arrays]
    for worker in workers:
        worker.start()
    rounds: list[float] = []
    end = time.perf_counter() + seconds
    while len(rounds) < 2 or (len(rounds) < _ROUNDS and time.perf_counter() < end):
        together.wait()
        began = time.perf_counter()
        together.wait()
        rounds.append(time.perf_counter() - began)
    is_done = True
    together.wait()
    for worker in workers:
        worker.join()
    return 2 * size * threads / min(rounds) / 1e6


def main() -> None:
    settings = json.loads(sys.argv[1])
    threads = len(os.sched_getaffinity(0))
    try:
        result, found = judge(measure(threads, settings["arrayMiB"], settings["seconds"]), threads, settings)
    except MemoryError:
        result, found = "unknown", f"no room for {2 * threads * settings['arrayMiB']} MiB"
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
