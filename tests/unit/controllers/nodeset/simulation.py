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

from controllers.nodeset.plan import GHOST_PAUSE_S, GHOST_S, Plan, plan
from controllers.nodeset.pods import revision
from controllers.nodeset.structs import ClaimRetention, Drain, NodeSet, NodeSetSpec, PodTemplate, UpdateStrategy
from controllers.nodeset.workers import OWN_REASON, RESUME_FAILED, UPDATE, NodeJob, Observed, WorkerNode, WorkerPod
from controllers.runtime.structs import ObjectMeta
from controllers.slurm.states import node_state

ORDINALS = 6
STOPPING = "slipway: pod stopping"
PEOPLE = ("fan is loud", "slipway: check disk: full", "maintenance by carol")


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


@dataclass
class Node:
    """A worker's Slurm node."""

    words: set[str]
    reason: str = ""
    reason_at: float = 0
    job_ends: float | None = None
    """When its job ends; None without one."""
    is_interactive: bool = False
    """Its job is one that Slurm does not requeue."""

    @property
    def is_off(self) -> bool:
        return bool(self.words & {"POWERED_DOWN", "POWERING_DOWN"})

    def set_job(self, ends: float | None) -> None:
        self.job_ends = ends
        self.words = (self.words - {"IDLE", "ALLOCATED", "DOWN"}) | ({"ALLOCATED"} if ends is not None else {"IDLE"})


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
                str(pod.uid), pod.revision, pod.created_at, pod.ready, pod.terminating, pod.finished, marked_busy=pod.marked_busy
            )
            for ordinal, pod in self.pods.items()
        }
        nodes = {
            ordinal: WorkerNode(node_state(node.words), node.reason, node.reason_at, node.job_ends, _jobs(ordinal, node))
            for ordinal, node in self.nodes.items()
            if ordinal not in self.struck
        }
        claims = frozenset(self.claims)
        due = not self.ghosts_gone or self.now - self.ghosts_gone[-1] >= GHOST_PAUSE_S
        seen = None if self.is_silent else nodes
        return Observed(pods, seen, self.now, window_open=self.is_window_open, ghosts_due=due, with_claims=claims)

    # What it does, one write after the other.

    def round(self, kill_after: int | None = None) -> None:
        """One round; killed after so many writes."""
        first = plan(self.nodeset, self.look())
        if first.needs_fresh_reading:
            if not self.is_calm:
                self.happen()  # the world does not wait between two looks
            first = plan(self.nodeset, self.look())
        for done, (what, ordinal, write) in enumerate(self._writes(first)):
            if done == kill_after:
                self.note("controller killed")
                self.ghosts_gone.clear()  # the next one knows nothing of them
                return
            self.steps += 1
            self.note(f"controller: {what} {ordinal}")
            write(ordinal)

    def _writes(self, made: Plan) -> list[tuple[str, int, Callable[[int], None]]]:
        writes: list[tuple[str, int, Callable[[int], None]]] = [("mark busy", one, self._mark(True)) for one in made.mark_busy]
        writes += [(f"drain ({reason})", one, self._drain(reason)) for reason, each in made.drain.items() for one in each]
        writes += [("undrain", one, self._undrain) for one in made.undrain]
        writes += [("resume", one, self._resume) for one in made.resume]
        writes += [("requeue", int(one), self._end_jobs("Requeue")) for one in made.requeue]
        writes += [("cancel", one, self._end_jobs("Cancel")) for one in made.cancel]
        writes += [("create", one, self._create) for one in made.create]
        writes += [("delete", one, self._delete) for one in made.delete]
        writes += [("mark free", one, self._mark(False)) for one in made.mark_free]
        writes += [("retire", one, self._retire) for one in made.retire]
        writes += [("finish", -1, self._finish)] if made.done else []
        return writes

    def _mark(self, busy: bool) -> Callable[[int], None]:
        def mark(ordinal: int) -> None:
            self.law(busy or self.nodes[ordinal].job_ends is None, f"gpu-{ordinal} has a job and may be evicted")
            if ordinal in self.pods:  # else the API server says that there is no such pod
                self.pods[ordinal].marked_busy = busy

        return mark

    def _drain(self, reason: str) -> Callable[[int], None]:
        def drain(ordinal: int) -> None:
            node = self.nodes[ordinal]
            self.law(not self.is_silent, "drained while Slurm is silent")
            self.law(ordinal not in self.struck, f"gpu-{ordinal} was drained, which Slurm has no more")
            self.law("DRAIN" not in node.words, f"the drain of gpu-{ordinal} was overwritten: {node.reason}")
            if reason == UPDATE and self._takes_jobs(ordinal):
                away = sum(not self._takes_jobs(one) and not self._is_others(one) for one in self._wanted())
                self.law(away < self._budget(), f"a roll takes gpu-{ordinal}, with {away} away already and a budget of {self._budget()}")
            node.words.add("DRAIN")
            node.reason, node.reason_at = reason, self.now

        return drain

    def _undrain(self, ordinal: int) -> None:
        node = self.nodes[ordinal]
        self.law(not self.is_silent, "undrained while Slurm is silent")
        self.law(node.reason.startswith(OWN_REASON), f"a drain of others was lifted: {node.reason}")
        node.words -= {"DRAIN"}
        node.words |= set() if node.is_off else {"NOT_RESPONDING"}
        node.reason = ""

    def _resume(self, ordinal: int) -> None:
        node = self.nodes[ordinal]
        self.law(node.reason == RESUME_FAILED and ordinal not in self.pods, f"gpu-{ordinal} is tried again too early: {node}")
        node.words = {"IDLE", "CLOUD", "POWERED_DOWN"}
        node.reason = ""

    def _end_jobs(self, action: str) -> Callable[[int], None]:
        def end(ordinal: int) -> None:
            node, drain = self.nodes[ordinal], self.nodeset.spec.drain
            self.law(action != "Requeue" or not node.is_interactive, f"Slurm refuses to requeue the job on gpu-{ordinal}")
            self.law(drain.action == action, f"{action} although the set says {drain.action}")
            late = drain.deadline_seconds is not None and self.now - node.reason_at >= drain.deadline_seconds
            self.law(
                late and node.reason.startswith(OWN_REASON), f"{action} on gpu-{ordinal} before the deadline, or without a drain of ours"
            )
            node.set_job(None)

        return end

    def _create(self, ordinal: int) -> None:
        self.law(ordinal not in self.pods, f"a second pod for gpu-{ordinal}")
        on_their_way = sum(not pod.ready and not pod.terminating for pod in self.pods.values())
        self.law(on_their_way < self.nodeset.spec.max_pods_in_flight, f"{on_their_way + 1} pods on their way")
        self.uids += 1
        self.claims.add(ordinal)
        self.pods[ordinal] = Pod(self.uids, revision(self.nodeset.spec), self.now)

    def _delete(self, ordinal: int) -> None:
        self.law(not self.is_silent, "deleted while Slurm is silent")
        node, pod = self.nodes[ordinal], self.pods[ordinal]
        is_drained = "DRAIN" in node.words and not node.words & {"ALLOCATED", "MIXED", "COMPLETING", "UNDRAIN"}
        may = ordinal in self.struck or node.is_off or is_drained
        self.law(pod.finished or (may and node.job_ends is None), f"gpu-{ordinal} was deleted as {node}")
        is_given_up = node.reason == RESUME_FAILED or self.nodeset.metadata.deletion_timestamp is not None
        is_old = pod.ready and not pod.finished and pod.created_at < self.now - GHOST_S
        if is_old and pod.marked_busy and "POWERED_DOWN" in node.words and not is_given_up:
            self.law(
                not self.nodeset.spec.is_elastic or all(self.now - at >= GHOST_PAUSE_S for at in self.ghosts_gone),
                f"gpu-{ordinal} went, busy when last heard of, soon after another whose node was off already",
            )
            self.ghosts_gone.append(self.now)
        self._stop(ordinal)

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
                self.register(ordinal)

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
            if (pod := self.pods.get(ordinal)) is not None and pod.ready:
                # A worker that stays unheard while Slurm waits for it starts its slurmd again.
                node.words -= {"NOT_RESPONDING", "POWERING_UP"}

    def wake(self) -> None:
        asleep = [one for one in self.nodes.values() if one.words == {"IDLE", "CLOUD", "POWERED_DOWN"}]
        if asleep and self.nodeset.spec.is_elastic:
            self.rng.choice(asleep).words = {"IDLE", "CLOUD", "NOT_RESPONDING", "POWERING_UP"}

    def suspend(self) -> None:
        if not self.nodeset.spec.is_elastic:
            return
        for ordinal, node in self.nodes.items():
            if "POWERING_DOWN" in node.words:
                node.words = (node.words - {"POWERING_DOWN"}) | {"POWERED_DOWN"}
            elif ordinal >= (self.nodeset.spec.min or 0) and node.words == {"IDLE", "CLOUD"} and self.rng.random() < 0.4:
                node.words = {"IDLE", "CLOUD", "POWERING_DOWN"}

    def fail_resume(self) -> None:
        for node in self.nodes.values():
            if "POWERING_UP" in node.words and "DRAIN" not in node.words and self.rng.random() < 0.3:
                node.words, node.reason, node.reason_at = {"DOWN", "CLOUD", "POWERED_DOWN"}, RESUME_FAILED, self.now

    def administrate(self) -> None:
        node = self.rng.choice(list(self.nodes.values()))
        node.words.add("DRAIN")
        node.reason, node.reason_at = self.rng.choice(PEOPLE), self.now

    def lift(self) -> None:
        for node in self.nodes.values():
            if "DRAIN" in node.words and not node.reason.startswith(OWN_REASON) and self.rng.random() < 0.5:
                node.words.discard("DRAIN")
                node.words |= set() if node.is_off else {"NOT_RESPONDING"}
                node.reason = ""

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
        image = self.rng.choice("abc")
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
        if self.nodeset.spec.is_elastic and self.rng.random() < 0.3:
            self.nodes = {ordinal: Node({"IDLE", "CLOUD", "POWERED_DOWN"}) for ordinal in self.nodes}

    def open_window(self) -> None:
        self.is_window_open = not self.is_window_open

    # How things hang together.

    def register(self, ordinal: int) -> None:
        """The start script settles what an earlier pod left, then slurmd registers."""
        node = self.nodes[ordinal]
        self.pods[ordinal].ready = True
        if "POWERING_DOWN" in node.words:
            return
        if node.reason.startswith((OWN_REASON, STOPPING)):
            node.words.discard("DRAIN")
            node.reason = ""
        if "DOWN" in node.words:
            node.set_job(None)
            node.reason = node.reason if "DRAIN" in node.words else ""
        node.words -= {"POWERED_DOWN", "POWERING_UP", "NOT_RESPONDING"}

    def _stop(self, ordinal: int) -> None:
        """A pod is asked to stop: its hook drains the node, unless it is off or drained, and waits for the job."""
        pod, node = self.pods[ordinal], self.nodes[ordinal]
        if pod.finished:
            del self.pods[ordinal]
            return
        pod.terminating = True
        if pod.ready and not node.is_off and "DRAIN" not in node.words and not self.is_silent and ordinal not in self.struck:
            node.words.add("DRAIN")
            node.reason, node.reason_at = STOPPING, self.now

    def _lose_worker(self, ordinal: int) -> None:
        node = self.nodes[ordinal]
        if not node.is_off and "POWERING_UP" not in node.words:
            node.set_job(None)
            node.words.add("NOT_RESPONDING")

    def respec(self, **changes: object) -> None:
        self.nodeset = msgspec.structs.replace(self.nodeset, spec=msgspec.structs.replace(self.nodeset.spec, **changes))

    def _wanted(self) -> frozenset[int]:
        return plan(self.nodeset, self.look()).wanted

    def _takes_jobs(self, ordinal: int) -> bool:
        pod, node = self.pods.get(ordinal), self.nodes[ordinal]
        here = pod is not None and pod.ready and not pod.terminating and not pod.finished and ordinal not in self.struck
        return here and not node.words & {"DRAIN", "DOWN", "NOT_RESPONDING", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_DOWN"}

    def _is_others(self, ordinal: int) -> bool:
        node, pod = self.nodes[ordinal], self.pods.get(ordinal)
        return pod is not None and pod.ready and not pod.terminating and "DRAIN" in node.words and not node.reason.startswith(OWN_REASON)

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
    world.respec(update_strategy=UpdateStrategy("RollingUpdate", 1))
    for _ in range(80):
        for node in world.nodes.values():
            if node.job_ends is not None:
                node.set_job(None)
            if "DRAIN" in node.words and node.reason in (*PEOPLE, STOPPING):
                node.words.discard("DRAIN")
                node.reason = ""
            if "POWERING_UP" in node.words and not world.nodeset.spec.is_elastic:
                node.words = {"IDLE", "CLOUD", "POWERED_DOWN"}
            if "POWERING_DOWN" in node.words:
                node.words = (node.words - {"POWERING_DOWN"}) | {"POWERED_DOWN"}
        world.now += 100
        world.round()
        for ordinal, pod in world.pods.items():
            if not pod.ready and not pod.terminating and not pod.finished:
                world.register(ordinal)
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
    ours = {ordinal for ordinal in here if world.nodes[ordinal].reason.startswith(OWN_REASON)}
    world.law(not ours, f"our drains stay on {ours}: {world.nodes}")


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
