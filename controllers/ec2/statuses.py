"""What EC2's answer means for the Kubernetes node of an instance: scheduled events and failed status checks as conditions. Pure.

Sources: the API reference of DescribeInstanceStatus, and the EC2 User Guide, "Scheduled events for your instances" and "Status checks for
your instances". An event is described for up to a week after it is over, with "[Completed]" or "[Canceled]" before its description.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from controllers.runtime.structs import NodeCondition
from slurm.causes import EC2_CONDITIONS, EC2_INSTANCE, EC2_RETIREMENT, EC2_SYSTEM

_RETIREMENTS = ("instance-stop", "instance-retirement")
"""Events after which the instance is stopped or gone. All others leave it, or boot it again."""
_OVER = re.compile(r"\[(completed|cancell?ed)\]", re.IGNORECASE)
_INSTANCE = re.compile(r"aws:///([a-z0-9-]+)/(i-[0-9a-f]+)")


@dataclass(frozen=True)
class Event:
    """One scheduled event that is not over."""

    code: str
    description: str
    not_before: str
    """RFC 3339 in UTC; empty if EC2 gives none."""


@dataclass(frozen=True)
class Check:
    """One status check: `ok`, `impaired`, or that EC2 cannot tell."""

    status: str
    since: float | None = None
    """When it began to fail, in seconds since 1970. None if EC2 does not report it."""


@dataclass(frozen=True)
class Status:
    """What EC2 says of one instance."""

    instance: str
    is_running: bool
    events: tuple[Event, ...]
    system: Check
    itself: Check


def instance_of(provider_id: str, region: str) -> str | None:
    """The instance of a Kubernetes node's provider ID, `aws:///<zone>/<instance>`; None for others and for other regions. Names of zones,
    local ones too, begin with the region's."""
    match = _INSTANCE.fullmatch(provider_id)
    return match[2] if match and match[1].startswith(region) else None


def read_status(raw: Mapping[str, Any]) -> Status:
    """One element of `InstanceStatuses`, as boto3 gives it."""
    return Status(
        raw["InstanceId"],
        raw.get("InstanceState", {}).get("Name") == "running",
        tuple(sorted(_events(raw), key=lambda event: (event.not_before, event.code, event.description))),
        _check(raw.get("SystemStatus") or {}),
        _check(raw.get("InstanceStatus") or {}),
    )


def plan_conditions(status: Status, present: Iterable[NodeCondition], grace_s: float, now: float) -> tuple[NodeCondition, ...] | None:
    """All conditions of ours that the node is to have; None where it has them.

    A check that fails for less than `grace_s` is Unknown, which is not a cause. A check whose result EC2 does not know ends nothing, and
    an instance that does not run has no checks. A node without any trouble so far gets no conditions.
    """
    before = {condition.type: condition for condition in present if condition.type in EC2_CONDITIONS}
    wanted: dict[str, NodeCondition] = {}
    for type_ in EC2_CONDITIONS:
        old = before.get(type_)
        is_check = type_ in (EC2_SYSTEM, EC2_INSTANCE)
        new = _of_check(type_, status, old, grace_s, now) if is_check else _of_events(type_, status, old)
        if new is not None:
            is_same = old is not None and old.status == new.status and bool(old.last_transition_time)
            since = old.last_transition_time if old is not None and is_same else to_text(now)
            wanted[type_] = NodeCondition(type_, new.status, new.reason, new.message, since)
    return tuple(wanted.values()) if wanted != before else None


def begin_of(status: Status) -> str | None:
    """When the first of its events begins, RFC 3339 in UTC; None without one whose time is known."""
    return min((event.not_before for event in status.events if event.not_before), default=None)


def to_text(at: float) -> str:
    """A time as Kubernetes writes it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _of_events(type_: str, status: Status, old: NodeCondition | None) -> NodeCondition | None:
    events = [event for event in status.events if (event.code in _RETIREMENTS) == (type_ == EC2_RETIREMENT)]
    if events:
        return NodeCondition(type_, "True", _word(events[0].code), "; ".join(_say(status.instance, event) for event in events))
    return NodeCondition(type_, "False", "NoEvent", f"EC2 announces no such event for {status.instance}.") if old is not None else None


def _of_check(type_: str, status: Status, old: NodeCondition | None, grace_s: float, now: float) -> NodeCondition | None:
    check, check_name = (status.system, "system") if type_ == EC2_SYSTEM else (status.itself, "instance")
    if not status.is_running or check.status not in ("ok", "impaired"):
        return old
    if check.status == "ok":
        return (
            NodeCondition(type_, "False", "Passed", f"The {check_name} status check of {status.instance} passes.")
            if old is not None
            else None
        )
    if check.since is None and old is not None and old.status == "True":
        return old  # its message has since when
    since = check.since
    if since is None:
        since = _seconds(old.last_transition_time) if old is not None and old.status == "Unknown" else now
    message = f"The {check_name} status check of {status.instance} fails since {to_text(since)}."
    is_cause = now - since >= grace_s or (old is not None and old.status == "True")
    return NodeCondition(type_, "True" if is_cause else "Unknown", "Impaired", message)


def _events(raw: Mapping[str, Any]) -> Iterator[Event]:
    for event in raw.get("Events") or ():
        description = str(event.get("Description") or "")
        if not _OVER.match(description):
            begins = event.get("NotBefore")
            yield Event(str(event.get("Code") or "event"), description, to_text(begins.timestamp()) if begins else "")


def _check(raw: Mapping[str, Any]) -> Check:
    times = [detail["ImpairedSince"].timestamp() for detail in raw.get("Details") or () if detail.get("ImpairedSince")]
    return Check(str(raw.get("Status") or ""), min(times, default=None))


def _say(instance: str, event: Event) -> str:
    when = f" not before {event.not_before}" if event.not_before else ""
    return f"{event.code} of {instance}{when}{f': {event.description}' if event.description else ''}"


def _word(code: str) -> str:
    """`instance-stop` as a reason of a condition: InstanceStop. Kubernetes wants letters, digits and few signs."""
    return "".join(part.capitalize() for part in re.split(r"[^A-Za-z0-9]+", code)) or "Event"


def _seconds(text: str | None) -> float:
    return datetime.fromisoformat(text).timestamp() if text else 0.0
