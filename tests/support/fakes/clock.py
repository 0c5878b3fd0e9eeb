"""A clock that only a test moves."""

import asyncio
import heapq
from collections.abc import Callable

from controllers.runtime.clock import Clock
from tests.support.patience import patience

START = 1_700_000_000.0


class FakeClock:
    """Hand `clock` to what is tested. `random` always gives one half, unless told otherwise."""

    def __init__(self, random: Callable[[], float] = lambda: 0.5) -> None:
        self.time = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = 0
        self.clock = Clock(now=lambda: self.time, wall=lambda: START + self.time, sleep=self._sleep, random=random)

    @property
    def sleeping(self) -> int:
        """How many sleep."""
        return sum(not future.done() for _, _, future in self._sleepers)

    def next_s(self) -> float:
        """Seconds until the next wakes."""
        return min(due for due, _, future in self._sleepers if not future.done()) - self.time

    def pass_time(self, seconds: float) -> None:
        """Time goes by, and nobody has woken yet: as when the process was stopped."""
        self.time += seconds

    async def advance(self, seconds: float) -> None:
        """Time goes by from one sleeper's end to the next; each that wakes runs until it sleeps again or waits for something else."""
        await settle()
        end = self.time + seconds
        while self._sleepers and self._sleepers[0][0] <= end:
            due, _, future = heapq.heappop(self._sleepers)
            self.time = max(self.time, due)
            if not future.done():
                future.set_result(None)
                await settle()
        self.time = max(self.time, end)
        await settle()

    async def _sleep(self, seconds: float) -> None:
        self._count += 1
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.time + seconds, self._count, future))
        await future


async def settle() -> None:
    """Lets everything run that can run without waiting for the network."""
    for _ in range(20):
        await asyncio.sleep(0)


async def eventually(holds: Callable[[], bool], within_s: float = 10) -> None:
    """Waits until it holds. Raises AssertionError after so many seconds of real time, by the machine's pace."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while not holds():
        assert loop.time() - began < within_s * patience(), f"did not come to hold within {loop.time() - began:.0f} s"
        await asyncio.sleep(0.002)
