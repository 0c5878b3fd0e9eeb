"""A queue of keys: adding a key several times counts once, one worker at a time has it, and a key added meanwhile comes after.

It holds names, not news: a worker decides from the current state. Nothing survives the process, and nothing has to.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from controllers.runtime import metrics
from controllers.runtime.clock import SYSTEM, Clock, backoff_s

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """First come, first served. Everything but `get` and `run` is without await, and may be called from handlers."""

    def __init__(self, name: str = "main", *, clock: Clock = SYSTEM, base_s: float = 0.1, most_s: float = 60.0) -> None:
        """`name` is the label of its metrics. A key that fails waits `base_s`, then twice that, and so on up to `most_s`."""
        self._name = name
        self._clock = clock
        self._base_s = base_s
        self._most_s = most_s
        self._ready: dict[K, float] = {}
        """Keys for a worker, oldest first, and since when."""
        self._working: set[K] = set()
        self._again: set[K] = set()
        """Added while being worked on."""
        self._due: dict[K, float] = {}
        self._timers: list[tuple[float, int, K]] = []
        """A heap of the entries of `_due`, outdated entries included."""
        self._count = 0
        self._failures: dict[K, int] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """Keys that wait for a worker now."""
        self._ripen()
        return len(self._ready) + len(self._again)

    def add(self, key: K) -> None:
        """Queues a key for the next free worker."""
        self._add(key, self._clock.now())

    def add_after(self, key: K, seconds: float) -> None:
        """Queues a key in at most `seconds` seconds: of several such adds, the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.now() + seconds
        if self._due.get(key, float("inf")) <= due:
            return
        self._due[key] = due
        self._count += 1
        heapq.heappush(self._timers, (due, self._count, key))
        self._changed.set()

    def add_backed_off(self, key: K) -> float:
        """Queues a key after a failure, later each time until `forget`. Returns the seconds."""
        self._failures[key] = self._failures.get(key, 0) + 1
        seconds = backoff_s(self._failures[key], self._base_s, self._most_s, self._clock)
        metrics.QUEUE_RETRIES.labels(self._name).inc()
        self.add_after(key, seconds)
        return seconds

    def forget(self, key: K) -> None:
        """Resets the failures of a key after a success. A time that was set for it stays."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often in a row the key failed."""
        return self._failures.get(key, 0)

    def take(self) -> K | None:
        """The next key that is due, if any. The caller holds it until `done`."""
        self._ripen()
        if not self._ready:
            return None
        key = next(iter(self._ready))
        metrics.QUEUE_WAIT_SECONDS.labels(self._name).observe(self._clock.now() - self._ready.pop(key))
        self._working.add(key)
        self._count_ready()
        return key

    def done(self, key: K) -> None:
        """Returns a key after the work, successful or not."""
        self._working.remove(key)
        if key in self._again:
            self._again.remove(key)
            self.add(key)

    def next_due_s(self) -> float | None:
        """Seconds until the next delayed key is due; None when no key is delayed."""
        while self._timers and self._due.get(self._timers[0][2]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        return max(0.0, self._timers[0][0] - self._clock.now()) if self._timers else None

    async def get(self) -> K:
        """Waits for the next key."""
        while True:
            key = self.take()
            if key is not None:
                return key
            self._changed.clear()
            await self._wait(self.next_due_s())

    async def run(self, worker: Callable[[K], Awaitable[None]], workers: int) -> None:
        """Works on `workers` keys at once until it is cancelled. An error of `worker` ends all workers, so it handles expected errors."""
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work(worker))

    async def _work(self, worker: Callable[[K], Awaitable[None]]) -> None:
        while True:
            key = await self.get()
            begun = self._clock.now()
            try:
                await worker(key)
            finally:
                self.done(key)
                metrics.QUEUE_WORK_SECONDS.labels(self._name).observe(self._clock.now() - begun)

    async def _wait(self, seconds: float | None) -> None:
        changed = asyncio.ensure_future(self._changed.wait())
        timer = asyncio.ensure_future(self._clock.sleep(seconds)) if seconds is not None else None
        try:
            await asyncio.wait([changed, timer] if timer else [changed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            if timer:
                timer.cancel()

    def _add(self, key: K, since: float) -> None:
        if key in self._ready:
            return
        if key in self._working:
            self._again.add(key)
            return
        self._ready[key] = since
        self._count_ready()
        self._changed.set()

    def _ripen(self) -> None:
        while self.next_due_s() == 0:
            due, _, key = heapq.heappop(self._timers)
            del self._due[key]
            self._add(key, due)

    def _count_ready(self) -> None:
        metrics.QUEUE_DEPTH.labels(self._name).set(len(self._ready))
