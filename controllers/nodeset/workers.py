"""What is known of each worker of a set: its pod from Kubernetes, its node from Slurm, side by side. No decision is made here."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from controllers.slurm.states import NodeState, is_drained, is_idle, is_off, is_powering_up, is_registered

OWN_REASON = "slipway: nodeset "
"""Start of every drain reason that this controller writes; it lifts no other."""
SCALE_IN = f"{OWN_REASON}scale-in"
UPDATE = f"{OWN_REASON}update"
DELETE = f"{OWN_REASON}delete"
RESUME_FAILED = "ResumeTimeout reached"
"""Slurm's own reason for a node that did not register in time; it is DOWN and POWERED_DOWN then. Source: measured on 26.05."""


@dataclass(frozen=True, slots=True)
class WorkerPod:
    """A worker's pod."""

    uid: str
    revision: str
    created_at: float
    """Seconds since 1970."""
    ready: bool = False
    terminating: bool = False
    finished: bool = False
    """Phase Succeeded or Failed: the kubelet says that no container of it runs."""
    marked_busy: bool = True
    """What its busy label says."""
    machine: str | None = None
    """The Kubernetes node it is on."""
    cost: int = 0
    blocked: str = ""
    """Why it does not run yet, in Kubernetes' words."""


@dataclass(frozen=True, slots=True)
class NodeJob:
    """A job on a node."""

    number: str
    """As Slurm's commands take it: `7`, or `7_2` for a task of an array; for a part of a heterogeneous job that of its leader."""
    is_batch: bool = True
    """False for one of srun or salloc."""
    allows_requeue: bool = True
    """False for one that was submitted with --no-requeue."""
    is_ending: bool = False
    """Cancelled, requeued or done, and on its way off the node."""

    @property
    def can_requeue(self) -> bool:
        """True when Slurm would put it back into the queue; it refuses all others. Source: measured on 26.05."""
        return self.is_batch and self.allows_requeue


def in_order(numbers: Iterable[str]) -> list[str]:
    """Numbers of jobs, each once."""
    return sorted(set(numbers), key=lambda number: [int(part) for part in number.split("_")])


@dataclass(frozen=True, slots=True)
class WorkerNode:
    """A worker's Slurm node."""

    state: NodeState
    reason: str = ""
    reason_at: float | None = 0
    """When the reason was set, in seconds since 1970; None where Slurm does not say."""
    last_job_end: float | None = None
    """When the last of its jobs ends at the latest, in seconds since 1970; None without a job or without a limit."""
    jobs: tuple[NodeJob, ...] = ()
    """While it is drained, the jobs on it, where they were asked for. That there is none only its state says."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One ordinal. No node means unknown, and unknown is busy."""

    ordinal: int
    pod: WorkerPod | None = None
    node: WorkerNode | None = None

    @property
    def has_our_drain(self) -> bool:
        """True when this controller has drained it."""
        return self.node is not None and "DRAIN" in self.node.state.flags and self.node.reason.startswith(OWN_REASON)

    @property
    def has_foreign_drain(self) -> bool:
        """True when somebody else has drained it, or said why it is down: a person, a health check, a stopping pod."""
        node = self.node
        if node is None or self.has_our_drain:
            return False
        return "DRAIN" in node.state.flags or ("DOWN" in node.state.flags and bool(node.reason) and not is_automatic(node.reason))

    @property
    def is_off(self) -> bool:
        """True when Slurm has powered the node down, or is about to: by its own rules no job is on it."""
        return self.node is not None and is_off(self.node.state)

    @property
    def may_go(self) -> bool:
        """True when a reading says that no job can be on it, nor come to it: law 1."""
        return self.node is not None and (self.is_off or is_drained(self.node.state))

    @property
    def has_failed_to_resume(self) -> bool:
        """True when Slurm gave it up because it did not register in time, and nobody has drained it."""
        node = self.node
        return node is not None and node.reason.startswith(RESUME_FAILED) and "DRAIN" not in node.state.flags

    @property
    def is_registered(self) -> bool:
        """True when its slurmd answers slurmctld and its pod is ready."""
        return self.pod is not None and self.pod.ready and self.node is not None and is_registered(self.node.state)

    @property
    def is_idle(self) -> bool:
        """True when a reading says that no job is on it."""
        return self.node is not None and (is_idle(self.node.state) or self.may_go)

    @property
    def is_waking(self) -> bool:
        """True when a job waits for it to come up."""
        return self.node is not None and is_powering_up(self.node.state)


def is_automatic(reason: str) -> bool:
    """True for a reason that slurmctld gives by itself when a node falls silent or does not come up. Source: Slurm's src/slurmctld."""
    return reason.startswith(("Not responding", RESUME_FAILED, "Node unexpectedly rebooted", "Low ", "gres/", "slipway: pod was replaced"))


@dataclass(frozen=True)
class Observed:
    """All that a plan for one set looks at."""

    pods: Mapping[int, WorkerPod]
    nodes: Mapping[int, WorkerNode] | None
    """None while Slurm's answer is missing or too old. An ordinal that is not in it is unknown."""
    now: float
    """Seconds since 1970."""
    on_their_way: frozenset[int] = frozenset()
    """Ordinals whose pods were made, and are not in `pods` yet."""
    window_open: bool = False
    """The maintenance reservation is active."""
    held_back: frozenset[int] = field(default_factory=frozenset[int])
    """Ordinals that failed lately and are not tried yet."""
    ghosts_due: bool = True
    """The last ghosts were removed long enough ago for more to go: see `plan.lot_of`."""
    ghost_lot: int = 0
    """How many of them go at once, as it was decided when they were found; 0 where there were none."""
    can_requeue: bool = True
    """False where slurmrestd is too old to be asked to requeue a job."""
    jobs_error: str = ""
    """Why nobody knows the jobs on the nodes, where somebody asked; no node has any then."""
    with_claims: frozenset[int] = frozenset()
    """Ordinals that have a volume claim, of the present templates or of earlier ones."""
    claims_going: frozenset[int] = frozenset()
    """Ordinals with a claim of the present templates that is still being deleted. Its name is not free, and a pod could not use it."""
    claims_missing: frozenset[int] = frozenset()
    """Ordinals whose pods wait for a machine, and whose claims are not there: no scheduler takes such a pod."""

    def worker(self, ordinal: int) -> Worker:
        """One ordinal's pod and node."""
        return Worker(ordinal, self.pods.get(ordinal), None if self.nodes is None else self.nodes.get(ordinal))

    def workers(self) -> Iterator[Worker]:
        """Every ordinal that has a pod or a node, lowest first."""
        return (self.worker(ordinal) for ordinal in sorted({*self.pods, *(self.nodes or ())}))
