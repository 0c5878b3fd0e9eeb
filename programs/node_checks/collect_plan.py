"""Decides what becomes of what checks beside jobs have found. Pure.

A failure is noted in the node's `Extra`, and the NodeSet controller drains the node for it; in a prolog the node is drained at once, so
that the job goes elsewhere. Checks hold no more nodes of a set than they may (allowance.py).
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slurm import reasons
from slurm.causes import Kind, Wish, kind_of, wish_of
from slurm.check_results import (
    FAILED,
    PASSED,
    SKIPPED,
    UNKNOWN,
    UNREADABLE,
    CheckResult,
    Driver,
    driver_of,
    following,
    read_results,
    renewed,
    seen_on,
    with_result,
)
from slurm.collector import LAUNCH
from slurm.retelling import RENEW_AFTER_S
from slurm.scontrol import Node
from slurm.states import may_be_drained
from slurm.times import read_time

from .allowance import Allowance, held_by_checks

_CLOSED = frozenset({"DRAIN", "DOWN"})
_KEPT = _CLOSED | {"RESERVED", "MAINTENANCE"}
AT_ONCE = ("prolog", LAUNCH)
"""Contexts in which a node is drained before it gets another job."""
_MOST_JOBS = 64


class ReportError(ValueError):
    """The text is no report."""


@dataclass(frozen=True)
class Found:
    """What one check found on one node."""

    check: str
    result: str
    found: str
    kind: Kind
    max_drained: int
    """Nodes of this set that checks may hold drained at once, for this one to drain another."""
    passes: int = 1
    """So many times in a row the check has to pass before a failure ends."""
    driver: Driver | None = None
    """The driver of the node's GPUs, where the check has met it."""
    wish: Wish = "drain"
    """What a failure asks for: with `none` it drains nobody, and holds up no job."""


@dataclass(frozen=True)
class Report:
    """What a node has to tell."""

    node: str
    context: str
    """`interval`, `prolog`, `epilog`, or `launch`."""
    job: str
    """The job whose prolog or epilog it is; empty else."""
    found: tuple[Found, ...]
    jobs: tuple[str, ...] = ()
    """Of a node that could not start a job: those that it was to start last."""


@dataclass(frozen=True)
class Plan:
    """What to write, and what to answer."""

    extras: Mapping[str, tuple[str, ...]]
    """New texts of `Extra`, each with its nodes."""
    drains: Mapping[str, tuple[str, ...]]
    """Reasons of drains, each with its nodes."""
    comments: Mapping[str, str]
    """By job: why it does not start where it was to."""
    refused: tuple[tuple[str, ...], ...]
    """For each report the checks for which its job may not start there."""
    held: tuple[tuple[str, ...], ...] = ()
    """For each report the checks whose failure stays noted, although they did not fail."""
    changed: tuple[tuple[str, Found], ...] = ()
    """What is news, with its nodes."""
    unnoted: tuple[str, ...] = ()
    """Nodes whose `Extra` is somebody else's text."""
    told_again: tuple[tuple[str, str], ...] = ()
    """Node and check of each result that is no news, and whose time is old."""


def read_report(text: bytes) -> Report:
    """A report as programs/node_checks/beside.py writes it. Raises ReportError."""
    try:
        given: Any = json.loads(text)
        found = tuple(
            Found(
                *(str(each["check"]), str(each["result"]), str(each["found"]), kind_of(each["kind"]), int(each["maxDrained"])),
                int(each.get("passes", 1)),  # a node from before does not say
                driver_of(each.get("driver")),
                wish_of(each.get("wish")),
            )
            for each in given["results"]
        )
        if any(each.result not in (PASSED, FAILED, UNKNOWN, SKIPPED) for each in found):
            raise ReportError("a result that is not known here")
        jobs = tuple(map(str, given.get("jobs", ())))[:_MOST_JOBS]
        return Report(str(given["node"]), str(given["context"]), str(given["job"]), found, jobs)
    except UNREADABLE as error:
        raise ReportError(f"no report: {error!r}") from None


def plan_collect(reports: Sequence[Report], nodes: Mapping[str, Node], others: Mapping[str, Node], at: str) -> Plan:
    """What becomes of reports that came together. `nodes` are those of the reports, `others` all that there are, both by name; `at` is when
    they were read, RFC 3339 in UTC.

    What Slurm has already is not written again.
    """
    results = {name: read_results(node.extra) for name, node in nodes.items()}
    extras = {name: node.extra for name, node in nodes.items()}
    allowance = Allowance(held_by_checks({**others, **nodes}, at))
    drains: dict[str, list[str]] = {}
    comments: dict[str, str] = {}
    refused: list[tuple[str, ...]] = []
    stays: list[tuple[str, ...]] = []
    changed: list[tuple[str, Found]] = []
    told_again: list[tuple[str, str]] = []
    for report in reports:
        stops: list[str] = []
        kept: list[str] = []
        for found in report.found if report.node in nodes else ():
            node, before = nodes[report.node], results[report.node]
            drains_it = found.result == FAILED and found.wish != "none" and allowance.take(report.node, found.max_drained)
            if before is not None:
                earlier = before.get(found.check)
                text = reasons.plain(found.found)
                after = following(earlier, found.result, text, at, found.kind, drains_it, found.passes, found.driver, wish=found.wish)
                after = seen_on(node.instance, earlier, after)
                if after.failure is not None and found.result != FAILED:
                    kept.append(found.check)
                if not _is_same(earlier, after):
                    before[found.check] = after
                    extras[report.node] = with_result(extras[report.node], found.check, after) or extras[report.node]
                    changed.append((report.node, found))
                elif _is_old(earlier, at):
                    told_again.append((report.node, found.check))
            if not drains_it:
                continue
            reason = reasons.check(found.check, found.found)
            if report.context == "prolog":
                stops.append(found.check)
                comments.setdefault(report.job, did_not_start(report.node, reason))
            if report.context in AT_ONCE:
                if may_be_drained(node.state) and not node.state.flags & _CLOSED:
                    drains.setdefault(reason, []).append(report.node)
            elif before is None and may_be_drained(node.state) and not node.state.flags & _KEPT:
                drains.setdefault(reason, []).append(report.node)
        refused.append(tuple(stops))
        stays.append(tuple(kept))
    return Plan(
        _by_text({name: extra for name, extra in extras.items() if extra != nodes[name].extra}),
        {reason: tuple(dict.fromkeys(names)) for reason, names in drains.items()},
        {job: text for job, text in comments.items() if job},
        tuple(refused),
        tuple(stays),
        tuple(changed),
        tuple(dict.fromkeys(report.node for report in reports if report.node in nodes and results[report.node] is None)),
        tuple(dict.fromkeys(told_again)),
    )


def did_not_start(node: str, reason: str) -> str:
    """What a job's AdminComment says of a node that could not start it."""
    return reasons.plain(f"did not start on {node}: {reason.removeprefix(reasons.OWN)}")


def plan_renewal(told: Mapping[str, Collection[str]], nodes: Mapping[str, Node], at: str) -> Mapping[str, tuple[str, ...]]:
    """New texts of `Extra`, each with its nodes: what checks have told again, found once more `at` that time. `told` has the checks by
    node. What is news since then has a younger time."""
    extras: dict[str, str] = {}
    for name, checks in told.items():
        extra = nodes[name].extra if name in nodes else ""
        for check, earlier in (read_results(extra) or {}).items():
            if check in checks and _is_old(earlier, at):
                extras[name] = with_result(extras.get(name, extra), check, renewed(earlier, at)) or extra
    return _by_text(extras)


def _by_text(extras: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    texts: dict[str, list[str]] = {}
    for name, extra in extras.items():
        texts.setdefault(extra, []).append(name)
    return {text: tuple(names) for text, names in texts.items()}


def _is_old(result: CheckResult | None, at: str) -> bool:
    """True where a result that is told again gets a younger time."""
    return result is not None and (read_time(at) or 0) - (read_time(result.at) or 0) >= RENEW_AFTER_S


def _is_same(before: CheckResult | None, after: CheckResult) -> bool:
    """True where nothing but the time of the look differs."""
    return before is not None and (before.result, before.failure, before.driver) == (after.result, after.failure, after.driver)
