"""Decides when munged takes another key. Pure.

munged reads its key at start. Pods with different keys must not talk, or slurmctld misses the end of jobs (docs/explain/slurm-facts.md).
So another key waits until programs/slurmctld has stopped slurmctld, once every kubelet had time to bring the key. All pods take it then.
"""

from enum import Enum

_SILENCES = 3
"""Attempts in a row without an answer that count as a closed port, such as while slurmctld's pod is replaced."""


class Dial(Enum):
    """Result of an attempt to reach slurmctld's port."""

    ANSWERED = 1
    REFUSED = 2
    NOTHING = 3


class Step(Enum):
    """What to do after one look."""

    REST = 1
    """No other key waits."""
    WAIT = 2
    TAKE = 3
    """Start munged with the other key."""


def count_silence(before: int, dial: Dial) -> int:
    """The number of silent attempts after another one."""
    return {Dial.ANSWERED: 0, Dial.REFUSED: _SILENCES, Dial.NOTHING: before + 1}[dial]


def plan_key(is_waiting: bool, silence: int, waited_s: float, latest_s: float) -> Step:
    """What to do about a key. `is_waiting`: the Secret has another key than munged, since `waited_s` seconds.

    After `latest_s` the key is taken in any case: slurmctld has long taken it.
    """
    if not is_waiting:
        return Step.REST
    return Step.TAKE if silence >= _SILENCES or waited_s > latest_s else Step.WAIT


def pause_s(step: Step) -> float:
    """Seconds until the next look; few while a key waits, as slurmctld soon listens again."""
    return 1 if step is Step.WAIT else 5
