"""Puts Kubernetes' pods and Slurm's nodes side by side for one set. Pure; reads what informers and the poller hold."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf
from typing import Any

from controllers.nodeset.drivers import OTHER_DRIVER, find_other_drivers
from controllers.nodeset.machine_causes import announced_cause, find_machine_causes, read_begin
from controllers.nodeset.observed import Claims, GhostPace, JobRequests, Observed, Pauses, Repairs
from controllers.nodeset.pods import claim_name, claim_ordinal, node_name, ordinal_of, revision, selector
from controllers.nodeset.structs import MachineCauseRule, NodeSetObject, NodeSetSpec
from controllers.nodeset.workers import Machine, NodeJob, WorkerNode, WorkerPod
from controllers.runtime.structs import ContainerStatus, KubeNode, ObjectMeta, PartialObject, Pod
from controllers.slurm.snapshot import Snapshot, names_in
from controllers.slurm.structs import Job, Reservation
from names import annotations, labels
from slurm.check_results import FAILED, LAUNCH, RESERVATION, CheckResult, Driver, Failure, Request, failures
from slurm.maintenance import ANNOUNCED
from slurm.reasons import BEFORE_JOBS, gpu_remark, printable
from slurm.times import read_time

_INSUFFICIENT = re.compile(r"Insufficient ([\w/-]+(?:\.[\w/-]+)*)")
_LONGEST_WORDS = 200
"""Characters of a text of others that go into a reason."""
_WAITING_FOR_NO_FAULT = {"", "PodInitializing", "ContainerCreating"}


@dataclass(frozen=True)
class Surroundings:
    """What is known of a set beside its pods and nodes."""

    on_their_way: frozenset[int] = frozenset()
    deleting: frozenset[str] = frozenset()
    """Names of pods whose deletion was asked for and has not been seen to begin."""
    claims: tuple[PartialObject, ...] = ()
    machines: Callable[[str], KubeNode | None] = lambda _: None
    drained_at: Mapping[int, float] = field(default_factory=dict[int, float])
    held: frozenset[int] = frozenset()
    stopping_settled: frozenset[int] = frozenset()
    registered_since: Mapping[int, float] = field(default_factory=dict[int, float])
    pauses: Pauses = field(default_factory=Pauses)
    jobs: JobRequests = field(default_factory=JobRequests)
    ghosts: GhostPace = field(default_factory=GhostPace)
    blocks: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    repairs: Repairs = field(default_factory=Repairs)
    workers_on: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many workers' pods are on each machine, of whichever set; left out where nothing is decided by it."""


def observe(nodeset: NodeSetObject, pods: Iterable[Pod], snapshot: Snapshot | None, now: float, surroundings: Surroundings) -> Observed:
    """What a plan looks at. `snapshot` is None while Slurm is silent; `now` is seconds since 1970."""
    name = nodeset.metadata.name
    worker_pods: dict[int, WorkerPod] = {}
    taken: dict[int, str] = {}
    for pod in pods:
        ordinal = ordinal_of(name, pod.metadata.name)
        if ordinal is None:
            continue
        if owner := other_controller(nodeset, pod.metadata):
            taken[ordinal] = f"pod {pod.metadata.name} ({owner})"
        else:
            worker_pods[ordinal] = worker_pod(pod, nodeset.spec, pod.metadata.name in surroundings.deleting)
    pods_taken = frozenset(taken)
    usable: list[PartialObject] = []
    for claim in surroundings.claims:
        ordinal = claim_ordinal(name, claim.metadata.name)
        if ordinal is not None and (owner := other_owner(nodeset, claim.metadata)):
            taken.setdefault(ordinal, f"claim {claim.metadata.name} ({owner})")
        else:
            usable.append(claim)
    names = {pod.machine for pod in worker_pods.values() if pod.machine}
    rules, workers_on = nodeset.spec.machine_causes, surroundings.workers_on
    machines = {name: machine(node, workers_on.get(name, 1), rules) for name in names if (node := surroundings.machines(name)) is not None}
    nodes = None if snapshot is None else worker_nodes(nodeset, snapshot, worker_pods)
    return Observed(
        worker_pods,
        nodes,
        now,
        on_their_way=surroundings.on_their_way,
        window=_window(nodeset, snapshot, now),
        reserved=_reserved(nodeset, snapshot),
        looked_at=_looked_at(nodeset, snapshot),
        taken=taken,
        pods_taken=pods_taken,
        machines=machines,
        drained_at=surroundings.drained_at,
        held=surroundings.held,
        stopping_settled=surroundings.stopping_settled,
        registered_since=surroundings.registered_since,
        pauses=surroundings.pauses,
        jobs=surroundings.jobs,
        claims=find_claims(nodeset, worker_pods, usable),
        ghosts=surroundings.ghosts,
        blocks=surroundings.blocks,
        repairs=surroundings.repairs,
        checks_before_jobs=find_checks_before_jobs(nodeset.spec.checks_before_jobs, worker_pods, nodes or {}, machines),
    )


def find_checks_before_jobs(
    checks: tuple[str, ...], pods: Mapping[int, WorkerPod], nodes: Mapping[int, WorkerNode], machines: Mapping[str, Machine]
) -> dict[int, tuple[str, ...]]:
    """The checks before jobs that the machine of each worker has not passed.

    A machine that is not known has passed none, if its node waits already. A node that runs jobs does not start to wait when its Kubernetes
    node is deleted.
    """
    missing: dict[int, tuple[str, ...]] = {}
    for ordinal, pod in pods.items():
        node, machine = nodes.get(ordinal), machines.get(pod.machine or "")
        if node is not None and pod.has_checks_before_jobs and (machine is not None or node.reason.startswith(BEFORE_JOBS)):
            identity = machine.identity if machine is not None else ""
            passed = {name for name, request in node.passed_for.items() if identity and request.machine == identity}
            missing[ordinal] = tuple(name for name in checks if name not in passed)
    return {ordinal: names for ordinal, names in missing.items() if names}


def machine(node: KubeNode, workers: int = 1, rules: tuple[MachineCauseRule, ...] = ()) -> Machine:
    """A Kubernetes node as a plan sees it. `rules` say which of its conditions and taints are causes."""
    cordon_reason = printable(node.metadata.annotations.get(annotations.REASON, ""))[:_LONGEST_WORDS]
    answers = all(condition.status == "True" for condition in node.status.conditions if condition.type == "Ready")
    names = (annotations.MAINTENANCE_BEGINS, annotations.EC2_MAINTENANCE_BEGINS)
    announced = {name: text for name in names if (text := node.metadata.annotations.get(name))}
    begins = [begin for text in announced.values() if (begin := read_begin(text)) is not None]
    causes = find_machine_causes(rules, node.status.conditions, node.spec.taints) if rules else ()
    return Machine(
        *(node.spec.unschedulable, cordon_reason, answers, node.metadata.labels),
        identity=node.spec.provider_id or node.metadata.uid,
        boot=node.status.node_info.boot_id,
        made_at=timestamp(node.metadata.creation_timestamp),
        workers=workers,
        causes=(*causes, *(announced_cause(name, text) for name, text in announced.items())),
        maintenance_begins=min(begins, default=None),
        is_announcement_unread=bool(announced) and not begins,
    )


def other_controller(nodeset: NodeSetObject, meta: ObjectMeta) -> str:
    """The controller of an object that is not this set, such as `StatefulSet db`; empty for the set itself, and for none."""
    controllers = (owner for owner in meta.owner_references if owner.controller and owner.uid != nodeset.metadata.uid)
    return next((f"{owner.kind} {owner.name}" for owner in controllers), "")


def other_owner(nodeset: NodeSetObject, meta: ObjectMeta) -> str:
    """As `other_controller`, for any owner: a StatefulSet owns its claims without being their controller, and they end with it."""
    return next((f"{owner.kind} {owner.name}" for owner in meta.owner_references if owner.uid != nodeset.metadata.uid), "")


def _window(nodeset: NodeSetObject, snapshot: Snapshot | None, now: float) -> frozenset[int]:
    """The ordinals that the set's maintenance reservation names, while it is active."""
    name = nodeset.spec.update_strategy.reservation
    if snapshot is None or name is None:
        return frozenset()
    reservations = [reservation for reservation in snapshot.reservations if reservation.name == name]
    active = [
        reservation for reservation in reservations if (reservation.start_time.value or 0) <= now < (reservation.end_time.value or inf)
    ]
    return _ordinals_in(nodeset, active)


def _reserved(nodeset: NodeSetObject, snapshot: Snapshot | None) -> dict[int, float] | None:
    """When the reservations for announced maintenance begin, by ordinal; None where they were not read."""
    if snapshot is None or snapshot.last_reservations is None:
        return None
    named = [
        (reservation.name.removeprefix(ANNOUNCED), reservation)
        for reservation in snapshot.last_reservations
        if reservation.name.startswith(ANNOUNCED)
    ]
    begins = {ordinal_of(nodeset.metadata.name, name): reservation.start_time.value or 0 for name, reservation in named}
    return {ordinal: begin for ordinal, begin in begins.items() if ordinal is not None}


def _looked_at(nodeset: NodeSetObject, snapshot: Snapshot | None) -> frozenset[int]:
    """The ordinals of nodes that are in the reservation of a health check."""
    reservations = [reservation for reservation in snapshot.reservations if reservation.name.startswith(RESERVATION)] if snapshot else []
    return _ordinals_in(nodeset, reservations)


def _ordinals_in(nodeset: NodeSetObject, reservations: Iterable[Reservation]) -> frozenset[int]:
    return frozenset[int]().union(*(_by_set(reservation.node_list).get(nodeset.metadata.name, ()) for reservation in reservations))


@lru_cache(maxsize=64)
def _by_set(hostlist: str) -> Mapping[str, frozenset[int]]:
    """The ordinals that a hostlist names, by set. Read once for all sets: a reservation may name all nodes of the cluster."""
    ordinals_by_set: dict[str, set[int]] = {}
    for node in names_in(hostlist):
        name = node.rpartition("-")[0]
        if (ordinal := ordinal_of(name, node)) is not None:
            ordinals_by_set.setdefault(name, set()).add(ordinal)
    return {name: frozenset(ordinals) for name, ordinals in ordinals_by_set.items()}


def find_claims(nodeset: NodeSetObject, pods: Mapping[int, WorkerPod], claims: Iterable[PartialObject]) -> Claims:
    """What is known of the volume claims. Claims whose names the controller does not give are ignored.

    A claim without the set's labels was made by somebody else: pods use it, and it is never deleted.
    """
    name, present = nodeset.metadata.name, revision(nodeset.spec)
    known_claims: dict[str, tuple[int, bool]] = {}
    """By name: the ordinal, and whether it is on its way out."""
    ours: set[int] = set()
    for claim in claims:
        ordinal, is_ending = claim_ordinal(name, claim.metadata.name), claim.metadata.deletion_timestamp is not None
        if ordinal is not None:
            known_claims[claim.metadata.name] = ordinal, is_ending
            if not is_ending and selector(nodeset).items() <= claim.metadata.labels.items():
                ours.add(ordinal)

    def names(ordinal: int) -> set[str]:
        return {claim_name(template.metadata.name, node_name(name, ordinal)) for template in nodeset.spec.volume_claim_templates}

    waiting = {ordinal for ordinal, pod in pods.items() if pod.machine is None and not pod.terminating and pod.revision == present}
    return Claims(
        owned=frozenset(ours),
        ending=frozenset(ordinal for claim, (ordinal, is_ending) in known_claims.items() if is_ending and claim in names(ordinal)),
        missing=frozenset(ordinal for ordinal in waiting if not names(ordinal) <= known_claims.keys()),
    )


def worker_nodes(nodeset: NodeSetObject, snapshot: Snapshot, pods: Mapping[int, WorkerPod]) -> dict[int, WorkerNode]:
    """The Slurm nodes of a set: those that it should have, those of its pods, and those that slurm.conf still lists."""
    name = nodeset.metadata.name
    nodes: dict[int, WorkerNode] = {}
    count = nodeset.spec.node_count
    while node_name(name, count) in snapshot.nodes:
        count += 1
    for ordinal in {*range(count), *pods}:
        node = snapshot.nodes.get(node_name(name, ordinal))
        if node is not None:
            end = snapshot.last_job_end(node.name)
            jobs = tuple(map(node_job, snapshot.jobs_by_node.get(node.name, ()))) if "DRAIN" in node.state.flags else ()
            nodes[ordinal] = WorkerNode(
                *(node.state, node.reason, end, jobs, node.topology, node.features, gpu_remark(node.comment)),
                failures=_failures(node.results, nodeset.spec.health_checks),
                failed_at=_failed_at(node.results) if nodeset.spec.remedies is not None or nodeset.spec.checks_before_jobs else {},
                passed_for=_passed_for(node.results) if nodeset.spec.asks_for_checks else {},
                reason_by=node.reason_set_by_user,
                reason_at=node.reason_changed_at.value,
            )
    results_of = {ordinal: snapshot.nodes[node_name(name, ordinal)].results for ordinal in nodes.keys() & pods.keys()}
    checks = nodeset.spec.health_checks
    drivers = {ordinal: driver for ordinal, results in results_of.items() if (driver := _driver(results, checks)) is not None}
    for ordinal, failure in find_other_drivers(drivers).items():
        nodes[ordinal] = replace(nodes[ordinal], failures={**(nodes[ordinal].failures or {}), OTHER_DRIVER: failure})
    return nodes


def _driver(results: Mapping[str, CheckResult] | None, checks: tuple[str, ...] | None) -> Driver | None:
    """The driver that a check of the set has found on the node last; None where no check looks at drivers."""
    drivers = [(result.at, name, result.driver) for name, result in (results or {}).items() if result.driver and name in (checks or ())]
    return max(drivers, key=lambda entry: entry[:2])[2] if drivers else None


def _failures(results: Mapping[str, CheckResult] | None, checks: tuple[str, ...] | None) -> Mapping[str, Failure] | None:
    """The failures of checks that look at the set. A check that is no longer declared holds no node."""
    if results is None or checks is None:
        return None
    return {name: failure for name, failure in failures(results).items() if name in checks or name == LAUNCH}


def _failed_at(results: Mapping[str, CheckResult] | None) -> Mapping[str, float]:
    return {name: at for name, result in (results or {}).items() if result.result == FAILED and (at := read_time(result.at) or 0.0) > 0}


def _passed_for(results: Mapping[str, CheckResult] | None) -> Mapping[str, Request]:
    return {name: result.passed_for for name, result in (results or {}).items() if result.passed_for is not None}


def node_job(job: Job) -> NodeJob:
    """A job as a plan sees it."""
    return NodeJob(job.text, job.batch_flag, job.requeue, "COMPLETING" in job.job_state)


def worker_pod(pod: Pod, spec: NodeSetSpec, is_being_deleted: bool = False) -> WorkerPod:
    """A pod as a plan sees it."""
    meta = pod.metadata
    slurmd = [container for container in pod.status.container_statuses if container.name == "slurmd"]
    has_run = any(map(_has_run, slurmd))
    ready = next((condition for condition in pod.status.conditions if condition.type == "Ready" and condition.status == "True"), None)
    finished = pod.status.phase in ("Succeeded", "Failed")
    return WorkerPod(
        uid=meta.uid,
        revision=meta.labels.get(labels.REVISION, ""),
        created_at=timestamp(meta.creation_timestamp),
        version=meta.resource_version,
        ready=ready is not None,
        terminating=is_being_deleted or meta.deletion_timestamp is not None,
        terminating_since=timestamp(meta.deletion_timestamp),
        finished=finished,
        has_run=has_run,
        marked_busy=meta.labels.get(labels.BUSY) != "false",
        machine=pod.spec.node_name,
        cost=_whole(meta.annotations.get(annotations.DELETION_COST)),
        blocked=blocked(pod, spec),
        refused=_refused(pod) if finished and not has_run else "",
        address=meta.annotations.get(annotations.TOPOLOGY_ADDRESS, ""),
        has_checks_before_jobs=meta.annotations.get(annotations.CHECKS_BEFORE_JOBS) == "true",
        ready_since=timestamp(ready.last_transition_time) if ready is not None else 0,
        drain_requested=_request(meta.annotations.get(annotations.DRAIN_REQUESTED)),
    )


def _request(text: str | None) -> str:
    """Why a drain is requested; empty if none is."""
    return "" if text is None else printable(text)[:_LONGEST_WORDS] or "no reason given"


def _has_run(container: ContainerStatus) -> bool:
    state = container.state
    return container.ready or container.restart_count > 0 or (state is not None and bool(state.running or state.terminated))


def _refused(pod: Pod) -> str:
    """Why a pod ended without having run, and where."""
    why = f"{pod.status.reason}: {pod.status.message}".strip(": ") or "no reason given"
    return f"{pod.spec.node_name or 'no machine'} refused it ({why})"


def blocked(pod: Pod, spec: NodeSetSpec) -> str:
    """Why a pod does not run, in words that say what to do; empty when nothing holds it up."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return _unschedulable(condition.message or condition.reason or "not scheduled", spec)
    for container in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = container.state.waiting if container.state else None
        if waiting is not None and waiting.reason not in _WAITING_FOR_NO_FAULT:
            return f"container {container.name}: {waiting.reason}: {waiting.message}".rstrip(": ")
    return ""


def timestamp(text: str | None) -> float:
    """Kubernetes' RFC 3339 as seconds since 1970; 0 where there is none."""
    return (read_time(text) if text else None) or 0.0


def _unschedulable(message: str, spec: NodeSetSpec) -> str:
    """`no node of pool gpu has 4 free nvidia.com/gpu` where that is the trouble; else the scheduler's own words."""
    lacking = _INSUFFICIENT.findall(message)
    if not lacking:
        return message
    selector: dict[str, str] = spec.template.spec.get("nodeSelector") or {}
    pool = selector.get(labels.POOL)
    where = f"no node of pool {pool}" if pool else "no node that the set may use"
    wanted = " and ".join(dict.fromkeys(f"{_requested(spec, resource)} free {resource}" for resource in lacking))
    return f"{where} has {wanted} (scheduler: {message})"


def _requested(spec: NodeSetSpec, resource: str) -> str:
    for container in spec.template.spec["containers"]:
        if container["name"] == "slurmd":
            resources: dict[str, Any] = container.get("resources") or {}
            requests: dict[str, Any] = resources.get("requests") or {}
            return str(requests.get(resource, "enough"))
    return "enough"


def _whole(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        return 0
