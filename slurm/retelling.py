"""How long a reported result of a check beside jobs counts as current. Pure; all times are seconds.

A node reports news at once and repeats all results after a while, which renews their time in `Extra`. An old time means a silent node.
"""

TELL_AGAIN_S = 600
"""Seconds after which a node reports all of its results once more."""
RENEW_AFTER_S = 300
"""Age in seconds from which a repeated result gets a new time. Nodes repeat a failure at each look."""
RENEW_EVERY_S = 60
"""Seconds between renewals of times. They are renewed together, as nodes with equal texts need one write."""
UNKNOWN_AFTER_S = 1800
"""Seconds after which the last result of a check at an interval counts as unknown. A node may miss one repetition."""
_MISSED_LOOKS = 3


def unknown_after_s(interval_s: float) -> float:
    """UNKNOWN_AFTER_S, or longer if nodes run their checks rarely, every `interval_s`."""
    return max(UNKNOWN_AFTER_S, _MISSED_LOOKS * interval_s)
