"""Decides what to do with a mail after the relay's answer, how long to wait after a failure, and when to give up."""

from enum import Enum

LIFE_S = 3 * 86_400
"""Seconds after which a mail that no relay took is given up: three days."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 5, 300


class Fate(Enum):
    """What to do with a mail."""

    KEEP = 1
    """The relay asked to try again later."""
    DROP = 2
    """The relay will never take it."""


def plan_fate(codes: list[int]) -> Fate:
    """Decides by the relay's codes, one per address or one for the mail. Source: RFC 5321, 4.2.1: 5yz is permanent, 4yz is not."""
    return Fate.DROP if codes and all(500 <= code < 600 for code in codes) else Fate.KEEP


def pause_s(failures: int) -> int:
    """Seconds until the next try, after this many failures in a row."""
    return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(failures - 1, 10))


def is_too_old(asked_at: float, now: float) -> bool:
    """True if a mail has waited too long. Times are in seconds since 1970."""
    return now - asked_at > LIFE_S
