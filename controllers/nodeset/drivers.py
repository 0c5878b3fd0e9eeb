"""Decides which nodes of a set have another driver than most of them: jobs on several nodes meet all of them. Pure.

Checks of GPUs note the driver that they meet in the node's `Extra` in Slurm. Who differs is seen by nobody but the one who knows all nodes
of the set.
"""

from collections import Counter
from collections.abc import Mapping

from slurm.check_results import Driver, Failure

OTHER_DRIVER = "gpu driver"
"""In the place of a check's name, which has no space."""


def find_other_drivers(drivers: Mapping[int, Driver]) -> dict[int, Failure]:
    """What is wrong with the nodes that have another driver than more than half of these, by ordinal. Where no driver has more than half,
    nobody can tell which nodes differ. Of nodes that may be drained, the first ones are: as many as there may be."""
    if not drivers:
        return {}
    [(usual, count)] = Counter(driver.version for driver in drivers.values()).most_common(1)
    if count * 2 <= len(drivers):
        return {}
    others = [ordinal for ordinal in sorted(drivers) if drivers[ordinal].version != usual]
    return {
        ordinal: Failure(
            "",
            f"{drivers[ordinal].version}, where {count} of {len(drivers)} nodes of the set have {usual}",
            "node",
            drains=at < drivers[ordinal].drains,
        )
        for at, ordinal in enumerate(others)
    }
