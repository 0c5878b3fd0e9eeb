"""Which ordinals of a set should have a pod. Slurm decides for an elastic set; a fixed set keeps what it has, then fills up. Pure."""

from collections.abc import Iterable

from controllers.nodeset.observed import Observed
from controllers.nodeset.structs import NodeSetObject
from controllers.nodeset.workers import Worker
from slurm.reasons import SCALE_IN
from slurm.states import has_jobs, wants_no_pod


def plan_wanted(nodeset: NodeSetObject, observed: Observed) -> frozenset[int]:
    """The ordinals that should have a pod now. While Slurm is silent no pod that is there becomes unwanted in an elastic set."""
    spec = nodeset.spec
    if nodeset.metadata.deletion_timestamp is not None:
        return frozenset()
    if spec.max is not None:
        return _awake(observed, spec.min or 0, min(spec.max, spec.node_count))
    return _fixed(observed, spec.replicas or 0, spec.node_count)


def _awake(observed: Observed, least: int, most: int) -> frozenset[int]:
    """The first `least`, and of the first `most` those that are up, waking or unknown to Slurm."""
    first = frozenset(range(min(least, most)))
    if observed.nodes is None:
        return first | frozenset(ordinal for ordinal in observed.pods if ordinal < most)
    return first | frozenset(worker.ordinal for worker in observed.workers() if worker.ordinal < most and _is_awake(worker))


def _is_awake(worker: Worker) -> bool:
    if worker.pod is None and (worker.node is None or worker.has_failed_to_resume or wants_no_pod(worker.node.state)):
        return False
    return not worker.is_off


def _fixed(observed: Observed, replicas: int, node_count: int) -> frozenset[int]:
    """The present workers less the surplus, then free ordinals: those that a job waits for, those with a disk, the lowest."""
    present = [observed.worker(ordinal) for ordinal in {*observed.pods, *observed.on_their_way} if ordinal < node_count]
    surplus = max(0, len(present) - replicas)
    wanted = {worker.ordinal for worker in (scale_in_order(present)[surplus:] if surplus else present)}
    free = [ordinal for ordinal in range(node_count) if ordinal not in wanted and ordinal not in observed.pods]
    wanted.update(sorted(free, key=lambda ordinal: _filling_rank(observed, ordinal))[: max(0, replicas - len(wanted))])
    return frozenset(wanted)


def _filling_rank(observed: Observed, ordinal: int) -> tuple[bool, bool, bool]:
    # A node that lost its pod comes back as itself. Were another made in its place, it would count as scaled in, and lose its disk too.
    return ordinal in observed.taken, not observed.worker(ordinal).is_waking, ordinal not in observed.claims.owned


def scale_in_order(workers: Iterable[Worker]) -> list[Worker]:
    """The order in which workers are scaled in.

    Workers on their way out, unscheduled, starting, out of service (drained by others, down), idle, with the earliest end of jobs,
    cheapest, newest. A worker that a job waits for goes last, as it cannot be drained before it is up.
    """
    return sorted(workers, key=_scale_in_rank)


def _scale_in_rank(worker: Worker) -> tuple[bool, bool, bool, int, int, float, int, float, int]:
    pod, node = worker.pod, worker.node
    is_scaled_in = worker.is_drained_to_leave and node is not None and node.reason.startswith(SCALE_IN)
    return (
        not (pod is not None and pod.terminating),
        not is_scaled_in,
        worker.is_waking,
        _start_rank(worker),
        _use_rank(worker),
        float("inf") if node is None or node.last_job_end is None else node.last_job_end,
        pod.cost if pod is not None else 0,
        -(pod.created_at if pod is not None else float("inf")),
        -worker.ordinal,
    )


def _start_rank(worker: Worker) -> int:
    """How far its pod has come: no machine yet, starting, ready."""
    pod = worker.pod
    if pod is None or (pod.machine is None and not pod.ready):
        return 0
    return 2 if pod.ready else 1


def _use_rank(worker: Worker) -> int:
    """How much of it is in use: out of service, idle, out of service with jobs, busy."""
    is_out = worker.has_foreign_drain or worker.is_kept_out or (worker.node is not None and "DOWN" in worker.node.state.flags)
    has_no_jobs = worker.is_idle or (worker.node is not None and not has_jobs(worker.node.state))
    if is_out:
        return 0 if has_no_jobs else 2
    return 1 if worker.is_idle else 3
