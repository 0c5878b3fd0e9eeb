"""Prints previews and checks: the tree of resources, line diffs, counts, rows of checks."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from changes.steps import Difference
from cli.check.tasks import Row
from engine.plan import Change, Op, Resource
from engine.replacement import dotted
from engine.screen import Screen

SIGNS: Mapping[Op, tuple[str, str]] = {
    "create": ("+", "green"),
    "update": ("~", "yellow"),
    "replace": ("+-", "magenta"),
    "delete": ("-", "red"),
    "same": (" ", ""),
    "cli": ("?", "blue"),
}
_COUNTED: tuple[tuple[Op, str, str], ...] = (
    ("create", "to create", "created"),
    ("update", "to update", "updated"),
    ("replace", "to replace", "replaced"),
    ("delete", "to delete", "deleted"),
    ("cli", "known to the Pulumi CLI only", "left to the Pulumi CLI"),
    ("same", "unchanged", "unchanged"),
)


def tree(screen: Screen, resources: Sequence[Resource], changes: Mapping[str, Change], gone: Iterable[Change]) -> None:
    """Prints the changed resources under their parents, with their differences; then the deleted ones."""
    children: dict[str, list[Resource]] = {}
    for resource in sorted(resources, key=lambda resource: (resource.type, resource.name)):
        children.setdefault(resource.parent, []).append(resource)
    shown: set[str] = set()

    def mark(resource: Resource) -> bool:
        below = [mark(child) for child in children.get(resource.urn, [])]
        change = changes.get(resource.urn)
        if any(below) or (change and change.op != "same" and not resource.type.startswith("pulumi:providers:")):
            shown.add(resource.urn)
        return resource.urn in shown

    def is_new(resource: Resource) -> bool:
        """True for a component if all resources below it are new."""
        below = children.get(resource.urn, [])
        return bool(below) and all(changes[child.urn].op == "create" if child.urn in changes else is_new(child) for child in below)

    def show(resource: Resource, indent: str, last: bool, root: bool) -> None:
        change = changes.get(resource.urn) or Change("create" if is_new(resource) else "same", resource.type, resource.name)
        _row(screen, change, "" if root else indent + ("└─ " if last else "├─ "))
        below = "" if root else indent + ("   " if last else "│  ")
        for difference in change.differences:
            _difference(screen, difference, "    " + below)
        visible = [child for child in children.get(resource.urn, []) if child.urn in shown]
        for child in visible:
            show(child, below, child is visible[-1], root=False)

    for resource in children.get("", []):
        if mark(resource):
            show(resource, "", last=True, root=True)
    for change in gone:
        _row(screen, change, "")


def _row(screen: Screen, change: Change, guide: str) -> None:
    sign, style = SIGNS[change.op]
    note = f"  ({change.note})" if change.note else ""
    screen.say(f" {sign:<2} {guide}{change.type}  {change.name}{note}", style)


def _difference(screen: Screen, difference: Difference, indent: str) -> None:
    """Prints a changed path: texts of several lines as a diff, everything else as old and new value."""
    path = dotted(difference.path)
    if any(isinstance(side, str) and "\n" in side for side in (difference.old, difference.new)):
        screen.say(f"{indent}{path}:", "bold")
        before, after = str(difference.old or "").splitlines(), str(difference.new or "").splitlines()
        for line in list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]:
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "dim")
            screen.say(f"{indent}  {line}", style)
    elif difference.old is None:
        screen.say(f"{indent}+ {path}: {_short(difference.new)}", "green")
    elif difference.new is None:
        screen.say(f"{indent}- {path}: {_short(difference.old)}", "red")
    else:
        screen.say(f"{indent}~ {path}: {_short(difference.old)} → {_short(difference.new)}", "yellow")


def _short(value: object, limit: int = 160) -> str:
    text = str(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= limit else text[:limit] + "…"


def checks(screen: Screen, rows: Sequence[Row]) -> None:
    """Prints a table of checks: a tick, a cross or a dash, the finding and the duration; then the remedy."""
    width = max(len(row.title) for row in rows)
    for row in rows:
        sign, style = {True: ("✓", "green"), False: ("✗", "red"), None: ("-", "dim")}[row.passed]
        duration = f"  {row.seconds:.1f} s" if row.seconds is not None else ""
        screen.say(f" {sign} {row.title:<{width}}  {row.said}{duration}", "" if row.passed else style)
        for line in row.remedy.splitlines():
            screen.say(f"   {'':<{width}}  {line}", "dim")


def checks_as_json(rows: Sequence[Row]) -> dict[str, Any]:
    """The checks as JSON; `passed` is null if something was not checked."""
    return {
        "checks": [
            {"name": row.title, "passed": row.passed, "message": row.said, "remedy": row.remedy, "seconds": row.seconds} for row in rows
        ]
    }


def counts(changes: Iterable[Change], is_done: bool = False) -> str:
    """`12 to create, 1 to update, 20 unchanged`, or the same as done."""
    ops = [change.op for change in changes]
    parts = [f"{ops.count(op)} {done if is_done else planned}" for op, planned, done in _COUNTED if op in ops]
    return ", ".join(parts) or "no resources"


def is_quiet(changes: Iterable[Change]) -> bool:
    """True if nothing changes."""
    return all(change.op in ("same", "cli") for change in changes)
