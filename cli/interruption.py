"""Ctrl-C while a command changes the cluster: a message, and an end within seconds, even if a thread still waits."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Generator

from engine.faults import StoppedError

_INTERRUPTED = "Interrupted. What was done stays; run the same command to finish."
_LATEST_END_S = 20.0
"""Seconds from Ctrl-C to the end of the process. Pending requests mostly need less."""


@contextlib.contextmanager
def stoppable() -> Generator[None]:
    """Turns Ctrl-C into StoppedError, and ends this process if a thread still waits then."""
    before = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError(_INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(_number: int, _frame: object) -> None:
    latest = threading.Timer(_LATEST_END_S, _end_now)
    latest.daemon = True
    latest.start()
    raise KeyboardInterrupt


def _end_now() -> None:
    sys.stderr.write(f"{_INTERRUPTED}\n")
    sys.stderr.flush()
    os._exit(130)
