"""How the verbs report: one line a step, with a tick and its time."""

from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.markup import escape


class Step:
    """A step in progress: `note` is added to its line, and `say` announces long parts."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.note = ""

    def say(self, text: str) -> None:
        """A line of its own, at once."""
        self._console.print(f"   [dim]· {escape(text)}[/]", highlight=False)


class Steps:
    """Prints steps to a console; on a terminal, the running one has a spinner."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = monotonic()

    @property
    def seconds(self) -> float:
        """Since the first step."""
        return monotonic() - self._began

    @contextmanager
    def step(self, title: str) -> Generator[Step]:
        """Runs the block as a step: a tick and its time when it ends, a cross when it fails."""
        began = monotonic()
        step = Step(self._console)
        try:
            with self._console.status(escape(title)):
                yield step
        except BaseException:
            self._line("[red]✗[/]", title, step.note, began)
            raise
        self._line("[green]✓[/]", title, step.note, began)

    def _line(self, mark: str, title: str, note: str, began: float) -> None:
        text = escape(f"{title}: {note}" if note else title)
        self._console.print(f" {mark} {text} [dim]{monotonic() - began:.1f} s[/]", highlight=False, soft_wrap=True)
