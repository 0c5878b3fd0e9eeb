"""One shared snapshot of Slurm's nodes and jobs. Polling keeps nodes fresh: an unchanged cluster costs an answer without a body.

A failure keeps the last snapshot, with its age. Jobs are read by a task of their own, on demand, and never two lists at once. So
nodes do not wait for a list of jobs. Without such a list, the snapshot has the reason.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from controllers.slurm.client import SlurmClient, SlurmError
from controllers.slurm.structs import Job, Node, Reservation
from slurm.hostlists import HostlistError, expand

_ACTIVE = frozenset({"RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"})
_JOBS_SHARE = 60
"""Reading jobs takes at most this fraction (1/60) of the time, unless that needs pauses of more than half a minute."""


@dataclass(frozen=True)
class Snapshot:
    """Slurm as it was at one moment."""

    nodes: Mapping[str, Node]
    jobs: tuple[Job, ...]
    """Jobs that have nodes, of a list that may be half a minute older than the nodes. Empty unless wanted: see the poller. Only a node's
    state can say that it has no job."""
    reservations: tuple[Reservation, ...]
    """Empty unless wanted: see the poller."""
    asked_at: float
    """When the reading was asked for, on the monotonic clock, in seconds: everything in it is at least as new."""
    jobs_error: str = ""
    """Why the list of jobs could not be read; an empty `jobs` then means nothing."""
    jobs_asked_at: float = float("-inf")
    """When the list of jobs was asked for, on the monotonic clock."""
    last_reservations: tuple[Reservation, ...] | None = None
    """All reservations as they were half a minute ago at most, wanted or not; None before they were read."""

    @cached_property
    def jobs_by_node(self) -> Mapping[str, list[Job]]:
        """The jobs on each node that has any."""
        by_node: dict[str, list[Job]] = {}
        for job in self.jobs:
            for name in names_in(job.nodes):
                by_node.setdefault(name, []).append(job)
        return by_node

    def last_job_end(self, node: str) -> float | None:
        """When the last job on a node ends at the latest, in seconds since 1970. None without a job, or without a limit."""
        ends = [job.end_time.value for job in self.jobs_by_node.get(node, ())]
        return None if not ends or None in ends else max(end for end in ends if end is not None)


@dataclass
class Poller:
    """Keeps the snapshot. `run` polls for ever; `fresh` returns a reading that was asked for after the call."""

    client: SlurmClient
    clock: Callable[[], float]
    """Monotonic seconds."""
    on_change: Callable[[frozenset[str]], None] = lambda _: None
    """Called with the names of nodes that changed, appeared or went, or whose jobs did."""
    wants_jobs: Callable[[], bool] = lambda: True
    """Asked at each reading: to list the running jobs, slurmctld packs all of them, those that wait too."""
    wants_reservations: Callable[[], bool] = lambda: False
    """Asked at each reading: reservations cost a call of their own."""
    is_at_rest: Callable[[], bool] = lambda: False
    """Asked at each reading: nobody waits for news of Slurm, so they may come a little later."""
    period_s: float = 0.5
    rest_s: float = 1.0
    """The same at rest."""
    longest_pause_s: float = 4.0
    jobs_pause_s: float = 30.0
    """Between two lists of jobs, if a list takes longer than 0.5 s or fails. A shorter list may come sooner."""
    jobs_wait_s: float = 2.0
    """How long a fresh reading waits for a list of jobs that is due, before it asks for the nodes."""
    whole_s: float = 30.0
    """Seconds between two full readings, news or not: slurmctld's clock may have been set back."""
    snapshot: Snapshot | None = None
    error: str = "not asked yet"
    """Why the last poll gave nothing; empty after a good poll."""
    _began: float = field(init=False)
    _nodes_update: float | None = None
    _jobs: tuple[tuple[Job, ...], str, float] = ((), "", float("-inf"))
    """The last list, or why there is none; and when it was asked for."""
    _jobs_again_at: float = float("-inf")
    _jobs_task: asyncio.Task[None] | None = None
    _whole_at: float = float("-inf")
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._began = self.clock()

    async def run(self) -> None:
        """Polls until cancelled, with growing pauses while Slurm does not answer."""
        pause = self.period_s
        try:
            while True:
                begin = self.clock()
                try:
                    await self.poll()
                except SlurmError:
                    pause = min(self.longest_pause_s, pause * 2)
                else:
                    # A busy cluster of thousands answers in seconds, not milliseconds: leave it some rest.
                    period_s = self.rest_s if self.is_at_rest() else self.period_s
                    pause = min(self.longest_pause_s, max(period_s, 2 * (self.clock() - begin)))
                await asyncio.sleep(pause)
        finally:
            if self._jobs_task is not None:
                self._jobs_task.cancel()

    async def fresh(self) -> Snapshot:
        """A reading of the nodes asked for after this call, with jobs if they come soon. Concurrent calls share a reading.

        Raises SlurmError.
        """
        if task := self._ask_for_jobs():
            await asyncio.wait({task}, timeout=self.jobs_wait_s)
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
        """Reads once more, mostly only changes. Raises SlurmError."""
        self._ask_for_jobs()
        async with self._lock:
            return await self._read()

    async def _read(self) -> Snapshot:
        asked_at = self.clock()
        before = self.snapshot
        is_whole = asked_at - self._whole_at >= self.whole_s
        if is_whole:
            self._nodes_update = None
        try:
            nodes = await self.client.nodes(self._nodes_update)
            wants = self.wants_reservations()
            reservations = (await self.client.reservations()).reservations if wants or is_whole else None
        except SlurmError as error:
            self.error = str(error)
            raise
        self.error = ""
        if is_whole:
            self._whole_at = asked_at
        changed: set[str] = set()
        known: Mapping[str, Node] = {} if before is None else before.nodes
        if nodes is not None:
            self._nodes_update = nodes.last_update.value
            # A node that has not changed stays the same object, with what was read out of it.
            after = {node.name: known[node.name] if known.get(node.name) == node else node for node in nodes.nodes}
            changed |= {name for name in known.keys() | after.keys() if known.get(name) is not after.get(name)}
            known = after
        jobs, jobs_error, jobs_asked_at = self._jobs
        last = reservations if reservations is not None else before.last_reservations if before is not None else None
        self.snapshot = Snapshot(known, jobs, reservations or () if wants else (), asked_at, jobs_error, jobs_asked_at, last)
        if changed or before is None:
            self.on_change(frozenset(changed))
        return self.snapshot

    def _ask_for_jobs(self) -> asyncio.Task[None] | None:
        """The task that reads jobs: the current task, or a new one if a list is wanted and due."""
        task = self._jobs_task
        if task is not None and task.done():
            self._jobs_task = None
            task.result()  # a defect in it is a defect of the poller
        if not self.wants_jobs():
            # A list that is being read is left to end: slurmctld works on it anyway, and would only be asked again.
            self._put_jobs((), "", float("-inf"))
            self._jobs_again_at = float("-inf")
        elif self._jobs_task is None and self.clock() >= self._jobs_again_at:
            self._jobs_task = asyncio.create_task(self._read_jobs(), name="running jobs")
        return self._jobs_task

    async def _read_jobs(self) -> None:
        begin = self.clock()
        try:
            jobs = tuple(job for job in (await self.client.jobs()).jobs if job.nodes and _ACTIVE & set(job.job_state))
        except SlurmError as error:
            self._put_jobs((), str(error), float("-inf"))
            self._jobs_again_at = self.clock() + self.jobs_pause_s
        else:
            self._put_jobs(jobs, "", begin)
            took = self.clock() - begin
            self._jobs_again_at = self.clock() + min(self.jobs_pause_s, _JOBS_SHARE * took)

    def _put_jobs(self, jobs: tuple[Job, ...], error: str, asked_at: float) -> None:
        """Puts the list into the current snapshot too, and reports the nodes whose jobs changed."""
        before, self._jobs = self._jobs[0], (jobs, error, asked_at)
        present = self.snapshot
        if present is None or (before, present.jobs_error, present.jobs_asked_at) == (jobs, error, asked_at):
            return
        self.snapshot = replace(present, jobs=jobs, jobs_error=error, jobs_asked_at=asked_at)
        if changed := frozenset(name for job in set(before) ^ set(jobs) for name in names_in(job.nodes)):
            self.on_change(changed)


def names_in(hostlist: str) -> Iterable[str]:
    """The names in a hostlist of Slurm's; empty if it is not valid."""
    try:
        return expand(hostlist)
    except HostlistError:
        return ()
