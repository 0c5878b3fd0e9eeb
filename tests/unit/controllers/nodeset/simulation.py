"""A Slurm, a Kubernetes and people, all in memory, who do things at random; a controller that may be killed at any write.

At each write of the controller the laws are checked against the world as it is, not as it was read. `python -m` runs it for long.
"""

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
import typer

from controllers.nodeset.plan import Plan, plan_nodeset
from controllers.nodeset.plans.ghosts import GHOST_PAUSE_S, GHOST_S
from controllers.nodeset.pods import revision
from controllers.nodeset.structs import ClaimRetention, Drain, NodeSet, NodeSetSpec, PodTemplate, UpdateStrategy
from controllers.nodeset.workers import Machine, NodeJob, Observed, WorkerNode, WorkerPod
from controllers.runtime.structs import ObjectMeta
from slurm.reasons import CORDON, NODESET, NOT_RESPONDING, POD_STOPPING, RESUME_FAILED, UPDATE, is_lost
from slurm.states import node_state

ORDINALS = 6
RESUME_TIMEOUT_S = 600
MACHINES = ("m-0", "m-1", "m-2")
NOWHERE = "nowhere"
"""The image of a template whose pods fit no machine."""
PEOPLE = ("fan is loud", "slipway: check disk: full", "maintenance by carol")
"""Reasons of people and of health checks."""


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


def make_set(elastic: bool, image: str = "a") -> NodeSet:
    """A set of the one sort or the other."""
    template = PodTemplate({"containers": [{"name": "slurmd", "image": image}]})
    spec = NodeSetSpec(
        "dev", template, ordinals=ORDINALS, max_pods_in_flight=3, volume_claim_retention=ClaimRetention(when_scaled="Delete")
    )
    spec = msgspec.structs.replace(spec, min=1, max=ORDINALS) if elastic else msgspec.structs.replace(spec, replicas=4)
    return NodeSet(ObjectMeta(name="gpu", namespace="slurm", uid="u"), spec)


@dataclass
class World:
    """Everything there is, and what the controller did to it."""

    rng: random.Random
    nodeset: NodeSet
    now: float = 1_000_000.0
    pods: dict[int, Pod] = field(default_factory=dict[int, Pod])
    nodes: dict[int, Node] = field(default_factory=dict[int, Node])
    claims: set[int] = field(default_factory=set[int])
    """Ordinals that have a disk."""
    struck: set[int] = field(default_factory=set[int])
    """Ordinals whose nodes Slurm has no more: its files are without them, as the set is being deleted."""
    drained_at: dict[int, float] = field(default_factory=dict[int, float])
    """What the set's status says of the controller's drains."""
    cordoned: set[str] = field(default_factory=set[str])
    absent: set[str] = field(default_factory=set[str])
    """Machines whose Kubernetes nodes were deleted; the pods on them end some time later."""
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

    def __post_init__(self) -> None:
        self.nodes = {ordinal: Node({"IDLE", "CLOUD", "POWERED_DOWN"}) for ordinal in range(ORDINALS)}

    # What the controller sees.

    def look(self) -> Observed:
        pods = {
            ordinal: WorkerPod(
                *(str(pod.uid), pod.revision, pod.created_at, pod.ready, pod.terminating),
                finished=pod.finished,
                marked_busy=pod.marked_busy,
                has_run=pod.has_run,
                machine=pod.machine,
                version=str(pod.version),
            )
            for ordinal, pod in self.pods.items()
        }
        nodes = {
            ordinal: WorkerNode(node_state(node.words), node.reason, node.job_ends, _jobs(ordinal, node))
            for ordinal, node in self.nodes.items()
            if ordinal not in self.struck
        }
        claims = frozenset(self.claims)
        due = not self.ghosts_gone or self.now - self.ghosts_gone[-1] >= GHOST_PAUSE_S
        seen = None if self.is_silent else nodes
        return Observed(
            *(pods, seen, self.now),
            window=frozenset(range(ORDINALS)) if self.is_window_open else frozenset(),
            ghosts_due=due,
            with_claims=claims,
            machines={name: Machine(name in self.cordoned, "new fans") for name in MACHINES if name not in self.absent},
            drained_at=dict(self.drained_at),
            stopping_settled=frozenset(range(ORDINALS)),
        )

    # What it does, one write after the other.

    def round(self, kill_after: int | None = None) -> None:
        """One round; killed after so many writes."""
        first = plan_nodeset(self.nodeset, self.look())
        if first.needs_fresh_reading:
            if not self.is_calm:
                self.happen()  # the world does not wait between two looks
            first = plan_nodeset(self.nodeset, self.look())
        for done, (what, ordinal, write) in enumerate(self._writes(first)):
            if done == kill_after:
                self.note("controller killed")
                self.ghosts_gone.clear()  # the next one knows nothing of them
                return
            self.steps += 1
            self.note(f"controller: {what} {ordinal}")
            write(ordinal)

    def _writes(self, made: Plan) -> list[tuple[str, int, Callable[[int], None]]]:
        writes: list[tuple[str, int, Callable[[int], None]]] = [("mark busy", one, self._mark(True)) for one in made.labels.busy]
        record = {**self.drained_at, **made.drains.drained_at}
        writes += [("record", -1, self._record(record))] if made.drains.drain else []
        writes += [(f"drain ({reason})", one, self._drain(reason)) for reason, each in made.drains.drain.items() for one in each]
        writes += [("undrain", one, self._undrain) for one in made.drains.undrain]
        writes += [("resume", one, self._resume) for one in made.resumes.resume]
        writes += [("release", one, self._release) for one in made.resumes.release]
        writes += [("requeue", int(one), self._end_jobs("Requeue")) for one in made.deadlines.requeue]
        writes += [("cancel", one, self._end_jobs("Cancel")) for one in made.deadlines.cancel]
        writes += [("create", one, self._create) for one in made.create]
        writes += [("delete", one, self._delete) for one in made.deletions.free]
        unbound = [(one, self.pods[one]) for one in made.deletions.unbound]
        writes += [("delete unbound", one, self._delete_unbound(pod.uid, pod.version, one in made.wanted)) for one, pod in unbound]
        writes += [("mark free", one, self._mark(False)) for one in made.labels.free]
        writes += [("retire", one, self._retire) for one in made.disks.delete]
        writes += [("record", -1, self._record(dict(made.drains.drained_at)))]
        writes += [("finish", -1, self._finish)] if made.is_finished else []
        return writes

    def _mark(self, busy: bool) -> Callable[[int], None]:
        def mark(ordinal: int) -> None:
            self.law(busy or self.nodes[ordinal].job_ends is None, f"gpu-{ordinal} has a job and may be evicted")
            if ordinal in self.pods:  # else the API server says that there is no such pod
                self.pods[ordinal].marked_busy = busy

        return mark

    def _record(self, drained_at: dict[int, float]) -> Callable[[int], None]:
        def record(_: int) -> None:
            self.drained_at = dict(drained_at)

        return record

    def _is_ours(self, ordinal: int) -> bool:
        node = self.nodes[ordinal]
        return node.reason.startswith((NODESET, CORDON)) or (is_lost(node.reason) and ordinal in self.drained_at)

    def _drain(self, reason: str) -> Callable[[int], None]:
        def drain(ordinal: int) -> None:
            node = self.nodes[ordinal]
            self.law(not self.is_silent, "drained while Slurm is silent")
            self.law(ordinal not in self.struck, f"gpu-{ordinal} was drained, which Slurm has no more")
            self.law("DRAIN" not in node.words or self._is_ours(ordinal), f"the drain of gpu-{ordinal} was overwritten: {node.reason}")
            self.law(not node.is_waking, f"gpu-{ordinal} was drained while a job waited for it")
            is_theirs = "DOWN" in node.words and node.reason.startswith(PEOPLE)
            self.law(not is_theirs or reason == node.reason, f"the words of who took gpu-{ordinal} down were overwritten: {node.reason}")
            self.law(is_theirs or ordinal in self.drained_at, f"gpu-{ordinal} was drained, and nothing says that it is ours")
            if reason == UPDATE and self._takes_jobs(ordinal):
                away = sum(not self._takes_jobs(one) and not self._is_others(one) for one in self._wanted())
                self.law(away < self._budget(), f"a roll takes gpu-{ordinal}, with {away} away already and a budget of {self._budget()}")
            if "DRAIN" not in node.words or node.reason.startswith(CORDON):
                node.drained_since = self.now
            node.words.add("DRAIN")
            node.reason = reason

        return drain

    def _undrain(self, ordinal: int) -> None:
        node = self.nodes[ordinal]
        self.law(not self.is_silent, "undrained while Slurm is silent")
        pod = self.pods.get(ordinal)
        is_back = pod is None or pod.machine not in self.absent
        self.law(is_back, f"gpu-{ordinal} may take jobs again on a machine that Kubernetes has no more")
        self.law(self._is_ours(ordinal) or node.reason.startswith(POD_STOPPING), f"a drain of others was lifted: {node.reason}")
        self.lift_drain(node)

    def _resume(self, ordinal: int) -> None:
        node = self.nodes[ordinal]
        self.law({"DOWN", "POWERED_DOWN"} <= node.words and ordinal not in self.pods, f"gpu-{ordinal} is tried again too early: {node}")
        self.law(node.reason not in PEOPLE, f"gpu-{ordinal} was resumed, which others have drained: {node}")
        node.words = {"IDLE", "CLOUD", "POWERED_DOWN"}
        node.reason = ""

    def _release(self, ordinal: int) -> None:
        """RESUME of a node that powers down: Slurm may wake it at once, and lifts what drain there is."""
        node = self.nodes[ordinal]
        self.law(not self.is_silent, "released while Slurm is silent")
        self.law(ordinal not in self.pods, f"gpu-{ordinal} may be woken while its pod is there")
        self.law(node.words == {"IDLE", "CLOUD", "POWERING_DOWN"}, f"more than the power-down of gpu-{ordinal} was ended: {node}")
        node.words = {"IDLE", "CLOUD", "POWERED_DOWN"}

    def _end_jobs(self, action: str) -> Callable[[int], None]:
        def end(ordinal: int) -> None:
            node, drain = self.nodes[ordinal], self.nodeset.spec.drain
            self.law(action != "Requeue" or not node.is_interactive, f"Slurm refuses to requeue the job on gpu-{ordinal}")
            self.law(drain.action == action, f"{action} although the set says {drain.action}")
            late = drain.deadline_seconds is not None and self.now - node.drained_since >= drain.deadline_seconds
            self.law(late and self._is_ours(ordinal), f"{action} on gpu-{ordinal} before the deadline, or without a drain of ours")
            node.set_job(None)

        return end

    def _create(self, ordinal: int) -> None:
        self.law(ordinal not in self.pods, f"a second pod for gpu-{ordinal}")
        young = self.now - self.nodeset.spec.resume_timeout_seconds
        on_their_way = sum(not pod.ready and not pod.terminating and pod.created_at > young for pod in self.pods.values())
        self.law(on_their_way < self.nodeset.spec.max_pods_in_flight, f"{on_their_way + 1} pods on their way")
        self.uids += 1
        self.claims.add(ordinal)
        fits = self.nodeset.spec.template.spec["containers"][0]["image"] != NOWHERE
        self.pods[ordinal] = Pod(self.uids, revision(self.nodeset.spec), self.now, fits=fits)

    def _delete(self, ordinal: int) -> None:
        self.law(not self.is_silent, "deleted while Slurm is silent")
        node, pod = self.nodes[ordinal], self.pods[ordinal]
        is_drained = "DRAIN" in node.words and not node.words & {"ALLOCATED", "MIXED", "COMPLETING", "UNDRAIN"}
        may = ordinal in self.struck or node.is_off or is_drained
        self.law(pod.finished or (may and node.job_ends is None), f"gpu-{ordinal} was deleted as {node}")
        is_given_up = "DOWN" in node.words or self.nodeset.metadata.deletion_timestamp is not None
        is_old = pod.ready and not pod.finished and pod.created_at < self.now - GHOST_S
        if is_old and pod.marked_busy and "POWERED_DOWN" in node.words and not is_given_up:
            self.law(
                all(self.now - at >= GHOST_PAUSE_S for at in self.ghosts_gone),
                f"gpu-{ordinal} went, busy when last heard of, soon after another whose node was off already",
            )
            self.ghosts_gone.append(self.now)
        self._stop(ordinal)

    def _delete_unbound(self, uid: int, version: int, is_wanted: bool) -> Callable[[int], None]:
        """A scheduler may be faster by a moment; the API server compares the version."""

        def delete(ordinal: int) -> None:
            self.law(not self.is_silent, "deleted while Slurm is silent")
            if not self.is_calm and self.rng.random() < 0.3:
                self.place(ordinal)
            pod = self.pods.get(ordinal)
            if pod is None or (pod.uid, pod.version) != (uid, version):
                return
            self.law(pod.machine is None, f"gpu-{ordinal} was deleted as unbound, on {pod.machine}")
            is_old = pod.revision != revision(self.nodeset.spec)
            self.law(is_old or not is_wanted, f"gpu-{ordinal} was deleted, which is wanted and made from the present template")
            del self.pods[ordinal]

        return delete

    def _retire(self, ordinal: int) -> None:
        spec, pods = self.nodeset.spec, len(self.pods)
        self.law(self.nodeset.metadata.deletion_timestamp is None, f"the disk of gpu-{ordinal} went, although the set says Retain")
        self.law(ordinal not in self.pods, f"the disk of gpu-{ordinal} went while its pod is there")
        if spec.max is not None:
            self.law(ordinal >= spec.max, f"the disk of gpu-{ordinal} went while it sleeps")
        else:
            self.law(len(self.claims) > (spec.replicas or 0), f"the disk of gpu-{ordinal} went, with {len(self.claims)} disks, {pods} pods")
        self.claims.discard(ordinal)

    def _finish(self, _: int) -> None:
        self.law(not self.pods, "the finalizer went before the pods")
        self.is_finished = True

    # What the others do.

    def happen(self) -> None:
        """One thing, at random."""
        self.steps += 1
        things = (
            *(self.pass_time, self.start_pods, self.start_pods, self.stop_pods, self.start_job, self.start_job, self.end_jobs, self.ping),
            *(
                self.wake,
                self.suspend,
                self.fail_resume,
                self.administrate,
                self.lift,
                self.lift_ours,
                self.delete_by_hand,
                self.fail_pod,
                self.lose_machine,
            ),
            *(
                self.scale,
                self.change_template,
                self.change_strategy,
                self.change_drain,
                self.fall_silent,
                self.open_window,
                self.lose_state,
                self.delete_set,
                self.strike_off,
                self.cordon,
                self.uncordon,
                self.delete_machine,
                self.add_machine,
                self.fall_silent_node,
                self.drain_too_late,
            ),
        )
        thing = self.rng.choice(things)
        self.note(thing.__name__)
        thing()

    def pass_time(self) -> None:
        self.now += self.rng.choice([1, 10, 100, 2000])

    def start_pods(self) -> None:
        for ordinal, pod in self.pods.items():
            if not pod.ready and not pod.terminating and not pod.finished and self.rng.random() < 0.7:
                self.place(ordinal)

    def stop_pods(self) -> None:
        for ordinal in [one for one, pod in self.pods.items() if pod.terminating and self.nodes[one].job_ends is None]:
            del self.pods[ordinal]

    def start_job(self) -> None:
        able = [one for one in self.nodes if self._takes_jobs(one) and self.nodes[one].job_ends is None]
        if able:
            node = self.nodes[self.rng.choice(able)]
            node.set_job(self.now + self.rng.choice([5, 500, 50_000]))
            node.is_interactive = self.rng.random() < 0.3

    def end_jobs(self) -> None:
        for node in self.nodes.values():
            if node.job_ends is not None and self.rng.random() < 0.5:
                node.set_job(None)

    def ping(self) -> None:
        for ordinal, node in self.nodes.items():
            if (pod := self.pods.get(ordinal)) is not None and pod.ready and "DOWN" not in node.words and ordinal not in self.struck:
                # A worker that stays unheard while Slurm waits for it starts its slurmd again; one of a fixed set whenever it is unheard.
                if node.is_waking or (not self.nodeset.spec.is_elastic and "POWERED_DOWN" in node.words):
                    self.answer(node)
                    if pod.terminating:
                        self._stop(ordinal)  # its hook has waited for that
                node.words -= {"NOT_RESPONDING"}

    def wake(self) -> None:
        asleep = [one for one in self.nodes.values() if one.words == {"IDLE", "CLOUD", "POWERED_DOWN"}]
        if asleep and self.nodeset.spec.is_elastic:
            words = ({"MIXED", "CLOUD", "POWERED_DOWN"}, {"MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"})
            self.rng.choice(asleep).words = set(self.rng.choice(words))
        for node in self.nodes.values():
            if {"MIXED", "POWERED_DOWN"} <= node.words and self.rng.random() < 0.5:
                node.words = {"MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"} | node.words & {"DRAIN"}

    def suspend(self) -> None:
        if not self.nodeset.spec.is_elastic:
            return
        for ordinal, node in self.nodes.items():
            if "POWERING_DOWN" in node.words:
                node.words = (node.words - {"POWERING_DOWN"}) | {"POWERED_DOWN"}
            elif ordinal >= (self.nodeset.spec.min or 0) and node.words - {"DRAIN"} == {"IDLE", "CLOUD"} and self.rng.random() < 0.4:
                node.words = {"IDLE", "CLOUD", "POWERING_DOWN"} | node.words & {"DRAIN"}

    def fail_resume(self) -> None:
        for node in self.nodes.values():
            if "POWERING_UP" in node.words and self.rng.random() < 0.3:
                node.words = {"DOWN", "CLOUD", "POWERED_DOWN"} | node.words & {"DRAIN"}
                node.append(RESUME_FAILED)

    def fall_silent_node(self) -> None:
        """Past SlurmdTimeout a node without a slurmd is down; an elastic one is powered down after SuspendTime."""
        for ordinal, node in self.nodes.items():
            pod = self.pods.get(ordinal)
            is_heard = pod is not None and pod.ready
            if not is_heard and not node.is_off and not node.is_waking and node.job_ends is None and self.rng.random() < 0.5:
                node.words = {"DOWN", "CLOUD"} | node.words & {"DRAIN"} | ({"POWERED_DOWN"} if self.nodeset.spec.is_elastic else set())
                node.append(NOT_RESPONDING)

    def drain_too_late(self) -> None:
        """A drain of the controller's arrives when Slurm has just asked for the node: the job that waits has ended by that."""
        waking = [one for one, node in self.nodes.items() if node.is_waking and "DRAIN" not in node.words]
        if waking and self.rng.random() < 0.5:
            ordinal = self.rng.choice(waking)
            self.drained_at[ordinal] = self.nodes[ordinal].drained_since = self.now
            self.nodes[ordinal].words = {"IDLE", "CLOUD", "NOT_RESPONDING", "POWERING_UP", "DRAIN"}
            self.nodes[ordinal].reason = UPDATE

    def cordon(self) -> None:
        self.cordoned.add(self.rng.choice(MACHINES))

    def uncordon(self) -> None:
        if self.cordoned:
            self.cordoned.remove(self.rng.choice(sorted(self.cordoned)))

    def delete_machine(self) -> None:
        self.absent |= set(self.rng.sample(sorted(self.cordoned), min(1, len(self.cordoned))))

    def add_machine(self) -> None:
        self.absent -= set(self.rng.sample(sorted(self.absent), min(1, len(self.absent))))

    def administrate(self) -> None:
        node = self.rng.choice(list(self.nodes.values()))
        if node.is_waking:
            return
        if self.rng.random() < 0.3:
            node.set_job(None)
            node.words = (node.words - {"IDLE"}) | {"DOWN"}
        else:
            node.words.add("DRAIN")
        node.reason = self.rng.choice(PEOPLE)

    def lift(self) -> None:
        for node in self.nodes.values():
            if node.reason.startswith(PEOPLE) and self.rng.random() < 0.5:
                self.resume(node)

    def lift_ours(self) -> None:
        """An administrator lifts drains of the controller's. Should it drain again, jobs get their whole time again."""
        for node in self.nodes.values():
            if "DRAIN" in node.words and node.reason.startswith(NODESET) and self.rng.random() < 0.5:
                self.lift_drain(node)

    def delete_by_hand(self) -> None:
        if self.pods and self.rng.random() < 0.3:
            self._stop(self.rng.choice(list(self.pods)))

    def fail_pod(self) -> None:
        if self.pods and self.rng.random() < 0.2:
            ordinal = self.rng.choice(list(self.pods))
            pod = self.pods[ordinal]
            if not pod.terminating:
                pod.ready, pod.finished = False, True
                self._lose_worker(ordinal)

    def lose_machine(self) -> None:
        if self.pods and self.rng.random() < 0.2:
            ordinal = self.rng.choice(list(self.pods))
            del self.pods[ordinal]
            self._lose_worker(ordinal)

    def scale(self) -> None:
        spec = self.nodeset.spec
        if spec.is_elastic:
            most = self.rng.randint(1, ORDINALS)
            self.respec(max=most, min=self.rng.randint(0, most), ordinals=ORDINALS)
        else:
            self.respec(replicas=self.rng.randint(0, ORDINALS))

    def change_template(self) -> None:
        image = self.rng.choice(["a", "b", "c", NOWHERE])
        self.respec(template=PodTemplate({"containers": [{"name": "slurmd", "image": image}]}))

    def change_strategy(self) -> None:
        kind: Literal["RollingUpdate", "OnDelete", "Maintenance"] = self.rng.choice(
            ["RollingUpdate", "RollingUpdate", "OnDelete", "Maintenance"]
        )
        self.respec(update_strategy=UpdateStrategy(kind, self.rng.choice([1, 2, "10%", "50%"]), "window"))

    def change_drain(self) -> None:
        self.respec(drain=self.rng.choice([Drain(), Drain("Requeue", 1000), Drain("Cancel", 1000)]))

    def fall_silent(self) -> None:
        self.is_silent = not self.is_silent and self.rng.random() < 0.5

    def delete_set(self) -> None:
        if self.rng.random() < 0.02:
            self.nodeset = msgspec.structs.replace(
                self.nodeset, metadata=msgspec.structs.replace(self.nodeset.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
            )

    def strike_off(self) -> None:
        """slurmctld reads its files, which have no node of the set any more. Those that run jobs stay until these have ended."""
        if self.nodeset.metadata.deletion_timestamp is not None:
            self.struck |= {ordinal for ordinal, node in self.nodes.items() if node.job_ends is None and self.rng.random() < 0.5}

    def lose_state(self) -> None:
        """slurmctld begins with nothing. Nodes of a fixed set are heard of at once."""
        if self.rng.random() < 0.3:
            self.nodes = {ordinal: Node({"IDLE", "CLOUD", "POWERED_DOWN"}) for ordinal in self.nodes}

    def open_window(self) -> None:
        self.is_window_open = not self.is_window_open

    # How things hang together.

    def place(self, ordinal: int) -> None:
        """A scheduler finds a machine that is not cordoned, the kubelet starts the pod."""
        pod = self.pods[ordinal]
        free = [name for name in MACHINES if name not in self.cordoned | self.absent]
        if pod.machine is not None or (free and pod.fits):
            pod.machine = pod.machine or self.rng.choice(free)
            pod.version += 1
            self.register(ordinal)

    def register(self, ordinal: int) -> None:
        """The start script settles what an earlier pod left, then slurmd registers. A drain may come between these two."""
        node, pod = self.nodes[ordinal], self.pods[ordinal]
        pod.ready = pod.has_run = True
        if "POWERING_DOWN" in node.words or ordinal in self.struck:
            return
        is_certain = self.is_calm or node.reason.startswith(
            POD_STOPPING
        )  # nobody has a record of a stop hook's drain that no round has seen
        if node.reason.startswith((NODESET, POD_STOPPING)) and (is_certain or self.rng.random() < 0.7):
            node.words.discard("DRAIN")
            node.reason = ""
        self.answer(node)

    def answer(self, node: Node) -> None:
        """slurmd registers: from power saving that clears the reason, and keeps the drain. slurmd.sh writes back what others said."""
        if "MIXED" in node.words:
            node.set_job(self.now + 500)
        elif "DOWN" in node.words:
            node.set_job(None)
        if node.words & {"POWERED_DOWN", "POWERING_UP"} or "DRAIN" not in node.words:
            node.reason = node.reason if node.reason.startswith((*PEOPLE, CORDON)) and "DRAIN" in node.words else ""
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

    def _stop(self, ordinal: int) -> None:
        """A pod is asked to stop: its hook drains the node, unless it is off or drained, or waking as yet, and waits for the job."""
        pod, node = self.pods[ordinal], self.nodes[ordinal]
        if pod.finished:
            del self.pods[ordinal]
            return
        pod.terminating = True
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

    def _lose_worker(self, ordinal: int) -> None:
        node = self.nodes[ordinal]
        if not node.is_off and "POWERING_UP" not in node.words:
            node.set_job(None)
            node.words.add("NOT_RESPONDING")

    def respec(self, **changes: object) -> None:
        self.nodeset = msgspec.structs.replace(self.nodeset, spec=msgspec.structs.replace(self.nodeset.spec, **changes))

    def _wanted(self) -> frozenset[int]:
        return plan_nodeset(self.nodeset, self.look()).wanted

    def _takes_jobs(self, ordinal: int) -> bool:
        pod, node = self.pods.get(ordinal), self.nodes[ordinal]
        here = pod is not None and pod.ready and not pod.terminating and not pod.finished and ordinal not in self.struck
        return here and not node.words & {"DRAIN", "DOWN", "NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN"}

    def _is_others(self, ordinal: int) -> bool:
        node = self.nodes[ordinal]
        if "DOWN" in node.words and node.reason.startswith(PEOPLE):
            return True
        return "DRAIN" in node.words and not node.reason.startswith((NODESET, POD_STOPPING)) and bool(node.reason)

    def _budget(self) -> int:
        said = self.nodeset.spec.update_strategy.max_unavailable
        return said if isinstance(said, int) else max(1, len(self._wanted()) * int(said[:-1]) // 100)

    def law(self, holds: bool, broken: str) -> None:
        if not holds:
            raise LawBroken("\n  ".join([broken, *self.history[-25:]]))

    def note(self, what: str) -> None:
        self.history.append(what)
        del self.history[:-60]


def _jobs(ordinal: int, node: Node) -> tuple[NodeJob, ...]:
    """A job has the number of its node."""
    return () if node.job_ends is None else (NodeJob(str(ordinal), is_batch=not node.is_interactive),)


def settle(world: World) -> None:
    """Faults stop, people lift their drains and wait, jobs end: within so many rounds the set must be what it should be."""
    world.is_silent, world.is_window_open, world.is_calm = False, True, True
    world.cordoned.clear()
    world.absent.clear()
    world.respec(update_strategy=UpdateStrategy("RollingUpdate", 1))
    if world.nodeset.spec.template.spec["containers"][0]["image"] == NOWHERE:
        world.respec(template=PodTemplate({"containers": [{"name": "slurmd", "image": "a"}]}))  # somebody mends it
    begun = world.now
    for _ in range(80):
        for ordinal, node in world.nodes.items():
            if node.job_ends is not None:
                node.set_job(None)
            if node.reason.startswith(PEOPLE):
                world.resume(node)
            if "POWERING_DOWN" in node.words:
                node.words = (node.words - {"POWERING_DOWN"}) | {"POWERED_DOWN"}
            if {"MIXED", "POWERED_DOWN"} <= node.words:
                node.words = {"MIXED", "CLOUD", "NOT_RESPONDING", "POWERING_UP"}
            elif "POWERING_UP" in node.words and ordinal not in world.pods and world.now - begun > RESUME_TIMEOUT_S:
                node.words = {"DOWN", "CLOUD", "POWERED_DOWN"} | node.words & {"DRAIN"}
                node.append(RESUME_FAILED)
        world.now += 100
        world.round()
        for ordinal, pod in world.pods.items():
            if not pod.ready and not pod.terminating and not pod.finished:
                world.place(ordinal)
        world.stop_pods()
        world.ping()
    if world.nodeset.metadata.deletion_timestamp is not None:
        world.law(world.is_finished, f"the set is not gone: {world.pods}")
        return
    spec, current = world.nodeset.spec, revision(world.nodeset.spec)
    here = {ordinal for ordinal, pod in world.pods.items() if pod.ready and not pod.terminating}
    world.law(here == set(world.pods), f"pods that are neither ready nor gone: {world.pods}")
    world.law(all(pod.revision == current for pod in world.pods.values()), f"pods of an older template: {world.pods}")
    if spec.is_elastic:
        awake = {ordinal for ordinal, node in world.nodes.items() if not node.is_off and ordinal < (spec.max or 0)}
        world.law(here == awake | set(range(spec.min or 0)), f"pods {here}, awake {awake}, at least {spec.min}")
    else:
        world.law(len(here) == spec.replicas, f"{len(here)} pods, wanted {spec.replicas}")
        world.law(world.claims == here, f"disks of {world.claims}, pods {here}")
    served = range(min(spec.max, ORDINALS)) if spec.max is not None else here
    drained = {ordinal for ordinal in served if world.nodes[ordinal].words & {"DRAIN", "DOWN"}}
    world.law(not drained, f"{drained} take no jobs: {world.nodes}")
    others = {ordinal for ordinal in world.nodes if ordinal not in served and "DRAIN" not in world.nodes[ordinal].words}
    world.law(not others, f"Slurm may give jobs to {others}, which have no pod: {world.nodes}")


def run(seed: int, steps: int) -> int:
    """One history; gives the steps that were taken. Raises LawBroken."""
    rng = random.Random(seed)
    world = World(rng, make_set(elastic=seed % 2 == 1))
    try:
        while world.steps < steps and not world.is_finished:
            world.happen()
            if rng.random() < 0.6:
                world.round(kill_after=rng.randint(0, 4) if rng.random() < 0.3 else None)
        settle(world)
    except LawBroken as error:
        raise LawBroken(f"seed {seed}: {error}") from error
    return world.steps


def main(steps: Annotated[int, typer.Option()] = 1_000_000, seed: Annotated[int, typer.Option()] = 0) -> None:
    """Runs histories of 500 steps until there are so many steps; ends with 1 and the history where a law breaks."""
    begin, done = time.perf_counter(), 0
    while done < steps:
        try:
            done += run(seed, 500)
        except LawBroken as error:
            sys.exit(str(error))
        seed += 1
    took = time.perf_counter() - begin
    print(f"{done} steps in {took:.1f} s, {done / took:.0f} a second: every law held")


if __name__ == "__main__":
    typer.run(main)
