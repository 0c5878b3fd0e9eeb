"""Whether a user's job is on this node, by the slurmstepds in the worker's pod: slurmctld is not asked.

A job has a slurmstepd from its start to its end. Jobs of Slurm's own user are checks; their tasks identify them, and they count until they
have one.
"""

from pathlib import Path

from slurm.processes import first_bytes, step_of, titles

IDLE, ALLOCATED = "idle", "allocated"


def node_state(slurm_user: int, processes: str = "/proc") -> str:
    """`idle` or `allocated`; `allocated`, too, if the processes cannot be read."""
    jobs: dict[str, str] = {}
    non_steps: list[str] = []
    try:
        for process, title in titles(processes):
            step = step_of(title)
            if step is None:
                non_steps.append(process)
            else:
                jobs[Path(process).name] = step[0]
    except OSError:
        return ALLOCATED
    checks = {jobs.get(parent) for process in non_steps if jobs and (parent := _parent_of(process, slurm_user))}
    return IDLE if checks.issuperset(jobs.values()) else ALLOCATED


def _parent_of(process: str, user: int) -> str:
    """The number of a process's parent; empty for a process of another user, or that has ended."""
    try:
        if Path(process).stat().st_uid != user:
            return ""
        fields = first_bytes(f"{process}/stat").rpartition(b") ")[2].split()  # its name, in parentheses, may have any letter
        return fields[1].decode()
    except (OSError, IndexError):
        return ""
