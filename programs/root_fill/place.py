"""Where a version of the shared root lies while it is filled, and how programs are called for it. Thin: it decides nothing."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

from names import paths
from slurm.logs import teller

SHARED = Path(paths.SHARED)
_LITTLE_MIB = 10

say = teller("root-fill")


class Refused(Exception):
    """The next try cannot help. The text says why, unless another program has said it."""


class Failed(Exception):
    """This try came to nothing; the next may get on. The text says why, unless another program has said it."""


@dataclass(frozen=True)
class Place:
    """The files of one version, and the lock that is held on it."""

    version: str
    lock: int
    """Open file that is locked. Programs that write into the version have it too: while one of them lives, no other fill begins."""

    @property
    def root(self) -> Path:
        """The version, once it is whole."""
        return SHARED / "versions" / self.version

    @property
    def partial(self) -> Path:
        """The version before that."""
        return SHARED / "filling" / self.version

    @property
    def aside(self) -> Path:
        """Where the cleaner puts it while it looks whether any job has it."""
        return SHARED / "filling" / f".aside-{self.version}"

    @property
    def tarball(self) -> Path:
        """A tar that was downloaded and has the right digest."""
        return SHARED / "filling" / f"{self.version}.tar"

    @property
    def download(self) -> Path:
        """A tar that is being downloaded."""
        return SHARED / "filling" / f"{self.version}.tar.part"

    def record(self, ending: str = "") -> Path:
        """A record beside the versions: what it was filled from, and with an ending its manifest and what was carried into it."""
        return SHARED / "sources" / f"{self.version}{ending}"

    def run(self, command: Sequence[str | Path]) -> int:
        """Runs a program that writes into the version, and gives its exit code. What it prints goes to the log."""
        return subprocess.run(command, stdout=sys.stderr, pass_fds=(self.lock,), check=False).returncode

    def begin(self, command: Sequence[str | Path], stdin: int | None = None) -> "subprocess.Popen[bytes]":
        """Begins such a program."""
        return subprocess.Popen(command, stdin=stdin, stdout=sys.stderr, pass_fds=(self.lock,))

    def forget_tar(self) -> None:
        """Removes what was downloaded."""
        self.tarball.unlink(missing_ok=True)
        self.download.unlink(missing_ok=True)


def changes(*arguments: str) -> list[str]:
    """The program that checks a copy and carries changes. Beside a copy it takes what the copy leaves of the cores."""
    return ["nice", sys.executable, "-EsSB", "-m", "programs.root_changes.run", *arguments]


def digest_of(file: Path) -> str:
    """The sha256 of a file. Raises OSError, or CalledProcessError where it cannot be read whole."""
    with file.open("rb") as content:
        return finish_digest(begin_digest(content))


def begin_digest(content: IO[bytes]) -> "subprocess.Popen[str]":
    """Begins to take a digest, beside what else reads the file."""
    return subprocess.Popen(["sha256sum"], stdin=content, stdout=subprocess.PIPE, text=True)


def finish_digest(taking: "subprocess.Popen[str]") -> str:
    """The digest. Raises CalledProcessError where the file cannot be read whole."""
    output = taking.communicate()[0]
    if taking.returncode:
        raise subprocess.CalledProcessError(taking.returncode, "sha256sum")
    return output.split()[0]


def sync(path: Path) -> list[str | Path]:
    """Waits until all of the path's file system is on the disk."""
    return ["sync", "--file-system", path]


def delete(*paths: Path) -> None:
    """Removes files and whole folders. By `rm`, which is quick with a hundred thousand files."""
    subprocess.run(["rm", "-rf", "--", *paths], check=True)


def end_full_or_failed(program: str, version: str, *remove: Path) -> NoReturn:
    """Removes `remove`, which the next try makes again, and raises Failed, which says whether the volume is full or the program failed."""
    volume = os.statvfs(SHARED)
    free_mib = volume.f_bavail * volume.f_frsize >> 20
    delete(*remove)
    if free_mib < _LITTLE_MIB:
        say(f"the shared volume is full ({free_mib} MiB free): remove versions, or give it more room. Version {version} is not there")
    raise Failed(f"{program} failed; the next try goes on")
