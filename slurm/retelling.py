"""How long a reported result of a check beside jobs counts as current. Pure; all times are seconds.

A node reports news at once and repeats all results after a while, which renews their time in `Extra`. An old time means a silent node.
"""

TELL_AGAIN_S = 600
"""So long after it told its results last, a node tells all of them once more."""
RENEW_AFTER_S = 300
"""A result that is told again gets a younger time once its time is as old as this: a failure is told at each look."""
RENEW_EVERY_S = 60
"""Times are renewed together, so often: nodes with equal texts need one write."""
UNKNOWN_AFTER_S = 1800
"""A check at an interval that has told nothing of a node for so long is unknown there. A node may miss telling again once."""
_MISSED_LOOKS = 3


def unknown_after_s(interval_s: float) -> float:
    """As UNKNOWN_AFTER_S, where nodes run their checks every `interval_s`."""
    return max(UNKNOWN_AFTER_S, _MISSED_LOOKS * interval_s)
