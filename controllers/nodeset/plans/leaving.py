"""Which workers have to leave the set, and why. Pure; part of `plan`. Their pods go once no job can be on them: `deletions`."""

from controllers.nodeset.observed import Observed
from controllers.nodeset.plans.ghosts import Ghosts
from controllers.nodeset.structs import NodeSet
from controllers.nodeset.workers import Worker
from slurm.reasons import DELETE, SCALE_IN, UPDATE


def find_leaving(nodeset: NodeSet, observed: Observed, wanted: frozenset[int], rolled: list[Worker], ghosts: Ghosts) -> dict[Worker, str]:
    """The reason for which each is drained: the set is deleted or shrinks, a roll replaces the pod, or Slurm has lost sight of it."""
    surplus = [worker for worker in observed.workers() if worker.pod is not None and worker.ordinal not in wanted]
    unseen = [observed.worker(ordinal) for ordinal in (*ghosts.evict_now, *ghosts.idle)]
    scaled_in = dict.fromkeys(surplus, SCALE_IN if nodeset.metadata.deletion_timestamp is None else DELETE)
    reasons = {**scaled_in, **dict.fromkeys([*unseen, *rolled], UPDATE)}
    return {worker: reason for worker, reason in reasons.items() if worker.ordinal not in ghosts.evict_later}
