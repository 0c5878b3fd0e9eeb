"""The only way to write to Slurm: each request is sent only while this process leads and the reading behind it is fresh.

A round may be held up between its reading and its writes, and a job may have started meanwhile. The next round looks again.
"""

from collections.abc import Callable, Iterable

from controllers.runtime.clock import Clock
from controllers.slurm.client import NodeUpdate, SlurmClient, SlurmError

FRESH_S = 5.0
"""No request to Slurm is made from a reading of it that is older, in seconds."""


class NotLeading(SlurmError):
    """Not sent: this process does not lead, or does no longer."""


class NotFresh(SlurmError):
    """Not sent: the reading that asks for it has grown old."""


class SlurmWriter:
    """Every call raises SlurmError when the request was not sent, not answered or refused; `asked_at` is when the reading was asked for."""

    def __init__(self, client: SlurmClient, clock: Clock, may_write: Callable[[], bool] = lambda: True) -> None:
        """`may_write` is called right before each request: a process that was frozen must not write after its lease."""
        self._client = client
        self._clock = clock
        self._may_write = may_write

    def is_fresh(self, asked_at: float) -> bool:
        """True while a reading is recent enough for a request."""
        return self._clock.now() - asked_at <= FRESH_S

    @staticmethod
    def is_quick(took_s: float) -> bool:
        """True if a reading that took `took_s` leaves time for a request."""
        return took_s <= FRESH_S

    async def update_nodes(self, names: Iterable[str], state: NodeUpdate, asked_at: float, reason: str | None = None) -> None:
        """Drains, lifts or resumes."""
        self._check(asked_at)
        await self._client.update_nodes(names, state, reason)

    async def release_nodes(self, names: Iterable[str], asked_at: float) -> None:
        """Ends the wait for SuspendTimeout of nodes that power down."""
        self._check(asked_at)
        await self._client.release_nodes(names)

    async def place_nodes(self, names: Iterable[str], topology: str | None, features: Iterable[str] | None, asked_at: float) -> None:
        """Sets where nodes are, and which features they have."""
        self._check(asked_at)
        await self._client.place_nodes(names, topology, features)

    async def reserve(self, name: str, node: str, start: int, comment: str, asked_at: float) -> None:
        """Reserves a node for maintenance."""
        self._check(asked_at)
        await self._client.reserve(name, node, start, comment)

    async def release(self, name: str, asked_at: float) -> None:
        """Ends a reservation."""
        self._check(asked_at)
        await self._client.release(name)

    async def requeue_jobs(self, ids: Iterable[str], asked_at: float) -> None:
        """Puts running jobs back into the queue."""
        self._check(asked_at)
        await self._client.requeue_jobs(ids)

    async def cancel_jobs(self, nodes: Iterable[str], asked_at: float) -> None:
        """Cancels every job that has one of the nodes."""
        self._check(asked_at)
        await self._client.cancel_jobs(nodes)

    def _check(self, asked_at: float) -> None:
        if not self._may_write():
            raise NotLeading("not sent to Slurm: this process does not lead")
        if not self.is_fresh(asked_at):
            raise NotFresh(f"not sent to Slurm: the reading is older than {FRESH_S:.0f} s")
