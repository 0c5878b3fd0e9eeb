"""How long it may be taken for true what a check beside jobs has found of a node. Pure; all times are seconds.

A node tells news at once, and all of its results once more after a while. What is told again gets a younger time in the node's `Extra`, so
an old time means that the node is silent: its checks do not run, or nobody has noted what they found.
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
