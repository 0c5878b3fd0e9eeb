"""`/healthz`, `/readyz` and `/metrics` for the kubelet and Prometheus. Answers one request a connection; not for the world."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest

Check = Callable[[], str]
"""Gives why something is not as it should be, for a person to read; empty when all is well."""

_REQUEST_S = 5.0
_MOST_BYTES = 16 * 1024
_TEXT = "text/plain; charset=utf-8"


async def start(
    port: int, *, live: Mapping[str, Check], ready: Mapping[str, Check], host: str | None = None, registry: CollectorRegistry = REGISTRY
) -> asyncio.Server:
    """A server on all addresses unless `host` says otherwise; port 0 takes a free one. Raises OSError when the port is taken.

    `live`: a fault means that only a restart helps. `ready`: a fault means that the process cannot do its work now.
    """

    def answer(path: str) -> tuple[HTTPStatus, str, bytes]:
        if path == "/metrics":
            return HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(registry)
        if path in ("/healthz", "/readyz"):
            faults = {name: fault for name, check in (live if path == "/healthz" else ready).items() if (fault := check())}
            text = "".join(f"{name}: {fault}\n" for name, fault in faults.items()) or "ok\n"
            return HTTPStatus.SERVICE_UNAVAILABLE if faults else HTTPStatus.OK, _TEXT, text.encode()
        return HTTPStatus.NOT_FOUND, _TEXT, b"there is /healthz, /readyz and /metrics\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that leaves, dawdles or talks nonsense is its own trouble.
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(head, answer))
                await writer.drain()
        writer.close()

    return await asyncio.start_server(serve, host, port, limit=_MOST_BYTES)


def _response(head: bytes, answer: Callable[[str], tuple[HTTPStatus, str, bytes]]) -> bytes:
    method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    if method not in ("GET", "HEAD"):
        status, kind, body = HTTPStatus.METHOD_NOT_ALLOWED, _TEXT, b"only GET\n"
    else:
        status, kind, body = answer(path)
    lines = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        "",
        "",
    )
    return "\r\n".join(lines).encode() + (b"" if method == "HEAD" else body)
