"""Decides which versions of the shared root may be removed, and what has to be known for that. Pure.

A version whose use is unknown is kept: each job that slurmctld knows to be on nodes has to have its link in `jobs`, since on a volume
that was full or read-only for a while a job begins without a link. Reads and writes nothing; run.py does.
"""

import re
from collections.abc import Collection, Sequence

ON_NODES = ("RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "CONFIGURING", "COMPLETING")
"""States of jobs that may be on nodes, for squeue."""
_ENDED = frozenset("COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY".split())  # noqa: SIM905
_DAY_S = 86_400
_SHOWN = 10


def is_needed(version: str, declared: Collection[str], current: str) -> bool:
    """True for a version that the stack declares or that is current; `current` is the target of the link."""
    return version in declared or current == f"versions/{version}"


def read_note(note: str) -> int | None:
    """When a version was first found undeclared, in seconds since 1970. None for a note that is damaged or cut: it says nothing."""
    return int(note) if re.fullmatch(r"[1-9][0-9]{9,11}", note := note.strip()) else None


def judge(undeclared_since: int, now: int, keep_days: int, jobs: int, is_refilled: bool) -> str:
    """Why a version that is not needed stays; empty for one that may go once it is clear what runs. Times are in seconds since 1970.

    `jobs` have a link to it. `is_refilled`: an older version of its name is still put aside.
    """
    left_s = undeclared_since + keep_days * _DAY_S - now
    if left_s > 0:
        return f"is not declared any more; it stays for {-(-left_s // _DAY_S)} more days"
    if jobs:
        return f"is used by {jobs} jobs; it stays"
    return "stays: an older one of the name is put aside" if is_refilled else ""


def judge_aside(version: str, current: str | None, jobs: int, unclear: str) -> str:
    """Why a version that was put out of reach comes back; empty where it may go. `current` is None where no version is."""
    if jobs or current == f"versions/{version}":
        return "it was taken at this moment"
    if current is None:
        return "no version is current"
    return unclear


def jobs_in_versions(listed: str, outside: int) -> list[str]:
    """The numbers of all jobs that may have a version, from squeue's lines `number uid state`.

    Jobs of Slurm's own user (`outside`) are outside the root. A job that waits for its nodes has no version yet: slurmctld runs no prolog
    before they are up.
    """
    rows = [line.split() for line in listed.splitlines() if line.strip()]
    return [number for number, *about in rows if about[:1] != [str(outside)] and about[1:2] != ["CONFIGURING"]]


def jobs_without_a_version(running: Sequence[str], first: Collection[str], linked: Collection[str]) -> list[str]:
    """The jobs of the `first` look that still run and have no link: nobody knows their version.

    Later jobs do not count: for them the look after the version was put out of reach is there, and they found it gone.
    """
    return [job for job in running if job in first and job not in linked]


def tell_unknown(jobs: Sequence[str]) -> str:
    """Why every version stays."""
    return f"nothing says which version these running jobs have: {' '.join(jobs[:_SHOWN])}"


def ended_jobs(links: Sequence[str], listed: str) -> list[str]:
    """The links whose job has ended, from squeue's lines `number state` of all jobs it knows. A job in an unknown state is alive."""
    rows = [line.split(maxsplit=1) for line in listed.splitlines() if line.strip()]
    alive = {number for number, *state in rows if not (state and state[0].strip() in _ENDED)}
    return [job for job in links if job not in alive]


def pause_s(look: int) -> int:
    """Seconds to wait before a look at all jobs, by its number from 0. A job that begins has its link soon, and one that ends goes."""
    return look * 2 if look < 15 else 30
