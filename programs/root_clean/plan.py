"""Decides which versions of the shared root may be removed. Pure.

A version is kept while its use is unknown. On a full or read-only volume a job begins without a link in `jobs`. So each job on nodes has to
have a link before a version is removed.
"""

import re
from collections.abc import Collection, Sequence

ON_NODES = ("RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "CONFIGURING", "COMPLETING")
"""squeue's states of jobs that may be on nodes."""
_ENDED = frozenset("COMPLETED CANCELLED FAILED TIMEOUT NODE_FAIL PREEMPTED BOOT_FAIL DEADLINE OUT_OF_MEMORY".split())  # noqa: SIM905
_DAY_S = 86_400
_SHOWN = 10


def is_needed(version: str, declared: Collection[str], current: str) -> bool:
    """True if the stack declares the version or it is current. `current` is the target of the link."""
    return version in declared or current == f"versions/{version}"


def read_note(note: str) -> int | None:
    """When a version was first found undeclared, in seconds since 1970. None for a damaged or incomplete note."""
    return int(note) if re.fullmatch(r"[1-9][0-9]{9,11}", note := note.strip()) else None


def judge(undeclared_since: int, now: int, keep_days: int, jobs: int, is_refilled: bool) -> str:
    """Why an undeclared version stays; empty if it may go once it is clear what runs. Times are in seconds since 1970.

    `jobs`: the number of jobs with a link to it. `is_refilled`: an older version of its name is still put aside.
    """
    left_s = undeclared_since + keep_days * _DAY_S - now
    if left_s > 0:
        return f"is not declared any more; it stays for {-(-left_s // _DAY_S)} more days"
    if jobs:
        return f"is used by {jobs} jobs; it stays"
    return "stays: an older one of the name is put aside" if is_refilled else ""


def judge_aside(version: str, current: str | None, jobs: int, unclear: str) -> str:
    """Why a version that was put aside comes back; empty if it may go. `current` is None if no version is current."""
    if jobs or current == f"versions/{version}":
        return "it was taken at this moment"
    if current is None:
        return "no version is current"
    return unclear


def jobs_in_versions(listed: str, outside: int) -> list[str]:
    """Numbers of all jobs that may use a version, from squeue's lines `number uid state`.

    Jobs of SlurmUser (uid `outside`) run outside the root. A job that waits for its nodes has no version yet: slurmctld runs no prolog
    before they are up.
    """
    rows = [line.split() for line in listed.splitlines() if line.strip()]
    return [number for number, *about in rows if about[:1] != [str(outside)] and about[1:2] != ["CONFIGURING"]]


def jobs_without_a_version(running: Sequence[str], first: Collection[str], linked: Collection[str]) -> list[str]:
    """Jobs of the `first` look that still run and have no link: their version is unknown.

    Later jobs do not count: the look after the version was put aside covers them, and they cannot begin in it.
    """
    return [job for job in running if job in first and job not in linked]


def tell_unknown(jobs: Sequence[str]) -> str:
    """Says that every version stays because of these jobs."""
    return f"nothing says which version these running jobs have: {' '.join(jobs[:_SHOWN])}"


def ended_jobs(links: Sequence[str], listed: str) -> list[str]:
    """Links of ended jobs, from squeue's lines `number state` of all jobs. A job in an unknown state counts as alive."""
    rows = [line.split(maxsplit=1) for line in listed.splitlines() if line.strip()]
    alive = {number for number, *state in rows if not (state and state[0].strip() in _ENDED)}
    return [job for job in links if job not in alive]


def pause_s(look: int) -> int:
    """Seconds to wait before look number `look`, from 0. Short at first, as a starting job soon gets its link."""
    return look * 2 if look < 15 else 30
