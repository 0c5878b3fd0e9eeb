"""Reads roots. Each is entered with chroot, so that neither a link nor a concurrent change leads out of it.

Nothing is imported or looked up by name while inside: that would read the root's own files.
"""

# ruff: noqa: PTH115 - names are bytes, which pathlib is not for

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b

from .packages import INFO, STATUS, Package, owned_paths, read_status
from .picture import Entry, Picture
from .rules import is_made, is_mounted_over

LARGEST_HASHED = 1 << 20
"""Bytes. Larger files are compared by size and time, as reading them would take as long as copying them."""
_TEXT = ("utf-8", "surrogateescape")
_KINDS = {
    stat.S_IFREG: "f",
    stat.S_IFDIR: "d",
    stat.S_IFLNK: "l",
    stat.S_IFIFO: "p",
    stat.S_IFSOCK: "s",
    stat.S_IFBLK: "b",
    stat.S_IFCHR: "c",
}

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ENAMETOOLONG)
"""The path was removed or replaced since its name was read (EINVAL: it is not a link any more), or is too long."""

Wanted = Callable[[bytes, Entry], bool]
"""Whether a file's content is to be read."""


@contextmanager
def inside(root: str) -> Generator[None]:
    """Enters `root` with chroot, and leaves it afterwards. Needs CAP_SYS_CHROOT."""
    outside = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.chroot(root)
        os.chdir("/")
        yield
    finally:
        os.fchdir(outside)
        os.chroot(".")
        os.close(outside)


def look(wanted: Wanted, walked: Iterable[tuple[bytes, Entry]] | None = None) -> Picture:
    """A picture of the root that the process is inside of, without paths that programs make. Paths that vanish meanwhile are left out.

    `walked` has all entries of the root, if it was walked already.
    """
    packages = read_packages()
    owners = _read_owners(packages)
    entries: dict[bytes, Entry] = {}
    for path, entry in walk(is_made) if walked is None else _without_made(walked):
        owned = entry._replace(package=owners.get(path, ""))
        if is_made(path) and not owned.package:
            continue  # a folder in a cache that no package has
        digest = digest_of(path) if owned.kind == "f" and wanted(path, owned) else ""
        entries[path] = owned._replace(digest=digest) if digest else owned
    installed = {name: package.version for name, package in packages.items() if package.is_installed}
    unfinished = {name: package.state for name, package in packages.items() if package.is_unfinished}
    return Picture(entries, installed, unfinished, _read_text(b"etc/passwd"), _read_text(b"etc/group"))


def worth_reading() -> Wanted:
    """For a filled root: files of no package, and configuration files, as users change them and builds recreate them.

    A package's other files keep the time that the package gave them.
    """
    packages = read_packages()
    conffiles = frozenset(path for package in packages.values() for path in package.conffiles)
    return lambda path, entry: entry.size <= LARGEST_HASHED and (not entry.package or path in conffiles)


def compared_with(base: Picture) -> Wanted:
    """For a root and its manifest: files of the same size that have a digest."""

    def is_wanted(path: bytes, entry: Entry) -> bool:
        known = base.entries.get(path)
        return bool(known and known.digest and known.size == entry.size)

    return is_wanted


def walk(left_out: Callable[[bytes, str], bool]) -> Iterator[tuple[bytes, Entry]]:
    """Every path in the root that the process is inside of, folders before their contents; other file systems are not entered."""
    device = os.lstat(b"/").st_dev
    folders = [b""]
    while folders:
        folder = folders.pop()
        try:
            children = sorted(os.scandir(b"/" + folder), key=lambda child: child.name)
        except OSError as error:
            if error.errno in _GONE:
                continue
            raise
        for child in children:
            path = folder + b"/" + child.name if folder else child.name
            try:
                about = child.stat(follow_symlinks=False)
                kind = _KINDS[stat.S_IFMT(about.st_mode)]
                target = os.readlink(b"/" + path) if kind == "l" else b""
            except OSError as error:
                if error.errno in _GONE:
                    continue
                raise
            if is_mounted_over(path) or left_out(path, kind):
                continue
            size, mtime_ns = (about.st_size, about.st_mtime_ns) if kind == "f" else (0, 0)
            mode = 0 if kind == "l" else stat.S_IMODE(about.st_mode)
            yield path, Entry(kind, mode, about.st_uid, about.st_gid, size, mtime_ns, "", target)
            if kind == "d" and about.st_dev == device:
                folders.append(path)


def _without_made(walked: Iterable[tuple[bytes, Entry]]) -> Iterator[tuple[bytes, Entry]]:
    left_out: set[bytes] = set()
    for path, entry in walked:
        if path.rpartition(b"/")[0] in left_out or is_made(path, entry.kind):
            left_out.add(path)
        else:
            yield path, entry


def digest_of(path: bytes) -> str:
    """The digest of a file in the root that the process is inside of; empty if it is no longer a file."""
    try:
        with os.fdopen(os.open(b"/" + path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            digest = blake2b(digest_size=16)
            while block := file.read(1 << 20):
                digest.update(block)
            return digest.hexdigest()
    except OSError as error:
        if error.errno in _GONE:
            return ""
        raise


def read_packages() -> dict[str, Package]:
    """The packages of the root that the process is inside of; empty without dpkg."""
    return read_status(_read_text(STATUS))


def _read_owners(packages: dict[str, Package]) -> dict[bytes, str]:
    """Path to package. A folder of several packages belongs to the first."""
    aliases: dict[bytes, bytes] = {}
    for top in (b"bin", b"lib", b"lib32", b"lib64", b"libx32", b"sbin"):
        try:
            aliases[top] = os.readlink(b"/" + top).lstrip(b"/")
        except OSError as error:
            if error.errno in _GONE:  # a folder, or nothing
                continue
            raise
    owners: dict[bytes, str] = {}
    for name, package in sorted(packages.items()):
        if package.is_installed or package.is_unfinished:
            listing = _read(INFO + b"/" + os.fsencode(name) + b".list")
            for path in owned_paths(listing, aliases):
                owners.setdefault(path, name)
    return owners


def _read(path: bytes) -> bytes:
    try:
        with os.fdopen(os.open(b"/" + path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""


def _read_text(path: bytes) -> str:
    return _read(path).decode(*_TEXT)
