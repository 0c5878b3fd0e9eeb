"""The Job that removes versions of the shared root that are undeclared for some days, not current, and used by no job.

`python3 -m programs.root_clean.run`, as root, with SLIPWAY_ROOT_VERSIONS and SLIPWAY_ROOT_KEEP_DAYS. Under the version's lock it puts a
version aside, so that no job begins in it, and looks at the jobs again. If it is killed then, the next run or fill puts the version back.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from types import FrameType

from names import paths, ports, variables
from slurm.commands import SlurmError, call
from slurm.logs import teller
from slurm.people import ACCOUNTS
from slurm.pump import take_stderr

from .plan import (
    ON_NODES,
    ended_jobs,
    is_needed,
    jobs_in_versions,
    jobs_without_a_version,
    judge,
    judge_aside,
    pause_s,
    read_note,
    tell_unknown,
)

SHARED = Path(paths.SHARED)
_SQUEUE_S = 60
_LOOKS = 40
"""Looks at all jobs before a version is put aside: a quarter of an hour in all."""
_LOOKS_ASIDE = 6
"""Looks after that: half a minute. Jobs without a link by then keep the version until the next run, a day later."""

say = teller("root-clean")


class Cleaner:
    """One run."""

    def __init__(self, declared: list[str], keep_days: int, looks: int) -> None:
        self._declared, self._keep_days, self._looks = declared, keep_days, looks
        self._now = int(time.time())
        self._unclear: str | None = None
        """Why it is unknown what runs; empty if it is known, None before the first look."""

    def clean(self) -> None:
        """One complete run. Raises OSError if the volume cannot be read: nothing more is removed then."""
        forget_ended_jobs()
        for gone in _filling().glob(".gone-*"):  # leftovers of a killed run
            _delete(gone)
        for aside in sorted(_filling().glob(".aside-*")):
            self._settle(aside, aside.name.removeprefix(".aside-"))
        current = current_link()
        if current is None:
            say("no version is current, so none is removed")
            return
        for folder in sorted(SHARED.joinpath("versions").iterdir()):
            if folder.is_dir() and not folder.name.startswith("."):
                self._look_at(folder.name, current)

    def _settle(self, aside: Path, version: str) -> None:
        """Puts back what a killed run had put aside, as a job may use it. If the version was filled again, removes it once unused."""
        with locked(version) as is_locked:
            if not is_locked or not aside.is_dir():
                return
            if not SHARED.joinpath("versions", version).exists():
                aside.rename(SHARED / "versions" / version)
            elif self._is_clear() and not count_users(version):
                _delete(aside.rename(_filling() / f".gone-{version}"))
                say(f"version {version} was filled again; what was put aside of it is removed")

    def _look_at(self, version: str, current: str) -> None:
        mark = SHARED / "sources" / f"{version}.unused"
        if is_needed(version, self._declared, current):
            mark.unlink(missing_ok=True)
            return
        try:
            if not (mark.exists() and mark.stat().st_size):  # an empty one was written to a full volume
                mark.write_text(f"{self._now}\n")
        except OSError:
            say(f"version {version} stays: the shared volume takes no note of it")
            return
        try:
            since = read_note(mark.read_text(errors="replace"))
        except OSError:
            return  # a fill has just removed it
        if since is None:
            mark.unlink(missing_ok=True)
            say(f"version {version} stays: {mark} is damaged; its days are counted from now on")
            return
        is_refilled = _filling().joinpath(f".aside-{version}").exists()
        if why := judge(since, self._now, self._keep_days, count_users(version), is_refilled):
            say(f"version {version} {why}")
        elif not self._is_clear():
            say(f"version {version} stays: {self._unclear}")
        else:
            self._remove(version, mark)

    def _remove(self, version: str, mark: Path) -> None:
        with locked(version) as is_locked:
            if not is_locked:
                why = "it is being filled"
            elif not mark.exists():  # a fill removes the note, and this run may have an older list
                why = "it was declared again"
            else:
                why = self._take_aside(version)
            if why:
                say(f"version {version} stays: {why}")
                return
            for file in (mark, *(SHARED / "sources" / f"{version}{ending}" for ending in ("", ".manifest", ".carried"))):
                file.unlink(missing_ok=True)
            say(f"version {version} is removed")
        _delete(_filling() / f".gone-{version}")

    def _take_aside(self, version: str) -> str:
        """Puts a version aside, for good if no job uses it. In all other cases puts it back; returns why."""
        place, aside = SHARED / "versions" / version, _filling() / f".aside-{version}"
        try:
            try:
                place.rename(aside)
                self._unclear = look_at_every_job(min(self._looks, _LOOKS_ASIDE))
                why = judge_aside(version, current_link(), count_users(version), self._unclear)
                if not why:
                    aside.rename(_filling() / f".gone-{version}")
                return why
            finally:
                _put_back(aside, place)
        finally:  # a signal may have interrupted the first attempt; later signals are ignored
            _put_back(aside, place)

    def _is_clear(self) -> bool:
        """True if the version of every running job is known. Looks once per run, as it may take a quarter of an hour."""
        if self._unclear is None:
            self._unclear = look_at_every_job(self._looks)
        return not self._unclear


def _put_back(aside: Path, place: Path) -> None:
    if aside.is_dir() and not place.exists():
        aside.rename(place)


def forget_ended_jobs() -> None:
    """Removes links of jobs that ended while the volume was read-only, or whose node was lost. Slurm may reuse their numbers."""
    links = _links()  # first: a job that begins now is not among them
    try:
        listed = call("squeue", "--noheader", "--all", "--states=all", "--format", "%A %T", timeout_s=_SQUEUE_S)
    except SlurmError:
        return
    for job in ended_jobs(links, listed):
        SHARED.joinpath("jobs", job).unlink(missing_ok=True)
        say(f"job {job} has ended; its link is removed")


def look_at_every_job(looks: int) -> str:
    """Why the version of some running job is unknown; empty if all are known. Looks several times, for minutes."""
    first: list[str] | None = None
    unknown: list[str] = []
    command = ("squeue", "--noheader", "--all", f"--states={','.join(ON_NODES)}", "--format", "%A %U %T")
    for look in range(looks):
        time.sleep(pause_s(look))
        try:
            running = jobs_in_versions(call(*command, timeout_s=_SQUEUE_S), ACCOUNTS["slurm"])
        except SlurmError:
            return "slurmctld does not say which jobs run"
        first = running if first is None else first
        unknown = jobs_without_a_version(running, first, _links())
        if not unknown:
            return ""
    return tell_unknown(unknown)


def count_users(version: str) -> int:
    """The number of jobs with a link to a version. Raises OSError if it is unknown."""
    count = 0
    for job in _links():
        with contextlib.suppress(FileNotFoundError):  # it has just ended
            count += str(SHARED.joinpath("jobs", job).readlink()) == version
    return count


def current_link() -> str | None:
    """The target of the link `current`; None if there is none."""
    try:
        return str(SHARED.joinpath("current").readlink())
    except OSError:
        return None


@contextlib.contextmanager
def locked(version: str) -> Generator[bool]:
    """Holds the version's lock, which fills take, too, and removes it afterwards. False if another process has it. Never waits.

    If the last owner removes the file while it is opened here, the lock does not count.
    """
    file = _filling() / f"{version}.lock"
    with file.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = os.path.samestat(os.fstat(lock.fileno()), file.stat())
        except OSError:
            is_locked = False
        try:
            yield is_locked
        finally:
            if is_locked:
                file.unlink(missing_ok=True)


def _filling() -> Path:
    return SHARED / "filling"


def _links() -> list[str]:
    """Numbers of jobs with a link to their version. Raises OSError."""
    with os.scandir(SHARED / "jobs") as entries:
        return [entry.name for entry in entries if entry.is_symlink()]


def _delete(folder: Path) -> None:
    """`rm` is faster than Python with a hundred thousand files."""
    subprocess.run(["rm", "-rf", "--", folder], check=True)


def _end(number: int, _: FrameType | None) -> None:
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, signal.SIG_IGN)  # first put back what is aside
    sys.exit(128 + number)


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    if not SHARED.joinpath("versions").is_dir() or not SHARED.joinpath("jobs").is_dir():
        return 0
    os.environ["SLURM_CONF_SERVER"] = os.environ.get("SLURM_CONF_SERVER") or f"{os.environ[variables.SLURMCTLD]}:{ports.SLURMCTLD}"
    looks = int(os.environ.get(variables.ROOT_LOOKS) or _LOOKS)
    cleaner = Cleaner(os.environ[variables.ROOT_VERSIONS].split(), int(os.environ[variables.ROOT_KEEP_DAYS]), looks)
    try:
        cleaner.clean()
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"FAILED, nothing more is removed: {error}")
        return 1
    return 0


if __name__ == "__main__":
    take_stderr("root-clean")
    sys.exit(main())
