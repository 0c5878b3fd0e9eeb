"""What this process remembers of one set from round to round. A new leader starts without any of it.

Times are by the process's own clock, except those of drains: seconds since 1970, as the set's status records them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controllers.nodeset.observed import Repairs
from controllers.nodeset.plans.ghosts import GHOST_PAUSE_S
from controllers.nodeset.records import read_records, read_repairs
from controllers.nodeset.structs import NodeSetObject, NodeSetStatus, SlurmNodeStatus
from controllers.nodeset.workers import Worker

STOP_SETTLED_S = 10.0
"""Seconds after which a pod that still runs beside a stop hook's drain is not about to end: the hook was an earlier pod's."""


@dataclass
class SetMemory:
    """What is remembered of a set."""

    budget: tuple[str, bool, float] = ("", False, 0.0)
    """The disruption budget as it was last applied: uid of the set, whether all pods count as busy, and when."""
    ghosts: tuple[float, int] | None = None
    """When ghosts were last removed, and how many go at once; None without ghosts."""
    taken: dict[int, float] = field(default_factory=dict[int, float])
    """Ordinals whose pods existed already when they were to be created: since when."""
    wants_jobs: bool = False
    """The last plan asked for the jobs on the set's nodes."""
    drained_at: tuple[str, Mapping[int, float]] = ("", {})
    """The set's uid, and when its nodes were drained. Read from the status once, then written to it first."""
    repairs: tuple[str, Repairs] = ("", Repairs())
    """The set's uid, and how far its repairs are. Read from the status once, then written to it before anything is done."""
    stopping: dict[int, tuple[str, float]] = field(default_factory=dict[int, tuple[str, float]])
    """Pods beside which a stop hook's drain is seen: their uids, and since when."""
    registered_since: dict[int, float] = field(default_factory=dict[int, float])
    """Since when workers are registered with a ready pod, by ordinal, in seconds since 1970. A round's observation has this very dict."""
    has_looked: bool = False
    """This process has had a look at the set while Slurm answered."""
    requeued: dict[str, float] = field(default_factory=dict[str, float])
    """Jobs that Slurm was asked to requeue, by number, and when, in seconds since 1970; forgotten with a newer list of jobs."""
    cancelled: dict[int, float] = field(default_factory=dict[int, float])
    """Nodes whose jobs Slurm was asked to cancel, by ordinal, and when, in seconds since 1970; forgotten with a newer list of jobs."""
    checks_due: dict[str, float] = field(default_factory=dict[str, float])
    """When the Job of each check may be made again. Until then an earlier Job has its name, or a new one would be refused again."""
    late_since: float | None = None
    """Since when every request to Slurm has come too late; None when the last did not."""
    refused: dict[int, str] = field(default_factory=dict[int, str])
    """Ordinals whose last pod a kubelet refused: where, and why."""
    status: NodeSetStatus | None = None
    """The status as it was last written: the only status known of a set whose present version cannot be decoded."""
    revision: str = ""
    """What the set's pods were made from in the last round."""
    swept_at: float = float("-inf")
    """When the objects of the set's Slurm nodes were last all as they should be."""
    counted_states: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    """States for which there is a metric of the set's nodes."""
    counted_causes: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    """Causes, with their wishes, for which there is one."""
    counted_repairs: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    """States of repairs for which there is one."""
    slurm_nodes: dict[int, tuple[float, SlurmNodeStatus]] = field(default_factory=dict[int, tuple[float, SlurmNodeStatus]])
    """Objects of Slurm nodes that were written lately, by ordinal: when, and what they say. Informers may not have them yet."""

    def drains_of(self, nodeset: NodeSetObject) -> Mapping[int, float]:
        """When nodes were drained. A new process reads it from the status."""
        uid, drained_at = self.drained_at
        if uid != nodeset.metadata.uid:
            drained_at = read_records(nodeset.metadata.name, nodeset.status.drains)
            self.drained_at = nodeset.metadata.uid, drained_at
        return drained_at

    def repairs_of(self, nodeset: NodeSetObject) -> Repairs:
        """How far repairs are. A new process reads it from the status."""
        uid, repairs = self.repairs
        if uid != nodeset.metadata.uid:
            repairs = read_repairs(nodeset.metadata.name, nodeset.status)
            self.repairs = nodeset.metadata.uid, repairs
        return repairs

    def forget_asked(self, jobs_read_at: float) -> None:
        """Forgets requests that are older than the list of jobs: the list shows their effect."""
        self.requeued = {number: at for number, at in self.requeued.items() if at >= jobs_read_at}
        self.cancelled = {ordinal: at for ordinal, at in self.cancelled.items() if at >= jobs_read_at}

    def note_late(self, is_late: bool, now: float) -> None:
        """Remembers since when requests have come too late."""
        self.late_since = None if not is_late else now if self.late_since is None else self.late_since

    def late_s(self, now: float) -> float:
        """Seconds for which nothing could be written to Slurm; 0 when the last request was in time."""
        return 0.0 if self.late_since is None else now - self.late_since

    def checks_due_s(self, checks: Iterable[str], now: float) -> float:
        """Seconds until the Job of one of these checks may be made; infinite for none."""
        return min((max(0.0, self.checks_due.get(name, now) - now) for name in checks), default=float("inf"))

    def ghost_pause_s(self, now: float) -> float:
        """Seconds until more ghosts may go."""
        return (self.ghosts[0] if self.ghosts else float("-inf")) + GHOST_PAUSE_S - now

    def note_registered(self, workers: Iterable[Worker], now: float) -> None:
        """Remembers since when workers are registered; `now` is in seconds since 1970.

        For the time before its first look, a process uses what Kubernetes reports of the pods: a new leader must not hold up every roll.
        """
        registered = {worker.ordinal: worker.pod.ready_since for worker in workers if worker.is_registered and worker.pod is not None}
        for ordinal in [ordinal for ordinal in self.registered_since if ordinal not in registered]:
            del self.registered_since[ordinal]
        for ordinal, ready_since in registered.items():
            since = max(self.registered_since.get(ordinal, now if self.has_looked else 0.0), ready_since)
            self.registered_since[ordinal] = since
        self.has_looked = True

    def note_stopping(self, workers: Iterable[Worker], now: float) -> None:
        """Remembers which pods run on beside a stop hook's drain."""
        stopping: dict[int, tuple[str, float]] = {}
        for worker in workers:
            pod = worker.pod
            if worker.has_stop_drain and pod is not None and pod.ready and not pod.terminating:
                uid, since = self.stopping.get(worker.ordinal, ("", now))
                stopping[worker.ordinal] = pod.uid, since if uid == pod.uid else now
        self.stopping = stopping

    def stop_settled(self, now: float) -> frozenset[int]:
        """Ordinals whose pods have run on for long enough beside such a drain."""
        return frozenset(ordinal for ordinal, (_, since) in self.stopping.items() if now - since >= STOP_SETTLED_S)

    def stop_settles_s(self, now: float) -> float:
        """Seconds until a stop hook's drain beside a running pod may be lifted; infinite without such a drain."""
        due = (since + STOP_SETTLED_S - now for _, since in self.stopping.values())
        return min((seconds for seconds in due if seconds > 0), default=float("inf"))
