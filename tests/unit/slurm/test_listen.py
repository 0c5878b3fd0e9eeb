"""Deadlines, bounds and turns of a listener, on real sockets."""

import asyncio
import contextlib
import gc
import select
import socket
import struct
import threading
import time
from asyncio import selector_events
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slurm import web
from slurm.listen import Bounds, InThread, Listener
from slurm.turns import Turns
from tests.support.patience import patience

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
DEADLINE_S = 10

Serve = Callable[[Listener], int]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts listeners; gives their ports."""
    serving: list[InThread] = []

    def start(listener: Listener) -> int:
        serving.append(InThread((listener, 0), host="127.0.0.1"))
        return serving[-1].ports[0]

    yield start
    for each in serving:
        each.close()


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), DEADLINE_S * patience(), source_address=(address, 0))


def connect_unread(port: int, address: str = "127.0.0.1") -> socket.socket:
    """Asks, ends its side, and has hardly any room for the answer, of which the first bytes have come."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    connection.bind((address, 0))
    connection.connect(("127.0.0.1", port))
    connection.sendall(REQUEST)
    connection.shutdown(socket.SHUT_WR)
    assert select.select([connection], [], [], DEADLINE_S * patience())[0]
    return connection


def count_held(port: int) -> int:
    """Connections for which the kernel still has bytes of this port to send. Source: proc_net_tcp, the kernel's documentation."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and not row[4].startswith("00000000") for row in rows)


def ask(port: int, address: str = "127.0.0.1", request: bytes = REQUEST) -> bytes:
    """The answer; nothing where the server turns the client away."""
    with contextlib.suppress(ConnectionError), connect(port, address) as connection:
        connection.sendall(request)
        return read_all(connection)
    return b""


def read_all(connection: socket.socket) -> bytes:
    """What the server says until it ends the connection, in whatever way."""
    said = b""
    try:
        while piece := connection.recv(1 << 16):
            said += piece
    except ConnectionError:
        pass
    return said


def hello(bounds: Bounds) -> Listener:
    return web.gives({"/": lambda: web.Answer(b"hello")}, bounds)


def has_ended(connection: socket.socket, within_s: float) -> bool:
    """Whether the server has ended the connection."""
    return bool(select.select([connection], [], [], within_s)[0]) and not read_all(connection)


@pytest.mark.parametrize("bytes_sent", [pytest.param(b"", id="silent"), pytest.param(b"G", id="dripping")])
def test_whole_request_has_one_deadline(serve: Serve, bytes_sent: bytes) -> None:
    """A byte now and then does not renew it."""
    port = serve(hello(Bounds(request_s=0.3)))
    end = time.monotonic() + DEADLINE_S * patience()
    with connect(port) as connection:
        while not has_ended(connection, 0.02):
            assert time.monotonic() < end
            try:
                connection.sendall(bytes_sent)
            except ConnectionError:
                break


@pytest.mark.parametrize("size", [pytest.param(64 * 2**20, id="large"), pytest.param(50_000, id="all-of-it-in-the-kernel")])
def test_answer_that_is_not_taken_has_a_deadline(serve: Serve, size: int) -> None:
    port = serve(web.gives({"/": lambda: web.Answer(bytes(size))}, Bounds(answer_s=0.3)))
    with connect_unread(port) as connection:
        # The server resets the connection, which the kernel tells although nothing is read.
        poll = select.poll()
        poll.register(connection, 0)
        assert poll.poll(1000 * DEADLINE_S * patience())
        assert len(read_all(connection)) < size


def test_answers_in_the_kernel_have_the_bound_of_clients(serve: Serve) -> None:
    """A client holds its place until it has taken all of its answer, so that the kernel keeps no more answers than there are places."""
    port = serve(web.gives({"/": lambda: web.Answer(bytes(50_000))}, Bounds(per_address=4)))
    unread = [connect_unread(port, "127.0.0.2") for _ in range(40)]
    assert ask(port, "127.0.0.2").endswith(bytes(50_000))
    assert count_held(port) <= 4
    for each in unread:
        each.close()


def test_large_answer_comes_whole(serve: Serve) -> None:
    body = bytes(range(256)) * 2**15
    port = serve(web.gives({"/": lambda: web.Answer(body)}))
    assert ask(port).endswith(b"\r\n\r\n" + body)


def test_answers_in_memory_have_a_bound(serve: Serve) -> None:
    """Who does not read goes, so that who reads is served."""
    body = bytes(8 * 2**20)
    port = serve(web.gives({"/": lambda: web.Answer(body)}, Bounds(answers_bytes=len(body) + 1000)))
    stalled = [connect(port, "127.0.0.2") for _ in range(4)]
    for each in stalled:
        each.sendall(REQUEST)
        assert select.select([each], [], [], DEADLINE_S * patience())[0]
    assert len(ask(port, "127.0.0.3")) > len(body)
    assert [len(read_all(each)) > len(body) for each in stalled] == [False] * 4
    for each in stalled:
        each.close()


@pytest.mark.parametrize(
    ("request_bytes", "answer"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nA: %b\r\n\r\n" % (b"b" * 100), b"200", id="fits"),
        pytest.param(b"GET / HTTP/1.1\r\nA: %b\r\n\r\n" % (b"b" * 2000), b"", id="too-long"),
        pytest.param(b"b" * 100_000, b"", id="endless"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n", b"405", id="body-that-is-too-long"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n" + b"x" * 500, b"405", id="more-than-the-body"),
    ],
)
def test_request_has_a_bound(serve: Serve, request_bytes: bytes, answer: bytes) -> None:
    said = ask(serve(hello(Bounds(request_bytes=1000))), request=request_bytes)
    assert said.split(b" ")[1:2] == ([answer] if answer else [])


def test_requests_in_memory_have_a_bound(serve: Serve) -> None:
    """Who has sent most goes."""
    port = serve(hello(Bounds(request_bytes=20_000, requests_bytes=30_000)))
    with connect(port, "127.0.0.2") as large, connect(port, "127.0.0.3") as small:
        large.sendall(b"a" * 19_000)
        small.sendall(REQUEST[:5])
        assert ask(port, "127.0.0.4", b"GET / HTTP/1.1\r\nA: " + b"b" * 15_000 + b"\r\n\r\n").endswith(b"hello")
        assert has_ended(large, DEADLINE_S * patience())
        small.sendall(REQUEST[5:])
        assert read_all(small).endswith(b"hello")


def test_client_that_ends_its_side_gets_its_answer(serve: Serve) -> None:
    with connect(serve(hello(Bounds()))) as connection:
        connection.sendall(REQUEST)
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection).endswith(b"hello")


def test_full_listener_drops_who_has_not_asked_of_the_largest_crowd(serve: Serve) -> None:
    port = serve(hello(Bounds(clients=6, per_address=4)))
    crowd = [connect(port, "127.0.0.2") for _ in range(4)]
    others = [connect(port, f"127.0.0.{number}") for number in (3, 4)]
    assert ask(port, "127.0.0.5").endswith(b"hello")
    assert has_ended(crowd[0], DEADLINE_S * patience())
    for each in (*crowd[1:], *others):
        each.sendall(REQUEST)
        assert read_all(each).endswith(b"hello")
        each.close()


def test_address_at_its_bound_loses_its_own_oldest(serve: Serve) -> None:
    port = serve(hello(Bounds(per_address=2)))
    first, second = connect(port), connect(port)
    assert ask(port).endswith(b"hello")
    assert has_ended(first, DEADLINE_S * patience())
    second.sendall(REQUEST)
    assert read_all(second).endswith(b"hello")
    first.close()
    second.close()


def test_waiting_crowd_makes_room_for_another_address_only(serve: Serve) -> None:
    """Those who have asked and wait keep their places among themselves: the newest would gain nothing by the loss of an older one."""
    go_on, waiting = threading.Event(), threading.Semaphore(0)
    turns = Turns(2)

    async def answer(asked: web.Asked) -> web.Answer:
        if asked.path == "/slow":
            waiting.release()
            await turns.run(asked.address, go_on.wait, DEADLINE_S)
        return web.Answer(b"hello")

    port = serve(web.listener(answer, Bounds(clients=3, per_address=3)))
    crowd = [connect(port, "127.0.0.2") for _ in range(3)]
    for each in crowd:
        each.sendall(REQUEST.replace(b"/ ", b"/slow "))
        assert waiting.acquire(timeout=DEADLINE_S * patience())
    assert ask(port, "127.0.0.2") == b""
    assert ask(port, "127.0.0.3").endswith(b"hello")
    go_on.set()
    assert [read_all(each).endswith(b"hello") for each in crowd] == [True, True, False]
    for each in crowd:
        each.close()


def test_fault_of_ours_ends_one_connection_only(serve: Serve, capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> web.Answer:
        raise ZeroDivisionError("ours")

    port = serve(web.gives({"/": fail, "/fine": lambda: web.Answer(b"hello")}))
    assert ask(port) == b""
    assert ask(port, request=REQUEST.replace(b"/ ", b"/fine ")).endswith(b"hello")
    assert "ZeroDivisionError: ours" in capfd.readouterr().err


def test_client_that_leaves_before_its_answer_is_no_fault(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    """It resets the connection as soon as it gets the answer."""
    go_on, waiting, turns = threading.Event(), threading.Semaphore(0), Turns(2)

    async def answer(asked: web.Asked) -> web.Answer:
        waiting.release()
        await turns.run(asked.address, go_on.wait, DEADLINE_S)
        return web.Answer(b"hello")

    port = serve(web.listener(answer, Bounds(per_address=1)))
    with connect(port) as connection:
        connection.sendall(REQUEST)
        assert waiting.acquire(timeout=DEADLINE_S * patience())
    go_on.set()
    end = time.monotonic() + DEADLINE_S * patience()
    while not ask(port).endswith(b"hello"):  # there is one place
        assert time.monotonic() < end
    gc.collect()
    assert caplog.text == ""


@pytest.mark.parametrize("is_before", [pytest.param(True, id="before its end is sent"), pytest.param(False, id="after that")])
def test_client_that_resets_at_the_end_of_a_large_answer_is_no_fault(
    is_before: bool, serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    reset = threading.Event()
    clients: list[socket.socket] = []
    kind: Any = vars(selector_events)["_SelectorSocketTransport"]
    send_end = kind.write_eof

    def end(transport: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(0.2, reset.set)  # then all that follows from it has run
        if not is_before:
            send_end(transport)
        clients[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        clients[0].close()
        if is_before:
            send_end(transport)

    monkeypatch.setattr(kind, "write_eof", end)
    clients.append(connect(serve(web.gives({"/": lambda: web.Answer(bytes(2**23))}))))
    clients[0].sendall(REQUEST)
    clients[0].settimeout(0.05)
    end_at = time.monotonic() + DEADLINE_S * patience()
    while not reset.is_set():
        assert time.monotonic() < end_at
        with contextlib.suppress(OSError):  # nothing to read yet, or closed below us
            clients[0].recv(2**16)
    assert caplog.text == ""


def test_port_that_is_taken_is_an_error(serve: Serve) -> None:
    port = serve(hello(Bounds()))
    with pytest.raises(OSError, match="Address already in use"):
        InThread((hello(Bounds()), port), host="127.0.0.1")


def test_end_drops_clients() -> None:
    serving = InThread((hello(Bounds()), 0), host="127.0.0.1")
    connection = connect(serving.ports[0])
    assert ask(serving.ports[0]).endswith(b"hello")
    serving.close()
    assert has_ended(connection, DEADLINE_S * patience())
    connection.close()


def test_address_has_half_of_the_threads_and_others_have_turns() -> None:
    """Commands that hang of one address hold up nobody else; what waits is taken by turns, and what nobody waits for is left out."""
    ran: list[str] = []

    async def run() -> None:
        go_on, turns = threading.Event(), Turns(4)
        hanging = [asyncio.create_task(turns.run("a", go_on.wait, DEADLINE_S * 5)) for _ in range(3)]
        assert await asyncio.wait_for(turns.run("b", lambda: 7), DEADLINE_S) == 7
        both = [asyncio.create_task(turns.run("b", go_on.wait, DEADLINE_S * 5)) for _ in range(2)]
        later = [asyncio.create_task(turns.run(name, ran.append, f"{name}{number}")) for name in "cd" for number in range(3)]
        await asyncio.sleep(0)
        later[1].cancel()
        go_on.set()
        await asyncio.gather(*hanging, *both, *later, return_exceptions=True)
        with pytest.raises(ZeroDivisionError):
            await turns.run("e", lambda: 1 // 0)
        assert await turns.run("e", lambda: 8) == 8

    asyncio.run(run())
    assert sorted(ran) == ["c0", "c2", "d0", "d1", "d2"]


def test_turn_ends_where_no_thread_can_start() -> None:
    """The kernel may refuse one for a moment; whoever asks later has all of the threads."""

    async def run() -> None:
        turns = Turns(2)
        usual = threading.stack_size(1 << 47)  # more than an address space has
        try:
            for _ in range(3):
                with pytest.raises(RuntimeError, match="can't start new thread"):
                    await asyncio.wait_for(turns.run("a", lambda: 1), DEADLINE_S)
        finally:
            threading.stack_size(usual)
        assert await asyncio.wait_for(turns.run("a", lambda: 7), DEADLINE_S) == 7

    asyncio.run(run())
