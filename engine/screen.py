"""Prints the progress of a command: lines, ticked steps, a spinner. The Screen hides secrets in every line.

Lines are never wrapped or cropped, so they are the same in a terminal, a log and a test.
"""

import contextlib
import time
from collections.abc import Generator, Iterable

from rich.console import Console
from rich.status import Status
from rich.text import Text

from engine.plan import MASK

_SHORTEST_SECRET = 6
_NEWS_EVERY_S = 10.0


class Screen:
    """Standard output, without the secrets it was told to hide."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False, soft_wrap=True)
        self._secrets: set[str] = set()
        self._started = time.monotonic()

    def hide(self, texts: Iterable[str]) -> None:
        """Replaces these texts by `[secret]` in all output, except very short ones, which would hide ordinary words."""
        self._secrets |= {text for text in texts if len(text) >= _SHORTEST_SECRET}

    def hidden(self, text: str) -> str:
        """The text without the secrets."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, MASK)
        return text

    def say(self, text: str = "", style: str = "") -> None:
        """Prints one line or several."""
        self.console.print(Text(self.hidden(text), style=style), soft_wrap=True)

    def warn(self, *texts: str) -> None:
        """Prints warnings; the command continues."""
        for text in texts:
            self.say(f"warning: {text}", "yellow")

    def tick(self, text: str, since: float | None = None) -> None:
        """Prints a finished step, with its duration if it began at `since` (monotonic seconds)."""
        took = f"  {time.monotonic() - since:.1f} s" if since is not None else ""
        self.console.print(Text.assemble((" ✓ ", "green"), self.hidden(text), (took, "dim")), soft_wrap=True)

    def fail(self, text: str) -> None:
        """Prints the error that ended a command to standard error."""
        console = Console(stderr=True, highlight=False, soft_wrap=True)
        console.print(Text.assemble((" ✗ ", "red"), self.hidden(text)), soft_wrap=True)

    @contextlib.contextmanager
    def waiting(self, text: str) -> Generator["Line"]:
        """Shows a spinner with a line of text that can be updated."""
        with self.console.status(Text(self.hidden(text))) as status:
            yield Line(self, status)


class Line:
    """The line beside a spinner."""

    def __init__(self, screen: Screen, status: Status) -> None:
        self._screen, self._status, self._last = screen, status, ""

    def update(self, text: str) -> None:
        """Replaces the text."""
        text = self._screen.hidden(text)
        if text != self._last:
            self._last = text
            self._status.update(Text(text))


class News:
    """Prints the progress of long steps: each new phase at once, other changes at most every few seconds."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._last: dict[str, tuple[str, float]] = {}

    def say(self, name: str, text: str, now_s: float) -> None:
        """Prints a line about one object if it is news."""
        before, at = self._last.get(name, ("", -_NEWS_EVERY_S))
        phase_is_new = text.partition(":")[0] != before.partition(":")[0]
        if text != before and (phase_is_new or now_s - at >= _NEWS_EVERY_S):
            self._last[name] = (text, now_s)
            self._screen.say(f" · {name}: {text}", "dim")
