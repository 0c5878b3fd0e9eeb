"""A Kubernetes API server for tests: real HTTP on loopback, objects in memory (see `objects` for how they are simpler), failures on demand.

Serves get, list with limit and continue, watch with bookmarks, create, merge patch, server-side apply, put and delete, for any kind: a
path is all it knows of one. The test is the rest of the cluster: it writes with `put` and `remove`, and breaks things with `fail`, `refuse`
and others.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from email.utils import formatdate
from http import HTTPStatus
from typing import Protocol

import msgspec
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import Cluster, User

from tests.support.fakes.objects import Change, Fault, Key, Kind, Manifest, Objects, has_fields, selects
from tests.support.fakes.requests import Failure, Request, receive
from tests.support.fakes.watches import Watch, event

_CHANGES_AT_ONCE = 200
_END = b"0\r\n\r\n"
_WATCH_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


class ResourceLike(Protocol):
    """What a test names a kind by; controllers.runtime.structs.Resource is one."""

    @property
    def api_version(self) -> str: ...
    @property
    def plural(self) -> str: ...
    @property
    def kind(self) -> str: ...


class FakeKubernetes:
    """One API server. `async with FakeKubernetes() as server: api = connect(server.config())`."""

    def __init__(self, objects: Objects | None = None) -> None:
        self.objects = objects or Objects()
        self.requests: list[Request] = []
        self.on_request: Callable[[Request], Failure | None] | None = None
        """Asked before each request, after `fail`."""
        self.token: str | None = None
        """When set, requests without it are answered with 401."""
        self.latency_s = 0.0
        """Of every answer but a watch's events."""
        self.port = 0
        self._failures: list[Failure] = []
        self._healed = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()
        self._watches: set[Watch] = set()
        self._is_frozen = False
        self._tokens = itertools.count(1)
        self._rest: dict[str, tuple[int, list[bytes]]] = {}
        """What is left of lists that were given out in parts."""

    async def __aenter__(self) -> "FakeKubernetes":
        await self.accept()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def watching(self) -> int:
        """Open watches."""
        return len(self._watches)

    def config(self, user: User | None = None) -> SingleConfig:
        """For lightkube, and for `controllers.runtime.api.connect`."""
        cluster = Cluster(server=self.url, insecure=True)  # or each client would read all the authorities of the machine first, in 30 ms
        config = KubeConfig.from_one(cluster=cluster, user=user or User(token="test")).get()
        assert config is not None
        return config

    # What the test does as the rest of the cluster.

    def put(self, resource: ResourceLike, manifest: Manifest) -> Manifest:
        """Sets a whole object, status and all; gives it as it is stored. Uid, creation and deletion times of an old one stay."""
        typed = {"apiVersion": resource.api_version, "kind": resource.kind, **manifest}
        return msgspec.json.decode(self.objects.put(self._kind(resource), typed))

    def patch(self, resource: ResourceLike, key: Key, change: Manifest, subresource: str = "") -> Manifest:
        """A merge patch."""
        return msgspec.json.decode(self.objects.merge(self._kind(resource), key, change, subresource))

    def remove(self, resource: ResourceLike, key: Key) -> None:
        """Deletes at once what has no finalizers, as a kubelet does in the end."""
        self.objects.delete(self._kind(resource), key, {"gracePeriodSeconds": 0})

    def get(self, resource: ResourceLike, key: Key) -> Manifest:
        """One object. Raises KeyError."""
        if key not in self._kind(resource).objects:
            raise KeyError(key)
        return self.objects.read(self._kind(resource), key)

    def keys(self, resource: ResourceLike) -> set[Key]:
        """Which objects there are."""
        return set(self._kind(resource).objects)

    def writes(self) -> list[Request]:
        """The requests that may have changed something, in order."""
        return [request for request in self.requests if request.is_write]

    # What the test breaks.

    def fail(self, failure: Failure) -> None:
        """Fails the next requests that it is for. Of several, the first counts."""
        self._failures.append(failure)

    def heal(self) -> None:
        """No more failures; what hangs is cut."""
        self._failures.clear()
        self._healed.set()
        self._healed = asyncio.Event()

    async def refuse(self) -> None:
        """Takes no connections, and cuts those that are open."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._connections):
            _abort(writer)
        self.heal()
        self.freeze(False)

    async def accept(self) -> None:
        """Takes connections, on the same port as before."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=1 << 16, reuse_address=True)
            self.port = self._server.sockets[0].getsockname()[1]

    def expire(self) -> None:
        """Every version and continue token given out so far is too old. Open watches go on."""
        self.objects.expire()
        self._rest.clear()

    def freeze(self, frozen: bool = True) -> None:
        """Open watches fall silent, and stay open."""
        self._is_frozen = frozen
        self._wake()

    def bookmark(self) -> None:
        """Sends a bookmark on each watch."""
        for watch in self._watches:
            if watch.wants_bookmarks:
                about = {"apiVersion": watch.kind.api_version, "kind": watch.kind.kind}
                content = {**about, "metadata": {"resourceVersion": str(self.objects.version), "creationTimestamp": None}}
                self._say(watch, event("BOOKMARK", msgspec.json.encode(content)))

    def say(self, line: bytes) -> None:
        """Sends a line of the test's own on each watch."""
        for watch in self._watches:
            self._say(watch, line)

    def cut_watches(self) -> None:
        """Breaks the connections of all watches."""
        for watch in self._watches:
            _abort(watch.writer)

    def end_watches(self, fault: Fault | None = None) -> None:
        """Ends all watches in order, as after their time; with a fault, after an ERROR event."""
        for watch in self._watches:
            if fault is not None:
                watch.lines.append(event("ERROR", fault.status()))
            watch.is_ending = True
            watch.news.set()

    # How it answers.

    def _kind(self, resource: ResourceLike) -> Kind:
        return self.objects.kind(resource.api_version, resource.plural, resource.kind)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while True:
                request = await receive(reader)
                self.requests.append(request)
                await self._answer(request, reader, writer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            _abort(writer)
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _answer(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.token is not None and request.headers.get("authorization") != f"Bearer {self.token}":
                raise Fault(401, "Unauthorized", "Unauthorized")
            failure = self._failure_for(request) or Failure("slow")
            if self.latency_s + failure.seconds:
                await asyncio.sleep(self.latency_s + failure.seconds)
            if failure.what == "status":
                raise Fault(failure.status, failure.reason, failure.message, failure.retry_after_s)
            if failure.what == "hang":
                await self._healed.wait()
            if failure.what in ("hang", "cut"):
                raise ConnectionAbortedError
            if request.verb == "watch":
                await self._watch(request, reader, writer)
                return
            status, parts = (HTTPStatus.OK, self._list(request)) if request.verb == "list" else self._do(request)
            if failure.what == "cut_after":
                raise ConnectionAbortedError
        except Fault as fault:
            status, parts = HTTPStatus(fault.code), [fault.status()]
            retry = f"Retry-After: {fault.retry_after_s}\r\n" if fault.retry_after_s is not None else ""
        else:
            retry = ""
        size, date = sum(len(part) for part in parts), formatdate(self.objects.now(), usegmt=True)
        about = f"Content-Type: application/json\r\nDate: {date}\r\n{retry}Content-Length: {size}"
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\n{about}\r\n\r\n"
        writer.writelines([head.encode(), *parts])

    def _failure_for(self, request: Request) -> Failure | None:
        for at, failure in enumerate(self._failures):
            if failure.is_for(request):
                self._failures[at : at + 1] = [replace(failure, times=failure.times - 1)] if failure.times > 1 else []
                return failure
        return self.on_request(request) if self.on_request else None

    def _do(self, request: Request) -> tuple[HTTPStatus, list[bytes]]:
        kind = self.objects.kind(request.api_version, request.plural)
        key, sub = request.key, request.subresource
        match request.verb:
            case "get":
                return HTTPStatus.OK, [self.objects.stored(kind, key).raw]
            case "create":
                return HTTPStatus.CREATED, [self.objects.create(kind, key[0], request.content())]
            case "update":
                return HTTPStatus.OK, [self.objects.replace(kind, key, request.content(), sub)]
            case "patch":
                return HTTPStatus.OK, [self.objects.merge(kind, key, request.content(), sub)]
            case "apply":
                status = HTTPStatus.OK if key in kind.objects else HTTPStatus.CREATED
                manager, force = request.query["fieldManager"], request.query.get("force") == "true"
                return status, [self.objects.apply(kind, key, request.content(), manager, force, sub)]
            case _:
                return HTTPStatus.OK, [self.objects.delete(kind, key, request.content() if request.body else None)]

    def _list(self, request: Request) -> list[bytes]:
        kind = self.objects.kind(request.api_version, request.plural)
        limit, token = int(request.query.get("limit", 0)), request.query.get("continue", "")
        if token:
            if token not in self._rest:
                raise Fault(410, "Expired", "The provided continue parameter is too old")
            version, items = self._rest.pop(token)
        else:
            version, items = self.objects.version, list(self._selected(kind, request))
        more = ""
        if limit and len(items) > limit:
            more = f"token-{next(self._tokens)}"
            self._rest[more] = (version, items[limit:])
            items = items[:limit]
        meta = {"resourceVersion": str(version), **({"continue": more} if more else {})}
        head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta}
        # Go writes a list without items as null in places: a client must take both.
        return [msgspec.json.encode(head)[:-1], *([b',"items":[', b",".join(items), b"]}"] if items else [b',"items":null}'])]

    def _selected(self, kind: Kind, request: Request) -> Iterable[bytes]:
        labels, fields, namespace = request.query.get("labelSelector", ""), request.query.get("fieldSelector", ""), request.key[0]
        for key, stored in sorted(kind.objects.items()):
            if namespace in ("", key[0]) and selects(labels, stored.labels) and has_fields(fields, stored.raw):
                yield stored.raw

    async def _watch(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kind = self.objects.kind(request.api_version, request.plural)
        watch = Watch(writer, request, kind, kind.start(int(request.query.get("resourceVersion") or 0)))
        writer.write(_WATCH_HEAD)
        end = asyncio.get_running_loop().call_later(float(request.query.get("timeoutSeconds", 3600)), self._end, watch)
        # A client sends nothing more on a watch: what can be read is its end.
        gone = asyncio.ensure_future(reader.read(1))
        gone.add_done_callback(lambda _: self._end(watch))
        self._watches.add(watch)
        kind.listeners.add(watch.news.set)
        try:
            while not gone.done():
                watch.news.clear()
                if not self._is_frozen and self._send(watch):
                    writer.write(_END)
                    return
                await writer.drain()
                await watch.news.wait()
            raise ConnectionAbortedError
        finally:
            end.cancel()
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await gone
            self._watches.discard(watch)
            kind.listeners.discard(watch.news.set)

    def _send(self, watch: Watch) -> bool:
        """Sends what there is, at most so much at a time; True when the watch is at its end."""
        is_ending = watch.is_ending
        try:
            changes = watch.kind.after(watch.start, _CHANGES_AT_ONCE)
        except Fault as fault:
            changes = list[Change]()
            watch.lines.append(event("ERROR", fault.status()))
            is_ending = True
        watch.start += len(changes)
        lines = [*(line for change in changes if (line := watch.line(change)) is not None), *watch.lines]
        watch.lines.clear()
        watch.writer.writelines(b"%x\r\n%b\r\n" % (len(line), line) for line in lines)
        if len(changes) == _CHANGES_AT_ONCE:
            watch.news.set()
            return False
        return is_ending

    def _say(self, watch: Watch, line: bytes) -> None:
        watch.lines.append(line)
        watch.news.set()

    def _end(self, watch: Watch) -> None:
        watch.is_ending = True
        watch.news.set()

    def _wake(self) -> None:
        for watch in self._watches:
            watch.news.set()


def _abort(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
