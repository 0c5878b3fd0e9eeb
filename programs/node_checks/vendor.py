"""Programs of vendors that checks run: where they are, whether they may be run, and what they printed. Standard library only.

A check runs as Slurm's user, who may do everything in Slurm. So a file that others could change is not run.
"""

import errno
import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

_LONGEST = 200
_MOST_LINKS = 40
"""As in Linux."""
_BROKEN = (
    "uncorrectable ECC error",
    "uncorrectable NVLink error",
    "hardware stack error",
    "GPU is lost",
    "fallen off the bus",
)
"""What CUDA and NVML say of hardware that is broken. Sources: cudaGetErrorString of cudaErrorECCUncorrectable, cudaErrorNvlinkUncorrectable
and cudaErrorHardwareStackError; nvmlErrorString of NVML_ERROR_GPU_IS_LOST. All other errors may have other reasons."""


class CannotRunError(Exception):
    """Why a program is not run: unknown, and nobody's fault."""


@dataclass(frozen=True)
class Ended:
    """A program that has ended."""

    code: int
    """Negative: minus the signal."""
    output: str
    errors: str

    @property
    def text(self) -> str:
        return f"{self.output}\n{self.errors}"

    @property
    def how(self) -> str:
        """How it ended, and the last line that it printed."""
        end = f"was killed by signal {-self.code}" if self.code < 0 else f"ended with {self.code}"
        last = last_line(self.errors) or last_line(self.output)
        return f"{end}: {last}" if last else f"{end}, and printed nothing"


def last_line(text: str) -> str:
    """The last line that is not empty, in part where it is long."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_LONGEST] if lines else ""


def hardware_fault(text: str) -> str:
    """The first line about broken hardware; empty for none."""
    return next((line.strip()[:_LONGEST] for line in text.splitlines() if any(phrase in line for phrase in _BROKEN)), "")


def changeable(path: Path, trusted: "set[int]") -> str:
    """Who else could change the program: a fault of the file, of a link to it, or of a folder on the way. Empty if only `trusted` users
    can. Raises OSError."""
    real = path.resolve(strict=True)
    for part in reversed(_way(path)):
        facts = part.lstat()
        if facts.st_uid not in trusted:
            return f"{part} belongs to user {facts.st_uid}, who could change it"
        # The mode of a link does not matter. A folder with S_ISVTX is one such as /tmp, where nobody replaces files of others.
        is_safe = stat.S_ISLNK(facts.st_mode) or (part != real and facts.st_mode & stat.S_ISVTX)
        if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_safe:
            return f"{part} can be changed by others"
    return ""


def _way(path: Path) -> "list[Path]":
    """All folders and links on the way to a file, and the file itself."""
    here = Path("/")
    way, parts, links = [here], list(reversed(path.absolute().parts[1:])), 0
    while parts:
        part = parts.pop()
        if part == "..":
            here = here.parent  # no link: these were followed
            continue
        way.append(here / part)
        if not way[-1].is_symlink():
            here = way[-1]
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = way[-1].readlink()
        if target.is_absolute():
            here = Path("/")
        parts += reversed(target.parts[1:] if target.is_absolute() else target.parts)
    return way


def refuse_changeable(found: str) -> str:
    """The file to run, behind all links. Raises CannotRunError if others could change it, and OSError."""
    if fault := changeable(Path(found), {0, os.getuid()}):
        raise CannotRunError(f"not run, as {fault}; have root own it, and nobody else write to it")
    return str(Path(found).resolve(strict=True))


def find(command: "list[str]", name: str, folders: "tuple[str, ...]", remedy: str) -> "list[str]":
    """The words that start a program: the user's, or the program of this name in PATH, /usr/local/bin or a folder. Raises CannotRunError if
    it is missing, with what to install, or if others could change it."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/bin", *folders))
    wanted = command[0] if command else name
    program = shutil.which(wanted, path=path)
    if program is None:
        raise CannotRunError(f"{wanted} is not on this node: {remedy}")
    try:
        real = refuse_changeable(program)
    except OSError as error:
        raise CannotRunError(f"{wanted}: {error.strerror}") from None
    return [real, *command[1:]]


def run(words: "list[str]", folder: "str | None" = None) -> Ended:
    """Runs a program to its end; the check's deadline ends it, too. Raises CannotRunError."""
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False, cwd=folder
        )
    except OSError as error:
        raise CannotRunError(f"{words[0]}: {error.strerror}") from None
    return Ended(done.returncode, done.stdout, done.stderr)
