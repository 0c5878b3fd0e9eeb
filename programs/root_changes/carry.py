"""Carries out a plan: copies paths and package records from the root that the process is inside of into another root.

Only we write to the new root while it is filled, and no planned path has a link among its folders there.
"""

# ruff: noqa: PTH112, PTH115, PTH208 - names are bytes, which pathlib is not for

import errno
import os
import stat

from .accounts import with_lines_of
from .packages import INFO, STATUS, TRIGGERS, merge_status, merge_triggers, read_status
from .plan import Plan
from .walk import LARGEST_HASHED, read_packages

_TRIES = 3
_TEXT = ("utf-8", "surrogateescape")


def apply(plan: Plan, new: int) -> list[tuple[bytes, str]]:
    """Copies from / into the folder open at `new`. Returns the paths that could not be copied unchanged, and why.

    Raises OSError, for instance on a full volume.
    """
    lost: list[tuple[bytes, str]] = []
    linked: dict[tuple[int, int], bytes] = {}
    for path in plan.paths:
        try:
            if why := _copy(path, new, linked):
                lost.append((path, why))
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL):
                raise
            lost.append((path, "was removed or replaced while it was copied"))
    _copy_accounts(plan, new)
    if plan.packages:
        _copy_records(plan, new)
    return lost


def _copy(path: bytes, new: int, linked: dict[tuple[int, int], bytes]) -> str:
    source = b"/" + path
    about = os.lstat(source)
    if stat.S_ISDIR(about.st_mode):
        _make_way(path, new, is_folder=True)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=new)
        try:
            _dress(handle, about, _attributes(source))
        finally:
            os.close(handle)
        return ""
    if stat.S_ISLNK(about.st_mode):
        _make_way(path, new)
        os.symlink(os.readlink(source), path, dir_fd=new)
        os.chown(path, about.st_uid, about.st_gid, dir_fd=new, follow_symlinks=False)
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns), dir_fd=new, follow_symlinks=False)
        return ""
    if not stat.S_ISREG(about.st_mode):
        return "is no file, folder or link any more"
    first = linked.setdefault((about.st_dev, about.st_ino), path)
    if first != path:
        _make_way(path, new)
        os.link(first, path, src_dir_fd=new, dst_dir_fd=new, follow_symlinks=False)
        return ""
    for _ in range(_TRIES):
        if _copy_file(path, new):
            return ""
    return "was being written: the copy has what was there at that moment"


def _copy_file(path: bytes, new: int) -> bool:
    """True if the file did not change meanwhile."""
    source = os.open(b"/" + path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        before = os.fstat(source)
        _make_way(path, new)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=new)
        try:
            while block := os.read(source, LARGEST_HASHED):
                view = memoryview(block)
                while view:
                    view = view[os.write(handle, view) :]
            _dress(handle, before, _attributes(source))
        finally:
            os.close(handle)
        after = os.fstat(source)
    finally:
        os.close(source)
    return (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)


def _dress(handle: int, about: os.stat_result, attributes: dict[str, bytes]) -> None:
    os.fchown(handle, about.st_uid, about.st_gid)
    os.fchmod(handle, stat.S_IMODE(about.st_mode))  # after the owner, as chown clears setuid and capabilities, which are set next
    for name, value in attributes.items():
        try:
            os.setxattr(handle, name, value)
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EPERM):
                raise
    os.utime(handle, ns=(about.st_atime_ns, about.st_mtime_ns))


def _attributes(source: bytes | int) -> dict[str, bytes]:
    try:
        follow: dict[str, bool] = {} if isinstance(source, int) else {"follow_symlinks": False}
        names = os.listxattr(source, **follow)
        return {name: os.getxattr(source, name, **follow) for name in names if name != "security.selinux"}
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENODATA):
            return {}
        raise


def _make_way(path: bytes, new: int, is_folder: bool = False) -> None:
    """Removes what is at the path; with `is_folder`, makes sure that a folder is there."""
    try:
        is_there = stat.S_ISDIR(os.stat(path, dir_fd=new, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        is_there = None
    if is_there is False:
        os.unlink(path, dir_fd=new)
    if is_folder and not is_there:
        os.mkdir(path, 0o700, dir_fd=new)


def _copy_accounts(plan: Plan, new: int) -> None:
    merged = plan.accounts
    for name, text in (("passwd", merged.passwd), ("group", merged.group)):
        if text != _read(f"etc/{name}", new):
            _write(f"etc/{name}", text, new)
    for name, names in (("shadow", merged.users), ("gshadow", merged.groups)):
        if names and (text := _read(f"etc/{name}", new)):
            _write(f"etc/{name}", with_lines_of(text, _read(f"/etc/{name}"), names), new)


def _copy_records(plan: Plan, new: int) -> None:
    """Copies files in info/ and lines of triggers. The status file comes last: from then on dpkg knows the packages."""
    names = set(plan.packages)
    for file in sorted(os.listdir(b"/" + INFO)):
        if os.fsdecode(file).rpartition(".")[0] in names:
            _copy_file(INFO + b"/" + file, new)
    if os.path.isdir(b"/" + TRIGGERS):
        for file in sorted(os.listdir(b"/" + TRIGGERS)):
            place = os.fsdecode(TRIGGERS + b"/" + file)
            if file not in (b"Lock", b"Unincorp") and (text := merge_triggers(_read(place, new), _read(f"/{place}"), names)):
                _write(place, text, new)
    packages = read_packages()
    status = os.fsdecode(STATUS)
    known = read_status(_read(status, new))
    for name in names & known.keys():  # files in info/ that only an older version of the package had
        for file in _names_in(INFO, new):
            if os.fsdecode(file).rpartition(".")[0] == name and not os.path.lexists(b"/" + INFO + b"/" + file):
                os.unlink(INFO + b"/" + file, dir_fd=new)
    _write(status, merge_status(_read(status, new), [packages[name] for name in plan.packages]), new)


def _names_in(folder: bytes, root: int) -> list[bytes]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
    try:
        return [os.fsencode(name) for name in os.listdir(handle)]
    finally:
        os.close(handle)


def _read(path: str, folder: int | None = None) -> str:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder), "rb") as file:
            return file.read().decode(*_TEXT)
    except FileNotFoundError:
        return ""


def _write(path: str, text: str, folder: int) -> None:
    """Replaces a file, and keeps its owner and mode."""
    try:
        about = os.stat(path, dir_fd=folder, follow_symlinks=False)
        mode, uid, gid = stat.S_IMODE(about.st_mode), about.st_uid, about.st_gid
    except FileNotFoundError:
        mode, uid, gid = 0o644, 0, 0
    handle = os.open(f"{path}.slipway", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode(*_TEXT))
        os.fchown(handle, uid, gid)
        os.fchmod(handle, mode)
    os.replace(f"{path}.slipway", path, src_dir_fd=folder, dst_dir_fd=folder)
