"""The steps of jobs that run in this pod, as its own processes show them: what slurmctld may have forgotten.

A job's extern step (PrologFlags=Contain) ends when slurmctld ends it, and a forgotten one never does. It is there for what a user
starts over ssh, so it counts while a process of a user is in its cgroup.
"""

import os

from slurm.processes import first_bytes, step_of, titles


def has_steps(processes: str = "/proc") -> bool:
    """True when a step of a job runs in this pod, and when that cannot be told."""
    try:
        for process, title in titles(processes):
            try:
                if _is_step(process, title):
                    return True
            except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
                continue
    except OSError:
        return True
    return False


def _is_step(process: str, title: bytes) -> bool:
    if (step := step_of(title)) is not None:
        return step[1] != "extern"
    is_users = os.stat(process).st_uid != 0
    return is_users and b"/step_extern" in first_bytes(f"{process}/cgroup")
