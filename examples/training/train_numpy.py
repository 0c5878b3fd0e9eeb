"""Data-parallel training in plain NumPy: each process has a part of the data, and the gradients are averaged after each step.

The processes find each other as those of torchrun do: by MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE.
"""

import os
import time
from multiprocessing.connection import Client, Connection, Listener

import numpy as np

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ADDRESS = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
KEY = os.environ["MASTER_KEY"].encode()


def meet() -> list[Connection]:
    """Rank 0 gets a connection to every other rank, the others get one to it."""
    if RANK == 0:
        with Listener(ADDRESS, authkey=KEY, backlog=SIZE) as listener:
            return [listener.accept() for _ in range(SIZE - 1)]
    for _ in range(600):
        try:
            return [Client(ADDRESS, authkey=KEY)]
        except ConnectionRefusedError:  # rank 0 is not there yet
            time.sleep(0.1)
    raise TimeoutError(f"rank 0 does not answer at {ADDRESS}")


def average(values: np.ndarray, others: list[Connection]) -> np.ndarray:
    """The mean over all ranks, at all of them."""
    if RANK == 0:
        mean = (values + sum(other.recv() for other in others)) / SIZE
        for other in others:
            other.send(mean)
        return mean
    others[0].send(values)
    return others[0].recv()


def main() -> None:
    random = np.random.default_rng(1)
    wanted = random.normal(size=8)
    inputs = random.normal(size=(4096, 8))[RANK::SIZE]  # this rank's part
    outputs = inputs @ wanted
    weights = np.zeros(8)
    others = meet()
    for _ in range(200):
        errors = inputs @ weights - outputs
        weights -= 0.1 * average(inputs.T @ errors / len(inputs), others)
    print(f"rank {RANK} of {SIZE} on {os.uname().nodename}: off by {np.abs(weights - wanted).max():.1e}")


main()
