"""Puts Kubernetes' pods and Slurm's nodes side by side for one set. Pure; reads what informers and the poller hold."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from controllers.nodeset.pods import claim_name, claim_ordinal, node_name, ordinal_of, revision
from controllers.nodeset.structs import ANNOTATION_COST, LABEL_BUSY, LABEL_REVISION, NodeSet, NodeSetSpec
from controllers.nodeset.workers import NodeJob, Observed, WorkerNode, WorkerPod
from controllers.runtime.structs import PartialObject, Pod
from controllers.slurm.snapshot import Snapshot
from controllers.slurm.structs import Job

POOL_LABEL = "slipway.dev/pool"
_INSUFFICIENT = re.compile(r"Insufficient ([\w/-]+(?:\.[\w/-]+)*)")
_WAITING_FOR_NO_FAULT = {"", "PodInitializing", "ContainerCreating"}


def observe(
    nodeset: NodeSet,
    pods: Iterable[Pod],
    snapshot: Snapshot | None,
    now: float,
    on_their_way: frozenset[int] = frozenset(),
    held_back: frozenset[int] = frozenset(),
    window_open: bool = False,
    deleting: frozenset[str] = frozenset(),
    claims: Iterable[PartialObject] = (),
    ghosts_due: bool = True,
    ghost_lot: int = 0,
    can_requeue: bool = True,
) -> Observed:
    """What a plan looks at. `snapshot` is None while Slurm is silent; `now` is seconds since 1970.

    `deleting` names pods whose deletion was asked for and has not been seen to begin.
    """
    name = nodeset.metadata.name
    found: dict[int, WorkerPod] = {}
    for pod in pods:
        ordinal = ordinal_of(name, pod.metadata.name)
        if ordinal is not None:
            found[ordinal] = worker_pod(pod, nodeset.spec, pod.metadata.name in deleting)
    nodes = None if snapshot is None else worker_nodes(nodeset, snapshot, found)
    claimed = _claims(nodeset, found, claims)
    jobs_error = "" if snapshot is None else snapshot.jobs_error
    return Observed(found, nodes, now, on_their_way, window_open, held_back, ghosts_due, ghost_lot, can_requeue, jobs_error, **claimed)


def _claims(nodeset: NodeSet, pods: Mapping[int, WorkerPod], claims: Iterable[PartialObject]) -> dict[str, frozenset[int]]:
    """What is known of the volume claims; one whose name the controller does not give is not looked at."""
    name, present = nodeset.metadata.name, revision(nodeset.spec)
    found: dict[str, tuple[int, bool]] = {}
    """By name: the ordinal, and whether it is on its way out."""
    for one in claims:
        ordinal = claim_ordinal(name, one.metadata.name)
        if ordinal is not None:
            found[one.metadata.name] = ordinal, one.metadata.deletion_timestamp is not None

    def names(ordinal: int) -> set[str]:
        return {claim_name(one.metadata.name, node_name(name, ordinal)) for one in nodeset.spec.volume_claim_templates}

    waiting = {ordinal for ordinal, pod in pods.items() if pod.machine is None and not pod.terminating and pod.revision == present}
    return {
        "with_claims": frozenset(ordinal for ordinal, is_going in found.values() if not is_going),
        "claims_going": frozenset(ordinal for claim, (ordinal, is_going) in found.items() if is_going and claim in names(ordinal)),
        "claims_missing": frozenset(ordinal for ordinal in waiting if not names(ordinal) <= found.keys()),
    }


def worker_nodes(nodeset: NodeSet, snapshot: Snapshot, pods: Mapping[int, WorkerPod]) -> dict[int, WorkerNode]:
    """The Slurm nodes of a set: those that slurm.conf has for it, and those of its pods."""
    name = nodeset.metadata.name
    nodes: dict[int, WorkerNode] = {}
    for ordinal in {*range(nodeset.spec.bound), *pods}:
        node = snapshot.nodes.get(node_name(name, ordinal))
        if node is not None:
            end = snapshot.last_job_end(node.name)
            jobs = tuple(map(node_job, snapshot.jobs_by_node.get(node.name, ()))) if "DRAIN" in node.state.flags else ()
            nodes[ordinal] = WorkerNode(node.state, node.reason, node.reason_changed_at.value, end, jobs)
    return nodes


def node_job(job: Job) -> NodeJob:
    """One job as a plan sees it."""
    return NodeJob(job.text, job.batch_flag, job.requeue, "COMPLETING" in job.job_state)


def worker_pod(pod: Pod, spec: NodeSetSpec, is_being_deleted: bool = False) -> WorkerPod:
    """One pod as a plan sees it."""
    meta = pod.metadata
    return WorkerPod(
        uid=meta.uid,
        revision=meta.labels.get(LABEL_REVISION, ""),
        created_at=timestamp(meta.creation_timestamp),
        ready=any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions),
        terminating=is_being_deleted or meta.deletion_timestamp is not None,
        finished=pod.status.phase in ("Succeeded", "Failed"),
        marked_busy=meta.labels.get(LABEL_BUSY) != "false",
        machine=pod.spec.node_name,
        cost=_whole(meta.annotations.get(ANNOTATION_COST)),
        blocked=blocked(pod, spec),
    )


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
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _unschedulable(message: str, spec: NodeSetSpec) -> str:
    """`no node of pool gpu has 4 free nvidia.com/gpu` where that is the trouble; else the scheduler's own words."""
    lacking = _INSUFFICIENT.findall(message)
    if not lacking:
        return message
    pool = spec.template.spec.get("nodeSelector", {}).get(POOL_LABEL)
    where = f"no node of pool {pool}" if pool else "no node that the set may use"
    wanted = " and ".join(dict.fromkeys(f"{_requested(spec, resource)} free {resource}" for resource in lacking))
    return f"{where} has {wanted} (scheduler: {message})"


def _requested(spec: NodeSetSpec, resource: str) -> str:
    for container in spec.template.spec["containers"]:
        if container["name"] == "slurmd":
            return str(container.get("resources", {}).get("requests", {}).get(resource, "enough"))
    return "enough"


def _whole(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        return 0
