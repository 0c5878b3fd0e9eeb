"""Health check of a site's own: a command that is on the node, or in the root of its jobs. Runs on the node; standard library only.

Settings: `command`, a list of words. Exit code 0 is passed and 1 is failed; all else is unknown, as a command that is missing or broken
must not drain a cluster. The last line that it prints is what it found. It runs as Slurm's user, who may do everything in Slurm: so a file
that others could change is not run.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def changeable(path: Path, trusted: set[int]) -> str:
    """Who but these users could change what is run: a fault of the file or of a folder above it; empty where nobody could."""
    real = path.resolve(strict=True)
    for each in (real, *real.parents):
        facts = each.stat()
        if facts.st_uid not in trusted:
            return f"{each} belongs to user {facts.st_uid}, who could change it"
        is_safe = each != real and facts.st_mode & stat.S_ISVTX  # a folder such as /tmp, where nobody replaces files of others
        if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_safe:
            return f"{each} can be changed by others"
    return ""


def main() -> None:
    settings = json.loads(sys.argv[1])
    words: list[str] = settings["command"]
    try:
        found_at = shutil.which(words[0])
        if found_at is not None and (fault := changeable(Path(found_at), {0, os.getuid()})):
            print(json.dumps({"result": "unknown", "found": f"not run, as {fault}; have root own it, and nobody else write to it"}))
            return
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False)
        result, found = judge(done.returncode, done.stdout, done.stderr, settings)
    except OSError as error:
        result, found = "unknown", f"{words[0]}: {error.strerror}"
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
