"""The last results of health checks on a node, as JSON under the key `slipway` of the node's `Extra`. Pure.

A failure stays until the check passes. An `Extra` that is not JSON, or whose key `slipway` is not an object, belongs to somebody else.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from names import variables
from slurm.causes import Kind, Wish, kind_of, wish_of
from slurm.records import record

PASSED, FAILED, UNKNOWN, SKIPPED = "passed", "failed", "unknown", "skipped"
RESERVATION = "slipway-check-"
"""Start of the name of the reservation in which a check looks again at a drained node. Slurm shows MAINTENANCE in such a node's state
only half a minute later (measured on 26.05)."""
FAILURE = '"failure"'
"""A part of every `Extra` in which a check keeps a failure."""
LAUNCH = "launch"
"""The check that every cluster has: whether a node can start jobs. programs/node_checks/launches.py notes it; no check of a user has its
name."""
LAUNCH_MOST_PERCENT = 10
"""Of a set's nodes, how many all checks together may hold drained for this one to drain another; at least one."""
UNREADABLE = (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError)
"""What reading JSON raises that others may have written: 1e400 is infinite, and no whole number; and lists may be in lists without end."""
_KEY = "slipway"
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_~-]{0,39}")


@record
class Failure:
    """What a check found, and has not been seen mended since."""

    since: str
    """When the check first found the node failing, RFC 3339 in UTC."""
    found: str
    kind: Kind = "node"
    """Kind of the cause that it is: see slurm.causes."""
    drains: bool = True
    """False where checks hold as many nodes as they may, so this one keeps its jobs."""
    passes: int = 0
    """How many times in a row the check has passed since."""
    wish: Wish = "drain"
    """What the failure asks for. With `none` it never drains."""
    machine: str = ""
    """The machine that it was seen on, as the node's InstanceId in Slurm has it (slurm.instances); empty where that is not known."""
    seen: str = ""
    """When it was first seen there, RFC 3339 in UTC."""


@record
class Driver:
    """The driver that a check of GPUs found. The NodeSet controller compares it with that of the set's other nodes."""

    version: str
    drains: int = 0
    """How many nodes of the set may be drained because their driver differs from that of most. With 0 the difference is only reported."""


@record
class Request:
    """Why the NodeSet controller has a node looked at: what a pass is to prove."""

    machine: str
    """Identity of the machine that the node is on."""
    step: str = ""
    """When the last step of its repair began, RFC 3339 in UTC; empty where no repair asks."""


@record
class CheckResult:
    """The last result of one check on one node. A job that was skipped because the node was busy has no result."""

    result: str
    """`passed`, `failed`, `unknown`, or `skipped`: there is nothing on the node that the check could look at."""
    at: str
    """When the run began, RFC 3339 in UTC."""
    failure: Failure | None = None
    driver: Driver | None = None
    """Of a check of GPUs, as it was last seen."""
    passed_for: Request | None = None
    """The last request for which it has passed. A run that nobody has asked for knows no machine, and proves nothing of it."""


def read_results(extra: str) -> dict[str, CheckResult] | None:
    """The results by the names of the checks; None if the field is somebody else's. Entries of another form are left out."""
    fields = _fields(extra)
    if fields is None:
        return None
    return {name: result for name, entry in fields.get(_KEY, {}).items() if (result := _result(entry)) is not None}


def with_result(extra: str, check: str, result: CheckResult) -> str | None:
    """A node's `Extra` with a check's last result; None if the field is somebody else's."""
    fields = _fields(extra)
    if fields is None:
        return None
    entry: dict[str, Any] = {"result": result.result, "at": result.at}
    if result.failure is not None:
        failure = result.failure
        seen = {"passes": failure.passes} if failure.passes else {}
        wish = {"wish": failure.wish} if failure.wish != "drain" else {}
        about = {"since": failure.since, "found": failure.found, "kind": failure.kind, "drains": failure.drains}
        entry["failure"] = {**about, **seen, **wish}
    if result.driver is not None:
        entry["driver"] = {"version": result.driver.version, **({"drains": result.driver.drains} if result.driver.drains else {})}
    if result.passed_for is not None:
        entry["passedFor"] = _told(result.passed_for)
    if result.failure is not None and result.failure.machine:
        entry["failure"] |= {"machine": result.failure.machine, "seen": result.failure.seen}
    fields.setdefault(_KEY, {})[check] = entry
    try:
        return json.dumps(fields, separators=(",", ":"), sort_keys=True)
    except RecursionError:  # it could just be read
        return None


def following(
    before: CheckResult | None,
    result: str,
    found: str,
    at: str,
    kind: Kind,
    drains: bool,
    passes: int = 1,
    driver: Driver | None = None,
    asked: Request | None = None,
    wish: Wish = "drain",
) -> CheckResult:
    """The result to keep after a run. `passes` passes in a row end a failure, which keeps its first time; unknown and skipped leave it.

    A run that did not see the driver keeps the last one seen. Only a pass answers a request.
    """
    earlier, driver = (before.failure, driver or before.driver) if before is not None else (None, driver)
    passed_for = before.passed_for if before is not None else None
    if result == PASSED:
        passed_for = asked or passed_for
        if earlier is None or earlier.passes + 1 >= passes:
            return CheckResult(result, at, None, driver, passed_for)
        again = Failure(earlier.since, earlier.found, earlier.kind, earlier.drains, earlier.passes + 1, earlier.wish)
        return CheckResult(result, at, again, driver, passed_for)
    if result != FAILED:
        return CheckResult(result, at, earlier, driver, passed_for)
    return CheckResult(result, at, Failure(earlier.since if earlier else at, found, kind, drains, wish=wish), driver, passed_for)


def seen_on(machine: str, before: CheckResult | None, after: CheckResult) -> CheckResult:
    """The result of a run with the machine that the node was on: a failure keeps the machine where a run last saw it.

    A failure that drains no node has no machine, so that one call can write the same result for many nodes.
    """
    failure, earlier = after.failure, before.failure if before is not None else None
    if failure is None or not failure.drains:
        return after
    if earlier is not None and (after.result != FAILED or earlier.machine == machine):
        failure = _seen(failure, earlier.machine, earlier.seen)
    else:
        failure = _seen(failure, machine, after.at if machine else "")
    return CheckResult(after.result, after.at, failure, after.driver, after.passed_for)


def renewed(result: CheckResult, at: str) -> CheckResult:
    """The same result, found once more at that time."""
    return CheckResult(result.result, at, result.failure, result.driver, result.passed_for)


def requests_text(requests: Mapping[str, Request]) -> str:
    """Requests by the names of nodes, as a run of a check reads them."""
    return json.dumps({name: _told(request) for name, request in requests.items()}, separators=(",", ":"), sort_keys=True)


def read_requests(text: str) -> dict[str, Request] | None:
    """Parses the text of `requests_text`; None for an empty text: the run then looks at all nodes. Raises ValueError for any other text."""
    if not text:
        return None
    try:
        document: Any = json.loads(text)
    except UNREADABLE as error:
        raise ValueError(f"{variables.ASKED_NODES} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ValueError(f"{variables.ASKED_NODES} is not a JSON object: {text[:100]}")
    requests = {name: _request(entry) for name, entry in cast("dict[str, Any]", document).items()}
    if bad := [name for name, request in requests.items() if request is None]:
        raise ValueError(f"{variables.ASKED_NODES} has no request for {bad[0]}")
    return {name: request for name, request in requests.items() if request is not None}


def _told(request: Request) -> dict[str, str]:
    return {"machine": request.machine, **({"step": request.step} if request.step else {})}


def _request(entry: Any) -> Request | None:
    try:
        return Request(str(entry["machine"]), str(entry.get("step", "")))
    except UNREADABLE:
        return None


def driver_of(entry: Any) -> Driver | None:
    """From `{"version": "550.90.07", "drains": 2}`; None for anything else, and for a version that is not a short word."""
    try:
        version, drains = str(entry["version"]), int(entry.get("drains", 0))
    except UNREADABLE:
        return None
    return Driver(version, max(0, drains)) if _VERSION.fullmatch(version) else None


def _fields(extra: str) -> dict[str, Any] | None:
    try:
        fields: Any = json.loads(extra or "{}")
    except UNREADABLE:
        return None
    is_ours = isinstance(fields, dict) and isinstance(cast("dict[str, Any]", fields).get(_KEY, {}), dict)
    return cast("dict[str, Any]", fields) if is_ours else None


def _result(entry: Any) -> CheckResult | None:
    try:
        result, at = str(entry["result"]), str(entry["at"])
        if (told := entry.get("failure")) is not None:
            wish = wish_of(told.get("wish"))
            drains = bool(told["drains"]) and wish != "none"
            failure = Failure(str(told["since"]), str(told["found"]), kind_of(told["kind"]), drains, int(told.get("passes", 0)), wish)
        else:
            # As earlier releases wrote it.
            failure = Failure(at, "what it found is in the log of its run") if result == FAILED else None
        told: Any = entry.get("failure") or {}
        failure = _seen(failure, str(told.get("machine", "")), str(told.get("seen", ""))) if failure is not None else None
        return CheckResult(result, at, failure, driver_of(entry.get("driver")), _request(entry.get("passedFor")))
    except UNREADABLE:
        return None


def _seen(failure: Failure, machine: str, seen: str) -> Failure:
    known: dict[str, Any] = {name: getattr(failure, name) for name in Failure.__match_args__}
    known |= {"machine": machine, "seen": seen}
    return Failure(**known)


def failures(results: Mapping[str, CheckResult]) -> dict[str, Failure]:
    """The failures that no run has seen mended, by the names of the checks."""
    return {name: result.failure for name, result in results.items() if result.failure is not None}
