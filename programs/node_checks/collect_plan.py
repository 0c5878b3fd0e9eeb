"""Decides what becomes of the results of checks beside jobs. Pure.

A failure is noted in the node's `Extra`, and the NodeSet controller drains the node. In a prolog the node is drained at once, so that the
job goes elsewhere.
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
    """The text is not a report."""


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
    """How many times in a row the check has to pass before a failure ends."""
    driver: Driver | None = None
    """The driver of the node's GPUs, where the check has met it."""
    wish: Wish = "drain"
    """What a failure asks for: with `none` it drains no node, and holds up no job."""


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
    """Node and check of each result that has not changed, and whose time is old."""


def read_report(text: bytes) -> Report:
    """A report as programs/node_checks/beside.py writes it. Raises ReportError."""
    try:
        document: Any = json.loads(text)
        findings = tuple(
            Found(
                *(str(entry["check"]), str(entry["result"]), str(entry["found"]), kind_of(entry["kind"]), int(entry["maxDrained"])),
                int(entry.get("passes", 1)),  # a node from before does not say
                driver_of(entry.get("driver")),
                wish_of(entry.get("wish")),
            )
            for entry in document["results"]
        )
        if any(finding.result not in (PASSED, FAILED, UNKNOWN, SKIPPED) for finding in findings):
            raise ReportError("a result that is not known here")
        jobs = tuple(map(str, document.get("jobs", ())))[:_MOST_JOBS]
        return Report(str(document["node"]), str(document["context"]), str(document["job"]), findings, jobs)
    except UNREADABLE as error:
        raise ReportError(f"no report: {error!r}") from None


def plan_collect(reports: Sequence[Report], nodes: Mapping[str, Node], others: Mapping[str, Node], at: str) -> Plan:
    """What becomes of reports that came together. `nodes` are those of the reports, `others` all nodes, both by name; `at` is when they
    were read, RFC 3339 in UTC.

    A text that Slurm already has is not written again.
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
        held: list[str] = []
        for finding in report.found if report.node in nodes else ():
            node, before = nodes[report.node], results[report.node]
            drains_it = finding.result == FAILED and finding.wish != "none" and allowance.take(report.node, finding.max_drained)
            if before is not None:
                earlier = before.get(finding.check)
                text = reasons.plain(finding.found)
                after = following(
                    earlier, finding.result, text, at, finding.kind, drains_it, finding.passes, finding.driver, wish=finding.wish
                )
                after = seen_on(node.instance, earlier, after)
                if after.failure is not None and finding.result != FAILED:
                    held.append(finding.check)
                if not _is_same(earlier, after):
                    before[finding.check] = after
                    extras[report.node] = with_result(extras[report.node], finding.check, after) or extras[report.node]
                    changed.append((report.node, finding))
                elif _is_old(earlier, at):
                    told_again.append((report.node, finding.check))
            if not drains_it:
                continue
            reason = reasons.check(finding.check, finding.found)
            if report.context == "prolog":
                stops.append(finding.check)
                comments.setdefault(report.job, did_not_start(report.node, reason))
            if report.context in AT_ONCE:
                if may_be_drained(node.state) and not node.state.flags & _CLOSED:
                    drains.setdefault(reason, []).append(report.node)
            elif before is None and may_be_drained(node.state) and not node.state.flags & _KEPT:
                drains.setdefault(reason, []).append(report.node)
        refused.append(tuple(stops))
        stays.append(tuple(held))
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
    """New texts of `Extra`, each with its nodes, in which repeated results get the time `at`. `told` has the checks by node. Results that
    have changed since have a younger time."""
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
    """True if the result gets a younger time when it is reported again."""
    return result is not None and (read_time(at) or 0) - (read_time(result.at) or 0) >= RENEW_AFTER_S


def _is_same(before: CheckResult | None, after: CheckResult) -> bool:
    """True if only the time differs."""
    return before is not None and (before.result, before.failure, before.driver) == (after.result, after.failure, after.driver)
