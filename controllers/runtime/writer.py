"""The only way to write to Kubernetes, except for the lease: one rate limit, a bound on concurrent writes, one field manager, one fence.

It does not retry: the next look at the cluster decides again. Informers do the reading, except for what a write copies.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from controllers.runtime import metrics
from controllers.runtime.api import Api, Manifest
from controllers.runtime.clock import SYSTEM, Clock
from controllers.runtime.errors import ApiError, Conflict, NotFound
from controllers.runtime.structs import Key, Resource
from names import writers

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - an item

_LONGEST_HOLD_S = 30.0
"""The longest rest, in seconds, that a server gets when it asks for one: rounds are not held up for longer than a sweep."""


class NotLeading(ApiError):
    """Not sent: this process does not lead, or no longer leads."""

    result = "not_leading"


class NotTried(ApiError):
    """Not sent: earlier writes of the batch failed."""

    result = "not_tried"


class Outdated(ApiError):
    """Not sent: the reading that it was decided from is too old."""

    result = "outdated"


@dataclass(frozen=True)
class Deletion:
    """An object to delete, by its uid."""

    key: Key
    uid: str
    version: str = ""
    """When set, only as long as the object has not changed since."""
    grace_s: int | None = None


@dataclass(frozen=True)
class Patch:
    """A JSON merge patch of an object."""

    key: Key
    change: Manifest


class TokenBucket:
    """A rate limit: `rate_per_s` in the long run, `burst` at once after a rest."""

    def __init__(self, rate_per_s: float, burst: int, now: float) -> None:
        self._rate = rate_per_s
        self._burst = burst
        self._tokens = float(burst)
        self._at = now

    def reserve(self, now: float) -> float:
        """Takes a token, which may be a future token. Returns the seconds to wait for it."""
        self._refill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate) + max(0.0, self._at - now)

    def hold(self, now: float, seconds: float) -> None:
        """Gives no token for `seconds`, as the server asked."""
        self._refill(now)
        self._at = max(self._at, now + seconds)

    def _refill(self, now: float) -> None:
        if now > self._at:
            self._tokens = min(float(self._burst), self._tokens + (now - self._at) * self._rate)
            self._at = now


class Writer:
    """Every call raises an ApiError if the write failed, or may have failed. The `_many` methods return a result or error for each item."""

    def __init__(
        self,
        api: Api,
        *,
        rate_per_s: float = 100,
        burst: int = 200,
        at_once: int = 16,
        may_write: Callable[[], bool] = lambda: True,
        clock: Clock = SYSTEM,
    ) -> None:
        """`may_write` is asked right before each write: a process that was frozen must not write after its lease."""
        self._api = api
        self._clock = clock
        self._bucket = TokenBucket(rate_per_s, burst, clock.now())
        self._slots = asyncio.Semaphore(at_once)
        self._may_write = may_write

    async def read(self, resource: Resource[T], key: Key) -> T:
        """An object that a write copies. Raises NotFound."""
        return await self._api.get(resource, *key)

    async def create(self, resource: Resource[T], manifest: Manifest) -> T:
        """Raises Conflict (reason AlreadyExists) if an object of that name exists."""
        return await self._write(lambda: self._api.create(resource, manifest, field_manager=writers.SLIPWAY))

    async def apply(self, resource: Resource[T], manifest: Manifest) -> T:
        """Server-side apply, by force: the fields of the manifest are ours."""
        return await self._write(lambda: self._api.apply(resource, manifest, field_manager=writers.SLIPWAY))

    async def apply_status(self, resource: Resource[T], manifest: Manifest) -> T:
        """Server-side apply of the status of an object that exists, by force. Raises NotFound."""
        return await self._write(lambda: self._api.apply(resource, manifest, subresource="status", field_manager=writers.SLIPWAY))

    async def patch(self, resource: Resource[T], key: Key, change: Manifest, still: Callable[[], bool] | None = None) -> T:
        """JSON merge patch. With `metadata.resourceVersion` in it, raises Conflict if the object has changed."""
        return await self._write(lambda: self._api.patch(resource, *key, change, field_manager=writers.SLIPWAY), still)

    async def patch_status(self, resource: Resource[T], key: Key, status: Any, version: str = "") -> T:
        """JSON merge patch of the status: fields missing in `status` stay. With `version`, raises Conflict if the object has changed."""
        change = {"status": status, **({"metadata": {"resourceVersion": version}} if version else {})}
        return await self._write(lambda: self._api.patch(resource, *key, change, subresource="status", field_manager=writers.SLIPWAY))

    async def delete(self, resource: Resource[Any], deletion: Deletion, still: Callable[[], bool] | None = None) -> None:
        """Raises Conflict if the object was replaced, NotFound if it is gone."""
        key, uid, version, grace_s = deletion.key, deletion.uid, deletion.version, deletion.grace_s
        await self._write(lambda: self._api.delete(resource, *key, uid=uid, version=version, grace_s=grace_s), still)

    async def create_many(self, resource: Resource[T], manifests: Sequence[Manifest]) -> list[T | ApiError]:
        """Writes in batches of 1, 2, 4 and so on. After a failure the remaining items are NotTried: a refusal of one object mostly holds
        for all.

        Results are in the order of the manifests. Conflict, for an object that exists already, does not count as a failure.
        """
        return await self._growing(manifests, lambda manifest: self.create(resource, manifest), (Conflict,))

    async def apply_many(self, resource: Resource[T], manifests: Sequence[Manifest]) -> list[T | ApiError]:
        """As `create_many`, by server-side apply."""
        return await self._growing(manifests, lambda manifest: self.apply(resource, manifest), (Conflict,))

    async def delete_many(
        self, resource: Resource[Any], deletions: Sequence[Deletion], still: Callable[[], bool] | None = None
    ) -> list[ApiError | None]:
        """As `create_many`. It is not a failure if an object is gone or was replaced. `still` is asked right before each: see Outdated."""
        return await self._growing(deletions, lambda deletion: self.delete(resource, deletion, still), (Conflict, NotFound))

    async def patch_many(
        self, resource: Resource[T], patches: Sequence[Patch], still: Callable[[], bool] | None = None
    ) -> list[T | ApiError]:
        """As `delete_many`."""
        return await self._growing(patches, lambda patch: self.patch(resource, patch.key, patch.change, still), (Conflict, NotFound))

    async def _growing(
        self, items: Sequence[I], write: Callable[[I], Awaitable[T]], no_failure: tuple[type[ApiError], ...]
    ) -> list[T | ApiError]:
        results: list[T | ApiError] = []
        size = 1
        while len(results) < len(items):
            batch = items[len(results) : len(results) + size]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(_caught(write(item))) for item in batch]
            done = [task.result() for task in tasks]
            results += done
            size *= 2
            failed = next((result for result in done if isinstance(result, ApiError) and not isinstance(result, no_failure)), None)
            if failed is not None:
                return results + [NotTried(f"not tried after: {failed.message}") for _ in items[len(results) :]]
        return results

    async def _write(self, send: Callable[[], Awaitable[T]], still: Callable[[], bool] | None = None) -> T:
        async with self._slots:
            wait_s = self._bucket.reserve(self._clock.now())
            if wait_s > 0:
                metrics.WRITER_WAIT_SECONDS.inc(wait_s)
                await self._clock.sleep(wait_s)
            if not self._may_write():
                raise NotLeading("not sent: this process does not lead")
            if still is not None and not still():
                raise Outdated("not sent: the reading that it was decided from has grown old")
            try:
                return await send()
            except ApiError as error:
                if error.retry_after_s:
                    self._bucket.hold(self._clock.now(), min(error.retry_after_s, _LONGEST_HOLD_S))
                raise


async def _caught(write: Awaitable[T]) -> T | ApiError:
    try:
        return await write
    except ApiError as error:
        return error
