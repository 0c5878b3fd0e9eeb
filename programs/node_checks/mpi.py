"""Test of the network between nodes: MPI ping-pong between two, or an all-reduce over all of a job. Runs on the nodes, one task on each.

It calls OpenMPI's library by ctypes, so the nodes need no compiler and none of our files; standard library only. Settings: `test`
(`ping-pong` or `all-reduce`), `messageKiB`, `seconds`. Rank 0 prints one JSON line, which measured.py judges.
"""

import ctypes
import json
import os
import socket
import sys
import time
from typing import Any

_LIBRARY = "libmpi.so.40"
_SMALL_ROUNDS = 200
_IGNORE = ctypes.c_void_p(0)
"""MPI_STATUS_IGNORE of OpenMPI."""


def pace(took_s: float, seconds: float, most: int = 1000) -> int:
    """How many rounds fill the time, when one takes so long: at least 2."""
    return max(2, min(most, int(seconds / took_s))) if took_s > 0 else most


def figures(test: str, size: int, message: int, round_s: float, small_s: float) -> "dict[str, Any]":
    """MB/s and us from the time of a round with the message, and of one with 8 bytes. A round of ping-pong is there and back. A
    round of an all-reduce counts as bus bandwidth, 2 (n - 1) / n of the message, as in nccl-tests (PERFORMANCE.md there)."""
    if test == "ping-pong":
        return {"bandwidthMBs": round(2 * message / round_s / 1e6, 3), "latencyUs": round(small_s / 2 * 1e6, 1)}
    return {"bandwidthMBs": round(2 * (size - 1) / size * message / round_s / 1e6, 3), "latencyUs": round(small_s * 1e6, 1)}


class Mpi:
    """The calls that are needed. Raises OSError if the node has no OpenMPI."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL(_LIBRARY, mode=ctypes.RTLD_GLOBAL)
        self.lib.MPI_Init(None, None)
        self.world, self.byte, self.double = (
            self._handle("ompi_mpi_comm_world"),
            self._handle("ompi_mpi_byte"),
            self._handle("ompi_mpi_double"),
        )
        self.add = self._handle("ompi_mpi_op_sum")
        rank, size = ctypes.c_int(), ctypes.c_int()
        self.lib.MPI_Comm_rank(self.world, ctypes.byref(rank))
        self.lib.MPI_Comm_size(self.world, ctypes.byref(size))
        self.rank, self.size = rank.value, size.value

    def _handle(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self.lib, name)))

    def send(self, buffer: "ctypes.Array[Any]", count: int, to: int) -> None:
        self.lib.MPI_Send(buffer, count, self.byte, to, 7, self.world)

    def receive(self, buffer: "ctypes.Array[Any]", count: int, source: int) -> None:
        self.lib.MPI_Recv(buffer, count, self.byte, source, 7, self.world, _IGNORE)

    def broadcast(self, number: int) -> int:
        """A number of rank 0, at all ranks."""
        buffer = ctypes.create_string_buffer(number.to_bytes(8, "little"), 8)
        self.lib.MPI_Bcast(buffer, 8, self.byte, 0, self.world)
        return int.from_bytes(buffer.raw, "little")

    def barrier(self) -> None:
        self.lib.MPI_Barrier(self.world)


def ping_pong(mpi: Mpi, buffer: "ctypes.Array[Any]", count: int, rounds: int) -> float:
    """Seconds of one round between ranks 0 and 1."""
    mpi.barrier()
    began = time.perf_counter()
    for _ in range(rounds):
        if mpi.rank == 0:
            mpi.send(buffer, count, 1)
            mpi.receive(buffer, count, 1)
        elif mpi.rank == 1:
            mpi.receive(buffer, count, 0)
            mpi.send(buffer, count, 0)
    return (time.perf_counter() - began) / rounds


def all_reduce(mpi: Mpi, mine: "ctypes.Array[Any]", total: "ctypes.Array[Any]", numbers: int, rounds: int) -> float:
    """Seconds of one round over all ranks."""
    mpi.barrier()
    began = time.perf_counter()
    for _ in range(rounds):
        mpi.lib.MPI_Allreduce(mine, total, numbers, mpi.double, mpi.add, mpi.world)
    return (time.perf_counter() - began) / rounds


def measure(mpi: Mpi, settings: "dict[str, Any]") -> "dict[str, Any]":
    """What rank 0 measured. `wrong` says that what arrived is not what was sent."""
    test, message = settings["test"], settings["messageKiB"] * 1024
    if test == "ping-pong":
        pattern = bytes(range(256)) * (message // 256)
        buffer = ctypes.create_string_buffer(pattern if mpi.rank == 0 else bytes(message), message)
        small_s = ping_pong(mpi, buffer, 8, mpi.broadcast(pace(ping_pong(mpi, buffer, 8, 2), settings["seconds"] / 4, _SMALL_ROUNDS)))
        rounds = mpi.broadcast(pace(ping_pong(mpi, buffer, message, 1), settings["seconds"]))
        round_s = ping_pong(mpi, buffer, message, rounds)
        wrong = buffer.raw != pattern
    else:
        numbers = message // 8
        mine, total = (ctypes.c_double * numbers)(*([mpi.rank + 1.0] * numbers)), (ctypes.c_double * numbers)()
        small_s = all_reduce(mpi, mine, total, 1, mpi.broadcast(pace(all_reduce(mpi, mine, total, 1, 2), settings["seconds"] / 4, 200)))
        rounds = mpi.broadcast(pace(all_reduce(mpi, mine, total, numbers, 1), settings["seconds"]))
        round_s = all_reduce(mpi, mine, total, numbers, rounds)
        wrong = {*total} != {mpi.size * (mpi.size + 1) / 2}
    return {**figures(test, mpi.size, message, round_s, small_s), "wrong": wrong, "ranks": mpi.size}


def main() -> None:
    settings = json.loads(sys.argv[1])
    try:
        mpi = Mpi()
    except OSError as error:
        if os.environ.get("SLURM_PROCID", "0") == "0":
            print(json.dumps({"result": "unknown", "found": f"no OpenMPI on {socket.gethostname()}: {error}"}))
        return
    if mpi.size != settings["ranks"]:
        if mpi.rank == 0:
            found = f"the ranks did not find each other: {mpi.size} of {settings['ranks']}"
            print(json.dumps({"result": "unknown", "found": found}))
        return
    found = measure(mpi, settings)
    mpi.lib.MPI_Finalize()
    if mpi.rank == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
