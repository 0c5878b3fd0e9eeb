"""Requests to the fake Kubernetes API server, as they came, and what is to become of them instead."""

import asyncio
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import parse_qsl

import msgspec

from tests.support.fakes.objects import Key


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    api_version: str
    plural: str
    key: Key
    """Namespace and name; either may be empty."""
    subresource: str

    @property
    def verb(self) -> str:
        """In Kubernetes' words, apply told apart from patch: what RBAC and a test ask for."""
        if self.method == "GET":
            return "get" if self.key[1] else "watch" if self.query.get("watch") == "true" else "list"
        if self.method == "PATCH":
            return "apply" if "apply-patch" in self.headers.get("content-type", "") else "patch"
        return {"POST": "create", "PUT": "update", "DELETE": "delete"}[self.method]

    @property
    def is_write(self) -> bool:
        """True when it may change something."""
        return self.method != "GET"

    def content(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.body)


@dataclass(frozen=True)
class Failure:
    """What becomes of a request instead.

    status: answered with `status`. hang: never answered. cut: the connection breaks before anything is done. cut_after: it is done, and the
    connection breaks before the answer. slow: done and answered after `seconds`.
    """

    what: Literal["status", "hang", "cut", "cut_after", "slow"]
    status: int = 500
    reason: str = "InternalError"
    message: str = "made to fail"
    retry_after_s: int | None = None
    seconds: float = 0
    verb: str = ""
    """Only of requests with this verb; empty for any."""
    plural: str = ""
    continued: bool | None = None
    """Only of lists that do, or do not, carry a continue token."""
    times: float = 1

    def is_for(self, request: Request) -> bool:
        """True when the request is one to fail."""
        is_continued = "continue" in request.query
        return (
            (not self.verb or self.verb == request.verb) and self.plural in ("", request.plural) and self.continued in (None, is_continued)
        )


async def receive(reader: asyncio.StreamReader) -> Request:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    path, _, query = target.partition("?")
    parts = path.strip("/").split("/")
    api_version, rest = (parts[1], parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = [*rest, "", "", ""][:3]
    return Request(method, path, dict(parse_qsl(query)), headers, body, api_version, plural, (namespace, name), subresource)


def used(requests: list[Request]) -> set[tuple[str, str, str]]:
    """Group, resource and verb of each request, as RBAC sees them: an apply that finds nothing is a create as well."""
    found: set[tuple[str, str, str]] = set()
    for one in requests:
        group = one.api_version.rpartition("/")[0]
        resource = f"{one.plural}/{one.subresource}" if one.subresource else one.plural
        applied = ("patch",) if one.subresource else ("patch", "create")  # what has a status is there
        found |= {(group, resource, verb) for verb in (applied if one.verb == "apply" else (one.verb,))}
    return found
