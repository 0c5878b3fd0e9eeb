"""The controllers' client of slurmrestd, beside the real one."""

import asyncio
import ctypes
import os
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from controllers.slurm.client import SlurmClient
from controllers.slurm.tokens import TokenSource
from tests.support.patience import patience, seconds
from tests.support.slurm.elastic_cluster import ElasticCluster

PREFIX = "swrt-"
T = TypeVar("T")


def ask(
    cluster: ElasticCluster,
    work: Callable[[SlurmClient], Awaitable[T]],
    key: Path | None = None,
    life_s: float = 1800,
    deadline_s: float = 10,
    pod: str = "t-slurmrestd",
    prefix: str = PREFIX,
) -> T:
    """What the client gives, from inside the pods' network: a thread enters it, and its event loop makes its sockets there."""
    tokens = TokenSource(key or cluster.machine.folder / "volume-jwt" / "jwt_hs256.key", time.time, life_s=life_s)
    answers: list[T] = []
    errors: list[BaseException] = []

    async def session() -> T:
        async with SlurmClient(f"http://{cluster.machine.addresses[pod]}:6820", tokens, seconds(deadline_s)) as client:
            return await work(client)

    def inside() -> None:
        handle = os.open(f"/run/netns/{prefix}hub", os.O_RDONLY)
        try:
            assert ctypes.CDLL(None, use_errno=True).setns(handle, 0) == 0
            answers.append(asyncio.run(session()))
        except BaseException as error:  # carried to the test's own thread
            errors.append(error)
        finally:
            os.close(handle)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join(120 * patience())
    if errors:
        raise errors[0]
    return answers[0]
