"""A Slurm, a Kubernetes and people, all in memory: what there is, and how its parts hang together. Nothing happens by itself here."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from controllers.nodeset.memory import SetMemory
from controllers.nodeset.observe import find_checks_before_jobs
from controllers.nodeset.observed import Claims, GhostPace, Observed, Repairs
from controllers.nodeset.plan import plan_nodeset
from controllers.nodeset.plans.causes import rfc3339
from controllers.nodeset.plans.ghosts import GHOST_PAUSE_S
from controllers.nodeset.pods import revision
from controllers.nodeset.structs import ClaimRetention, NodeSetObject, NodeSetSpec, PodTemplate, RemedyPolicy
from controllers.nodeset.workers import Machine, MachineCause, NodeJob, WorkerNode, WorkerPod
from controllers.runtime.structs import ObjectMeta
from slurm.causes import Kind
from slurm.check_results import Failure, Request
from slurm.instances import instance, read_instance
from slurm.reasons import (
    BEFORE_JOBS,
    CHECK,
    CORDON,
    KILL_FAILED,
    MAINTENANCE,
    NODESET,
    NOT_RESPONDING,
    POD_STOPPING,
    REMEDY,
    REQUESTED,
    is_lost,
)
from slurm.states import node_state

ORDINALS = 6
RESUME_TIMEOUT_S = 600
MACHINES = tuple(f"m-{at}" for at in range(2 * ORDINALS))
NOWHERE = "nowhere"
"""The image of a template whose pods fit no machine."""
PEOPLE = ("fan is loud", "maintenance by carol")
"""Reasons of people."""
KEPT = (KILL_FAILED, CORDON, MAINTENANCE, REQUESTED, CHECK, REMEDY, BEFORE_JOBS)
"""Reasons that the worker's program restores when slurmd has registered."""
CHECKS: Mapping[str, Kind] = {"disk": "node", "gpu": "hardware"}
"""Health checks that look at all nodes, and what is broken where they fail."""
ANNOUNCED = (
    MachineCause("taint/karpenter.sh/disrupted", "maintenance", "drain", "taint karpenter.sh/disrupted:NoSchedule"),
    MachineCause("condition/VMEventScheduled", "maintenance", "drain", "VMEventScheduled is True"),
    MachineCause("taint/aws-node-termination-handler/rebalance-recommendation", "maintenance", "none", "taint"),
)
"""What clouds announce."""
BROKEN = (
    MachineCause("condition/KernelDeadlock", "node", "reboot", "KernelDeadlock is True"),
    MachineCause("condition/AcceleratedHardwareReady", "hardware", "replace", "AcceleratedHardwareReady is False"),
    MachineCause("condition/FabricDegraded", "hardware", "drain", "FabricDegraded is True"),
    MachineCause("condition/FrequentKubeletRestart", "node", "none", "FrequentKubeletRestart is True"),
)
"""What node-problem-detector and its like find."""


class LawBroken(AssertionError):
    """What happened, with the last steps before it."""


@dataclass
class Pod:
    """A worker's pod."""

    uid: int
    revision: str
    created_at: float
    ready: bool = False
    terminating: bool = False
    finished: bool = False
    marked_busy: bool = True
    has_run: bool = False
    machine: str | None = None
    has_checks_before_jobs: bool = False
    """It drains its node before slurmd starts."""
    ready_since: float = 0
    drain_requested: str = ""
    """Its annotation that asks for a drain."""
    fits: bool = True
    """A scheduler finds a machine for it."""
    version: int = 0
    """Changes with what the API server has of it."""


@dataclass
class Node:
    """A worker's Slurm node."""

    words: set[str]
    reason: str = ""
    job_ends: float | None = None
    """When its job ends; None without one."""
    drained_since: float = 0
    """When it got its present drain that takes its worker away."""
    is_interactive: bool = False
    """Its job is one that Slurm does not requeue."""
    faults: dict[str, bool] = field(default_factory=dict[str, bool])
    """Checks that have found it failing, and whether that takes its jobs away."""
    failed_at: dict[str, float] = field(default_factory=dict[str, float])
    """When each of these checks last looked and failed."""
    seen_on: dict[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])
    """On which machine each of these checks has seen it last, and since when."""
    stuck: tuple[int, str] | None = None
    """The pod and the boot of its machine in which a job did not end when Slurm drained the node for that."""
    stuck_at: float = 0
    passed_for: dict[str, Request] = field(default_factory=dict[str, Request])
    """The last request for which each check has passed."""
    looked_at: str = ""
    """The reason that a check puts back, while it looks again at the node in a reservation."""

    @property
    def is_off(self) -> bool:
        return bool(self.words & {"POWERED_DOWN", "POWERING_DOWN"})

    @property
    def is_waking(self) -> bool:
        """A drain would end the job that waits for it."""
        return "POWERING_UP" in self.words or {"MIXED", "POWERED_DOWN"} <= self.words

    def append(self, why: str) -> None:
        """As slurmctld does it to a reason that is there."""
        self.reason = f"{self.reason} : {why}" if self.reason else why

    def set_job(self, ends: float | None) -> None:
        self.job_ends = ends
        self.words = (self.words - {"IDLE", "ALLOCATED", "MIXED", "DOWN"}) | ({"ALLOCATED"} if ends is not None else {"IDLE"})


POLICY = RemedyPolicy(
    ("RecreatePod", "RebootMachine", "ReplaceMachine"),
    wait_seconds=50,
    machine_timeout_seconds=5000,
    max_per_day=2,
    systemic_percent=50,
    window_seconds=100,
    machines="Webhook",
    webhook="http://repairs.example",
)


def make_set(elastic: bool, image: str = "a", repaired: bool = False, verified: bool = False, checked: bool = False) -> NodeSetObject:
    """A set of the one sort or the other."""
    template = PodTemplate({"containers": [{"name": "slurmd", "image": image}]})
    spec = NodeSetSpec(
        "dev", template, ordinals=ORDINALS, max_pods_in_flight=3, volume_claim_retention=ClaimRetention(when_scaled="Delete")
    )
    spec = msgspec.structs.replace(spec, min=1, max=ORDINALS) if elastic else msgspec.structs.replace(spec, replicas=4)
    policy = msgspec.structs.replace(POLICY, verified_by=("gpu",)) if verified else POLICY
    spec = msgspec.structs.replace(spec, remedies=policy if repaired else None, check_jobs=tuple(CHECKS))
    spec = msgspec.structs.replace(spec, checks_before_jobs=("disk",) if checked and not elastic else ())
    return NodeSetObject(ObjectMeta(name="gpu", namespace="slurm", uid="u"), spec)


@dataclass
class World:
    """Everything there is, and what the controller did to it."""

    rng: random.Random
    nodeset: NodeSetObject
    now: float = 1_000_000.0
    pods: dict[int, Pod] = field(default_factory=dict[int, Pod])
    nodes: dict[int, Node] = field(default_factory=dict[int, Node])
    claims: set[int] = field(default_factory=set[int])
    """Ordinals that have a disk."""
    held: set[int] = field(default_factory=set[int])
    """Ordinals whose nodes slurmctld's sidecar gives another size once no job can be on them."""
    struck: set[int] = field(default_factory=set[int])
    """Ordinals whose nodes Slurm has no more: its files are without them, as the set is being deleted."""
    memory: SetMemory = field(default_factory=SetMemory)
    """What the controller's process remembers; lost with it."""
    drained_at: dict[int, float] = field(default_factory=dict[int, float])
    """What the set's status says of the controller's drains."""
    cordoned: set[str] = field(default_factory=set[str])
    absent: set[str] = field(default_factory=set[str])
    """Machines whose Kubernetes nodes were deleted; the pods on them end some time later."""
    unheard: set[str] = field(default_factory=set[str])
    """Machines whose kubelets are silent: what runs there runs on."""
    made_at: dict[str, float] = field(default_factory=dict[str, float])
    """When machines that were replaced came."""
    machine_causes: dict[str, set[MachineCause]] = field(default_factory=dict[str, set[MachineCause]])
    """By machine: what its conditions and taints say."""
    is_silent: bool = False
    is_window_open: bool = False
    is_finished: bool = False
    is_calm: bool = False
    """Nothing happens by itself any more."""
    history: list[str] = field(default_factory=list[str])
    ghosts_gone: list[float] = field(default_factory=list[float])
    """When pods went whose nodes Slurm had off, since the controller began."""
    uids: int = 0
    steps: int = 0
    repairs: Repairs = field(default_factory=Repairs)
    """What the set's status says of repairs."""
    generations: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Of each machine: how often it was replaced, and how often it has booted."""
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Steps and machines that the cloud was asked for, and has not done yet."""
    taken: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    """Steps of repairs, and when they were recorded."""
    check_jobs: dict[str, dict[int, Request]] = field(default_factory=dict[str, dict[int, Request]])
    """The Jobs of checks that the controller has started, by check, with what they are to prove on which nodes."""

    def __post_init__(self) -> None:
        self.nodes = {ordinal: Node({"IDLE", "CLOUD", "POWERED_DOWN"}) for ordinal in range(ORDINALS)}

    def look(self) -> Observed:
        pods = {
            ordinal: WorkerPod(
                *(str(pod.uid), pod.revision, pod.created_at, pod.ready and pod.machine not in self.unheard, pod.terminating),
                finished=pod.finished,
                marked_busy=pod.marked_busy,
                has_run=pod.has_run,
                machine=pod.machine,
                version=str(pod.version),
                has_checks_before_jobs=pod.has_checks_before_jobs,
                drain_requested=pod.drain_requested,
                ready_since=pod.ready_since,
            )
            for ordinal, pod in self.pods.items()
        }
        nodes = {
            ordinal: WorkerNode(
                *(node_state(node.words), node.reason, node.job_ends, _jobs(ordinal, node)),
                failures=_failures(node),
                reason_by="root" if node.reason.startswith(KILL_FAILED) else "",
                reason_at=node.stuck_at if node.reason.startswith(KILL_FAILED) else None,
                failed_at=dict(node.failed_at),
                passed_for=dict(node.passed_for),
            )
            for ordinal, node in self.nodes.items()
            if ordinal not in self.struck
        }
        claims = frozenset(self.claims)
        due = not self.ghosts_gone or self.now - self.ghosts_gone[-1] >= GHOST_PAUSE_S
        seen = None if self.is_silent else nodes
        machines = {name: self.machine(name) for name in MACHINES if name not in self.absent}
        return Observed(
            *(pods, seen, self.now),
            window=frozenset(range(ORDINALS)) if self.is_window_open else frozenset(),
            ghosts=GhostPace(due),
            claims=Claims(claims),
            machines=machines,
            checks_before_jobs=find_checks_before_jobs(self.nodeset.spec.checks_before_jobs, pods, seen or {}, machines),
            repairs=self.repairs,
            drained_at=dict(self.drained_at),
            held=frozenset(self.held),
            looked_at=frozenset(ordinal for ordinal, node in self.nodes.items() if node.looked_at),
            stopping_settled=frozenset(range(ORDINALS)),
            registered_since=self.memory.registered_since,
        )

    def machine(self, name: str) -> Machine:
        """As Kubernetes shows it."""
        replaced, boot = self.generations.get(name, (0, 0))
        workers = sum(pod.machine == name for pod in self.pods.values())
        identity = f"{name}-{replaced}"
        causes = tuple(sorted(self.machine_causes.get(name, ()), key=lambda cause: cause.name))
        return Machine(
            *(name in self.cordoned, "new fans", name not in self.unheard),
            identity=identity,
            boot=f"{identity}-{boot}",
            made_at=self.made_at.get(name, 0),
            workers=workers,
            causes=causes,
        )

    def fail(self, ordinal: int, check: str, drains: bool) -> None:
        """A check looks at the node, and finds it failing."""
        node, pod = self.nodes[ordinal], self.pods.get(ordinal)
        node.faults[check], node.failed_at[check] = drains, self.now
        if not drains:
            node.seen_on.pop(check, None)
        elif pod is not None and pod.machine is not None:
            here = instance(pod.machine, self.machine(pod.machine).boot)
            node.seen_on[check] = node.seen_on[check] if node.seen_on.get(check, ("", 0))[0] == here else (here, self.now)

    def is_inherited(self, ordinal: int, check: str) -> bool:
        """The check has seen the fault, and never on a machine that is the present one."""
        pod = self.pods.get(ordinal)
        if pod is None or pod.machine is None or check not in self.nodes[ordinal].seen_on:
            return False
        name, boot = read_instance(self.nodes[ordinal].seen_on[check][0])
        return name != pod.machine or boot.rpartition("-")[0] != self.machine(name).identity

    def is_peoples(self, ordinal: int) -> bool:
        """People have drained it, set it down, or cordoned its machine, or a cloud is about to take that."""
        pod = self.pods.get(ordinal)
        is_taken = pod is not None and (pod.machine in self.cordoned or bool(self.announced(ordinal) or pod.drain_requested))
        return self.nodes[ordinal].reason.startswith(PEOPLE) or is_taken

    def is_stuck(self, ordinal: int) -> bool:
        """The processes that did not end are still there."""
        stuck, pod = self.nodes[ordinal].stuck, self.pods.get(ordinal)
        return stuck is not None and (pod is None or stuck == (pod.uid, self.machine(pod.machine or "").boot))

    def announced(self, ordinal: int) -> set[MachineCause]:
        """The maintenance of the machine of its pod that keeps jobs away."""
        return {cause for cause in self._causes_of(ordinal) if cause.kind == "maintenance" and cause.wish != "none"}

    def broken(self, ordinal: int) -> set[MachineCause]:
        """What is broken in the machine of its pod, and keeps jobs away once that is sure."""
        return {cause for cause in self._causes_of(ordinal) if cause.kind != "maintenance" and cause.wish != "none"}

    def _causes_of(self, ordinal: int) -> set[MachineCause]:
        pod = self.pods.get(ordinal)
        return set() if pod is None or pod.machine is None else self.machine_causes.get(pod.machine, set())

    def place(self, ordinal: int) -> None:
        """A scheduler finds a machine that is not cordoned, the kubelet starts the pod."""
        pod = self.pods[ordinal]
        free = [name for name in MACHINES if name not in self.cordoned | self.absent | self.unheard]
        if pod.machine in self.unheard:
            return
        if pod.machine is not None or (free and pod.fits):
            pod.machine = pod.machine or self.rng.choice(free)
            pod.version += 1
            self.register(ordinal)

    def register(self, ordinal: int) -> None:
        """The worker's program settles what an earlier pod left, then slurmd registers. A drain may come between these two."""
        node, pod = self.nodes[ordinal], self.pods[ordinal]
        pod.ready_since = pod.ready_since if pod.ready else self.now
        pod.ready = pod.has_run = True
        if "POWERING_DOWN" in node.words or ordinal in self.struck:
            return
        if pod.has_checks_before_jobs:
            if "DRAIN" not in node.words or node.reason.startswith((NODESET, POD_STOPPING)):
                is_theirs = "DOWN" in node.words and node.reason.startswith(PEOPLE)
                node.words.add("DRAIN")
                node.reason = node.reason if is_theirs else BEFORE_JOBS
            is_late = "POWERED_DOWN" in node.words and "DOWN" not in node.words and self.rng.random() < 0.3
            if self.is_calm or not is_late:  # else slurmd listens, and registers later
                self.answer(node)
            return
        is_certain = self.is_calm or node.reason.startswith(
            POD_STOPPING
        )  # nobody has a record of a stop hook's drain that no round has seen
        if node.reason.startswith((NODESET, POD_STOPPING)) and (is_certain or self.rng.random() < 0.7):
            node.words.discard("DRAIN")
            node.reason = ""
        self.answer(node)

    def answer(self, node: Node) -> None:
        """slurmd registers: from power saving that clears the reason, and keeps the drain. The worker's program
        restores the reason of a drain that others set."""
        if "MIXED" in node.words:
            node.set_job(self.now + 500)
        elif "DOWN" in node.words:
            node.set_job(None)
        if node.words & {"POWERED_DOWN", "POWERING_UP"} or "DRAIN" not in node.words:
            kept = node.reason.startswith((*PEOPLE, *KEPT)) and "DRAIN" in node.words
            node.reason = node.reason if kept else ""
        node.words -= {"POWERED_DOWN", "POWERING_UP", "NOT_RESPONDING"}

    def lift_drain(self, node: Node) -> None:
        """UNDRAIN: a node that is down stays down, with its reason."""
        node.words -= {"DRAIN"}
        node.words |= set() if node.is_off else {"NOT_RESPONDING"}
        node.reason = NOT_RESPONDING if "DOWN" in node.words else ""

    def resume(self, node: Node) -> None:
        """What people type when they are done: RESUME lifts their drain and their DOWN."""
        if "DOWN" in node.words:
            node.words = {"IDLE", "CLOUD"} | ({"POWERED_DOWN"} if node.is_off else {"NOT_RESPONDING"})
            node.reason = ""
        elif "DRAIN" in node.words:
            self.lift_drain(node)

    def is_ours(self, ordinal: int) -> bool:
        node = self.nodes[ordinal]
        return node.reason.startswith((NODESET, CORDON, MAINTENANCE, REQUESTED, REMEDY, BEFORE_JOBS)) or (
            is_lost(node.reason) and ordinal in self.drained_at
        )

    def stop(self, ordinal: int) -> None:
        """A pod is asked to stop: its hook drains the node, unless it is off or drained, or waking as yet, and waits for the job."""
        pod, node = self.pods[ordinal], self.nodes[ordinal]
        if pod.finished:
            del self.pods[ordinal]
            return
        pod.terminating = True
        if pod.machine in self.unheard:
            return  # its kubelet hears of that when it is back
        is_down = "DOWN" in node.words and node.reason.startswith(PEOPLE)
        if (
            pod.ready
            and not is_down
            and not node.is_off
            and not node.is_waking
            and "DRAIN" not in node.words
            and not self.is_silent
            and ordinal not in self.struck
        ):
            node.words.add("DRAIN")
            node.reason = POD_STOPPING

    def lose_worker(self, ordinal: int) -> None:
        node = self.nodes[ordinal]
        if not node.is_off and "POWERING_UP" not in node.words:
            node.set_job(None)
            node.words.add("NOT_RESPONDING")

    def respec(self, **changes: object) -> None:
        self.nodeset = msgspec.structs.replace(self.nodeset, spec=msgspec.structs.replace(self.nodeset.spec, **changes))

    def wanted(self) -> frozenset[int]:
        return plan_nodeset(self.nodeset, self.look()).wanted

    def takes_jobs(self, ordinal: int) -> bool:
        pod, node = self.pods.get(ordinal), self.nodes[ordinal]
        here = pod is not None and pod.ready and not pod.terminating and not pod.finished and ordinal not in self.struck
        shut = {"DRAIN", "DOWN", "NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN"}
        return here and not node.looked_at and not node.words & shut

    def waits_before_jobs(self, ordinal: int) -> bool:
        """Checks have to pass on its machine before jobs come."""
        pod, node = self.pods.get(ordinal), self.nodes[ordinal]
        if pod is None or not pod.has_checks_before_jobs:
            return False
        here = self.machine(pod.machine).identity if pod.machine is not None else ""
        passed = {name for name, request in node.passed_for.items() if request.machine == here}
        return not passed.issuperset(self.nodeset.spec.checks_before_jobs)

    def is_failing(self, ordinal: int) -> bool:
        """A check has found the node failing, and that takes its jobs away."""
        return any(self.nodes[ordinal].faults.values())

    def is_others(self, ordinal: int) -> bool:
        node = self.nodes[ordinal]
        if node.looked_at or ("DOWN" in node.words and node.reason.startswith(PEOPLE)):
            return True
        return "DRAIN" in node.words and not node.reason.startswith((NODESET, POD_STOPPING)) and bool(node.reason)

    def is_young(self, ordinal: int) -> bool:
        """It is up, in a pod of the present template, and has not been for as long as the set asks for."""
        pod, strategy = self.pods.get(ordinal), self.nodeset.spec.update_strategy
        is_new = pod is not None and pod.ready and pod.revision == revision(self.nodeset.spec) and ordinal not in self.held
        return pod is not None and is_new and self.now - pod.ready_since < strategy.min_ready_seconds

    def budget(self) -> int:
        said = self.nodeset.spec.update_strategy.max_unavailable
        return said if isinstance(said, int) else max(1, len(self.wanted()) * int(said[:-1]) // 100)

    def law(self, holds: bool, broken: str) -> None:
        if not holds:
            raise LawBroken("\n  ".join([broken, *self.history[-25:]]))

    def note(self, what: str) -> None:
        self.history.append(what)
        del self.history[:-60]


def _failures(node: Node) -> dict[str, Failure]:
    return {
        name: Failure("2026-01-01T00:00:00Z", "broken", CHECKS[name], drains, machine=machine, seen=rfc3339(seen) if machine else "")
        for name, drains in node.faults.items()
        for machine, seen in [node.seen_on.get(name, ("", 0.0))]
    }


def _jobs(ordinal: int, node: Node) -> tuple[NodeJob, ...]:
    """A job has the number of its node."""
    return () if node.job_ends is None else (NodeJob(str(ordinal), is_batch=not node.is_interactive),)
