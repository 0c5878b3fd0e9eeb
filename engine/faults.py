"""The errors of `slipway`: messages a person can act on, printed without a stack trace. The exit code is 1; 130 for a stopped verb."""

import tempfile
import traceback
from collections.abc import Iterable


class SlipwayError(Exception):
    """Something the user can put right; the message says which and how."""


class UnreachableError(SlipwayError):
    """The cluster could not be asked: no such context, no answer."""


class StoppedError(SlipwayError):
    """The user stopped a verb on its way; the exit code is 130, as a shell has it."""


def rows(lines: Iterable[object]) -> str:
    """The lines of a list in a message."""
    return "\n".join(f"  {line}" for line in lines)


def unforeseen(error: Exception) -> str:
    """What to say of an error that no code expected. Call it where the error is caught: its stack trace goes to a file of its own."""
    with tempfile.NamedTemporaryFile("w", prefix="slipway-", suffix=".log", delete=False) as log:
        log.write(traceback.format_exc())
    return f"{type(error).__name__}: {error}\nNobody foresaw that, so please report it, with {log.name}."
