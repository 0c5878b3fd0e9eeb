"""Open watches of the fake Kubernetes API server, and the lines that they are sent."""

import asyncio

from tests.support.fakes.objects import Change, Kind, has_fields, selects
from tests.support.fakes.requests import Request


class Watch:
    """One open watch: which change comes next, and what the test wants of it."""

    def __init__(self, writer: asyncio.StreamWriter, request: Request, kind: Kind, start: int) -> None:
        self.writer = writer
        self.kind = kind
        self.start = start
        self.labels = request.query.get("labelSelector", "")
        self.fields = request.query.get("fieldSelector", "")
        self.namespace = request.key[0]
        self.wants_bookmarks = request.query.get("allowWatchBookmarks") == "true"
        self.lines: list[bytes] = []
        self.is_ending = False
        self.news = asyncio.Event()

    def line(self, change: Change) -> bytes | None:
        if self.namespace and change.key[0] != self.namespace:
            return None
        kind = change.type
        if self.labels:
            before, after = selects(self.labels, change.before), selects(self.labels, change.after)
            kind = {(False, True): "ADDED", (True, True): "MODIFIED", (True, False): "DELETED"}.get((before, after), "")
        if not kind or (self.fields and not has_fields(self.fields, change.raw)):
            return None
        return event(kind, change.raw)


def event(kind: str, raw: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), raw)
