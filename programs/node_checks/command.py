"""Health check of a site's own: a command in the worker's pod. Runs on the node; standard library only.

Settings: `command`, a list of words. Exit code 0 is passed and 1 is failed; all else is unknown, as a missing or broken command must not
drain a cluster. The last line that it prints is what it found. It runs as Slurm's user or root, so a file that others could change is
refused. Processes that it has left running are not waited for.
"""

import json
import os
import shutil
import subprocess
import sys
from threading import Thread
from typing import IO, Any

from .vendor import CannotRunError, refuse_changeable

_LONGEST = 200
_MOST_BYTES = 65536
"""Bytes that are kept of the end of its output."""
_REST_S = 1.0
"""Seconds for which its output is still read after its end. A process that it has left running may keep the pipes open."""
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_TOLD = ("SLURM_JOB_ID", "SLURM_JOB_UID", "SLURM_JOB_GPUS")
"""The job's variables that a command in a prolog or epilog gets. All others there may be its user's."""


def judge(code: int, output: str, errors: str, settings: dict[str, Any]) -> tuple[str, str]:
    """`passed`, `failed` or `unknown`, and what was found, from the exit code (negative: minus the signal) and what was printed."""
    lines = [line.strip() for text in (errors, output) for line in text.splitlines() if line.strip()]
    last_line = lines[-1][:_LONGEST] if lines else ""
    name = settings["command"][0]
    if code == 0:
        return "passed", last_line or f"{name} has found nothing"
    if code == 1:
        return "failed", last_line or f"{name} ended with 1, and printed nothing"
    end = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
    return "unknown", f"{name} {end}: {last_line}" if last_line else f"{name} {end}"


def run(words: list[str], program: str, env: dict[str, str] | None) -> tuple[int, str, str]:
    """Its exit code (negative: minus the signal), and the last of its output and its errors. Raises OSError."""
    buffers = bytearray(), bytearray()
    process = subprocess.Popen(
        words, executable=program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", env=env
    )
    readers = [Thread(target=_read, args=streams, daemon=True) for streams in ((process.stdout, buffers[0]), (process.stderr, buffers[1]))]
    for reader in readers:
        reader.start()
    code = process.wait()
    for reader in readers:
        reader.join(_REST_S)
    output, errors = (bytes(buffer).decode(errors="replace") for buffer in buffers)
    return code, output, errors


def _read(pipe: IO[bytes], into: bytearray) -> None:
    while part := os.read(pipe.fileno(), _MOST_BYTES):
        into += part
        del into[:-_MOST_BYTES]


def environment() -> dict[str, str] | None:
    """The environment of a command beside jobs; None for that of its job."""
    if os.getuid() != 0:
        return None
    job = {name: os.environ[name] for name in _TOLD if name in os.environ}
    return {"PATH": _PATH, "SLURMD_NODENAME": os.environ.get("SLURMD_NODENAME") or os.uname().nodename, **job}


def main() -> None:
    settings = json.loads(sys.argv[1])
    command: list[str] = settings["command"]
    try:
        found_at = shutil.which(command[0])
        if found_at is None:
            raise CannotRunError(f"{command[0]} is not on this node, or may not be executed")
        result, found = judge(*run(command, refuse_changeable(found_at), environment()), settings)
    except CannotRunError as error:
        result, found = "unknown", str(error)
    except OSError as error:
        result, found = "unknown", f"{command[0]}: {error.strerror}"
    print(json.dumps({"result": result, "found": found}))


if __name__ == "__main__":
    main()
