"""SIGTERM and SIGINT as a long-running program hears them: at once, even in the middle of a pause. Of Python's own library alone."""

import contextlib
import os
import select
import signal


class Signals:
    """A flag, and a wait that a signal ends. The main thread creates it and waits; any thread may end the wait.

    An Event would not do: a signal handler may find its lock held. So each signal writes a byte into a pipe.
    """

    def __init__(self, has_children: bool = False) -> None:
        """With `has_children`, the end of a child ends a wait too."""
        self.is_stopping = False
        """True from the first SIGTERM or SIGINT."""
        self._awake, self._wake = os.pipe()
        for end in (self._awake, self._wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):  # process 1 has no default action for signals
            signal.signal(number, self._stop)
        if has_children:
            signal.signal(signal.SIGCHLD, _look)  # a signal without a handler does not reach the pipe

    def wait(self, seconds: float | None) -> None:
        """Waits until something happens after the last wait, or for `seconds`; without a limit for None."""
        select.select([self._awake], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            while os.read(self._awake, 512):
                pass

    def wake(self) -> None:
        """Ends the wait of the main thread, or its next one."""
        with contextlib.suppress(BlockingIOError):  # full: the wait ends anyhow
            os.write(self._wake, b"w")

    def _stop(self, _: int, __: object) -> None:
        self.is_stopping = True


def _look(_: int, __: object) -> None:
    """The pipe now has a byte; the waiting thread looks for the event."""
