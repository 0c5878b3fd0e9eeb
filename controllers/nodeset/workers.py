"""What is known of each worker of a set: its pod from Kubernetes and its node from Slurm, side by side. Decides nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from slurm.causes import KINDS, Kind, Wish
from slurm.check_results import Failure, Request
from slurm.reasons import (
    BEFORE_JOBS,
    CHECK,
    GPUS,
    KILL_FAILED,
    NODESET,
    POD_STOPPING,
    REMEDY,
    REQUESTED,
    SLURM_USERS,
    check,
    gpu_fault,
    has_failed_to_resume,
    is_lost,
    is_of_machine,
    is_on_purpose,
    machine_in,
)
from slurm.states import (
    NodeState,
    has_jobs,
    is_drained,
    is_idle,
    is_off,
    is_powered_down,
    is_registered,
    is_waking,
)


@dataclass(frozen=True, slots=True)
class WorkerPod:
    """A worker's pod."""

    uid: str
    revision: str
    created_at: float
    """Seconds since 1970."""
    ready: bool = False
    terminating: bool = False
    terminating_since: float = 0
    """When it should have ended at the latest, in seconds since 1970; 0 while it is not being deleted, or not known to be."""
    finished: bool = False
    """Phase Succeeded or Failed: the kubelet reports that no container of it runs."""
    has_run: bool = False
    """Its slurmd has been started on its machine at least once."""
    marked_busy: bool = True
    """What its busy label says."""
    machine: str | None = None
    """The Kubernetes node it is on."""
    cost: int = 0
    blocked: str = ""
    """Why it does not run yet, in Kubernetes' words."""
    refused: str = ""
    """Why its machine's kubelet has refused it, in Kubernetes' words."""
    version: str = ""
    """Its resource version: another version means that the pod has changed."""
    has_checks_before_jobs: bool = False
    """Health checks have to pass on its machine before its node takes jobs."""
    address: str = ""
    """Where its jobs read that its node is, in the first topology."""
    ready_since: float = 0
    """Since when it is ready, in seconds since 1970; 0 where that is not known."""
    drain_requested: str = ""
    """Why an annotation of the pod asks for a drain of its node; empty without one."""

    @property
    def is_unbound(self) -> bool:
        """True while no scheduler has given it a machine: nothing of it has ever run."""
        return self.machine is None and not (self.ready or self.has_run or self.terminating or self.finished)

    @property
    def may_have_jobs(self) -> bool:
        """True when a job may run in it, even if Slurm reports none now: it is ready, or was busy when last heard of."""
        # A pod that is not ready at this moment may still have jobs, as when its machine cannot be reached.
        return self.ready or (self.marked_busy and self.has_run)


@dataclass(frozen=True, slots=True)
class NodeJob:
    """A job on a node."""

    number: str
    """As Slurm's commands take it: `7`, or `7_2` for a task of an array; for a part of a heterogeneous job that of its leader."""
    is_batch: bool = True
    """False for a job of srun or salloc."""
    allows_requeue: bool = True
    """False for a job that was submitted with --no-requeue."""
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
    last_job_end: float | None = None
    """When the last of its jobs ends at the latest, in seconds since 1970; None without a job or without a limit."""
    jobs: tuple[NodeJob, ...] = ()
    """While it is drained, the jobs on it, where they were asked for. That there is none only its state says."""
    topology: str = ""
    """Its place in Slurm, as last set; empty for a node whose place was never set."""
    features: tuple[str, ...] = ()
    gpu_remark: str = ""
    """Which of its GPUs are beside other sockets than gres.conf says, in its worker's words."""
    failures: Mapping[str, Failure] | None = field(default_factory=dict[str, Failure])
    """What health checks of the set found, and have not seen mended, by the names of the checks; None where that cannot be read."""
    failed_at: Mapping[str, float] = field(default_factory=dict[str, float])
    """When each of these checks last looked and failed, in seconds since 1970. A check whose last run could not tell is not in it."""
    passed_for: Mapping[str, Request] = field(default_factory=dict[str, Request])
    """The last request for which each check has passed, by the names of the checks; empty where nothing is decided by it."""
    reason_by: str = ""
    """The user who gave the reason."""
    reason_at: float | None = None
    """When the reason was given, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class MachineCause:
    """What a condition or a taint of a Kubernetes node says against the Slurm nodes on it."""

    name: str
    """`condition/KernelDeadlock`, `taint/karpenter.sh/disrupted`."""
    kind: Kind
    wish: Wish
    evidence: str
    since: str = ""
    """As Kubernetes has it; empty where it does not say."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What matters of a Kubernetes node to the pods on it."""

    is_cordoned: bool = False
    words: str = ""
    """What the administrator who cordoned it has written for the users of Slurm."""
    answers: bool = True
    """False when Kubernetes has not heard its kubelet for a while."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    identity: str = ""
    """Which machine it is: another machine of the same name has another."""
    boot: str = ""
    """Its present boot."""
    made_at: float = 0.0
    """When its Kubernetes node was made, in seconds since 1970."""
    workers: int = 1
    """Workers' pods on it, of all node sets."""
    causes: tuple[MachineCause, ...] = ()
    """What its conditions and taints say, by the rules of the set."""
    maintenance_begins: float | None = None
    """When announced maintenance of it begins, in seconds since 1970."""
    is_announcement_unread: bool = False
    """Maintenance is announced, in a text that is not a time."""

    @property
    def announced(self) -> str:
        """The maintenance that was announced for it and that keeps jobs away, by its name; empty without one."""
        return min((cause.name for cause in self.causes if cause.kind == "maintenance" and cause.wish != "none"), default="")


@dataclass(frozen=True)
class Worker:
    """An ordinal with its pod and its Slurm node. No node means unknown, and unknown is busy.

    Answers that several parts of a plan need are computed once: a set of 1,000 is planned every half minute, and asks each sixteen times.
    """

    ordinal: int
    pod: WorkerPod | None = None
    node: WorkerNode | None = None
    drained_at: float | None = None
    """When this controller drained the node, by its own clock; None when it did not, or has lifted that drain."""

    @cached_property
    def is_draining(self) -> bool:
        """True when the node has a drain, ours or of others."""
        return self.node is not None and "DRAIN" in self.node.state.flags

    @cached_property
    def may_lift_drain(self) -> bool:
        """True when this controller may lift the drain."""
        return self.is_drained_to_leave or self.has_stop_drain or self.is_kept_out or self.has_gpu_drain or self.has_before_jobs_drain

    @cached_property
    def is_drained_to_leave(self) -> bool:
        """True when this controller has drained the node to take its worker away.

        A node that registers while it wakes loses the reason of its drain and keeps the drain. Slurm accepts no drain without a reason, so
        a drain without a reason, on a node that this controller has drained, is its own. Source: measured on 26.05.
        """
        return self._is_drained_for(NODESET) or self.has_remedy_drain or self.has_lost_reason

    @property
    def has_lost_reason(self) -> bool:
        """True for a drain of ours whose reason slurmctld has cleared."""
        return self.is_draining and self.node is not None and is_lost(self.node.reason) and self.drained_at is not None

    @property
    def has_remedy_drain(self) -> bool:
        """True when this controller has drained the node to repair it."""
        return self._is_drained_for(REMEDY)

    @property
    def has_before_jobs_drain(self) -> bool:
        """True when it is drained until health checks have passed on its machine."""
        return self._is_drained_for(BEFORE_JOBS)

    @property
    def has_kill_drain(self) -> bool:
        """True when Slurm has drained it, as slurmd could not end the processes of a job. Only the reason and its user tell that."""
        return self._is_drained_for(KILL_FAILED) and self.node is not None and self.node.reason_by in SLURM_USERS

    @property
    def has_stop_drain(self) -> bool:
        """True when the pod's stop hook has drained it."""
        return self._is_drained_for(POD_STOPPING)

    @property
    def has_gpu_drain(self) -> bool:
        """True when its pod has drained it, as its GPUs are not those of the config. The pod lifts that, or the next one."""
        return self._is_drained_for(GPUS)

    @property
    def gpu_fault(self) -> str:
        """How its GPUs differ from the config; empty without such a drain."""
        return gpu_fault(self.node.reason) if self.node is not None and self.has_gpu_drain else ""

    @property
    def has_machine_drain(self) -> bool:
        """True when it is drained because a Kubernetes node was cordoned, or maintenance was announced for it."""
        return self.is_draining and self.node is not None and is_of_machine(self.node.reason)

    @property
    def has_requested_drain(self) -> bool:
        """True when it is drained as an annotation of its pod asks for that, or has."""
        return self._is_drained_for(REQUESTED)

    @property
    def is_kept_out(self) -> bool:
        """True when this controller has drained it for others, about its machine or by its pod: they know when it may return."""
        return self.has_machine_drain or self.has_requested_drain

    @cached_property
    def has_check_drain(self) -> bool:
        """True when it is drained for what a health check has found."""
        return self._is_drained_for(CHECK)

    @property
    def fault(self) -> str:
        """The reason of a drain for what checks have found, the most urgent failure; empty where none asks for a drain."""
        holding = {name: failure for name, failure in ((self.node.failures if self.node else None) or {}).items() if failure.drains}
        if not holding:
            return ""
        name = min(holding, key=lambda name: (KINDS.index(holding[name].kind), name))
        return check(name, holding[name].found)

    @property
    def drained_machine(self) -> str:
        """The Kubernetes node that such a drain names; empty without such a drain."""
        return machine_in(self.node.reason) if self.node is not None and self.is_draining else ""

    @cached_property
    def has_foreign_drain(self) -> bool:
        """True when a person or a health check has drained the node, or set it down with a reason of their own."""
        node = self.node
        if node is None or self.may_lift_drain:
            return False
        return self.is_draining or ("DOWN" in node.state.flags and is_on_purpose(node.reason))

    @cached_property
    def is_off(self) -> bool:
        """True when Slurm has powered the node down, or is about to: by its own rules no job is on it."""
        return self.node is not None and is_off(self.node.state)

    @property
    def is_powered_down(self) -> bool:
        """True when Slurm has powered the node down, and its time to do so is over."""
        return self.node is not None and is_powered_down(self.node.state)

    @property
    def may_go(self) -> bool:
        """True when a reading says that no job can be on it, nor come to it: law 1."""
        return self.node is not None and not self.is_waking and (self.is_off or is_drained(self.node.state))

    @property
    def has_failed_to_resume(self) -> bool:
        """True when Slurm gave it up because it did not register in time, and nobody has drained it."""
        node = self.node
        return node is not None and has_failed_to_resume(node.reason) and not self.is_draining

    @property
    def is_given_up(self) -> bool:
        """True when Slurm has the node down and powered down by itself: it did not come up, or fell silent. Slurm never wakes it.

        A drain of ours may be on it too; a drain of others, or their reason, makes it theirs.
        """
        node = self.node
        return node is not None and "DOWN" in node.state.flags and self.is_powered_down and not self.has_foreign_drain

    @cached_property
    def is_registered(self) -> bool:
        """True when its slurmd answers slurmctld and its pod is ready."""
        return self.pod is not None and self.pod.ready and self.answers_slurm

    @cached_property
    def answers_slurm(self) -> bool:
        """True when its slurmd answers slurmctld."""
        return self.node is not None and is_registered(self.node.state)

    @property
    def is_idle(self) -> bool:
        """True when a reading says that no job is on it."""
        return self.node is not None and not self.is_waking and (is_idle(self.node.state) or self.may_go)

    @cached_property
    def is_waking(self) -> bool:
        """True when a job waits for it to come up: a drain would end that job."""
        return self.node is not None and is_waking(self.node.state)

    @property
    def is_unhealthy(self) -> bool:
        """True when neither Kubernetes nor Slurm has the worker up, and no job has its node: to replace it harms nobody.

        A worker that only does not respond may be back in a moment, with all others of its network.
        """
        pod, node = self.pod, self.node
        if pod is None or pod.ready or node is None or self.is_waking or (self.is_off and pod.may_have_jobs):
            return False
        return (self.is_off or "DOWN" in node.state.flags) and not has_jobs(node.state)

    def _is_drained_for(self, reason: str) -> bool:
        return self.is_draining and self.node is not None and self.node.reason.startswith(reason)


def ordinals_of(workers: Iterable[Worker]) -> tuple[int, ...]:
    """Each ordinal once, in the order of the workers."""
    return tuple(dict.fromkeys(worker.ordinal for worker in workers))
