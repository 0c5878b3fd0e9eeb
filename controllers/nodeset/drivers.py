"""Decides which nodes of a set have another GPU driver than most of them: a job on several nodes would meet both. Pure.

Checks of GPUs note the driver in the node's `Extra` in Slurm.
"""

from collections import Counter
from collections.abc import Mapping

from slurm.check_results import Driver, Failure

OTHER_DRIVER = "gpu driver"
"""In the place of a check's name, which has no space."""


def find_other_drivers(drivers: Mapping[int, Driver]) -> dict[int, Failure]:
    """The nodes whose driver is not that of more than half of these nodes, by ordinal; none if no driver is on more than half.

    Only the first of them ask for a drain: as many as may be drained.
    """
    if not drivers:
        return {}
    [(usual, count)] = Counter(driver.version for driver in drivers.values()).most_common(1)
    if count * 2 <= len(drivers):
        return {}
    differing = [ordinal for ordinal in sorted(drivers) if drivers[ordinal].version != usual]
    return {
        ordinal: Failure(
            "",
            f"{drivers[ordinal].version}, where {count} of {len(drivers)} nodes of the set have {usual}",
            "node",
            drains=at < drivers[ordinal].drains,
        )
        for at, ordinal in enumerate(differing)
    }
