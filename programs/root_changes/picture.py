"""A picture of one root at one moment, and the manifest: the picture of a version as it was filled, in one file. Pure.

Paths are bytes without a leading slash. Names may contain any byte except NUL, so NUL ends each field of a manifest.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

_FIRST = b"slipway root manifest 1"
_LAST = b"end"


class Entry(NamedTuple):
    """One name in a root."""

    kind: str
    """f, d, l, p, s, b, c: as in `find -printf %y`."""
    mode: int
    uid: int
    gid: int
    size: int = 0
    """Bytes, of a file."""
    mtime_ns: int = 0
    """Of a file."""
    digest: str = ""
    """BLAKE2b of a file's content if it was read, else empty."""
    target: bytes = b""
    """Of a link."""
    package: str = ""
    """The Debian package that owns the path; empty if none does."""


class Picture(NamedTuple):
    """What is compared of a root."""

    entries: Mapping[bytes, Entry]
    packages: Mapping[str, str]
    """Installed packages, `name` or `name:architecture` as in dpkg's own files, to their versions."""
    unfinished: Mapping[str, str]
    """Half-installed packages, to their dpkg state: unpacked, half-installed."""
    passwd: str
    """The text of /etc/passwd."""
    group: str


class ManifestError(Exception):
    """The file is not a manifest, or incomplete."""


def write_manifest(picture: Picture) -> bytes:
    """The picture as a file."""
    about = {"packages": dict(picture.packages), "unfinished": dict(picture.unfinished), "passwd": picture.passwd, "group": picture.group}
    fields = [_FIRST, json.dumps(about).encode()]
    for path, entry in sorted(picture.entries.items()):
        numbers = f"{entry.kind} {entry.mode:o} {entry.uid} {entry.gid} {entry.size} {entry.mtime_ns} {entry.digest or '-'}"
        fields += [numbers.encode(), path, entry.target, entry.package.encode()]
    return b"\0".join([*fields, _LAST, b""])


def read_manifest(data: bytes) -> Picture:
    """Reads what `write_manifest` wrote. Raises ManifestError."""
    fields = data.split(b"\0")
    if fields[0] != _FIRST or fields[-2:] != [_LAST, b""] or len(fields) % 4 != 0:
        raise ManifestError("it is not whole, or not a manifest")
    try:
        about = json.loads(fields[1])
        entries: dict[bytes, Entry] = {}
        for at in range(2, len(fields) - 2, 4):
            kind, mode, uid, gid, size, mtime_ns, digest = fields[at].decode().split(" ")
            known = "" if digest == "-" else digest
            entries[fields[at + 1]] = Entry(
                kind, int(mode, 8), int(uid), int(gid), int(size), int(mtime_ns), known, fields[at + 2], fields[at + 3].decode()
            )
        return Picture(entries, about["packages"], about["unfinished"], about["passwd"], about["group"])
    except (ValueError, KeyError, TypeError) as error:
        raise ManifestError(f"it cannot be read: {error}") from None


def differences(entry: Entry, other: Entry) -> tuple[str, ...]:
    """How two entries differ: type, content, target, mode, owner. Times of directories and links are ignored.

    Contents are equal if both digests are; if a digest is missing, if sizes and times are.
    """
    if entry.kind != other.kind:
        return ("type",)
    different: list[str] = []
    if entry.kind == "f" and not _same_content(entry, other):
        different.append("content")
    if entry.target != other.target:
        different.append("target")
    if entry.mode != other.mode:
        different.append("mode")
    if (entry.uid, entry.gid) != (other.uid, other.gid):
        different.append("owner")
    return tuple(different)


def shown(path: bytes) -> str:
    """A path for people: absolute, printable, on one line."""
    text = path.decode("utf-8", "backslashreplace")
    return "/" + "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def _same_content(entry: Entry, other: Entry) -> bool:
    if entry.size != other.size:
        return False
    if entry.digest and other.digest:
        return entry.digest == other.digest
    return entry.mtime_ns == other.mtime_ns
