"""Which missing pods are created now. Pure; part of `plan`."""

from controllers.nodeset.observed import Observed
from controllers.nodeset.structs import NodeSetObject
from controllers.nodeset.workers import Worker


def plan_creations(nodeset: NodeSetObject, observed: Observed, wanted: frozenset[int]) -> tuple[int, ...]:
    """Ordinals to create pods for, those that a job waits for first, no more on their way at once than the set allows.

    A pod that has had its time to come up does not count as on its way. Otherwise 500 lost machines would keep all others from starting.
    """
    young = observed.now - nodeset.spec.resume_timeout_seconds
    starting = sum(not pod.ready and not pod.terminating and pod.created_at > young for pod in observed.pods.values())
    held_back = {ordinal for ordinal in observed.pauses.nodes if _is_given_up(observed.worker(ordinal))} | observed.pauses.pods
    blocked = held_back | observed.claims.ending | observed.taken.keys()
    missing = wanted - observed.pods.keys() - observed.on_their_way - blocked
    order = sorted(missing, key=lambda ordinal: (not observed.worker(ordinal).is_waking, ordinal))
    return tuple(order[: max(0, nodeset.spec.max_pods_in_flight - len(observed.on_their_way) - starting)])


def _is_given_up(worker: Worker) -> bool:
    """True unless Slurm has the node in service again, as when somebody has resumed it: the pause after a failure ends with that."""
    return worker.node is None or "DOWN" in worker.node.state.flags
