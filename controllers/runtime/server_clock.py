"""The API server's time, by the `Date` of its answers: times of objects are by its clock, and are compared with no other.

A date is in whole seconds, rounded down, and its answer was on the way for a while, so each answer only bounds the difference.
"""

from collections.abc import Callable
from email.utils import parsedate_to_datetime


class ServerClock:
    """The machine's clock until the first answer, then no further from the API server's than any answer allows. It rarely steps."""

    def __init__(self, wall: Callable[[], float]) -> None:
        """`wall` is this machine's, in seconds since 1970."""
        self._wall = wall
        self._ahead_s = 0.0

    def now(self) -> float:
        """Seconds since 1970."""
        return self._wall() + self._ahead_s

    def note(self, date: str, took_s: float) -> None:
        """Takes the date of an answer that has just come, `took_s` after its request. Ignores a text that is not a date."""
        try:
            at = parsedate_to_datetime(date).timestamp()
        except (TypeError, ValueError, OverflowError):
            return
        here = self._wall()
        self._ahead_s = min(max(self._ahead_s, at - here), at + 1 - (here - took_s))
