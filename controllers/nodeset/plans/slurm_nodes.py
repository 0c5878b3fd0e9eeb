"""Which SlurmNode objects to write and to delete. Pure; the objects decide nothing else.

A round writes changes of nodes with causes at once and all others at a sweep, and never more than `MOST_AT_ONCE` objects.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from controllers.nodeset.observed import Observed
from controllers.nodeset.plans.causes import rfc3339
from controllers.nodeset.structs import NodeCause, NodeSetObject, NodeStateName, SlurmNode, SlurmNodeStatus
from controllers.nodeset.workers import Worker
from slurm.causes import Cause
from slurm.states import category

MOST_AT_ONCE = 100
"""Objects that one round writes or deletes: half a second of writes at most, before the round's report."""
_STATES: Mapping[str, NodeStateName] = {
    "idle": "Up",
    "allocated": "Up",
    "draining": "Draining",
    "drained": "Drained",
    "down": "Down",
    "powering_up": "PoweringUp",
    "powering_down": "PoweringDown",
    "powered_down": "PoweredDown",
}


@dataclass(frozen=True)
class SlurmNodes:
    """What becomes of the objects of a set, by ordinal."""

    apply: Mapping[int, SlurmNodeStatus] = field(default_factory=dict[int, SlurmNodeStatus])
    delete: tuple[int, ...] = ()
    is_cut: bool = False
    """More is to be written than one round may: the next round writes the rest."""


def plan_slurm_nodes(
    nodeset: NodeSetObject,
    observed: Observed,
    causes: Mapping[int, tuple[Cause, ...]],
    objects: Mapping[int, SlurmNode],
    lately: Mapping[int, SlurmNodeStatus],
    is_sweep: bool,
) -> SlurmNodes:
    """The next writes. While Slurm is silent every object stays as it is.

    `objects` may be a little old: what is in `lately`, as this process wrote it a moment ago, is not written again.
    """
    if observed.nodes is None:
        return SlurmNodes()
    known = {**{ordinal: item.status for ordinal, item in objects.items()}, **lately}
    ordinals = sorted({*observed.pods, *causes})
    if not is_sweep:
        ordinals = [at for at in ordinals if at in causes or (at in known and _is_held(known[at]))]
    shown = {at: describe(nodeset, observed, at, causes.get(at, ()), known.get(at, SlurmNodeStatus())) for at in ordinals}
    urgent = [at for at, new in shown.items() if _is_urgent(new, known.get(at, SlurmNodeStatus()))]
    deferred, gone = list[int](), list[int]()
    if is_sweep:
        differing = (at for at in ordinals if _is_outdated(nodeset, shown[at], objects.get(at), lately.get(at)))
        deferred = sorted({*differing}.difference(urgent))
        is_being_deleted = nodeset.metadata.deletion_timestamp is not None  # then the objects are deleted with the set
        gone = [] if is_being_deleted else sorted(objects.keys() - shown.keys() - observed.on_their_way)
    apply = [*urgent, *deferred][:MOST_AT_ONCE]
    delete = gone[: MOST_AT_ONCE - len(apply)]
    is_cut = len(apply) + len(delete) < len(urgent) + len(deferred) + len(gone)
    return SlurmNodes({ordinal: shown[ordinal] for ordinal in apply}, tuple(delete), is_cut)


def describe(
    nodeset: NodeSetObject, observed: Observed, ordinal: int, causes: tuple[Cause, ...], earlier: SlurmNodeStatus
) -> SlurmNodeStatus:
    """The status of one object. A cause without a time of its own began when `earlier` first had it, else now."""
    worker, now = observed.worker(ordinal), rfc3339(observed.now)
    state = _state(worker)
    since = {cause.name: cause.since for cause in earlier.causes}
    return SlurmNodeStatus(
        state=state,
        since=(earlier.since if earlier.state == state else "") or now,
        machine=(worker.pod.machine or "") if worker.pod is not None else "",
        node_set=nodeset.metadata.name,
        summary=", ".join(cause.name for cause in causes),
        causes=tuple(_told(cause, cause.since or since.get(cause.name) or now) for cause in causes),
    )


def _told(cause: Cause, since: str) -> NodeCause:
    return NodeCause(
        name=cause.name,
        kind=cause.kind,
        source=cause.source,
        evidence=cause.evidence,
        since=since,
        owner=cause.owner,
        next=cause.next,
        wish=cause.wish,
    )


def _state(worker: Worker) -> NodeStateName:
    return "Unknown" if worker.node is None else _STATES.get(category(worker.node.state), "Unknown")


def _is_urgent(new: SlurmNodeStatus, old: SlurmNodeStatus) -> bool:
    """True for a node with causes, now or before, if what people read has changed. Times, and what happens next, may wait."""
    return bool(new.causes or _is_held(old)) and _essence(new) != _essence(old)


def _is_held(status: SlurmNodeStatus) -> bool:
    """True for a node with causes, and for one whose last cause has ended but whose drain remains."""
    return bool(status.causes) or status.state in ("Draining", "Drained")


def _essence(status: SlurmNodeStatus) -> tuple[str, str, set[tuple[str, str, str, str]]]:
    return status.state, status.machine, {(cause.name, cause.kind, cause.evidence, cause.wish) for cause in status.causes}


def _is_outdated(nodeset: NodeSetObject, new: SlurmNodeStatus, old: SlurmNode | None, written: SlurmNodeStatus | None) -> bool:
    """True when an object is missing, differs in anything, or would not be deleted with the set."""
    if written is not None and _in_any_order(written) == _in_any_order(new):
        return False
    if old is None:
        return True
    has_owner = any(owner.uid == nodeset.metadata.uid for owner in old.metadata.owner_references)
    return not has_owner or _in_any_order(old.status) != _in_any_order(new)


def _in_any_order(status: SlurmNodeStatus) -> SlurmNodeStatus:
    """The API server may keep a list by name in another order."""
    return msgspec.structs.replace(status, causes=tuple(sorted(status.causes, key=lambda cause: cause.name)))
