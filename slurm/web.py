"""HTTP for our listeners (slurm/listen): GET and HEAD, POST where a program takes it, one request a connection. Not for the world."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs

from slurm.listen import Bounds, Listener, Service

TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Asked:
    """A request."""

    method: str = "GET"
    path: str = "/"
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    """The parameters after the question mark. If a name is given twice, the last value counts."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """By name in small letters."""
    body: bytes = b""
    address: str = ""
    """The client's."""


@dataclass(frozen=True)
class Answer:
    """What a client gets."""

    body: bytes
    kind: str = TEXT
    status: int = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


NOT_ALLOWED = Answer(b"only GET\n", status=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET, HEAD"})


def listener(answer: Callable[[Asked], Awaitable[Answer]], bounds: Bounds | None = None) -> Listener:
    """A listener that answers requests, of whatever method they are."""
    limits = bounds or Bounds()

    async def serve(head: bytes, body: bytes, address: str) -> bytes:
        asked = _read(head, body, address)
        return _written(await answer(asked), has_body=asked.method != "HEAD")

    return Listener(Service(b"\r\n\r\n", serve, lambda head: _body_bytes(head, limits.request_bytes - len(head))), limits)


def gives(pages: Mapping[str, Callable[[], Answer]], bounds: Bounds | None = None) -> Listener:
    """A listener that answers GET and HEAD, each path with what its function gives at once."""

    async def answer(asked: Asked) -> Answer:
        if asked.method not in ("GET", "HEAD"):
            return NOT_ALLOWED
        return pages[asked.path]() if asked.path in pages else not_found(pages)

    return listener(answer, bounds)


def healthy(bounds: Bounds | None = None) -> Listener:
    """For the kubelet's probes of a program that is well as long as it answers: GET /healthz."""
    return gives({"/healthz": lambda: Answer(b"ok\n")}, bounds)


def shared(make: Callable[[], Answer], seconds: float = 1.0) -> Callable[[], Answer]:
    """One answer for all requests within `seconds`, so that it is made and kept in memory only that often."""
    made_at, last_answer = -seconds, Answer(b"")

    def answer() -> Answer:
        nonlocal made_at, last_answer
        now = time.monotonic()
        if now - made_at >= seconds:
            made_at, last_answer = now, make()
        return last_answer

    return answer


def not_found(paths: Mapping[str, object]) -> Answer:
    return Answer(f"there is {', '.join(paths)}\n".encode(), status=HTTPStatus.NOT_FOUND)


def _read(head: bytes, body: bytes, address: str) -> Asked:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, _, target_and_version = first.partition(" ")
    path, _, query = target_and_version.partition(" ")[0].partition("?")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    return Asked(method, path, {name: values[-1] for name, values in parse_qs(query).items()}, headers, body, address)


def _body_bytes(head: bytes, most: int) -> int:
    """The client's Content-Length; 0 without one or if it is too large: then no body is read."""
    length = _read(head, b"", "").headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdecimal() and len(length) < 10 and int(length) <= most else 0


def _written(answer: Answer, has_body: bool) -> bytes:
    head = [
        f"HTTP/1.1 {int(answer.status)} {HTTPStatus(answer.status).phrase}",
        f"Content-Type: {answer.kind}",
        f"Content-Length: {len(answer.body)}",
        *(f"{name}: {value}" for name, value in answer.headers.items()),
        "Connection: close",
        "",
        "",
    ]
    return "\r\n".join(head).encode("latin-1", "replace") + (answer.body if has_body else b"")
