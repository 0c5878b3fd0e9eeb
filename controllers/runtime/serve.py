"""`/healthz`, `/readyz` and `/metrics` for the kubelet and Prometheus, and what else a program serves. Answers one request a connection.

Not for the world: it has neither TLS nor logins. A client has seconds for all of its request and answer, and so many may be served at once.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from urllib.parse import parse_qs

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest

Check = Callable[[], str]
"""Gives why something is not as it should be, for a person to read; empty when all is well."""

_REQUEST_S = 5.0
_ANSWER_S = 30.0
"""For a client behind a slow line."""
_MOST_CLIENTS = 128
_MOST_BYTES = 16 * 1024
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Asked:
    """A GET or HEAD request, or a POST to a path that takes one."""

    query: Mapping[str, str] = field(default_factory=dict[str, str])
    """What stands after the question mark; of a name that stands there twice the last value."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """By name in small letters."""
    body: bytes = b""


@dataclass(frozen=True)
class Answer:
    """What a client gets."""

    body: bytes
    kind: str = _TEXT
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Page = Callable[[Asked], Answer]
Post = Callable[[Asked], Awaitable[Answer]]


async def start(
    port: int,
    *,
    live: Mapping[str, Check],
    ready: Mapping[str, Check],
    host: str | None = None,
    registry: CollectorRegistry = REGISTRY,
    pages: Mapping[str, Page] | None = None,
    posts: Mapping[str, Post] | None = None,
) -> asyncio.Server:
    """A server on all addresses unless `host` says otherwise; port 0 takes a free one. Raises OSError when the port is taken.

    `live`: a fault means that only a restart helps. `ready`: a fault means that the process cannot do its work now. `pages` is what else
    it serves, and `posts` what takes a POST, by path.
    """
    served = dict(pages or {})
    taken = dict(posts or {})
    clients: set[asyncio.StreamWriter] = set()

    def answer(path: str, asked: Asked) -> Answer:
        if path in served:
            return served[path](asked)
        if path == "/metrics":
            return Answer(generate_latest(registry), CONTENT_TYPE_LATEST)
        if path in ("/healthz", "/readyz"):
            faults = {name: fault for name, check in (live if path == "/healthz" else ready).items() if (fault := check())}
            text = "".join(f"{name}: {fault}\n" for name, fault in faults.items()) or "ok\n"
            return Answer(text.encode(), status=HTTPStatus.SERVICE_UNAVAILABLE if faults else HTTPStatus.OK)
        return Answer(f"there is {', '.join([*served, '/healthz, /readyz and /metrics'])}\n".encode(), status=HTTPStatus.NOT_FOUND)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(clients) >= _MOST_CLIENTS:
            writer.close()
            return
        clients.add(writer)
        # A client that leaves, dawdles or talks nonsense is its own trouble.
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(_REQUEST_S):
                    method, path, asked = _read(await reader.readuntil(b"\r\n\r\n"))
                    if method == "POST" and path in taken:
                        asked = replace(asked, body=await _body(reader, asked))
                async with asyncio.timeout(_ANSWER_S):
                    if method == "POST" and path in taken:
                        found = await taken[path](asked) if asked.body else Answer(b"no body\n", status=HTTPStatus.BAD_REQUEST)
                    elif method in ("GET", "HEAD"):
                        found = answer(path, asked)
                    else:
                        found = Answer(b"only GET\n", status=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})
                    writer.write(_response(found, has_body=method != "HEAD"))
                    await writer.drain()
                    writer.close()
                    await writer.wait_closed()
        finally:
            clients.discard(writer)
            if not writer.is_closing() or writer.transport.get_write_buffer_size():
                writer.transport.abort()

    return await asyncio.start_server(serve, host, port, limit=_MOST_BYTES)


def _read(head: bytes) -> tuple[str, str, Asked]:
    """Method, path and the rest of a request."""
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = first.partition(" ")
    path, _, query = rest.partition(" ")[0].partition("?")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    return method, path, Asked({name: values[-1] for name, values in parse_qs(query).items()}, headers)


async def _body(reader: asyncio.StreamReader, asked: Asked) -> bytes:
    """The body, of the length that the client says; empty without one, and for one that is too long."""
    length = asked.headers.get("content-length", "")
    return await reader.readexactly(int(length)) if length.isdecimal() and int(length) <= _MOST_BYTES else b""


def _response(found: Answer, has_body: bool) -> bytes:
    said = [
        f"HTTP/1.1 {found.status.value} {found.status.phrase}",
        f"Content-Type: {found.kind}",
        f"Content-Length: {len(found.body)}",
        *(f"{name}: {value}" for name, value in found.headers.items()),
        "Connection: close",
        "",
        "",
    ]
    return "\r\n".join(said).encode("latin-1", "replace") + (found.body if has_body else b"")
