"""Health check of a site's own: a command that is on the node, or in the root of its jobs. Runs on the node; standard library only.

Settings: `command`, a list of words. Exit code 0 is passed and 1 is failed; all else is unknown, as a command that is missing or broken
must not drain a cluster. The last line that it prints is what it found. It runs as Slurm's user, who may do everything in Slurm: so a file
that others could change is not run.
"""

import json
import shutil
import subprocess
import sys
from typing import Any

from .vendor import CannotRunError, refuse_changeable

_LONGEST = 200


def judge(code: int, output: str, errors: str, settings: dict[str, Any]) -> tuple[str, str]:
    """`passed`, `failed` or `unknown`, and what was found, from the exit code (negative: minus the signal) and what was printed."""
    lines = [line.strip() for text in (errors, output) for line in text.splitlines() if line.strip()]
    said = lines[-1][:_LONGEST] if lines else ""
    name = settings["command"][0]
    if code == 0:
        return "passed", said or f"{name} has found nothing"
    if code == 1:
        return "failed", said or f"{name} ended with 1, and printed nothing"
    end = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
    return "unknown", f"{name} {end}: {said}" if said else f"{name} {end}"


def main() -> None:
    settings = json.loads(sys.argv[1])
    words: list[str] = settings["command"]
    try:
        found_at = shutil.which(words[0])
        real = refuse_changeable(found_at) if found_at is not None else None
        done = subprocess.run(
            words, executable=real, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False
        )
        result, found = judge(done.returncode, done.stdout, done.stderr, settings)
    except CannotRunError as error:
        result, found = "unknown", str(error)
    except OSError as error:
        result, found = "unknown", f"{words[0]}: {error.strerror}"
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
