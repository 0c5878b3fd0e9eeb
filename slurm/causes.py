"""Why a node is out of service: causes, of which a node may have several at once. Pure.

Each has an owner, which alone ends it. Slurm has one reason a node: that of the most urgent cause of ours, or an administrator's words.
"""

from collections.abc import Iterable
from typing import Literal

from slurm.records import record

Kind = Literal["hardware", "node", "maintenance", "user", "administrator"]
"""A part of the machine; what runs on it; planned work; the size that somebody asked for; an administrator's own words. Most urgent
first: of several causes of ours, Slurm's reason names the first in this order."""
Wish = Literal["drain", "replace", "reboot", "none"]
"""What the cause asks for. `none` is a fault that takes no job away."""
KUBERNETES_CONDITIONS = frozenset({"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})
"""Conditions of a Kubernetes node that Kubernetes itself sets: no cause is made of them. Source: Kubernetes' API reference."""
EC2_RETIREMENT = "EC2RetirementScheduled"
EC2_MAINTENANCE = "EC2MaintenanceScheduled"
EC2_SYSTEM = "EC2SystemImpaired"
EC2_INSTANCE = "EC2InstanceImpaired"
EC2_CONDITIONS = (EC2_RETIREMENT, EC2_MAINTENANCE, EC2_SYSTEM, EC2_INSTANCE)
"""Conditions of a Kubernetes node that our own program for EC2 sets.

In this order: an event that takes the instance, any other event, failed checks of the host below the instance, and of the instance.
"""
REQUESTED_CAUSE = "requested"
"""Name of the cause of a drain that an annotation of a worker's pod asks for."""
WISHES: tuple[Wish, ...] = ("drain", "replace", "reboot", "none")
KINDS: tuple[Kind, ...] = ("hardware", "node", "maintenance", "user", "administrator")


@record
class Cause:
    """One reason why a node is out of service, or may soon be."""

    name: str
    """Unique for its node: `check/disk`, `cordon`, `administrator`."""
    kind: Kind
    source: str
    """Who found it: `health check disk`, `Kubernetes`, `slurmctld`, a user's name."""
    evidence: str
    """What was found, in the words of the source."""
    owner: str
    """Who ends it."""
    next: str
    """What happens next, and what a person can do."""
    wish: Wish = "drain"
    since: str = ""
    """When it began, RFC 3339 in UTC; empty if unknown."""


def kind_of(text: object) -> Kind:
    """The kind of that name; `node` for a name that is not known here."""
    for kind in KINDS:
        if kind == text:
            return kind
    return "node"


def wish_of(text: object) -> Wish:
    """The wish of that name; `drain` for a name that is not known here."""
    for wish in WISHES:
        if wish == text:
            return wish
    return "drain"


def in_order(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    """The most urgent first; those that take no job away last."""
    return tuple(sorted(causes, key=lambda cause: (cause.wish == "none", KINDS.index(cause.kind), cause.name)))
