"""Time and chance, so that tests can pass their own, and the waits after failures."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Clock:
    """The machine's own, unless told otherwise."""

    now: Callable[[], float] = time.monotonic
    """Seconds since an arbitrary moment; never goes back."""
    wall: Callable[[], float] = time.time
    """Seconds since 1970, for what others read. It is compared with times of the API server's only where it follows that one's clock: see
    `server_clock`."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random
    """From 0 up to, but not including, 1."""


SYSTEM = Clock()
"""The machine's own."""


def backoff_s(failures: int, base_s: float, most_s: float, clock: Clock) -> float:
    """Seconds to wait after this many failures in a row. The wait doubles from `base_s` up to `most_s`; its upper half is random.

    The jitter keeps the clients of a server that comes back from arriving at the same moment.
    """
    # The exponent is bounded: 2.0 ** 1024 overflows, and a week of failures gets there.
    full = min(most_s, base_s * 2.0 ** min(max(0, failures - 1), 60))
    return full * (0.5 + clock.random() / 2)
