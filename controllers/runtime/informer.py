"""A local copy of all objects of one kind, kept up to date by list and watch. Handlers get each change.

A copy is always a little old: callers check again before they act. The list is repeated, and a silent watch is cut: watches can stall.
"""

import asyncio
from collections.abc import Callable, Hashable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog

from controllers.runtime import metrics
from controllers.runtime.api import Api, WatchEvent
from controllers.runtime.clock import SYSTEM, Clock, backoff_s
from controllers.runtime.errors import ApiError, Gone, Refused, Unreadable, error_of
from controllers.runtime.store import Indexer, Store
from controllers.runtime.structs import Key, ObjectMeta, PartialObject, Resource, Unread

DEAF_S = 300.0
"""Seconds without news after which an informer makes the process unhealthy: a restarted process may reconnect."""
_TOO_MANY_REQUESTS = 429
_SETTLED_S = 5.0
"""A watch that lasted so long, or brought anything, was good: it resets the count of failures."""
_WATCH_S = 60
"""Seconds for which a watch is asked for, and up to twice that, so that not all end at once.

Short, as a kind in which nothing happens gets no bookmark either (seen with Kubernetes 1.35). Only the server's end of the watch then shows
that the connection lives.
"""

log = structlog.get_logger()


class HasMetadata(Protocol):
    """What an informer can hold."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, uid, resource version and the rest."""
        ...


T = TypeVar("T", bound=HasMetadata)
Handler = Callable[[T | None, T | None], None]

_event = msgspec.json.Decoder(WatchEvent)
_partial = msgspec.json.Decoder(PartialObject)


@dataclass(frozen=True)
class Pace:
    """How an informer goes about its work; times in seconds."""

    page_size: int = 500
    list_deadline_s: float = 30
    """For each page."""
    relist_s: float = 600
    silence_s: float = 150
    """A watch that is silent for so long is cut; normally the server ends it earlier."""
    backoff_base_s: float = 0.2
    backoff_most_s: float = 30


class Informer(Generic[T]):
    """Lists, then watches, for ever. Read it once `synced` is set."""

    def __init__(
        self,
        api: Api,
        resource: Resource[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        indexes: Mapping[str, Indexer[T]] | None = None,
        pace: Pace = Pace(),
        clock: Clock = SYSTEM,
    ) -> None:
        """`labels` and `fields` are selectors, as kubectl takes them."""
        self._api = api
        self._resource = resource
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._pace = pace
        self._clock = clock
        self._decoder = msgspec.json.Decoder(resource.struct)
        self._handlers: list[Handler[T]] = []
        self._version = ""
        """Resource version at which the next watch begins; empty: list first."""
        self._relist_at = 0.0
        self._is_watch_good = False
        self._unread_handlers: list[Callable[[Unread], None]] = []
        self.store: Store[T] = Store(indexes or {})
        self.unread: dict[Key, Unread] = {}
        """Objects whose current version cannot be decoded; the store keeps their last readable version, if any."""
        self.synced = asyncio.Event()
        """Set after the first whole list, for ever."""
        self.last_contact: float | None = None
        """When the API server was last heard, on the clock's `now`."""

    def on_change(self, handler: Handler[T]) -> None:
        """Calls `handler(old, new)` after each change of the store: (None, new) for a new object, (old, None) for an object that is gone.

        An object that was replaced by another of its name is both, in that order. A handler runs between two changes and must be quick.
        An error in it is a defect: it ends `run`, and with it the process.
        """
        self._handlers.append(handler)

    def on_unread(self, handler: Callable[[Unread], None]) -> None:
        """Calls `handler` with each new version of an object that cannot be decoded. As for `on_change`, it must be quick."""
        self._unread_handlers.append(handler)

    def get(self, key: Key) -> T | None:
        """One object, by namespace and name."""
        return self.store.get(key)

    def by_index(self, index: str, value: Hashable) -> list[T]:
        """The objects for which the index function returned this value."""
        return self.store.by_index(index, value)

    def silent_s(self) -> float:
        """Seconds since the API server was last heard; infinite before the first time."""
        return float("inf") if self.last_contact is None else self._clock.now() - self.last_contact

    async def run(self) -> None:
        """Runs until it is cancelled, or a handler raises an error."""
        failures = 0
        why = "start"
        while True:
            wait_s, self._is_watch_good = 0.0, False
            try:
                if not self._version or self._clock.now() >= self._relist_at:
                    await self._list(why)
                await self._watch()
                why = "periodic"
                failures = 0 if self._is_watch_good else failures + 1
            except ApiError as error:
                failures = 1 if self._is_watch_good else failures + 1
                wait_s, why = error.retry_after_s or 0.0, error.result
                if isinstance(error, (Gone, Unreadable)) or (isinstance(error, Refused) and error.status != _TOO_MANY_REQUESTS):
                    self._version = ""
                metrics.INFORMER_FAILURES.labels(self._resource.plural, error.result).inc()
                log.warning("informer failed", resource=self._resource.plural, failures=failures, error=error.message)
            if failures:
                await self._clock.sleep(max(wait_s, backoff_s(failures, self._pace.backoff_base_s, self._pace.backoff_most_s, self._clock)))

    async def _list(self, why: str) -> None:
        metrics.INFORMER_LISTS.labels(self._resource.plural, why).inc()
        # Pages go into the store as they come. Should the list fail half-way, a watch from the old version would tell old news over them.
        self._version = ""
        seen: set[Key] = set()
        more, limit = "", self._pace.page_size
        while True:
            try:
                page = await self._api.list_page(
                    self._resource,
                    namespace=self._namespace,
                    labels=self._labels,
                    fields=self._fields,
                    limit=limit,
                    more=more,
                    deadline_s=self._pace.list_deadline_s,
                )
            except Gone:
                if not more:
                    raise
                # The token has expired between two pages: once more, in one go, as client-go does.
                more, limit = "", 0
                seen.clear()
                continue
            self._heard()
            for item in page.items:
                seen.add(item.metadata.key)
                self._put(item.metadata.key, item)
            for key, unread in page.unreadable.items():
                seen.add(key)
                self._note_unread(unread)
            more = page.more
            if not more:
                break
        known = {*self.store.keys(), *self.unread}
        for key in [key for key in known if key not in seen]:
            self._put(key, None)
        self._version = page.version
        self._relist_at = self._clock.now() + self._pace.relist_s
        self.synced.set()

    async def _watch(self) -> None:
        begun = self._clock.now()
        last_s = min(self._relist_at - begun, _WATCH_S * (1 + self._clock.random()))
        lines = self._api.watch(
            self._resource,
            self._version,
            namespace=self._namespace,
            labels=self._labels,
            fields=self._fields,
            silence_s=self._pace.silence_s,
            last_s=max(1, int(last_s)),
        )
        try:
            async with aclosing(lines):
                async for batch in lines:
                    self._heard()
                    for line in batch:
                        self._take(line)
                        self._is_watch_good = True
                    if self._clock.now() >= self._relist_at:
                        return
        finally:
            self._is_watch_good = self._is_watch_good or self._clock.now() - begun >= _SETTLED_S

    def _take(self, line: bytes) -> None:
        """Handles a line of a watch. Raises the error of an ERROR event, and Unreadable for an invalid line: list again after both."""
        try:
            event = _event.decode(line)
            if event.type == "ERROR":
                raise error_of(event.object)
            if event.type in ("ADDED", "MODIFIED"):
                self._take_object(event)
            else:
                meta = _partial.decode(event.object).metadata
                self._version = meta.resource_version
                if event.type == "DELETED":
                    self._put(meta.key, None)
        except msgspec.DecodeError as error:
            raise Unreadable(f"watch of {self._resource.plural}: {error}") from error
        metrics.INFORMER_EVENTS.labels(self._resource.plural, event.type).inc()

    def _take_object(self, event: WatchEvent) -> None:
        try:
            item = self._decoder.decode(event.object)
        except msgspec.ValidationError as error:
            meta = _partial.decode(event.object).metadata
            self._note_unread(Unread(meta, str(error), bytes(event.object)))
        else:
            meta = item.metadata
            self._put(meta.key, item)
        self._version = meta.resource_version

    def _put(self, key: Key, new: T | None) -> None:
        self.unread.pop(key, None)
        old = self.store.get(key)
        if old is not None and new is not None:
            if old.metadata.resource_version == new.metadata.resource_version:
                return
            if old.metadata.uid != new.metadata.uid:
                self._put(key, None)
                old = None
        if old is None and new is None:
            return
        self.store.put(key, new)
        metrics.INFORMER_OBJECTS.labels(self._resource.plural).set(len(self.store))
        for handler in self._handlers:
            handler(old, new)

    def _heard(self) -> None:
        self.last_contact = self._clock.now()
        metrics.INFORMER_CONTACT.labels(self._resource.plural).set(self._clock.wall())

    def _note_unread(self, unread: Unread) -> None:
        key, before = unread.metadata.key, self.unread.get(unread.metadata.key)
        self.unread[key] = unread
        if before is not None and before.metadata.resource_version == unread.metadata.resource_version:
            return
        metrics.INFORMER_UNREADABLE.labels(self._resource.plural).inc()
        log.error(
            "object is not what it should be; its last readable state is kept",
            resource=self._resource.plural,
            object="/".join(key),
            fault=unread.fault,
        )
        for handler in self._unread_handlers:
            handler(unread)
