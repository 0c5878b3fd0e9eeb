"""Ends a program on SIGTERM, at any point of its work: the next run repeats a half-done step from its start."""

import os
import signal
from types import FrameType


def end_at_once(code: int) -> None:
    """Has SIGTERM and SIGINT end this process, which they would not do by themselves: as process 1 it has no default for them."""

    def end(_number: int, _: FrameType | None) -> None:
        os._exit(code)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
