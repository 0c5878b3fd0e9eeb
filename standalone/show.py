"""What a person sees: ticked steps, the tree of a preview, line diffs, counts. Every line passes the Screen, which hides secrets.

Lines are never wrapped or cropped, so that they read the same in a terminal, a log and a test.
"""

import contextlib
import difflib
import time
from collections.abc import Generator, Iterable, Mapping, Sequence

from rich.console import Console
from rich.status import Status
from rich.text import Text

from changes.steps import Difference
from standalone.check.tasks import Row
from standalone.plan import MASK, Change, Op, Resource

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
    ("cli", "known to the pulumi CLI only", "left to the pulumi CLI"),
    ("same", "unchanged", "unchanged"),
)
_SHORTEST_SECRET = 6
_NEWS_EVERY_S = 10.0


class Screen:
    """Standard output, with the values that must never appear on it."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False, soft_wrap=True)
        self._secrets: set[str] = set()
        self._started = time.monotonic()

    def hide(self, texts: Iterable[str]) -> None:
        """Texts to replace by `[secret]` wherever they would be printed. Very short texts would blot out ordinary words."""
        self._secrets |= {text for text in texts if len(text) >= _SHORTEST_SECRET}

    def hidden(self, text: str) -> str:
        """The text without the secrets."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, MASK)
        return text

    def say(self, text: str = "", style: str = "") -> None:
        """One line, or several, as they are."""
        self.console.print(Text(self.hidden(text), style=style), soft_wrap=True)

    def warn(self, *texts: str) -> None:
        """A warning each: what the user should know, though the verb goes on."""
        for text in texts:
            self.say(f"warning: {text}", "yellow")

    def tick(self, text: str, since: float | None = None) -> None:
        """A step that is done, with its time in seconds."""
        took = f"  {time.monotonic() - since:.1f} s" if since is not None else ""
        self.console.print(Text.assemble((" ✓ ", "green"), self.hidden(text), (took, "dim")), soft_wrap=True)

    def fail(self, text: str) -> None:
        """What ended a verb, on standard error."""
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        console.print(Text.assemble((" ✗ ", "red"), self.hidden(text)), soft_wrap=True)

    @contextlib.contextmanager
    def waiting(self, text: str) -> Generator["Line"]:
        """A spinner with a line that can be changed while it turns; in a log, only what changes is printed."""
        with self.console.status(Text(self.hidden(text))) as status:
            yield Line(self, status)


class Line:
    """The line beside a spinner."""

    def __init__(self, screen: Screen, status: Status) -> None:
        self._screen, self._status, self._last = screen, status, ""

    def update(self, text: str) -> None:
        """Shows another text."""
        text = self._screen.hidden(text)
        if text != self._last:
            self._last = text
            self._status.update(Text(text))


class News:
    """Lines on what takes long, for a log: whenever its phase changes, and what else changes not more often than every few seconds."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._last: dict[str, tuple[str, float]] = {}

    def say(self, name: str, text: str, now_s: float) -> None:
        """Prints a line about one object where it is news."""
        before, at = self._last.get(name, ("", -_NEWS_EVERY_S))
        phase_is_new = text.partition(":")[0] != before.partition(":")[0]
        if text != before and (phase_is_new or now_s - at >= _NEWS_EVERY_S):
            self._last[name] = (text, now_s)
            self._screen.say(f" · {name}: {text}", "dim")


def tree(screen: Screen, resources: Sequence[Resource], changes: Mapping[str, Change], gone: Iterable[Change]) -> None:
    """The declared resources under their parents, changed resources only, with what changes in each; then what goes."""
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
        """True of a component when all below it is new."""
        below = children.get(resource.urn, [])
        return bool(below) and all(changes[child.urn].op == "create" if child.urn in changes else is_new(child) for child in below)

    def show(resource: Resource, indent: str, last: bool, root: bool) -> None:
        change = changes.get(resource.urn) or Change("create" if is_new(resource) else "same", resource.type, resource.name)
        _row(screen, change, "" if root else indent + ("└─ " if last else "├─ "))
        below = "" if root else indent + ("   " if last else "│  ")
        for found in change.differences:
            _difference(screen, found, "    " + below)
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
    """One changed path: long text line by line, everything else as old and new."""
    path = ".".join(difference.path).replace(".[", "[")
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


def checks(screen: Screen, found: Sequence[Row]) -> None:
    """A table of checks: a tick, a cross or a dash, what was seen, and the time; below a cross, what to do."""
    width = max(len(row.title) for row in found)
    for row in found:
        mark, style = {True: ("✓", "green"), False: ("✗", "red"), None: ("-", "dim")}[row.passed]
        time = f"  {row.seconds:.1f} s" if row.seconds is not None else ""
        screen.say(f" {mark} {row.title:<{width}}  {row.said}{time}", "" if row.passed else style)
        for line in row.remedy.splitlines():
            screen.say(f"   {'':<{width}}  {line}", "dim")


def counts(changes: Iterable[Change], is_done: bool = False) -> str:
    """`12 to create, 1 to update, 20 unchanged`, or what was done; the same words whatever the order."""
    ops = [change.op for change in changes]
    said = [f"{ops.count(op)} {done if is_done else planned}" for op, planned, done in _COUNTED if op in ops]
    return ", ".join(said) or "no resources"


def is_quiet(changes: Iterable[Change]) -> bool:
    """True when none of the changes changes anything."""
    return all(change.op in ("same", "cli") for change in changes)
