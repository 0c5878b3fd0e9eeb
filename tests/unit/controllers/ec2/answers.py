"""EC2 that answers what a test wants."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from controllers.ec2.client import Ec2
from tests.support.controllers.ec2.site import REGION

CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN")


@asynccontextmanager
async def other_ec2(monkeypatch: pytest.MonkeyPatch, answer: bytes) -> AsyncGenerator[Ec2]:
    """An EC2 that gives every request this answer, byte for byte, as no account does on demand; empty: it hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    for name in CREDENTIALS:
        monkeypatch.setenv(name, "test")
    yield Ec2(REGION)
    server.close()


def refusal(status: str, code: str, message: str) -> bytes:
    """As EC2 words it. Source: Amazon EC2 API reference, "Error codes"."""
    body = f"<?xml version='1.0'?><Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors></Response>"
    return f"HTTP/1.1 {status}\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()
