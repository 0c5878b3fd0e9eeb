"""Writes whose effect was not seen yet: keeps a controller from creating a pod twice because its informer is a moment behind.

Add an expectation before the write is sent: the watch may be faster than the answer. After a write without an answer, let it stand; it
expires. An expectation only postpones a decision.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import structlog

from controllers.runtime import metrics
from controllers.runtime.clock import SYSTEM, Clock
from controllers.runtime.structs import ObjectMeta

K = TypeVar("K", bound=Hashable)

log = structlog.get_logger()


class _HasMetadata(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


@dataclass(frozen=True)
class _Deletion:
    uid: str
    since: float


class Expectations(Generic[K]):
    """By owner (the key that is reconciled), names of objects that are being created or deleted."""

    def __init__(self, *, clock: Clock = SYSTEM, expire_s: float = 60) -> None:
        """After `expire_s` without news an expectation is dropped: the write never happened, or a list will show it."""
        self._clock = clock
        self._expire_s = expire_s
        self._creations: dict[K, dict[str, float]] = {}
        self._deletions: dict[K, dict[str, _Deletion]] = {}

    def expect_created(self, owner: K, name: str) -> None:
        """Call before a create is sent."""
        self._creations.setdefault(owner, {})[name] = self._clock.now()

    def expect_deleted(self, owner: K, name: str, uid: str) -> None:
        """Call before a delete is sent for the object of that uid."""
        self._deletions.setdefault(owner, {})[name] = _Deletion(uid, self._clock.now())

    def withdraw(self, owner: K, name: str) -> None:
        """Call when the write was refused: it has not happened, and will not."""
        self._drop_creation(owner, name)
        self._drop_deletion(owner, name)

    def forget(self, owner: K) -> None:
        """Call when the owner is gone."""
        self._creations.pop(owner, None)
        self._deletions.pop(owner, None)

    def creating(self, owner: K) -> frozenset[str]:
        """Names of objects that were created and have not been seen."""
        self._expire(owner)
        return frozenset(self._creations.get(owner, ()))

    def deleting(self, owner: K) -> frozenset[str]:
        """Names of objects whose deletion was requested and has not been seen to begin."""
        self._expire(owner)
        return frozenset(self._deletions.get(owner, ()))

    def seen(self, owner: K, old: _HasMetadata | None, new: _HasMetadata | None) -> None:
        """Call from the informer's handler.

        Any object of the name confirms a creation. A deletion time, the end of the object or a successor confirms a deletion.
        """
        item = new or old
        if item is None:
            return
        meta = item.metadata
        if new is not None:
            self._drop_creation(owner, meta.name)
        expected = self._deletions.get(owner, {}).get(meta.name)
        if expected is None:
            return
        is_it = meta.uid == expected.uid
        if (is_it and (new is None or meta.deletion_timestamp is not None)) or (new is not None and not is_it):
            self._drop_deletion(owner, meta.name)

    def _expire(self, owner: K) -> None:
        before = self._clock.now() - self._expire_s
        lost = {name for name, since in self._creations.get(owner, {}).items() if since <= before}
        stuck = {name for name, deletion in self._deletions.get(owner, {}).items() if deletion.since <= before}
        for name in lost:
            self._drop_creation(owner, name)
        for name in stuck:
            self._drop_deletion(owner, name)
        if lost or stuck:
            metrics.EXPECTATIONS_EXPIRED.inc(len(lost) + len(stuck))
            log.warning("writes were never seen", owner=str(owner), created=sorted(lost), deleted=sorted(stuck), after_s=self._expire_s)

    def _drop_creation(self, owner: K, name: str) -> None:
        names = self._creations.get(owner, {})
        names.pop(name, None)
        if not names:
            self._creations.pop(owner, None)

    def _drop_deletion(self, owner: K, name: str) -> None:
        names = self._deletions.get(owner, {})
        names.pop(name, None)
        if not names:
            self._deletions.pop(owner, None)
