"""Folders of backups, and pipes of programs. Thin: it decides nothing."""

import contextlib
import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import IO

from names import paths, variables

from .plan import Backups, Choice, choose, name_of, plan_pruning, sort_backups, tell_future

BACKUP = Path(paths.BACKUP)
"""Where the volume of backups is mounted."""
RESTORE_FROM = Path(f"{paths.RESTORE}/from")
"""What backup.restoreFrom says; a change arrives while a restore waits."""
_LOOK_S = 2


class Failed(Exception):
    """It came to nothing; the text says why, unless a program has said it."""


class Folder:
    """One cluster's backups of one kind."""

    def __init__(self, kind: str, ending: str, say: Callable[[str], None]) -> None:
        self.path = BACKUP / os.environ[variables.CLUSTER] / kind
        self._ending = ending
        self._say = say

    def read(self) -> Backups:
        """The backups. Raises Failed where the folder cannot be read: that is not an empty one."""
        try:
            with os.scandir(self.path) as entries:
                files = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except OSError as error:
            raise Failed(f"FAILED: the folder {self.path} cannot be read ({error.strerror})") from None
        return sort_backups(files, self._ending, time.time())

    def file(self, name: str) -> Path:
        """The file of a backup."""
        return self.path / f"{name}{self._ending}"

    @contextlib.contextmanager
    def begin(self) -> Generator[tuple[str, Path]]:
        """The name of a new backup, and the file to make it in. One at a time; what is left of killed ones is removed. Raises Failed."""
        if not self.path.is_dir() or not os.access(self.path, os.W_OK):
            raise Failed(f"FAILED: the folder {self.path} is not there, or not ours to write")
        with self.path.joinpath(".lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Failed(f"FAILED: another backup into {self.path} is under way") from None
            for left in self.path.glob(".partial-*"):
                left.unlink(missing_ok=True)
            name = name_of(time.time())
            partial = self.path / f".partial-{name}"
            try:
                yield name, partial
            finally:
                partial.unlink(missing_ok=True)

    def publish(self, name: str, partial: Path) -> None:
        """Gives a backup its name once it is on the disk. Raises OSError."""
        _flush(partial)
        partial.rename(self.file(name))
        _flush(self.path)

    def prune(self, keep: int, days: int = 0) -> None:
        """Removes older backups. Raises Failed, OSError."""
        for name in plan_pruning(self.read(), keep, days):
            self.file(name).unlink(missing_ok=True)

    def has_future(self) -> bool:
        """True where backups are dated in the future, which it says. Raises Failed."""
        fault = tell_future(self.read(), str(self.path))
        if fault:
            self._say(fault)
        return bool(fault)

    def await_choice(self, what: str) -> str:
        """The backup that an empty database or disk is filled from, or "" for an empty start. Waits for restoreFrom. Raises Failed."""
        if not self.path.is_dir() or not os.access(self.path, os.R_OK):
            raise Failed(f"FAILED: the folder {self.path} is not there, or not ours to read: whether there are backups is unknown")
        told = ""
        while True:
            choice = self._choose(what)
            if not choice.waits:
                return choice.name
            if choice.waits != told:
                self._say(choice.waits)
            told = choice.waits
            time.sleep(_LOOK_S)

    def _choose(self, what: str) -> Choice:
        backups = self.read()
        try:
            restore_from = RESTORE_FROM.read_text().rstrip("\n")
        except OSError:
            raise Failed(f"FAILED: backup.restoreFrom is unknown: {RESTORE_FROM} cannot be read") from None
        return choose(backups, restore_from, what)

    def tell_damaged(self, name: str) -> str:
        """The message about a damaged backup, with the names of the older ones. Raises Failed."""
        there = " ".join(self.read().past)
        return f"FAILED: {self.file(name)} is damaged. Set backup.restoreFrom to the time of an older one: {there}"


def pipe(*commands: Sequence[str | Path], stdout: IO[bytes] | int | None = None) -> bool:
    """Runs programs that read from one another. True where all end well."""
    codes = [program.wait() for program in _begin(commands, stdout)]
    return not any(codes)


def read_pipe(*commands: Sequence[str | Path]) -> str | None:
    """What the last of such programs prints; None where any of them fails."""
    *others, last = _begin(commands, subprocess.PIPE)
    said = last.communicate()[0].decode(errors="replace")
    codes = [program.wait() for program in (*others, last)]
    return None if any(codes) else said


def _begin(commands: Sequence[Sequence[str | Path]], stdout: IO[bytes] | int | None) -> "list[subprocess.Popen[bytes]]":
    started: list[subprocess.Popen[bytes]] = []
    for number, command in enumerate(commands, start=1):
        source = started[-1].stdout if started else None
        target = stdout if number == len(commands) else subprocess.PIPE
        started.append(subprocess.Popen(command, stdin=source, stdout=target))
        if source:
            source.close()  # its reader has it; so a writer whose reader has ended learns of that
    return started


def sync(path: Path) -> None:
    """Waits until all of the path's file system is on the disk. Raises CalledProcessError."""
    subprocess.run(["sync", "--file-system", path], check=True)


def size_of(file: Path) -> str:
    """The size of a file, for people."""
    said = subprocess.run(["du", "-h", "--apparent-size", file], stdout=subprocess.PIPE, text=True, check=False).stdout
    return said.split()[0] if said else "unknown"


def free_in(folder: Path) -> str:
    """The room that is left on a volume, for people."""
    said = subprocess.run(["df", "-h", "--output=avail", folder], stdout=subprocess.PIPE, text=True, check=False).stdout.split()
    return said[-1] if said else "unknown"


def _flush(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
