"""One shared picture of Slurm's nodes and jobs, kept fresh by polling: an unchanged cluster costs an answer without a body.

`last_update` is the second of the answer, and slurmctld compares with the second before `update_time`: a change late in it is not lost.
Source: slurmctld's proc_req.c, and measured on 26.05. A failure keeps the last picture; its age then tells whoever looks. Where only
the jobs are missing, the nodes are as new as ever, and the picture says why it has no jobs.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from controllers.slurm.client import SlurmClient, SlurmError
from controllers.slurm.hostlist import HostlistError, expand
from controllers.slurm.structs import Job, Jobs, Node, Reservation

_ACTIVE = frozenset({"RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"})


@dataclass(frozen=True)
class Snapshot:
    """Slurm as it was at one moment."""

    nodes: Mapping[str, Node]
    jobs: tuple[Job, ...]
    """Jobs that have nodes. Empty unless somebody wants them: see the poller. That no job is on a node only its state can say."""
    reservations: tuple[Reservation, ...]
    """Empty unless somebody wants them: see the poller."""
    asked_at: float
    """When the reading was asked for, on the monotonic clock, in seconds: everything in it is at least as new."""
    jobs_error: str = ""
    """Why the list of jobs could not be read; that `jobs` is empty then says nothing."""

    @cached_property
    def jobs_by_node(self) -> Mapping[str, list[Job]]:
        """The jobs on each node that has some."""
        found: dict[str, list[Job]] = {}
        for job in self.jobs:
            for name in _names(job.nodes):
                found.setdefault(name, []).append(job)
        return found

    def last_job_end(self, node: str) -> float | None:
        """When the last job on a node ends at the latest, in seconds since 1970; None without one, or without a limit."""
        ends = [job.end_time.value for job in self.jobs_by_node.get(node, ())]
        return None if not ends or None in ends else max(end for end in ends if end is not None)


@dataclass
class Poller:
    """Keeps the snapshot. `run` polls for ever; `fresh` gives a whole reading that was asked for after the call."""

    client: SlurmClient
    clock: Callable[[], float]
    """Monotonic seconds."""
    on_change: Callable[[frozenset[str]], None] = lambda _: None
    """Told the names of nodes that changed, appeared or went, and of those whose jobs did."""
    wants_jobs: Callable[[], bool] = lambda: True
    """Asked at each reading: a list of ten thousand jobs is 90 MB, which slurmrestd makes anew after every change of one."""
    wants_reservations: Callable[[], bool] = lambda: False
    """Asked at each reading: reservations cost a call of their own."""
    period_s: float = 0.5
    longest_pause_s: float = 4.0
    jobs_pause_s: float = 30.0
    """After a list of jobs that could not be had: nodes are not to wait each time for a queue of a hundred thousand."""
    whole_s: float = 30.0
    """After so many seconds everything is asked for again, news or not: slurmctld's clock may have been set back."""
    snapshot: Snapshot | None = None
    error: str = "not asked yet"
    """Why the last poll gave nothing; empty after a good one."""
    _began: float = field(init=False)
    _nodes_update: float | None = None
    _jobs_update: float | None = None
    _jobs_again_at: float = float("-inf")
    _whole_at: float = float("-inf")
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._began = self.clock()

    async def run(self) -> None:
        """Polls until cancelled; longer and longer pauses while Slurm does not answer."""
        pause = self.period_s
        while True:
            begin = self.clock()
            try:
                await self.poll()
            except SlurmError:
                pause = min(self.longest_pause_s, pause * 2)
            else:
                # A busy cluster of thousands answers in seconds, not milliseconds: leave it some rest.
                pause = min(self.longest_pause_s, max(self.period_s, 2 * (self.clock() - begin)))
            await asyncio.sleep(pause)

    async def fresh(self) -> Snapshot:
        """A reading asked for after this call; calls at the same time share one. Raises SlurmError."""
        called_at = self.clock()
        async with self._lock:
            if self.snapshot is not None and self.snapshot.asked_at > called_at:
                return self.snapshot
            self._whole_at = float("-inf")
            return await self._read()

    def silent_s(self) -> float:
        """Seconds since the last good reading was asked for, or since this poller began."""
        return self.clock() - (self._began if self.snapshot is None else self.snapshot.asked_at)

    def age_s(self) -> float:
        """Seconds since the last good reading was asked for; infinite before the first."""
        return float("inf") if self.snapshot is None else self.clock() - self.snapshot.asked_at

    async def poll(self) -> Snapshot:
        """One more reading, mostly of what has changed. Raises SlurmError."""
        async with self._lock:
            return await self._read()

    async def _read(self) -> Snapshot:
        asked_at = self.clock()
        before = self.snapshot
        is_whole, wants_jobs = asked_at - self._whole_at >= self.whole_s, self.wants_jobs()
        if is_whole:
            self._nodes_update = None
        if is_whole or not wants_jobs:
            self._jobs_update = None
        try:
            asked_for = self._ask_for_jobs() if wants_jobs else _nothing()
            nodes, (jobs, jobs_error) = await asyncio.gather(self.client.nodes(self._nodes_update), asked_for)
            reservations = (await self.client.reservations()).reservations if self.wants_reservations() else ()
        except SlurmError as error:
            self.error = str(error)
            raise
        self.error = ""
        if is_whole:
            self._whole_at = asked_at
        changed: set[str] = set()
        known_nodes: Mapping[str, Node] = {} if before is None else before.nodes
        known_jobs: tuple[Job, ...] = before.jobs if before is not None and wants_jobs and not jobs_error else ()
        if nodes is not None:
            self._nodes_update = nodes.last_update.value
            after = {node.name: node for node in nodes.nodes}
            changed |= {name for name in known_nodes.keys() | after.keys() if known_nodes.get(name) != after.get(name)}
            known_nodes = after
        if jobs is not None:
            self._jobs_update = jobs.last_update.value
            with_nodes = tuple(job for job in jobs.jobs if job.nodes and _ACTIVE & set(job.job_state))
            for job in set(with_nodes) ^ set(known_jobs):
                changed.update(_names(job.nodes))
            known_jobs = with_nodes
        self.snapshot = Snapshot(known_nodes, known_jobs, reservations, asked_at, jobs_error)
        if changed or before is None:
            self.on_change(frozenset(changed))
        return self.snapshot

    async def _ask_for_jobs(self) -> tuple[Jobs | None, str]:
        """News of jobs, and why there can be none: what is known of nodes does not hang on it."""
        if self.snapshot is not None and self.snapshot.jobs_error and self.clock() < self._jobs_again_at:
            return None, self.snapshot.jobs_error
        try:
            return await self.client.jobs(self._jobs_update), ""
        except SlurmError as error:
            self._jobs_update, self._jobs_again_at = None, self.clock() + self.jobs_pause_s
            return None, str(error)


async def _nothing() -> tuple[Jobs | None, str]:
    return None, ""


def _names(hostlist: str) -> Iterable[str]:
    try:
        return expand(hostlist)
    except HostlistError:
        return ()
