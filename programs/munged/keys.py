"""The munge key in the Secret, and munged's copy, which only its user can read. Thin. Raises OSError.

Without `pathlib`, which takes 5 ms of each start of a worker.
"""

import contextlib
import os
import subprocess

from names import paths
from slurm.people import ACCOUNTS

SECRET = f"{paths.MUNGE_KEY}/munge.key"
KEY = "/var/lib/munge/munge.key"
NOTE = f"{paths.MUNGE_RUN}/key-id"
"""Identifies the key without revealing it, for programs/slurmctld, which cannot read keys."""
WAITS = paths.MUNGE_KEY_WAITS
"""Exists while another key waits, for programs/slurmctld. Its time is that of the key's arrival."""


class Keys:
    """Both keys. Remembers a file of the Secret with the same key, so that it is read once."""

    def __init__(self) -> None:
        self._same: int | None = None

    def has_other(self) -> bool:
        """True if the Secret has another key than munged. Raises OSError if they cannot be compared: slurmctld would stop for another key,
        so the answer must be sure."""
        try:
            secret = os.stat(SECRET)
        except OSError:
            return False
        # The kubelet never writes into a file, so another key is another file. The file that was compared last stays open, so that its
        # inode number is not used again.
        if not secret.st_size or (self._same is not None and os.path.samestat(secret, os.fstat(self._same))):
            return False
        if self._same is not None:
            os.close(self._same)
            self._same = None
        opened = os.open(SECRET, os.O_RDONLY)  # once: the kubelet may put another file there between two looks
        try:
            if _read(opened) == _content(KEY):
                self._same, opened = opened, -1
                return False
            return True
        finally:
            if opened >= 0:
                os.close(opened)

    def take(self) -> None:
        """Copies the Secret's key for munged, which wants a file that only its user can read. A mounted Secret cannot be one."""
        key = _content(SECRET)
        new = f"{KEY}.new"
        with contextlib.suppress(FileNotFoundError):  # of a start that was killed
            os.unlink(new)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
        try:
            os.write(descriptor, key)
            if os.getuid() == 0:
                os.fchown(descriptor, ACCOUNTS["munge"], ACCOUNTS["munge"])
        finally:
            os.close(descriptor)
        os.replace(new, KEY)

    def note(self) -> None:
        """Writes NOTE: which key munged has."""
        # The process takes 2 ms. hashlib would load OpenSSL: 4 MB of each worker's memory.
        done = subprocess.run(["sha256sum", KEY], capture_output=True, check=True)
        descriptor = os.open(f"{NOTE}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            os.write(descriptor, done.stdout[:16] + b"\n")
        finally:
            os.close(descriptor)
        os.replace(f"{NOTE}.new", NOTE)


def has_key() -> bool:
    """True if munged has a key already: the pod keeps it when a container restarts."""
    try:
        return os.stat(KEY).st_size > 0
    except FileNotFoundError:
        return False


def say_waiting() -> bool:
    """Writes the note that a key waits; False if it was there."""
    try:
        os.close(os.open(WAITS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    except FileExistsError:
        return False
    return True


def waiting_since() -> float:
    """When the waiting key came, in seconds since 1970."""
    return os.stat(WAITS).st_mtime


def say_taken() -> None:
    """Removes the note that a key waits."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(WAITS)


def _content(path: str) -> bytes:
    opened = os.open(path, os.O_RDONLY)
    try:
        return _read(opened)
    finally:
        os.close(opened)


def _read(opened: int) -> bytes:
    parts: list[bytes] = []
    while part := os.read(opened, 65536):
        parts.append(part)
    return b"".join(parts)
