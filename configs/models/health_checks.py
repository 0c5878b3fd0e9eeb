"""Config of health checks: what runs on idle nodes and drains those that fail."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, StrictStr

from configs.models.fields import (
    Count,
    Line,
    Matching,
    MaxUnavailable,
    Model,
    Name,
    Seconds,
    dns_label,
)

CheckName = Annotated[StrictStr, AfterValidator(dns_label(20, "disk"))]
"""A CronJob is called `<cluster>-check-<name>`, and its name may have 52 characters."""
LimitName = Annotated[
    StrictStr, AfterValidator(Matching(r"[a-z][A-Za-z0-9]*", "the name of a limit, such as minFreeMiB", 64, "minFreeMiB"))
]


CheckKind = Literal["disk", "memory", "clock", "gpu"]

CHECK_SETTINGS: Mapping[CheckKind, Mapping[str, int]] = {
    "disk": {"minFreeMiB": 1024, "minFreePercent": 0},
    "memory": {"minAvailablePercent": 50, "maxUncorrectableErrors": 0, "maxCorrectableErrors": 1000},
    "clock": {"maxOffsetS": 5},
    "gpu": {"maxUncorrectableErrors": 0},
}
"""The limits that each kind of check knows, with their defaults."""


class HealthCheck(Model):
    """One check, run as a Slurm job on each idle node of the sets at each tick of the schedule."""

    name: CheckName
    """Name of the check, and part of its CronJob's name."""
    check: CheckKind
    """What is checked: free disk space, memory and its errors, the clock's offset, or the GPUs."""
    schedule: Line
    """When it runs: cron's five fields, in the time zone of the Kubernetes controller manager."""
    node_sets: tuple[Name, ...]
    """Names of the node sets whose nodes are checked."""
    timeout_s: Seconds = 60
    """Time for one run on one node, in seconds. After that the result counts as unknown."""
    max_drained: MaxUnavailable = "25%"
    """Most nodes that this check may hold drained at once: a number, or a percentage of its nodes (at least one node)."""
    settings: dict[LimitName, Count] = {}
    """Limits of the check. disk: minFreeMiB (1024), minFreePercent (0). memory: minAvailablePercent (50), maxUncorrectableErrors (0),
    maxCorrectableErrors (1000). clock: maxOffsetS (5). gpu: maxUncorrectableErrors (0). Default: the values in parentheses."""
