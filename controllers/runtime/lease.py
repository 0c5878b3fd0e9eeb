"""Leader election by a Lease: one of several processes acts. The others stand by, with their informers warm.

The safety is in the times: a holder stops `renew_s` after it last asked for a renewal that was granted. Any other process takes over
only when `duration_s` have passed since it saw that renewal. Each uses its own clock. Source: client-go's election.

A killed holder is replaced sooner, by knowledge and not by shorter times, which a slow API server would break. A process takes the lease of
its predecessor in the same container at once. It may, as the kubelet restarts a container only when all of its processes have ended. A
standby takes the lease of a holder that has surely ended.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from controllers.runtime import metrics
from controllers.runtime.api import Api
from controllers.runtime.clock import SYSTEM, Clock
from controllers.runtime.errors import ApiError, Conflict, NotFound
from controllers.runtime.structs import LEASES, Key, Lease
from names import writers

_OVERDUE = 1.25
"""A renewal is overdue after this many times its pause."""

log = structlog.get_logger()


class LeaseLost(Exception):
    """This process may not act any more: another process does, or may."""


@dataclass(frozen=True)
class Terms:
    """Seconds. The first two are those of Kubernetes' own controllers."""

    duration_s: int = 15
    """Without a renewal for so long, others may take the lease."""
    renew_s: float = 10
    """Without a granted renewal for so long, the holder gives up."""
    pause_s: float = 2
    """Between a renewal that was granted and the next."""
    retry_s: float = 1
    """After a try that failed; and how often a process that stands by looks."""

    def __post_init__(self) -> None:
        """Raises ValueError for times that are not safe."""
        if not 0 < self.retry_s <= self.pause_s < self.renew_s < self.duration_s:
            times = f"{self.retry_s}, {self.pause_s}, {self.renew_s}, {self.duration_s}"
            raise ValueError(f"a lease needs retry_s <= pause_s < renew_s < duration_s, not {times}")


class Election:
    """One candidate. `acquire`, then `hold` beside the work, and `release` after the work has stopped."""

    def __init__(
        self,
        api: Api,
        key: Key,
        identity: str,
        *,
        container: str = "",
        has_ended: Callable[[Lease], Awaitable[bool]] | None = None,
        terms: Terms = Terms(),
        clock: Clock = SYSTEM,
    ) -> None:
        """`identity` must differ for each process, restarts included.

        `container` is the prefix of the identities of all processes that run one after another in the same container, and of no others.
        `has_ended` says whether the holder of a lease has surely ended; it is asked once a renewal is overdue.
        """
        self._api = api
        self._key = key
        self._identity = identity
        self._container = container
        self._has_ended = has_ended
        self._terms = terms
        self._clock = clock
        self._good_until = float("-inf")
        """Until when this process may act."""
        self._last: Lease | None = None
        self._changed_at = 0.0
        """When `_last` was first seen so."""

    def is_held(self) -> bool:
        """True while this process may act. Compares the clock, so it is right even after the process was frozen."""
        return self._clock.now() < self._good_until

    async def acquire(self) -> None:
        """Returns when this process leads. Retries after every error."""
        while True:
            try:
                if await self._try():
                    log.info("lease acquired", lease=self._key[1], identity=self._identity)
                    return
            except ApiError as error:
                log.warning("lease could not be read or written", lease=self._key[1], error=error.message)
            # Jitter, as two that wait for the same moment would only get in each other's way.
            await self._clock.sleep(self._next_look_s() * (1 + self._clock.random() * 0.2))

    async def hold(self) -> None:
        """Renews. Ends only with LeaseLost, at the latest `renew_s` after the last granted renewal was asked for."""
        why, pause_s = "it ran out", self._terms.pause_s
        while True:
            left_s = self._good_until - self._clock.now()
            if left_s > 0:
                await self._clock.sleep(min(pause_s, left_s))
            if not self.is_held():
                self._lose(why)
            try:
                if not await self._try():
                    self._lose(f"{self._holder()} has it")
                why, pause_s = "it ran out", self._terms.pause_s
            except ApiError as error:
                why, pause_s = error.message, self._terms.retry_s
                log.warning("lease could not be renewed", lease=self._key[1], error=error.message)

    async def release(self) -> None:
        """Lets others take the lease at once. Call it only after every writer has stopped; best effort."""
        if not self.is_held() or self._last is None:
            return
        self._good_until = float("-inf")
        metrics.LEASE_HELD.labels(self._key[1]).set(0)
        # One second, as 0 is not a valid duration.
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._now_text()}
        try:
            await self._patch(self._last, spec)
            log.info("lease released", lease=self._key[1])
        except ApiError as error:
            log.warning("lease could not be released; others wait until it runs out", lease=self._key[1], error=error.message)

    async def _try(self) -> bool:
        """Tries once to get or renew the lease. Raises ApiError."""
        # The time from before the request: the server may grant it at once and answer late.
        asked_at = self._clock.now()
        if not await self._take():
            return False
        self._good_until = asked_at + self._terms.renew_s
        metrics.LEASE_HELD.labels(self._key[1]).set(1)
        return True

    async def _take(self) -> bool:
        try:
            if self._last is None or not self.is_held():
                self._saw(await self._api.get(LEASES, *self._key, deadline_s=self._deadline_s()))
        except NotFound:
            return await self._create()
        lease = self._last
        assert lease is not None
        if not self._is_free(lease) and not await self._is_orphaned(lease):
            return False
        is_mine = lease.spec.holder_identity == self._identity
        spec: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._terms.duration_s,
            "renewTime": self._now_text(),
        }
        if not is_mine:
            spec |= {"acquireTime": spec["renewTime"], "leaseTransitions": lease.spec.lease_transitions + 1}
        try:
            self._saw(await self._patch(lease, spec))
        except (Conflict, NotFound):
            return await self._after_conflict()
        return True

    async def _after_conflict(self) -> bool:
        """Somebody changed the lease, perhaps this process with a renewal whose answer was lost. Reads it; the next try decides."""
        try:
            self._saw(await self._api.get(LEASES, *self._key, deadline_s=self._deadline_s()))
        except NotFound:
            self._last = None
            raise
        if self._holder() == self._identity and self.is_held():
            raise Conflict("the lease was changed by somebody else, and is still ours")
        return False

    async def _create(self) -> bool:
        now = self._now_text()
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._terms.duration_s,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        }
        manifest = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"namespace": self._key[0], "name": self._key[1]},
            "spec": spec,
        }
        try:
            self._saw(await self._api.create(LEASES, manifest, field_manager=writers.SLIPWAY, deadline_s=self._deadline_s()))
        except Conflict:
            return False
        return True

    async def _patch(self, lease: Lease, spec: dict[str, Any]) -> Lease:
        change = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}
        return await self._api.patch(LEASES, *self._key, change, field_manager=writers.SLIPWAY, deadline_s=self._deadline_s())

    def _deadline_s(self) -> float:
        """Seconds for one request: never past the moment from which this process may not act."""
        most = self._terms.renew_s / 2
        return max(0.01, min(most, self._good_until - self._clock.now())) if self.is_held() else most

    def _is_free(self, lease: Lease) -> bool:
        """True for a lease that is ours, nobody's, of an earlier process in this container, or expired since this process first saw it."""
        holder = lease.spec.holder_identity
        if holder in (None, "", self._identity) or (self._container and (holder or "").startswith(self._container)):
            return True
        return self._clock.now() - self._changed_at >= (lease.spec.lease_duration_seconds or self._terms.duration_s)

    async def _is_orphaned(self, lease: Lease) -> bool:
        """True if its renewal is overdue and its holder has surely ended. The lease is taken at the version that was read, or not."""
        if self._has_ended is None or self._clock.now() - self._changed_at < _OVERDUE * self._terms.pause_s:
            return False
        return await self._has_ended(lease)

    def _next_look_s(self) -> float:
        """Seconds until another process's lease may have run out, or until the next look before that."""
        duration_s = self._last.spec.lease_duration_seconds if self._last else None
        left_s = self._changed_at + (duration_s or self._terms.duration_s) - self._clock.now()
        return max(0.05, min(self._terms.retry_s, left_s)) if left_s > 0 else self._terms.retry_s

    def _saw(self, lease: Lease) -> None:
        if self._last is None or self._last.metadata.resource_version != lease.metadata.resource_version:
            self._changed_at = self._clock.now()
        self._last = lease

    def _holder(self) -> str:
        return (self._last.spec.holder_identity if self._last else None) or "nobody"

    def _lose(self, why: str) -> None:
        self._good_until = float("-inf")
        metrics.LEASE_HELD.labels(self._key[1]).set(0)
        raise LeaseLost(f"lease {'/'.join(self._key)} is lost: {why}")

    def _now_text(self) -> str:
        return datetime.fromtimestamp(self._clock.wall(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
