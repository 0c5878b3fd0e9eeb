"""Which volume claims are created again, waited for and deleted. Pure; part of `plan`. A claim is a worker's disk: it has its ordinal."""

from dataclasses import dataclass

from controllers.nodeset.observed import Observed
from controllers.nodeset.structs import NodeSetObject


@dataclass(frozen=True)
class Disks:
    """What becomes of the claims of a set, in ordinals."""

    create: tuple[int, ...] = ()
    """Pods that wait for a claim that somebody has deleted: it is created again."""
    ending: tuple[int, ...] = ()
    """Missing pods that are not created yet, as their old claim is still being deleted."""
    delete: tuple[int, ...] = ()
    """Ordinals that were scaled in, and whose claims the set's retention deletes."""


def plan_disks(nodeset: NodeSetObject, observed: Observed, wanted: frozenset[int]) -> Disks:
    """What to do about claims. No claim is deleted while Slurm is silent, or the set itself is being deleted: see `writes.finalizers`."""
    create = () if nodeset.metadata.deletion_timestamp is not None else tuple(sorted(observed.claims.missing & wanted))
    ending = tuple(sorted((observed.claims.ending & wanted) - observed.pods.keys()))
    return Disks(create, ending, () if observed.nodes is None else _scaled_in(nodeset, observed, wanted))


def _scaled_in(nodeset: NodeSetObject, observed: Observed, wanted: frozenset[int]) -> tuple[int, ...]:
    """Ordinals that the set has shrunk past, once it has shrunk. A node that only sleeps is none of them: Slurm may wake it at any time.

    While the whole set is being deleted nothing is scaled in: `whenDeleted` alone says what becomes of the claims then.
    """
    spec = nodeset.spec
    if spec.volume_claim_retention.when_scaled != "Delete" or nodeset.metadata.deletion_timestamp is not None:
        return ()
    if not spec.is_elastic and len(observed.pods) > (spec.replicas or 0):
        return ()  # it still shrinks: an ordinal that loses its pod now counts as scaled in, and may be wanted again
    in_use = wanted | observed.pods.keys() | observed.on_their_way | set(range(spec.max or 0))
    return tuple(sorted(observed.claims.owned - in_use))
