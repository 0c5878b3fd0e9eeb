"""What a user stores at home and may store there, in one line for sessions. The decisions are pure and come first.

quota(1) asks NFS servers, as the user, with a deadline. quotactl_fd(2) asks local file systems, which quota(1) refuses in a pod.
"""

import contextlib
import ctypes
import os
import re
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

DEADLINE_S = 2
"""The longest that a file server may hold a login up."""
SILENT_FOR_S = 3600
"""A server that did not answer in time is asked again so much later: other logins do not wait for it."""

_SERVERS, _KERNELS = ("nfs", "nfs4"), ("ext3", "ext4", "xfs")
_ROW = re.compile(r"^ *\S.*? +(\d+)\*? +(\d+) +(\d+) +(\d+) +(\d+)\*? +(\d+) +(\d+) +(\d+)$", re.MULTILINE)
_QUOTACTL_FD = 443
_GET_USER_QUOTA = 0x800007 << 8
_KIB = 1024
_UNITS = ("KiB", "MiB", "GiB", "TiB")


class Figures(NamedTuple):
    """Of space (bytes) or of files; a limit of 0 is none."""

    used: int
    soft: int
    hard: int
    grace_end_s: int
    """When the soft limit becomes a hard one, in seconds since 1970; 0 below the soft limit."""


class Quota(NamedTuple):
    """A user's quota on one file system."""

    space: Figures
    files: Figures


class Mount(NamedTuple):
    """Where a folder lies."""

    point: str
    kind: str


def find_mount(mounts: str, folder: str) -> Mount | None:
    """The mount of a folder, from /proc/self/mountinfo: no call goes to the folder's server, which may be away."""
    nearest: Mount | None = None
    for line in mounts.splitlines():
        head, _, tail = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), head.split()[4])
        is_around = folder == point or folder.startswith(f"{point.rstrip('/')}/")
        if is_around and (nearest is None or len(point) >= len(nearest.point)):
            nearest = Mount(point, tail.split()[0])
    return nearest


def read_report(report: str) -> Quota | None:
    """What `quota --no-wrap --raw-grace` printed of one file system; None where it has no quota for the user."""
    row = _ROW.search(report)
    if row is None:
        return None
    blocks, soft, hard, grace, *files = map(int, row.groups())
    return Quota(Figures(blocks * _KIB, soft * _KIB, hard * _KIB, grace), Figures(*files))


def render(quota: Quota | None, now_s: float) -> str:
    """The line; empty without a limit."""
    if quota is None:
        return ""
    space, files = quota
    parts = [f"{_size(space.used)} of {_size(_limit(space))}"] if _limit(space) else []
    if _limit(files):
        parts.append(f"{files.used} of {_limit(files)} files")
    if not parts:
        return ""
    warnings = [
        _warning(figures, name, now_s)
        for figures, name in ((space, _size(space.soft)), (files, f"{files.soft} files"))
        if figures.soft and figures.used > figures.soft and figures.grace_end_s
    ]
    return f"Your home: {', '.join(parts)} used.{''.join(warnings)}\n"


def _limit(figures: Figures) -> int:
    return figures.hard or figures.soft


def _warning(figures: Figures, soft: str, now_s: float) -> str:
    if figures.grace_end_s <= now_s:
        return f" It was above {soft} for too long: nothing can be written until files are deleted."
    end = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(figures.grace_end_s))
    return f" Above {soft}, nothing can be written from {end} on: delete files before then."


def _size(size: int) -> str:
    """In the unit that leaves the fewest digits before the point."""
    power = min(max(size.bit_length() - 1, 10) // 10, len(_UNITS))
    return f"{size / _KIB**power:.1f} {_UNITS[power - 1]}"


class _Answer(ctypes.Structure):
    """The kernel's struct if_dqblk: limits of space in blocks of 1 KiB, what is used in bytes."""

    _fields_ = (
        ("hard", ctypes.c_uint64),
        ("soft", ctypes.c_uint64),
        ("used", ctypes.c_uint64),
        ("files_hard", ctypes.c_uint64),
        ("files_soft", ctypes.c_uint64),
        ("files_used", ctypes.c_uint64),
        ("grace_end_s", ctypes.c_uint64),
        ("files_grace_end_s", ctypes.c_uint64),
        ("valid", ctypes.c_uint32),
    )


def ask_kernel(point: str, uid: int) -> Quota | None:
    """Asks as the user, who needs no right for it. None without quotas. Raises OSError if the mount cannot be opened."""
    answer = _Answer()
    # O_PATH: nothing of the folder is read.
    opened = os.open(point, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with _as(uid):
            failed = ctypes.CDLL(None).syscall(_QUOTACTL_FD, opened, _GET_USER_QUOTA, uid, ctypes.byref(answer))
    finally:
        os.close(opened)
    if failed:
        return None
    return Quota(
        Figures(answer.used, answer.soft * _KIB, answer.hard * _KIB, answer.grace_end_s),
        Figures(answer.files_used, answer.files_soft, answer.files_hard, answer.files_grace_end_s),
    )


@contextlib.contextmanager
def _as(uid: int) -> Generator[None]:
    previous_uid = os.geteuid()
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(previous_uid)


def ask_server(point: str, uid: int, gid: int) -> Quota | None:
    """Asks as the user. Raises TimeoutExpired if the server does not answer in time, OSError if it cannot be asked."""
    command = ["quota", "--no-wrap", "--raw-grace", "--show-mntpoint", "--hide-device", "-f", point]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
        cwd="/",
        env={**os.environ, "LC_ALL": "C"},
        user=uid,
        group=gid,
        extra_groups=[],
    )
    try:
        report, _ = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        # Nobody waits for its end: a process that a mount holds up ends when the server is back. The pod's init takes it over.
        process.kill()
        raise
    return read_report(report)


def describe(home: str, uid: int, gid: int, silent: Path, now_s: float) -> str:
    """The line of a user's home, or nothing. `silent` notes when a server did not answer in time. Raises OSError, TimeoutExpired."""
    mount = find_mount(Path("/proc/self/mountinfo").read_text(errors="replace"), home)
    if mount is not None and mount.kind in _KERNELS:
        return render(ask_kernel(mount.point, uid), now_s)
    if mount is None or mount.kind not in _SERVERS or _is_silent(silent, now_s):
        return ""
    try:
        return render(ask_server(mount.point, uid, gid), now_s)
    except subprocess.TimeoutExpired:
        silent.touch()
        raise


def _is_silent(silent: Path, now_s: float) -> bool:
    try:
        return now_s - silent.stat().st_mtime < SILENT_FOR_S
    except OSError:
        return False
