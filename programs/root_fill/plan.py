"""Decides what a fill does with an existing version, and judges the programs that it runs. Pure.

A version's name is for one image or tar, for ever. A version from another source is refused, and an incomplete one is removed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from names import variables

_SHOWN = 20
_FULL = re.compile(r"No space left on device|Disk quota exceeded|Wrote only")
_OUTSIDE = re.compile(r"Member name contains '\.\.'|Removing leading")
_MIB = 1 << 20


@dataclass(frozen=True)
class Wanted:
    """The version to fill, and its source."""

    version: str
    image: str = ""
    """The image whose root is copied; empty if `tar` is unpacked."""
    tar: str = ""
    """An address: http:, https:, or file: on the shared volume."""
    sha256: str = ""
    carry_from: str = ""
    """The version whose changes are carried into this one; empty for none."""

    @property
    def stands_for(self) -> str:
        """The source, as the version's record names it."""
        return f"tar {self.sha256}" if self.tar else self.image

    @property
    def file(self) -> str:
        """The path of a tar on the shared volume; empty for other sources."""
        return self.tar.removeprefix("file://") if self.tar.startswith("file://") else ""


def read_wanted(env: Mapping[str, str]) -> Wanted:
    """Reads the Job's variables. Raises KeyError for a missing one."""
    version, carry_from = env[variables.ROOT_VERSION], env.get(variables.ROOT_CARRY_FROM, "")
    if tar := env.get(variables.ROOT_TAR):
        return Wanted(version, tar=tar, sha256=env[variables.ROOT_SHA256], carry_from=carry_from)
    return Wanted(version, image=env[variables.ROOT_IMAGE], carry_from=carry_from)


def judge_filled(wanted: Wanted, filled_from: str, carried_from: str) -> str:
    """Why an existing version is not the wanted one; empty if it is. Both texts come from its records, and are empty without one."""
    if filled_from != wanted.stands_for:
        source = filled_from or "something unknown"
        return (
            f"version {wanted.version} is there already, filled from {source}, not from {wanted.stands_for}."
            " A name is for one image: choose another name"
        )
    if wanted.carry_from and carried_from != wanted.carry_from:
        return (
            f"version {wanted.version} is there already, without what was changed in {wanted.carry_from}: that is carried when a version is"
            " filled. Choose another name, or leave carryFrom out"
        )
    return ""


def read_carried(record: str) -> str:
    """The version whose changes were carried, from the record `.carried`."""
    first = record.partition("\n")[0]
    return first.removeprefix("from ") if first.startswith("from ") else ""


def copy_command(source: str, target: str, is_begun: bool) -> list[str]:
    """The command that copies an image's root. The image is on another file system, so cp need not try a reflink for each file."""
    if is_begun:
        rsync = ["rsync", "-aHAX", "--numeric-ids", "--one-file-system", "--delete", "--exclude=/hold"]
        return [*rsync, f"{source}/", f"{target}/"]
    return ["cp", "--archive", "--reflink=never", "--one-file-system", "--no-target-directory", f"{source}/", target]


def download_command(url: str, file: str) -> list[str]:
    """The command that resumes a download and prints the HTTP status. A server without ranges sends the whole file again."""
    limits = ["--connect-timeout", "30", "--speed-limit", "1", "--speed-time", "60"]
    protocols = ["--proto", "=http,https", "--proto-redir", "=http,https"]
    task = ["--fail", "--continue-at", "-", "--output", file, "--write-out", "%{http_code}", url]
    return ["curl", "--silent", "--show-error", "--location", *protocols, *limits, *task]


class Download(Enum):
    """Result of a download."""

    DONE = auto()
    AGAIN = auto()
    ANEW = auto()
    """The downloaded part is useless: it is of another file, or the server cannot resume it."""
    REFUSED = auto()
    """The server refuses the file for good."""
    FULL = auto()
    """The disk is full."""


def judge_download(code: int, status: str) -> Download:
    """Judges a download by curl's exit code and the HTTP status."""
    if code == 0:
        return Download.DONE
    if status == "416":  # we have more than the server: the file has changed
        return Download.ANEW
    if re.fullmatch(r"4\d\d", status) and status not in ("408", "425", "429"):
        return Download.REFUSED
    return {23: Download.FULL, 33: Download.ANEW}.get(code, Download.AGAIN)


@dataclass(frozen=True)
class Tries:
    """Counts downloads in a row that brought less than 1 MiB."""

    failed: int = 0

    MOST = 5

    def after(self, got: int) -> "Tries":
        """The count after one more download, which brought `got` bytes."""
        return Tries(1 if got >= _MIB else self.failed + 1)

    @property
    def is_over(self) -> bool:
        return self.failed >= self.MOST

    @property
    def pause_s(self) -> int:
        """Seconds until the next try."""
        return self.failed * 2


@dataclass
class Heard:
    """What is kept of tar's output, which may have a line for each of a million files."""

    first: list[str] = field(default_factory=list[str])
    last: str = ""
    is_full: bool = False
    leads_outside: bool = False

    def hear(self, line: str) -> None:
        """Adds one line of output."""
        if len(self.first) < _SHOWN:
            self.first.append(line)
        self.last = line
        self.is_full |= bool(_FULL.search(line))
        self.leads_outside |= bool(_OUTSIDE.search(line))


class Unpacked(Enum):
    """Result of tar."""

    DONE = auto()
    FULL = auto()
    REFUSED = auto()


def judge_unpacking(heard: Heard, code: int) -> tuple[Unpacked, str]:
    """Judges tar, with the reason if the tar is refused.

    GNU tar skips members with `..`, strips the leading slash of absolute ones, and makes links that lead up or out last. So nothing is
    written outside. Such a tar is still refused, as it is surely a mistake.
    """
    if heard.leads_outside:
        return Unpacked.REFUSED, "it has members with absolute paths or with .. in them"
    if heard.is_full:
        return Unpacked.FULL, ""
    if code:
        return Unpacked.REFUSED, f"it does not unpack: {heard.last}"
    return Unpacked.DONE, ""
