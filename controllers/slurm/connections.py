"""HTTP/1.1 to one plain server inside the cluster, over kept connections: what a poll twice a second needs, and no more.

A general HTTP client takes ten times the CPU for an answer without a body, which is most of the controller's work at rest. Leaves out TLS,
redirects, chunked bodies and compression: slurmrestd and the list of running jobs beside it use none of them.
"""

import asyncio
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_LONGEST_HEAD = 64 * 1024


class Broken(Exception):
    """No answer: the connection could not be made, or ended, or carried something else than HTTP."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer."""

    status: int
    body: bytes


@dataclass
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@dataclass
class Connections:
    """To one `http://host:port`. As many connections as concurrent requests; each is used again. For one event loop."""

    url: str
    _idle: list[_Connection] = field(default_factory=list[_Connection])

    async def request(self, method: str, target: str, headers: dict[str, str], content: bytes = b"") -> Answer:
        """One request. Raises Broken. A caller that stops waiting (a deadline, a cancellation) ends the connection."""
        host = urlsplit(self.url).netloc
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers.items())]
        if content:
            lines.append(f"Content-Length: {len(content)}")
        connection = await self._connect()
        is_reusable = False
        try:
            connection.writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + content)
            answer, is_reusable = await _read(connection.reader)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise Broken(f"{type(error).__name__} {error}".rstrip()) from error
        finally:
            if is_reusable:
                self._idle.append(connection)
            else:
                connection.writer.close()
        return answer

    def close(self) -> None:
        """Closes the idle connections."""
        while self._idle:
            self._idle.pop().writer.close()

    async def _connect(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.reader.at_eof() and not connection.writer.is_closing():
                return connection
            connection.writer.close()
        parts = urlsplit(self.url)
        try:
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80, limit=_LONGEST_HEAD)
        except OSError as error:
            raise Broken(f"{type(error).__name__} {error}".rstrip()) from error
        return _Connection(reader, writer)


async def _read(reader: asyncio.StreamReader) -> tuple[Answer, bool]:
    """An answer, and whether its connection can be used again. Raises EOFError, ValueError and OSError."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    version, status = head[0].split(" ", 2)[:2]
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    if "transfer-encoding" in headers:
        raise ValueError("the answer has a transfer encoding")
    is_kept = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    if status in ("204", "304"):
        return Answer(int(status), b""), is_kept
    if "content-length" in headers:
        return Answer(int(status), await reader.readexactly(int(headers["content-length"]))), is_kept
    return Answer(int(status), await reader.read()), False
