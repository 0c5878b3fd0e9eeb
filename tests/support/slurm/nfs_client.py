"""A client of NFSv4.1 (RFC 8881) as small as the tests need: sessions, handles, files, locks and their reclaim. No library has one.

Answers are what the server said; a status other than 0 is an NfsError. One request at a time, on slot 0, as one user.
"""

import contextlib
import ctypes
import os
import random
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

PERM, NOENT, ACCESS, EXIST, NOSPC, ROFS, STALE = 1, 2, 13, 17, 28, 30, 70
DENIED, GRACE, NO_GRACE, MINOR_VERS_MISMATCH = 10010, 10013, 10033, 10021
CURRENT = bytes(16)
"""The anonymous stateid: no open behind it."""


class NfsError(Exception):
    """The server refused; `status` is its number in RFC 8881, 15.1."""

    def __init__(self, operation: str, status: int) -> None:
        super().__init__(f"{operation}: status {status}")
        self.status = status


class Reader:
    """Takes an answer apart."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def u32(self) -> int:
        return int.from_bytes(self.raw(4))

    def u64(self) -> int:
        return int.from_bytes(self.raw(8))

    def raw(self, size: int) -> bytes:
        self.at += size
        if self.at > len(self.data):
            raise EOFError("the answer is too short")
        return self.data[self.at - size : self.at]

    def opaque(self) -> bytes:
        size = self.u32()
        return self.raw(size + -size % 4)[:size]

    def bitmap(self) -> list[int]:
        return [self.u32() for _ in range(self.u32())]

    def attributes(self) -> tuple[list[int], "Reader"]:
        return self.bitmap(), Reader(self.opaque())


def u32(*numbers: int) -> bytes:
    return b"".join(struct.pack(">I", number) for number in numbers)


def u64(*numbers: int) -> bytes:
    return b"".join(struct.pack(">Q", number) for number in numbers)


def opaque(data: bytes | str) -> bytes:
    raw = data if isinstance(data, bytes) else data.encode()
    return u32(len(raw)) + raw + bytes(-len(raw) % 4)


def mode_attribute(mode: int) -> bytes:
    return u32(2, 0, 1 << 1) + opaque(u32(mode))  # attribute 33


def _change(answer: Reader) -> None:
    answer.raw(20)


def _open(answer: Reader) -> bytes:
    stateid = answer.raw(16)
    _change(answer)
    answer.u32()
    answer.bitmap()
    if answer.u32() == 3 and answer.u32() in (1, 2):  # no delegation, and why
        answer.u32()
    return stateid


def _readdir(answer: Reader) -> list[str]:
    answer.raw(8)
    names: list[str] = []
    while answer.u32():
        answer.u64()
        names.append(answer.opaque().decode())
        answer.attributes()
    answer.u32()
    return names


def _exchange_id(answer: Reader) -> tuple[int, int]:
    found = answer.u64(), answer.u32()
    answer.raw(8)
    answer.raw(8)
    answer.opaque()
    answer.opaque()
    for _ in range(answer.u32()):
        answer.opaque()
        answer.opaque()
        answer.raw(12)
    return found


def _create_session(answer: Reader) -> bytes:
    session = answer.raw(16)
    answer.raw(8)
    for _ in range(2):
        answer.raw(24)
        answer.raw(4 * answer.u32())
    return session


_ANSWERS: dict[int, tuple[str, Callable[[Reader], Any]]] = {
    3: ("access", lambda answer: answer.raw(8)),
    4: ("close", lambda answer: answer.raw(16)),
    5: ("commit", lambda answer: answer.raw(8)),
    6: ("create", lambda answer: (_change(answer), answer.bitmap())),
    9: ("getattr", lambda answer: answer.attributes()),
    10: ("getfh", lambda answer: answer.opaque()),
    12: ("lock", lambda answer: answer.raw(16)),
    15: ("lookup", lambda _: None),
    18: ("open", _open),
    22: ("putfh", lambda _: None),
    24: ("putrootfh", lambda _: None),
    25: ("read", lambda answer: (answer.u32(), answer.opaque())[1]),
    26: ("readdir", _readdir),
    28: ("remove", _change),
    29: ("rename", lambda answer: answer.raw(40)),
    32: ("savefh", lambda _: None),
    38: ("write", lambda answer: (answer.u32(), answer.u32(), answer.raw(8))),
    42: ("exchange_id", _exchange_id),
    43: ("create_session", _create_session),
    53: ("sequence", lambda answer: answer.raw(36)),
    58: ("reclaim_complete", lambda _: None),
}


@dataclass
class Client:
    """One machine's client with a session, as one user."""

    host: str
    namespace: str
    """Path of the network namespace that it dials from."""
    uid: int = 0
    owner: bytes = field(default_factory=lambda: os.urandom(12))
    """What the server knows it by, also after a restart of the server."""
    privileged: bool = True
    """True: from a port that only root may use."""
    minor: int = 1

    def __post_init__(self) -> None:
        self._verifier = os.urandom(8)
        self.connect()

    def connect(self, reclaiming: bool = False) -> None:
        """Dials and makes a session. A client with locks of before says later, by `reclaimed`, that it has taken them back."""
        self.close()
        self._socket = _dial(self.host, self.namespace, self.privileged)
        ask = (42, self._verifier + opaque(self.owner) + u32(0, 0, 0))
        self.client_id, sequence = self._compound([ask])[0]
        channel = u32(0, 1 << 20, 1 << 20, 1 << 16, 16, 8, 0)
        ask = (43, u64(self.client_id) + u32(sequence, 0) + channel + channel + u32(0x40000000, 1, 0))
        self._session, self._sequence = self._compound([ask])[0], 0
        if not reclaiming:
            self.reclaimed()

    def close(self) -> None:
        """Hangs up; the server keeps what the client has for a lease."""
        with contextlib.suppress(AttributeError):
            self._socket.close()

    def reclaimed(self) -> None:
        """Says that nothing more will be taken back."""
        self.call((58, u32(0)))

    def call(self, *operations: tuple[int, bytes]) -> list[Any]:
        """One request in the session; gives each operation's answer."""
        self._sequence += 1
        return self._compound([(53, self._session + u32(self._sequence, 0, 0, 0)), *operations])[1:]

    def handle(self, path: str) -> bytes:
        """The file handle of a path."""
        return self.call(*_walk(path), (10, b""))[-1]

    def names(self, path: str) -> list[str]:
        """What is in a folder."""
        return sorted(self.call(*_walk(path), (26, u64(0) + bytes(8) + u32(8192, 65536, 0)))[-1])

    def make_folder(self, path: str, mode: int = 0o755) -> None:
        parent, _, name = path.rpartition("/")
        self.call(*_walk(parent), (6, u32(2) + opaque(name) + mode_attribute(mode)))

    def open(self, path: str, create: bool = False, write: bool = True) -> tuple[bytes, bytes]:
        """Opens a file; gives its handle and the open's stateid."""
        parent, _, name = path.rpartition("/")
        how = u32(1, 0) + mode_attribute(0o644) if create else u32(0)
        stateid, handle = self.call(*_walk(parent), (18, self._opening(write) + how + u32(0) + opaque(name)), (10, b""))[-2:]
        return handle, stateid

    def reopen(self, handle: bytes) -> bytes:
        """Takes back an open of before the server's restart."""
        return self.call((22, opaque(handle)), (18, self._opening(True) + u32(0) + u32(1, 0)))[-1]

    def lock(self, handle: bytes, stateid: bytes, reclaim: bool = False) -> bytes:
        """Locks the whole file for writing, or takes that lock back."""
        locker = u32(1, 0) + stateid + u32(0) + u64(self.client_id) + opaque(b"lock")
        return self.call((22, opaque(handle)), (12, u32(2, reclaim) + u64(0, 2**64 - 1) + locker))[-1]

    def write(self, path: str, data: bytes) -> bytes:
        """Makes or changes a file, on the disk when this returns; gives its handle."""
        handle, stateid = self.open(path, create=True)
        try:
            self.write_at(handle, stateid, 0, data)
        finally:
            self.call((22, opaque(handle)), (4, u32(0) + stateid))
        return handle

    def write_at(self, handle: bytes, stateid: bytes, offset: int, data: bytes) -> None:
        written, stable, _ = self.call((22, opaque(handle)), (38, stateid + u64(offset) + u32(2) + opaque(data)))[-1]
        if (written, stable) != (len(data), 2):
            raise AssertionError(f"{written} of {len(data)} bytes written, stable {stable}")

    def read(self, path: str) -> bytes:
        return self.read_handle(self.handle(path))

    def read_handle(self, handle: bytes) -> bytes:
        """What is in the file of a handle, up to 512 KiB."""
        return self.call((22, opaque(handle)), (25, CURRENT + u64(0) + u32(1 << 19)))[-1]

    def rename(self, old: str, new: str) -> None:
        (source, _, before), (target, _, after) = old.rpartition("/"), new.rpartition("/")
        self.call(*_walk(source), (32, b""), *_walk(target), (29, opaque(before) + opaque(after)))

    def remove(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        self.call(*_walk(parent), (28, opaque(name)))

    def owner_of(self, path: str) -> tuple[int, str, str]:
        """Mode, owner and group of a path."""
        _, values = self.call(*_walk(path), (9, u32(2, 0, 1 << 1 | 1 << 4 | 1 << 5)))[-1]
        return values.u32(), values.opaque().decode(), values.opaque().decode()

    def file_system(self, path: str) -> tuple[int, int]:
        """The number of the file system that a path is on, which tells one mount from another."""
        _, values = self.call(*_walk(path), (9, u32(1, 1 << 8)))[-1]
        return values.u64(), values.u64()

    def _opening(self, write: bool) -> bytes:
        return u32(0, (3 if write else 1) | 0x400, 0) + u64(self.client_id) + opaque(b"open")  # 0x400: no delegation

    def _compound(self, operations: list[tuple[int, bytes]]) -> list[Any]:
        credentials = u32(0) + opaque("test") + u32(self.uid, self.uid, 0)
        number = random.getrandbits(32)
        body = u32(number, 0, 2, 100003, 4, 1, 1) + opaque(credentials) + u32(0, 0)
        body += opaque("") + u32(self.minor, len(operations)) + b"".join(u32(code) + ask for code, ask in operations)
        self._socket.sendall(u32(1 << 31 | len(body)) + body)
        answer = Reader(self._receive())
        if (answer.u32(), answer.u32(), answer.u32()) != (number, 1, 0):
            raise NfsError("rpc", -1)
        answer.u32()
        answer.opaque()
        if answer.u32() != 0:
            raise NfsError("rpc", -1)
        overall, _, count = answer.u32(), answer.opaque(), answer.u32()
        if overall and not count:
            raise NfsError("compound", overall)
        results: list[Any] = []
        for _ in range(count):
            name, take = _ANSWERS[answer.u32()]
            status = answer.u32()
            if status:
                raise NfsError(name, status)
            results.append(take(answer))
        return results

    def _receive(self) -> bytes:
        whole, last = b"", False
        while not last:
            mark = int.from_bytes(self._exactly(4))
            last = bool(mark >> 31)
            whole += self._exactly(mark & 0x7FFFFFFF)
        return whole

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionError("the server hung up")
            data += more
        return data


def _walk(path: str) -> list[tuple[int, bytes]]:
    return [(24, b""), *((15, opaque(part)) for part in path.split("/") if part)]


def _dial(host: str, namespace: str, privileged: bool) -> socket.socket:
    """Connects from another network namespace: a socket stays in the one that it was made in."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as own, open(namespace) as other:  # noqa: PTH123 - files of the kernel's, for their numbers
        if libc.setns(other.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            made = socket.socket()
        finally:
            if libc.setns(own.fileno(), 0):
                raise OSError(ctypes.get_errno(), "setns")
    made.settimeout(60)
    try:
        for port in random.sample(range(700, 1024), 50) if privileged else [0]:
            try:
                made.bind(("", port))
                break
            except OSError:
                continue
        made.connect((host, 2049))
    except OSError:
        made.close()
        raise
    return made
