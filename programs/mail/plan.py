"""Decides what becomes of a mail after an answer of the relay, how long to wait for a relay that fails, and when to give a mail up."""

from enum import Enum

LIFE_S = 3 * 86_400
"""A mail that found no relay for so long is given up: three days."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 5, 300


class Fate(Enum):
    """What becomes of a mail."""

    KEEP = 1
    """The relay asked to try again later."""
    DROP = 2
    """The relay will never take it."""


def plan_fate(codes: list[int]) -> Fate:
    """By the relay's codes for the addresses, or the one for the whole mail. Source: RFC 5321, 4.2.1: 5yz is permanent, 4yz is not."""
    return Fate.DROP if codes and all(500 <= code < 600 for code in codes) else Fate.KEEP


def pause_s(failures: int) -> int:
    """Seconds until the next try, after so many failures in a row."""
    return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(failures - 1, 10))


def is_too_old(asked_at: float, now: float) -> bool:
    """True when a mail has waited too long to be of use."""
    return now - asked_at > LIFE_S
