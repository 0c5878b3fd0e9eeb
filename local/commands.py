"""Runs other programs and turns their failure into one clear error. Decides nothing."""

import subprocess
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep


class LocalError(Exception):
    """An error for a person: what failed and what to do. The terminal shows no stack trace."""


def run(argv: Sequence[str], *, stdin: str | None = None, timeout_s: float = 120, env: Mapping[str, str] | None = None) -> str:
    """Standard output of a program that must succeed. Raises LocalError with its last lines if it does not."""
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout_s, env=env, check=False)
    except FileNotFoundError:
        raise LocalError(f"{argv[0]}: no such program") from None
    except subprocess.TimeoutExpired:
        raise LocalError(f"{' '.join(argv)}: no end after {timeout_s:.0f} s") from None
    if done.returncode:
        last_lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-15:]
        raise LocalError("\n".join([f"{' '.join(argv)}: exit {done.returncode}", *last_lines]))
    return done.stdout


def succeeds(argv: Sequence[str], timeout_s: float = 30, env: Mapping[str, str] | None = None) -> bool:
    """True when the program ran and gave exit code 0; its output is dropped, and its stdin is empty."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, env=env, check=False)
        return done.returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False


def wait_until(what: str, holds: Callable[[], bool], *, timeout_s: float, log: Path | None = None, interval_s: float = 0.1) -> None:
    """Returns when `holds()` is true. After `timeout_s` raises LocalError with `what` and the end of `log`."""
    deadline = monotonic() + timeout_s
    while not holds():
        if monotonic() > deadline:
            raise LocalError(f"{what}: not so after {timeout_s:.0f} s{tail(log)}")
        sleep(interval_s)


def tail(log: Path | None, lines: int = 8) -> str:
    """The end of a log file as a paragraph for an error message, empty when there is none."""
    if log is None or not log.exists():
        return ""
    last = log.read_text(errors="replace").splitlines()[-lines:]
    return f"\nThe end of {log}:\n" + "\n".join(f"  {line}" for line in last)


def unforeseen(error: Exception) -> str:
    """The message for an unexpected error. Call it where the error is caught: it writes the stack trace to a file."""
    with tempfile.NamedTemporaryFile("w", prefix="slipway-local-", suffix=".log", delete=False) as log:
        log.write(traceback.format_exc())
    return f"{type(error).__name__}: {error}\nThis is a bug. Please report it and attach {log.name}."
