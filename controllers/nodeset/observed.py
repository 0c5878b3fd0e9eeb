"""All that a plan for one set looks at: its workers, and what is known beside them, in parts. Decides nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Literal

from controllers.nodeset.workers import Machine, Worker, WorkerNode, WorkerPod


@dataclass(frozen=True)
class Pauses:
    """Ordinals that failed lately, and are left alone for a while."""

    nodes: frozenset[int] = frozenset()
    """Ordinals whose nodes Slurm has given up, or whose pods were refused: the node is not resumed yet."""
    pods: frozenset[int] = frozenset()
    """Of these, ordinals whose last pod a kubelet refused or ended: no pod is made yet."""
    refusals: Mapping[int, str] = field(default_factory=dict[int, str])
    """Ordinals whose last pods were refused by a kubelet, also while the next one is tried: where, and why. It ends when one registers."""
    resumed_at: Mapping[int, float] = field(default_factory=dict[int, float])
    """When the controller resumes each node, in seconds since 1970."""


@dataclass(frozen=True)
class JobRequests:
    """How fresh the list of jobs is, and what Slurm was asked to do with jobs. Times are seconds since 1970."""

    read_at: float = inf
    """When the list of jobs was asked for."""
    error: str = ""
    """Why the jobs on the nodes are unknown, where they were asked for; every node then has an empty list of jobs."""
    can_requeue: bool = True
    """False where slurmrestd is too old to be asked to requeue a job."""
    requeued_at: Mapping[str, float] = field(default_factory=dict[str, float])
    """When Slurm was asked to requeue jobs, by number."""
    cancelled_at: Mapping[int, float] = field(default_factory=dict[int, float])
    """When Slurm was asked to cancel the jobs on nodes, by ordinal."""


@dataclass(frozen=True)
class Claims:
    """Volume claims, by the ordinals that they belong to."""

    owned: frozenset[int] = frozenset()
    """Claims with the set's labels, of the present templates or of earlier ones."""
    ending: frozenset[int] = frozenset()
    """A claim of the present templates is still being deleted. Its name is not free, and a pod could not use it."""
    missing: frozenset[int] = frozenset()
    """The pod waits for a machine, and its claims are not there: no scheduler takes such a pod."""


@dataclass(frozen=True)
class GhostPace:
    """How fast pods are deleted that run although Slurm has their nodes off: see `plans.ghosts`."""

    is_due: bool = True
    """The last batch was deleted long enough ago for another."""
    batch_size: int = 0
    """How many are deleted at a time, as decided when they were found; 0 where there were none."""


Step = Literal["RecreatePod", "RebootMachine", "ReplaceMachine"]
"""What may be done to a node that stays faulty."""
RepairState = Literal["Suspect", "Draining", "RecreatePod", "RebootMachine", "ReplaceMachine", "Verifying", "InService", "GivenUp"]
"""How far the repair of a node is: see `repairs`."""


@dataclass(frozen=True, slots=True)
class TakenStep:
    """A step that was begun."""

    step: Step
    at: float
    """Seconds since 1970."""
    machine: str
    """Identity of the machine that the pod was on."""


@dataclass(frozen=True, slots=True)
class Repair:
    """The repair of one node, as the set's status keeps it. Times are seconds since 1970."""

    state: RepairState
    since: float
    began: float
    """When this fault was first seen."""
    pod: str = ""
    """Uid of the pod that the present step began with."""
    machine: str = ""
    """Identity of the machine that the present step is about."""
    boot: str = ""
    """Its boot when the step began."""
    asked_at: float | None = None
    """When the machine's reboot or replacement was accepted; None before that, and for other steps."""
    steps: tuple[TakenStep, ...] = ()
    """The steps of the last day, the oldest first."""


@dataclass(frozen=True)
class Repairs:
    """What the set's status keeps of repairs."""

    nodes: Mapping[int, Repair] = field(default_factory=dict[int, Repair])
    systemic_since: float | None = None
    """Since when so many nodes fail that no node is to blame; None while that is not so."""


@dataclass(frozen=True)
class Observed:
    """One set at one moment."""

    pods: Mapping[int, WorkerPod]
    nodes: Mapping[int, WorkerNode] | None
    """None while Slurm's answer is missing or too old. An ordinal that is not in it is unknown."""
    now: float
    """Seconds since 1970."""
    on_their_way: frozenset[int] = frozenset()
    """Ordinals whose pods were made, and are not in `pods` yet."""
    window: frozenset[int] = frozenset()
    """Ordinals that the maintenance reservation names, while it is active."""
    reserved: Mapping[int, float] | None = None
    """When the reservations for announced maintenance begin, in seconds since 1970; None where they were not read."""
    looked_at: frozenset[int] = frozenset()
    """Ordinals whose nodes a health check looks at again, in a reservation of its own: it has lifted the drain, or is about to."""
    taken: Mapping[int, str] = field(default_factory=dict[int, str])
    """Ordinals whose pod or claim belongs to somebody else, and which object that is. It is left alone, and no pod is made."""
    pods_taken: frozenset[int] = frozenset()
    """Ordinals of `taken` whose pod, not only a claim, is somebody else's. The pod may serve the Slurm node, so that is left alone too."""
    machines: Mapping[str, Machine] = field(default_factory=dict[str, Machine])
    """The Kubernetes nodes, by name."""
    drained_at: Mapping[int, float] = field(default_factory=dict[int, float])
    """When this controller drained nodes, by its own clock, as the set's status records it."""
    held: frozenset[int] = frozenset()
    """Ordinals whose nodes keep their size, against slurm.conf, until no job can be on them."""
    stopping_settled: frozenset[int] = frozenset()
    """Ordinals whose nodes have had the stop hook's drain for a while, beside a pod that runs on."""
    registered_since: Mapping[int, float] = field(default_factory=dict[int, float])
    """Since when each worker is registered with a ready pod, without a break that this process has seen; in seconds since 1970."""
    pauses: Pauses = field(default_factory=Pauses)
    jobs: JobRequests = field(default_factory=JobRequests)
    claims: Claims = field(default_factory=Claims)
    blocks: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    """By topology of blocks: the number of the block of each group of machines, by the value of their label."""
    ghosts: GhostPace = field(default_factory=GhostPace)
    repairs: Repairs = field(default_factory=Repairs)
    checks_before_jobs: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    """Ordinals whose machines have to pass checks before jobs come, and which of these they have not passed."""

    def worker(self, ordinal: int) -> Worker:
        """The pod and node of an ordinal."""
        return self._workers.get(ordinal) or self._worker(ordinal)

    def workers(self) -> Iterator[Worker]:
        """Every ordinal that has a pod or a node, lowest first."""
        return iter(self._workers.values())

    def machine_of(self, worker: Worker) -> Machine | None:
        """The Kubernetes node of a worker's pod, where it is known."""
        return None if worker.pod is None or worker.pod.machine is None else self.machines.get(worker.pod.machine)

    def identity_of(self, worker: Worker) -> str:
        """Which machine a worker's pod is on; empty for none, and for one that is not known."""
        machine = self.machine_of(worker)
        return machine.identity if machine is not None else ""

    @cached_property
    def _workers(self) -> Mapping[int, Worker]:
        return {ordinal: self._worker(ordinal) for ordinal in sorted({*self.pods, *(self.nodes or ())})}

    def _worker(self, ordinal: int) -> Worker:
        node = None if self.nodes is None else self.nodes.get(ordinal)
        return Worker(ordinal, self.pods.get(ordinal), node, self.drained_at.get(ordinal))
