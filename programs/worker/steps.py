"""The steps of jobs that run in this pod, as its own processes show them: what slurmctld may have forgotten.

A job's extern step (PrologFlags=Contain) ends when slurmctld says so, and one that was forgotten never does. It is there for what a user
starts over ssh, so it counts while a process of a user is in its cgroup.
"""

import os


def has_steps(processes: str = "/proc") -> bool:
    """True when a step of a job runs in this pod, and when that cannot be told."""
    try:
        for entry in os.scandir(processes):
            if entry.name.isdecimal():
                try:
                    if _is_step(entry.path):
                        return True
                except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
                    continue
    except OSError:
        return True
    return False


def _is_step(process: str) -> bool:
    title = _first_bytes(f"{process}/cmdline").partition(b"\0")[0]
    if title.startswith(b"slurmstepd: ["):
        return not title.endswith(b".extern]")
    is_users = os.stat(process).st_uid != 0
    return is_users and b"/step_extern" in _first_bytes(f"{process}/cgroup")


def _first_bytes(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 4096)
    finally:
        os.close(file)
