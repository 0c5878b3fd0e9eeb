"""The files of a version of the shared root while it is filled, and the programs that work on them. Thin: it decides nothing."""

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
    """The next try cannot help. The text is the reason; it is empty if another program has logged it."""


class Failed(Exception):
    """This try failed; the next may succeed. The text is the reason; it is empty if another program has logged it."""


@dataclass(frozen=True)
class Place:
    """The files of one version, and its lock, which is held."""

    version: str
    lock: int
    """Descriptor of the locked file. Programs that write into the version inherit it: no other fill begins while one of them lives."""

    @property
    def root(self) -> Path:
        """The complete version."""
        return SHARED / "versions" / self.version

    @property
    def partial(self) -> Path:
        """The version while it is filled."""
        return SHARED / "filling" / self.version

    @property
    def aside(self) -> Path:
        """Where the cleaner puts the version while it checks whether a job uses it."""
        return SHARED / "filling" / f".aside-{self.version}"

    @property
    def tarball(self) -> Path:
        """A downloaded tar with the right digest."""
        return SHARED / "filling" / f"{self.version}.tar"

    @property
    def download(self) -> Path:
        """An incomplete download."""
        return SHARED / "filling" / f"{self.version}.tar.part"

    def record(self, ending: str = "") -> Path:
        """A record beside the versions: the source without an ending, the manifest and the carried changes with one."""
        return SHARED / "sources" / f"{self.version}{ending}"

    def run(self, command: Sequence[str | Path]) -> int:
        """Runs a program that writes into the version; returns its exit code. Its output goes to the log."""
        return subprocess.run(command, stdout=sys.stderr, pass_fds=(self.lock,), check=False).returncode

    def begin(self, command: Sequence[str | Path], stdin: int | None = None) -> "subprocess.Popen[bytes]":
        """Starts such a program."""
        return subprocess.Popen(command, stdin=stdin, stdout=sys.stderr, pass_fds=(self.lock,))

    def forget_tar(self) -> None:
        """Removes all downloads."""
        self.tarball.unlink(missing_ok=True)
        self.download.unlink(missing_ok=True)


def changes(*arguments: str) -> list[str]:
    """The command of programs/root_changes. `nice`, so that it does not slow down a copy."""
    return ["nice", sys.executable, "-EsSB", "-m", "programs.root_changes.run", *arguments]


def digest_of(file: Path) -> str:
    """The sha256 of a file. Raises OSError, or CalledProcessError if it cannot be read completely."""
    with file.open("rb") as content:
        return finish_digest(begin_digest(content))


def begin_digest(content: IO[bytes]) -> "subprocess.Popen[str]":
    """Starts to compute a digest in the background."""
    return subprocess.Popen(["sha256sum"], stdin=content, stdout=subprocess.PIPE, text=True)


def finish_digest(taking: "subprocess.Popen[str]") -> str:
    """The digest. Raises CalledProcessError if the file cannot be read completely."""
    output = taking.communicate()[0]
    if taking.returncode:
        raise subprocess.CalledProcessError(taking.returncode, "sha256sum")
    return output.split()[0]


def sync(path: Path) -> list[str | Path]:
    """The command that syncs the path's file system to the disk."""
    return ["sync", "--file-system", path]


def delete(*paths: Path) -> None:
    """Removes files and folders. `rm` is fast with a hundred thousand files."""
    subprocess.run(["rm", "-rf", "--", *paths], check=True)


def end_full_or_failed(program: str, version: str, *remove: Path) -> NoReturn:
    """Removes `remove`, which the next try makes again, and raises Failed. Logs it if the volume is full."""
    volume = os.statvfs(SHARED)
    free_mib = volume.f_bavail * volume.f_frsize >> 20
    delete(*remove)
    if free_mib < _LITTLE_MIB:
        say(f"the shared volume is full ({free_mib} MiB free): remove versions, or give it more room. Version {version} is not there")
    raise Failed(f"{program} failed; the next try resumes")
