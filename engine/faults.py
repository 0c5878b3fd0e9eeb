"""The errors of `slipway`, printed without a stack trace. The exit code is 1, or 130 if the user stopped the command."""

import tempfile
import traceback
from collections.abc import Iterable


class SlipwayError(Exception):
    """An error that the user can fix. The message says how."""


class UnreachableError(SlipwayError):
    """The cluster cannot be reached: there is no such context, or no answer."""


class StoppedError(SlipwayError):
    """The user interrupted a command. The exit code is 130, as in a shell."""


def rows(lines: Iterable[object]) -> str:
    """Indents the lines of a list in a message."""
    return "\n".join(f"  {line}" for line in lines)


def unforeseen(error: Exception) -> str:
    """The message for an unexpected error. Call it in the except block: it writes the stack trace to a new file."""
    with tempfile.NamedTemporaryFile("w", prefix="slipway-", suffix=".log", delete=False) as log:
        log.write(traceback.format_exc())
    return f"{type(error).__name__}: {error}\nThis is a bug. Please report it and attach {log.name}."
