"""How our programs listen: many clients side by side, one request and one answer a connection, everything with a bound.

A client has seconds for its whole request and seconds for its answer. Clients are counted by address. A full listener drops a
client of the address with the most clients. Clients that have not sent their request are dropped first. So a client from elsewhere that
sends its request is served, even if an address holds or floods the listener. Uses Python's own library only, and knows neither TLS nor
logins, nor any protocol (slurm/web has HTTP).
"""

import asyncio
import contextlib
import resource
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass
from enum import IntEnum
from itertools import count
from typing import cast

_PIECE = 64 * 1024
"""Bytes of an answer that are on their way to one client."""
_ACCEPTED_AT_ONCE = 64
_QUEUE = 1024
"""Connections that the kernel keeps until they are accepted."""
_RESET = struct.pack("ii", 1, 0)
_KERNEL_BYTES = 128 * 1024
"""Of each answer that the kernel keeps for a client; it doubles them. By itself it keeps up to 4 MiB."""
_ON_ITS_WAY = frozenset({4, 9, 11})
"""FIN_WAIT1, LAST_ACK and CLOSING: the client has not confirmed all of its answer. Source: tcp_states.h of Linux."""
_TAKEN_S = 0.1
"""How often the kernel is asked whether a client has taken its answer."""
_OTHER_FILES = 512
"""Open files of the program that do not count as clients: clients on their way in and out, pipes of commands, other listeners."""


@dataclass(frozen=True)
class Bounds:
    """What clients of one listener may take."""

    clients: int = 256
    per_address: int = 16
    request_s: float = 5.0
    """From the connection to the end of the request."""
    answer_s: float = 30.0
    """From the end of the request until the client has taken its answer."""
    request_bytes: int = 16 * 1024
    requests_bytes: int = 32 * 2**20
    """Of all requests that are not whole yet."""
    answers_bytes: int = 256 * 2**20
    """Of all answers that clients have not taken yet."""


@dataclass(frozen=True)
class Service:
    """What a listener speaks."""

    end: bytes
    """Ends the head of a request."""
    answer: Callable[[bytes, bytes, str], Awaitable[bytes]]
    """From head, body and the client's address. An exception is a fault of ours: it is printed to stderr, and the client gets nothing."""
    body_bytes: Callable[[bytes], int] = lambda _: 0
    """How many bytes follow the head."""


class _Stage(IntEnum):
    """In the order in which clients are dropped."""

    ASKING = 0
    TAKING = 1
    """Its answer."""
    WAITING = 2
    """For its answer."""


class Listener:
    """One port. `start` it in a running loop; `InThread` is for programs without one."""

    def __init__(self, service: Service, bounds: Bounds | None = None) -> None:
        self.service, self.bounds = service, bounds or Bounds()
        self._clients: dict[str, dict[_Client, None]] = {}
        """By address, the oldest first."""
        self._count = 0
        self._most = self.bounds.clients
        self._heard = 0
        """Bytes of requests that are not whole yet."""
        self._server: asyncio.Server | None = None
        self.numbers = count()
        self.port = 0

    async def start(self, port: int, host: str = "") -> "Listener":
        """On all addresses unless `host` is one; port 0 takes a free one. Raises OSError when the port is taken."""
        self._most = min(self.bounds.clients, _files(self.bounds.clients + _OTHER_FILES) - _OTHER_FILES)
        sock = _bind(port, host)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BYTES)  # and of each connection
        self.port = sock.getsockname()[1]
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Client(self), sock=sock, backlog=_ACCEPTED_AT_ONCE)
        sock.listen(_QUEUE)  # the loop accepts as many at once as it has given the kernel
        return self

    def close(self) -> None:
        """Takes no more clients, and drops those that it has."""
        if self._server is not None:
            self._server.close()
        for client in [each for clients in self._clients.values() for each in clients]:
            client.drop()

    def admit(self, client: "_Client") -> bool:
        """Makes room for a client, where it has a right to it."""
        own = self._clients.get(client.address, {})
        if len(own) >= self.bounds.per_address:
            has_room = self._drop_one(own, has_right=False)
        elif self._count >= self._most:
            most = max(len(clients) for clients in self._clients.values())
            crowd = [each for clients in self._clients.values() if len(clients) == most for each in clients]
            has_room = self._drop_one(crowd, has_right=most > len(own))
        else:
            has_room = True
        if has_room:
            self._clients.setdefault(client.address, {})[client] = None
            self._count += 1
        return has_room

    def hear(self, more: int) -> None:
        """Counts bytes of requests; where these are too many, drops who has sent most."""
        self._heard += more
        if self._heard > self.bounds.requests_bytes:
            max((each for clients in self._clients.values() for each in clients), key=lambda each: len(each.said)).drop()

    def hold(self, answer: bytes) -> None:
        """Makes room for an answer."""
        held = [each for clients in self._clients.values() for each in clients if each.left]
        total = len(answer) + sum(len(each.left) for each in held)
        for client in sorted(held, key=lambda each: (-len(self._clients[each.address]), each.number)):
            if total <= self.bounds.answers_bytes:
                return
            total -= len(client.left)
            client.drop()

    def forget(self, client: "_Client") -> None:
        clients = self._clients.get(client.address, {})
        if client in clients:
            del clients[client]
            self._count -= 1
            if not clients:
                del self._clients[client.address]

    @staticmethod
    def _drop_one(clients: "Collection[_Client]", has_right: bool) -> bool:
        """Without a right to room, only for who has sent no request yet, or takes an answer."""
        found = min(clients, key=lambda each: (each.stage, each.number))
        if found.stage is _Stage.WAITING:
            if not has_right:
                return False
            found = max(clients, key=lambda each: each.number)  # who came last has waited least
        found.drop()
        return True


class _Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._look: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self.number = next(listener.numbers)
        self.said = bytearray()
        """Of its request, while that is not whole."""
        self._whole = -1
        """Bytes of head and body, once the head is there."""
        self._head = self._too_much = 0
        self._is_written = False
        """The kernel has all of its answer."""
        self.address = ""
        self.stage = _Stage.ASKING
        self.left: memoryview[int] | bytes = b""
        """What the client has not taken of its answer."""

    def drop(self) -> None:
        """Ends it at once, whatever it does."""
        self._forget()
        if self._transport is not None:
            sock = self._transport.get_extra_info("socket")
            with contextlib.suppress(OSError):  # else the kernel keeps for long what the client does not take
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._transport.abort()

    def _forget(self) -> None:
        self._listener.forget(self)
        self._forget_said()
        for waiting in (self._timer, self._look, self._task):
            if waiting is not None:
                waiting.cancel()
        self.left = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        if not self._listener.admit(self):
            self.drop()
            return
        self._transport.set_write_buffer_limits(0)  # asyncio calls resume_writing once each piece is gone
        self._end_after(self._listener.bounds.request_s)

    def data_received(self, data: bytes) -> None:
        bounds, service = self._listener.bounds, self._listener.service
        if self.stage is not _Stage.ASKING:
            # Not read, it would end the connection before the client has its answer; read for ever, it would be work for nothing.
            self._too_much += len(data)
            if self._too_much > bounds.request_bytes and self._transport is not None:
                self._transport.pause_reading()
            return
        looked = max(0, len(self.said) - len(service.end) + 1)
        self.said += data
        self._listener.hear(len(data))
        if not self.said:
            return  # it has just been dropped
        if self._whole < 0 and (at := self.said.find(service.end, looked)) >= 0:
            self._head = at + len(service.end)
            self._whole = self._head + service.body_bytes(bytes(self.said[: self._head]))
        if 0 <= self._whole <= min(len(self.said), bounds.request_bytes):
            self.stage = _Stage.WAITING
            self._end_after(bounds.answer_s)
            head, body = bytes(self.said[: self._head]), bytes(self.said[self._head : self._whole])
            self._forget_said()
            self._task = self._loop.create_task(self._answer(head, body))
        elif max(self._whole, len(self.said)) > bounds.request_bytes:
            self.drop()

    def eof_received(self) -> bool:
        """A client may end its side after its request, and still get its answer."""
        self._leave()
        return self.stage is not _Stage.ASKING

    def resume_writing(self) -> None:
        # Not at once: asyncio is inside a write, and ends our side again after us. That fails where the client resets the connection.
        self._loop.call_soon(self._write)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the name is the base class's
        self._forget()

    def _forget_said(self) -> None:
        self._listener.hear(-len(self.said))
        self.said.clear()

    def _end_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self.drop)

    async def _answer(self, head: bytes, body: bytes) -> None:
        try:
            answer = await self._listener.service.answer(head, body, self.address)
        except Exception:  # whatever a request does, the next one is served
            traceback.print_exc(file=sys.stderr)
            self._task = None
            self.drop()
            return
        self._task = None
        self._listener.hold(answer)
        self.stage, self.left = _Stage.TAKING, memoryview(answer)
        self._write()

    def _write(self) -> None:
        """As much as the client takes. The rest is the answer itself, of which many clients may have the same."""
        if self._transport is None or self._transport.is_closing() or self.stage is not _Stage.TAKING or self._is_written:
            return
        while self.left:
            piece, self.left = self.left[:_PIECE], self.left[_PIECE:]
            self._transport.write(bytes(piece))
            if self._transport.get_write_buffer_size():
                return
        self._is_written = True
        try:
            self._transport.write_eof()
        except OSError:  # it has reset the connection at that moment
            self.drop()
        self._leave()

    def _leave(self) -> None:
        """Ends the connection once the client has taken its answer. A connection that is closed before costs the kernel the answer for as
        long as the client likes, and nobody counts it."""
        if self._transport is None or self._transport.is_closing() or not self._is_written:
            return
        if self._look is not None:
            self._look.cancel()
        sock = self._transport.get_extra_info("socket")
        if sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in _ON_ITS_WAY:
            self._look = self._loop.call_later(_TAKEN_S, self._leave)
        else:
            self._transport.close()


class InThread:
    """Listeners of a program that has no loop, in a thread of their own."""

    def __init__(self, *listeners: tuple[Listener, int], host: str = "") -> None:
        """Each with its port. Raises OSError when one is taken."""
        self._listeners = [listener for listener, _ in listeners]
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

        async def serve() -> None:
            stop = asyncio.Event()
            try:
                for listener, port in listeners:
                    await listener.start(port, host)
                started.set_result((asyncio.get_running_loop(), stop))
                await stop.wait()
            except OSError as error:
                started.set_exception(error)
            finally:
                for listener in self._listeners:
                    listener.close()

        self._thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        self._thread.start()
        self._loop, self._stop = started.result()

    @property
    def ports(self) -> list[int]:
        return [listener.port for listener in self._listeners]

    def wait(self) -> None:
        """Until it ends, which is when it is closed."""
        self._thread.join()

    def close(self) -> None:
        """Takes no more clients, and drops those that it has."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


def _bind(port: int, host: str) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server((host, port))


def _files(wanted: int) -> int:
    """Raises the limit of open files up to `wanted` if it may; returns the limit."""
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        wanted = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return wanted
