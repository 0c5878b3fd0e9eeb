"""Reports a build: one line per step on stderr, with a tick and its time. Programs' output goes to a log; errors quote its end."""

import subprocess
import tempfile
import traceback
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from rich.console import Console

LAST_LINES = 12


class BuildError(Exception):
    """The image cannot be built; the text says why and what to do."""


@contextmanager
def step(console: Console, title: str) -> Generator[list[str]]:
    """Runs the block as a step; what the block appends to the list it gets is shown on the step's line."""
    began = monotonic()
    notes: list[str] = []
    mark = "[red]✗[/]"
    try:
        with console.status(title):
            yield notes
        mark = "[green]✓[/]"
    finally:
        text = ": ".join([title, *notes])
        console.print(f" {mark} {text} [dim]{monotonic() - began:.1f} s[/]", highlight=False, soft_wrap=True)


def run(command: Sequence[str], log: Path, *, env: Mapping[str, str] | None = None, timeout_s: float = 900) -> str:
    """Runs a program and gives its standard output. Both streams go to the log. Raises BuildError with the log's last lines."""
    began_at = log.stat().st_size if log.exists() else 0
    with log.open("a", encoding="utf-8") as sink:
        sink.write(f"$ {' '.join(command)}\n")
        sink.flush()
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=sink, text=True, env=env, timeout=timeout_s, check=False
            )
        except FileNotFoundError:
            raise BuildError(f"{command[0]} is not installed") from None
        except subprocess.TimeoutExpired:
            raise BuildError(f"{command[0]} did not end within {timeout_s:.0f} s; its output is in {log}") from None
        sink.write(done.stdout)
    if done.returncode:
        with log.open(encoding="utf-8", errors="replace") as source:
            source.seek(began_at)
            last = source.read().splitlines()[1:][-LAST_LINES:]
        message = f"{command[0]} ended with code {done.returncode}; the whole output is in {log}"
        raise BuildError("\n".join([message, *(f"  {line}" for line in last)]))
    return done.stdout


def unforeseen(error: Exception) -> str:
    """The message for an unexpected error. Call it where the error is caught: it writes the stack trace to a file."""
    with tempfile.NamedTemporaryFile("w", prefix="slipway-images-", suffix=".log", delete=False) as log:
        log.write(traceback.format_exc())
    return f"{type(error).__name__}: {error}\nThis is a bug. Please report it and attach {log.name}."
