"""Which ordinals of a set should have a pod. Slurm decides for an elastic set; a fixed one keeps what it has, then fills up. Pure."""

from collections.abc import Iterable

from controllers.nodeset.structs import NodeSet
from controllers.nodeset.workers import SCALE_IN, Observed, Worker


def wanted(nodeset: NodeSet, observed: Observed) -> frozenset[int]:
    """The ordinals that should have a pod now. While Slurm is silent nothing that has one loses it."""
    spec = nodeset.spec
    if nodeset.metadata.deletion_timestamp is not None:
        return frozenset()
    if spec.max is not None:
        return _awake(observed, spec.min or 0, min(spec.max, spec.bound))
    return _fixed(observed, spec.replicas or 0, spec.bound)


def _awake(observed: Observed, least: int, most: int) -> frozenset[int]:
    """The first `least`, and all that Slurm has up, wakes, or does not tell about."""
    if observed.nodes is None:
        return frozenset(range(min(least, most))) | frozenset(ordinal for ordinal in observed.pods if ordinal < most)
    up = (one.ordinal for one in observed.workers() if one.ordinal < most and _is_awake(one))
    return frozenset(range(min(least, most))) | frozenset(up)


def _is_awake(worker: Worker) -> bool:
    if worker.pod is None and (worker.node is None or worker.has_failed_to_resume):
        return False
    return not worker.is_off


def _fixed(observed: Observed, replicas: int, bound: int) -> frozenset[int]:
    """What is there, less the surplus in scale-in order; then the lowest free ordinals, those that have their disk still before others."""
    there = [observed.worker(ordinal) for ordinal in {*observed.pods, *observed.on_their_way} if ordinal < bound]
    surplus = max(0, len(there) - replicas)
    kept = {worker.ordinal for worker in scale_in_order(there)[surplus:]}
    free = [ordinal for ordinal in range(bound) if ordinal not in kept and ordinal not in observed.pods]
    # A node that lost its pod comes back as itself. Were another made in its place, it would count as scaled in, and lose its disk too.
    for ordinal in sorted(free, key=lambda one: one not in observed.with_claims):
        if len(kept) >= replicas:
            break
        kept.add(ordinal)
    return frozenset(kept)


def scale_in_order(workers: Iterable[Worker]) -> list[Worker]:
    """Who goes first: those on their way out, not ready, idle, earliest end of jobs, cheapest, newest."""
    return sorted(workers, key=_scale_in_rank)


def _scale_in_rank(worker: Worker) -> tuple[bool, bool, bool, bool, float, int, float, int]:
    pod, node = worker.pod, worker.node
    leaving = worker.has_our_drain and node is not None and node.reason == SCALE_IN
    return (
        not (pod is not None and pod.terminating),
        not leaving,
        pod is not None and pod.ready,
        not worker.is_idle,
        float("inf") if node is None or node.last_job_end is None else node.last_job_end,
        pod.cost if pod is not None else 0,
        -(pod.created_at if pod is not None else float("inf")),
        -worker.ordinal,
    )
