"""Which workers have to leave the set, and why. Pure; part of `plan`. Their pods go once no job can be on them: `deletions`."""

from controllers.nodeset.observed import Observed
from controllers.nodeset.plans.ghosts import Ghosts
from controllers.nodeset.structs import NodeSetObject
from controllers.nodeset.workers import Worker, ordinals_of
from slurm.reasons import DELETE, SCALE_IN, UPDATE


def find_leaving(
    nodeset: NodeSetObject, observed: Observed, wanted: frozenset[int], rolled: list[Worker], ghosts: Ghosts
) -> dict[int, str]:
    """The reason of each drain, by ordinal: the set is deleted or shrinks, a roll replaces the pod, or Slurm has the node off."""
    surplus = sorted(observed.pods.keys() - wanted)
    replaced = [*ghosts.evict_now, *ghosts.idle, *ordinals_of(rolled)]
    reasons = {
        **dict.fromkeys(surplus, SCALE_IN if nodeset.metadata.deletion_timestamp is None else DELETE),
        **dict.fromkeys(replaced, UPDATE),
    }
    for ordinal in ghosts.evict_later:
        reasons.pop(ordinal, None)
    return reasons
