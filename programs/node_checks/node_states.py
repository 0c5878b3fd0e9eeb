"""Whether a job of a user is on this node, without a question to slurmctld: from the slurmstepds in the worker's pod.

A job has one from its start to its end, also where nothing of it runs at the moment. Jobs of Slurm's own user are checks themselves. They
are told by their tasks, and count until there is one.
"""

from pathlib import Path

from slurm.processes import first_bytes, step_of, titles

IDLE, ALLOCATED = "idle", "allocated"


def node_state(slurm_user: int, processes: str = "/proc") -> str:
    """`idle` or `allocated`; the latter, too, where the processes cannot be read."""
    jobs: dict[str, str] = {}
    others: list[str] = []
    try:
        for process, title in titles(processes):
            step = step_of(title)
            if step is None:
                others.append(process)
            else:
                jobs[Path(process).name] = step[0]
    except OSError:
        return ALLOCATED
    checks = {jobs.get(parent) for process in others if jobs and (parent := _parent_of(process, slurm_user))}
    return IDLE if checks.issuperset(jobs.values()) else ALLOCATED


def _parent_of(process: str, user: int) -> str:
    """The number of a process's parent; empty for a process of another user, and for one that has ended."""
    try:
        if Path(process).stat().st_uid != user:
            return ""
        words = first_bytes(f"{process}/stat").rpartition(b") ")[2].split()  # its name, in parentheses, may have any letter
        return words[1].decode()
    except (OSError, IndexError):
        return ""
