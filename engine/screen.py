"""What a person sees while a verb works: lines, ticked steps, a spinner. Every line passes the Screen, which hides secrets.

Lines are never wrapped or cropped, so that they read the same in a terminal, a log and a test.
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
