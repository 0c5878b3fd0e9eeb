"""Decides when munged takes another key. Pure.

munged knows one key and reads it at its start, so it is started again when another key has come; pods and their jobs live on. But no two
pods may use different keys while they talk: slurmctld would refuse a step's message that its job has ended, and the step sends it once
only (26.05.5). So a key that the kubelet brings waits, and all pods take it at the same signal: slurmctld no longer listens. It stops for
that some seconds after every kubelet has had its time (programs/slurmctld); to a silent slurmctld everybody sends again.
"""

from enum import Enum

_SILENCES = 3
"""Attempts in a row without an answer, as while slurmctld's pod is replaced, that count as a closed port."""


class Dial(Enum):
    """What came of an attempt to reach slurmctld's port."""

    ANSWERED = 1
    REFUSED = 2
    NOTHING = 3


class Step(Enum):
    """What follows from one look."""

    REST = 1
    """No other key waits."""
    WAIT = 2
    TAKE = 3
    """Start munged with the other key."""


def count_silence(before: int, dial: Dial) -> int:
    """How silent slurmctld is after another attempt."""
    return {Dial.ANSWERED: 0, Dial.REFUSED: _SILENCES, Dial.NOTHING: before + 1}[dial]


def plan_key(is_waiting: bool, silence: int, waited_s: float, latest_s: float) -> Step:
    """What to do about a key: `is_waiting` says whether the Secret has another one than munged, `waited_s` for how long it had it.

    After `latest_s` it is taken all the same: slurmctld has long been with it.
    """
    if not is_waiting:
        return Step.REST
    return Step.TAKE if silence >= _SILENCES or waited_s > latest_s else Step.WAIT


def pause_s(step: Step) -> float:
    """Seconds until the next look. One that waits is quick: slurmctld listens again after some seconds."""
    return 1 if step is Step.WAIT else 5
