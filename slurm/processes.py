"""Reads the slurmstepds of a worker's pod from its /proc: which steps of which jobs run there.

slurmd starts one for each step of each job, and with PrologFlags=Contain the step `extern` for each job.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # a worker's stop hook and each job's prolog pay for what is imported here
    from collections.abc import Iterator

_STEPD = b"slurmstepd: ["


def titles(processes: str = "/proc") -> "Iterator[tuple[str, bytes]]":
    """The folder of each process and the first word of its command line, without processes that have ended. Raises OSError."""
    for entry in os.scandir(processes):
        if entry.name.isdecimal():
            try:
                title = first_bytes(f"{entry.path}/cmdline").partition(b"\0")[0]
            except (FileNotFoundError, ProcessLookupError):
                continue
            yield entry.path, title


def step_of(title: bytes) -> "tuple[str, str] | None":
    """The job and the step, such as `7` and `batch`, of the slurmstepd with that title; None for another process."""
    if not title.startswith(_STEPD):
        return None
    job, _, step = title[len(_STEPD) :].partition(b"]")[0].rpartition(b".")
    return job.decode(errors="replace"), step.decode(errors="replace")


def first_bytes(path: str) -> bytes:
    """The start of a file of /proc. Raises OSError."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 4096)
    finally:
        os.close(file)
