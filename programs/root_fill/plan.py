"""Decides what a fill of the shared root does with what it finds, and what came of the programs that it calls. Pure.

A version's name is for one image or tar, for ever: what is there of something else is refused, and what was begun of it is removed.
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
    """What the Job is to fill."""

    version: str
    image: str = ""
    """Its root is copied, from a container of it beside this one; or `tar` is unpacked."""
    tar: str = ""
    """An address: http:, https:, or file: on the shared volume."""
    sha256: str = ""
    carry_from: str = ""
    """The version whose changes get into this one; empty for none."""

    @property
    def stands_for(self) -> str:
        """What the version's record says of where it is from."""
        return f"tar {self.sha256}" if self.tar else self.image

    @property
    def file(self) -> str:
        """The path of a tar on the shared volume; empty for another one."""
        return self.tar.removeprefix("file://") if self.tar.startswith("file://") else ""


def read_wanted(env: Mapping[str, str]) -> Wanted:
    """The Job's variables. Raises KeyError for one that is missing."""
    version, carry_from = env[variables.ROOT_VERSION], env.get(variables.ROOT_CARRY_FROM, "")
    if tar := env.get(variables.ROOT_TAR):
        return Wanted(version, tar=tar, sha256=env[variables.ROOT_SHA256], carry_from=carry_from)
    return Wanted(version, image=env[variables.ROOT_IMAGE], carry_from=carry_from)


def judge_filled(wanted: Wanted, filled_from: str, carried_from: str) -> str:
    """Why a version that is there is not the wanted one; empty where it is. Both come from its records, empty where these say nothing."""
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
    """The version whose changes were carried, from the record of that."""
    first = record.partition("\n")[0]
    return first.removeprefix("from ") if first.startswith("from ") else ""


def copy_command(source: str, target: str, is_begun: bool) -> list[str]:
    """How an image's root is copied. The image is on another file system, which no file can be shared with: cp need not try for each."""
    if is_begun:
        rsync = ["rsync", "-aHAX", "--numeric-ids", "--one-file-system", "--delete", "--exclude=/hold"]
        return [*rsync, f"{source}/", f"{target}/"]
    return ["cp", "--archive", "--reflink=never", "--one-file-system", "--no-target-directory", f"{source}/", target]


def download_command(url: str, file: str) -> list[str]:
    """Gets what is still missing of a file, and prints the server's status. A server that knows no ranges sends all of it again."""
    limits = ["--connect-timeout", "30", "--speed-limit", "1", "--speed-time", "60"]
    protocols = ["--proto", "=http,https", "--proto-redir", "=http,https"]
    task = ["--fail", "--continue-at", "-", "--output", file, "--write-out", "%{http_code}", url]
    return ["curl", "--silent", "--show-error", "--location", *protocols, *limits, *task]


class Download(Enum):
    """What came of a download."""

    DONE = auto()
    AGAIN = auto()
    ANEW = auto()
    """What is there is of no use: another file, or no start that this server goes on from."""
    REFUSED = auto()
    """The server has no such file, for good."""
    FULL = auto()
    """The disk took no more of it."""


def judge_download(code: int, status: str) -> Download:
    """What came of a download, from curl's exit code and the server's status."""
    if code == 0:
        return Download.DONE
    if status == "416":  # more is here than there: it is another file by now
        return Download.ANEW
    if re.fullmatch(r"4\d\d", status) and status not in ("408", "425", "429"):
        return Download.REFUSED
    return {23: Download.FULL, 33: Download.ANEW}.get(code, Download.AGAIN)


@dataclass(frozen=True)
class Tries:
    """Downloads in a row that brought next to nothing."""

    failed: int = 0

    MOST = 5

    def after(self, got: int) -> "Tries":
        """After one more that brought so many bytes. What comes in pieces comes too."""
        return Tries(1 if got >= _MIB else self.failed + 1)

    @property
    def is_over(self) -> bool:
        return self.failed >= self.MOST

    @property
    def pause_s(self) -> int:
        """Seconds until the next."""
        return self.failed * 2


@dataclass
class Heard:
    """What is kept of tar's words, which may be a line for each of a million files."""

    first: list[str] = field(default_factory=list[str])
    last: str = ""
    is_full: bool = False
    leads_outside: bool = False

    def hear(self, line: str) -> None:
        """One more line."""
        if len(self.first) < _SHOWN:
            self.first.append(line)
        self.last = line
        self.is_full |= bool(_FULL.search(line))
        self.leads_outside |= bool(_OUTSIDE.search(line))


class Unpacked(Enum):
    """What came of tar."""

    DONE = auto()
    FULL = auto()
    REFUSED = auto()


def judge_unpacking(heard: Heard, code: int) -> tuple[Unpacked, str]:
    """What came of tar, and why it is refused.

    By itself tar leaves members with `..` out and takes the slash from absolute ones, and it makes links that lead up or out only when all
    else is written, so nothing gets outside; but such a tar is not what somebody meant.
    """
    if heard.leads_outside:
        return Unpacked.REFUSED, "it has members with absolute paths or with .. in them"
    if heard.is_full:
        return Unpacked.FULL, ""
    if code:
        return Unpacked.REFUSED, f"it does not unpack: {heard.last}"
    return Unpacked.DONE, ""
