"""Which pods may be deleted now: those that no job can be on, and those that have never run. Pure; part of `plan`. Law 1."""

from collections.abc import Collection, Set
from dataclasses import dataclass

from controllers.nodeset.observed import Observed
from controllers.nodeset.structs import NodeSetObject, UpdateStrategy
from controllers.nodeset.workers import Worker


@dataclass(frozen=True)
class Deletions:
    """Pods to delete, in ordinals."""

    free: tuple[int, ...] = ()
    """By a reading of Slurm, no job can be on them."""
    unbound: tuple[int, ...] = ()
    """Pods without a machine that are not wanted, or of an older template. Each may go as long as it has not changed since it was read."""


def plan_deletions(nodeset: NodeSetObject, observed: Observed, leaving: Set[int], unbound: Collection[int]) -> Deletions:
    """The pods to delete; of each kind no more at once than the set may have in flight."""
    free = sorted(observed.pods.keys() - unbound)
    free = [ordinal for ordinal in free if _may_be_deleted(nodeset, observed.worker(ordinal), ordinal in leaving)]
    most = nodeset.spec.max_pods_in_flight
    return Deletions(tuple(free[:most]), tuple(sorted(unbound)[:most]))


def find_unbound(strategy: UpdateStrategy, observed: Observed, wanted: frozenset[int], outdated: list[Worker]) -> frozenset[int]:
    """Ordinals whose pods have no machine, and are of an older template or not wanted: they go at once.

    Such a pod has never run anything, so neither its node's state nor the budget nor the window matters. A job that waits for it gets a pod
    of the new template. Otherwise it could wait until ResumeTimeout for a pod that fits no machine. With OnDelete people replace pods.
    """
    staying = wanted if strategy.type == "OnDelete" else wanted.difference(worker.ordinal for worker in outdated)
    return frozenset(ordinal for ordinal, pod in observed.pods.items() if pod.is_unbound and ordinal not in staying)


def _may_be_deleted(nodeset: NodeSetObject, worker: Worker, leaves: bool) -> bool:
    pod = worker.pod
    if pod is None or pod.terminating:
        return False
    # No power-down comes first: it would clear our drain (measured on 26.05), and Slurm could wake a node that is to go.
    return pod.finished or (leaves and (worker.may_go or _is_struck_off(nodeset, worker)))


def _is_struck_off(nodeset: NodeSetObject, worker: Worker) -> bool:
    """True when Slurm answers but does not know the node, as it should. It may have read its files without the node as its last job ended.

    Slurm has ended all jobs there by then, and the pod's stop hook looks for steps that run.
    """
    return worker.node is None and (nodeset.metadata.deletion_timestamp is not None or worker.ordinal >= nodeset.spec.node_count)
