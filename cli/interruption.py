"""Ctrl-C while a verb changes the cluster: a message about what is left, and an end within seconds, whatever a thread still waits for."""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Generator

from engine.faults import StoppedError

_INTERRUPTED = "Interrupted. What was done stays; the same command finishes it."
_LATEST_END_S = 20.0
"""Seconds from Ctrl-C to the end of the process. Requests that are on their way mostly need less."""


@contextlib.contextmanager
def stoppable() -> Generator[None]:
    """Ctrl-C while the cluster is being changed: says what it left, and ends this process, whatever a thread still waits for."""
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
