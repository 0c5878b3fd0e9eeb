"""Runs one of Slurm's own commands. The only module here that acts: each call has a deadline, and whatever goes wrong is a SlurmError."""

import os
import subprocess
from collections.abc import Mapping


class SlurmError(Exception):
    """Slurm did not answer in time, or refused; in its own words where it has said any."""


def call(*command: str, timeout_s: float, env: Mapping[str, str] | None = None, is_silence_wanted: bool = False, stdin: str = "") -> str:
    """Runs a command and gives its output. `env` extends this process's own. With `is_silence_wanted`, output on standard error is a
    failure even if the command succeeds. Raises SlurmError.

    Slurm keeps any byte in a reason or a comment (measured on 26.05): bytes that are not UTF-8 are read as U+FFFD.
    """
    try:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_s,
            check=False,
            env={**os.environ, **env} if env else None,
        )
    except subprocess.TimeoutExpired:
        raise SlurmError(f"{command[0]} did not answer within {timeout_s:.0f} s") from None
    except OSError as error:
        raise SlurmError(f"{command[0]}: {error.strerror}") from None
    if done.returncode or (is_silence_wanted and done.stderr.strip()):
        message_lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise SlurmError("; ".join(message_lines) or f"{command[0]} ended with {done.returncode}")
    return done.stdout
