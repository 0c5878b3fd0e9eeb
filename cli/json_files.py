"""Writes the files of --json."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.faults import SlipwayError

STDOUT = "-"


def refuse_unwritable(file: Path | None) -> None:
    """Call this before long work. Raises SlipwayError if the file cannot be written; its content stays."""
    if file and str(file) != STDOUT:
        try:
            file.open("a").close()
        except OSError as error:
            raise _refusal(file, error) from error


def as_text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def write(file: Path, value: Mapping[str, Any]) -> None:
    """Writes an object; the file - is standard output. Raises SlipwayError."""
    if str(file) == STDOUT:
        sys.stdout.write(as_text(value))
    else:
        write_text(file, as_text(value))


def write_text(file: Path, text: str) -> None:
    """Raises SlipwayError."""
    try:
        file.write_text(text)
    except OSError as error:
        raise _refusal(file, error) from error


def _refusal(file: Path, error: OSError) -> SlipwayError:
    return SlipwayError(f"{file} cannot be written: {error.strerror}.")
