"""What a verb writes for a program with --json."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.faults import SlipwayError


def write(file: Path, value: Mapping[str, Any]) -> None:
    """Writes an object; the file - is standard output. Raises SlipwayError."""
    text = json.dumps(value, indent=2, sort_keys=True) + "\n"
    try:
        if str(file) == "-":
            sys.stdout.write(text)
        else:
            file.write_text(text)
    except OSError as error:
        raise SlipwayError(f"{file} cannot be written: {error.strerror}") from error
