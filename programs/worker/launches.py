"""Finds failed launches of jobs in slurmd's log, and has the program beside slurmctld find out whether the node is at fault.

slurmd's log quotes what users write, so a line proves nothing: it is only a reason to look. A spool that this program cannot write to is
proof. So is a job of Slurm's own user that does not start either (programs/node_checks/launches.py).
"""

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable

from names import paths, ports
from slurm.collector import LAUNCH, tell
from slurm.job_names import find_job

SPOOL = paths.SLURMD_SPOOL
_SIGNS = ("Can not read return code from slurmstepd", "slurmstepd return code", "Could not launch JobId=")
"""What slurmd 26.05 says where a slurmstepd has ended before it could begin: of a batch job, an allocation, or any job's extern step."""
_NAMES = ("Launching batch JobId=", "already killed, do not launch batch job")
"""Text before the number of a batch job that slurmd is about to start, or that Slurm took back before, as its extern step failed."""
_MOST_JOBS = 64
_RECENT_S = 60.0
_PAUSE_S = 5.0
_TRIES = 6
_LOOK_S = 5.0
_WRITTEN = bytes(65_536)


def is_sign(line: str) -> bool:
    """True for a line that slurmd writes where it could not start a job."""
    return any(sign in line for sign in _SIGNS)


def job_in(line: str) -> str:
    """The job that such a line names, or the batch job that slurmd starts or no longer starts; empty for all other lines."""
    return find_job(line)[0] if is_sign(line) or any(words in line for words in _NAMES) else ""


class Spool:
    """slurmd's folder, and the thread that tries it: no second one begins while a file system has not answered the first."""

    def __init__(self, path: str = SPOOL) -> None:
        self._path = path
        self._found: list[str] = []
        self._looking: threading.Thread | None = None

    def find_fault(self, deadline_s: float = _LOOK_S) -> str:
        """Why slurmd cannot write to it; empty where it can. A file system that does not answer has a deadline, too."""
        if self._looking is None or not self._looking.is_alive():
            self._found = []
            self._looking = threading.Thread(target=self._look, args=(self._found,), daemon=True)
            self._looking.start()
        self._looking.join(deadline_s)
        return self._found[0] if self._found else f"{self._path} does not answer within {deadline_s:.0f} s"

    def _look(self, found: list[str]) -> None:
        found.append(_write(self._path))


def _write(spool: str) -> str:
    path = f"{spool}/.slipway-launch"
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(file, _WRITTEN)
            os.fsync(file)
        finally:
            os.close(file)
            os.unlink(path)
    except OSError as error:
        return f"{spool} cannot be written to: {error.strerror}"
    return ""


class Launches:
    """What slurmd's log says of launches, and the thread that tells it."""

    def __init__(self, node: str, collector: str, user: int, say: Callable[[str], None]) -> None:
        self._node, self._collector, self._user, self._say = node, collector, user, say
        self._jobs = deque[tuple[float, str]](maxlen=_MOST_JOBS)
        self._has_failed = threading.Event()
        self._spool = Spool()

    def hear(self, line: str) -> None:
        """Takes a line of the log; from the thread that passes the log on."""
        if job := job_in(line):
            self._jobs.append((time.monotonic(), job))
        if is_sign(line):
            self._has_failed.set()

    def run(self) -> None:
        """Reports failed launches, without end."""
        while True:
            self._has_failed.wait()
            self._has_failed.clear()
            told = self._tell()
            time.sleep(_PAUSE_S)
            if self._recent() - told:  # slurmd may name a job after it has said that something failed
                self._tell()

    def _recent(self) -> set[str]:
        since = time.monotonic() - _RECENT_S
        return {job for at, job in [*self._jobs] if at >= since}

    def _tell(self) -> set[str]:
        """Reports the failed launch, and gives the jobs that it named."""
        fault = self._spool.find_fault()
        for _ in range(_TRIES):
            jobs = self._recent()
            about = {"check": LAUNCH, "result": "failed" if fault else "unknown", "found": fault, "kind": "node", "maxDrained": 0}
            report = {"node": self._node, "context": LAUNCH, "job": "", "jobs": sorted(jobs), "results": [about]}
            try:
                if error := tell(self._collector, ports.CHECKS, self._user, report).get("error"):
                    raise ValueError(error)
            except (OSError, ValueError) as error:
                self._say(f"a job could not be started here; slurmctld's pod is not told yet: {error}")
                time.sleep(_PAUSE_S)
            else:
                self._say(f"a job could not be started here: {fault or 'a job of Slurm is tried'}")
                return jobs
        return set()


def start(node: str, collector: str, say: Callable[[str], None]) -> Callable[[str], None]:
    """Begins to tell of failed launches; gives what has to hear slurmd's log."""
    import pwd  # late, as it is a file's reading

    user = 0
    with contextlib.suppress(KeyError):
        user = pwd.getpwnam("slurm").pw_uid
    launches = Launches(node, collector, user, say)
    threading.Thread(target=launches.run, daemon=True, name="launches").start()
    return launches.hear
