"""The status of a set: counts, phase, and conditions with their times. Pure; most texts are in `conditions`."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from controllers.nodeset.conditions import Silence, build_conditions, find_ready
from controllers.nodeset.lateness import Lateness
from controllers.nodeset.observed import Observed
from controllers.nodeset.plan import Plan
from controllers.nodeset.pods import range_text, revision, selector
from controllers.nodeset.records import build_records, build_repairs, rfc3339_or_empty
from controllers.nodeset.structs import Condition, NodeSetObject, NodeSetStatus
from controllers.nodeset.workers import Worker
from controllers.runtime.structs import Unread
from slurm.states import category

_LONGEST = 1024
"""Bytes of a condition's message: the API server refuses events with longer messages."""
_LONGEST_ITEM = 100
"""Fewer characters than this after the last comma are dropped with it; a longer text is not an item of a list."""


def build_status(
    nodeset: NodeSetObject,
    observed: Observed,
    plan: Plan,
    silence: Silence | None,
    now_text: str,
    errors: Sequence[str] = (),
    lateness: Lateness | None = None,
) -> NodeSetStatus:
    """The status to write. `now_text` is RFC 3339; a condition whose status did not change keeps its old time.

    `errors` are what went wrong in this round, for instance a pod that the API server refused.
    """
    current, listed = revision(nodeset.spec), nodeset.spec.node_count
    workers = [
        worker for worker in observed.workers() if worker.ordinal in plan.wanted or worker.pod is not None or worker.ordinal < listed
    ]
    ready = find_ready(plan, workers)
    counts = Counter(category(worker.node.state) for worker in workers if worker.node is not None)
    pods = [worker.pod for worker in workers if worker.pod is not None]
    conditions = build_conditions(nodeset, observed, plan, workers, silence, errors, lateness)
    phase, why = _summary(nodeset, plan, conditions, workers, len(ready))
    return NodeSetStatus(
        observed_generation=nodeset.metadata.generation or 0,
        phase=phase,
        why=why,
        revision=current,
        selector=",".join(f"{key}={value}" for key, value in sorted(selector(nodeset).items())),
        replicas=len(pods),
        wanted=len(plan.wanted),
        ready=len(ready),
        updated=sum(pod.revision == current for pod in pods),
        idle=counts["idle"],
        allocated=counts["allocated"],
        draining=counts["draining"],
        drained=counts["drained"],
        drains=build_records(nodeset.metadata.name, plan.drains.drained_at),
        down=counts["down"],
        powered_down=counts["powered_down"],
        powering_up=counts["powering_up"],
        repairs=build_repairs(nodeset.metadata.name, plan.repairs.record),
        systemic_since=rfc3339_or_empty(plan.repairs.record.systemic_since),
        conditions=tuple(dated(nodeset, condition, now_text) for condition in conditions),
    )


def with_fault(nodeset: NodeSetObject, present: NodeSetStatus, unread: Unread, now_text: str) -> NodeSetStatus:
    """The status of a set whose present version cannot be decoded, while the version before it is still followed."""
    fault = dated(nodeset, unreadable(unread, has_earlier=True), now_text)
    conditions = tuple(fault if condition.type == fault.type else condition for condition in present.conditions)
    return msgspec.structs.replace(present, phase="Degraded", why=fault.message, conditions=conditions)


def unreadable(unread: Unread, has_earlier: bool) -> Condition:
    """The condition that names the undecodable part of a set, and what happens meanwhile."""
    meta = unread.metadata
    meanwhile = "Until then the version before it is followed." if has_earlier else "Nothing is done to this set until then."
    message = f"The object cannot be read: {unread.fault}. Correct it: kubectl -n {meta.namespace} edit nodeset {meta.name}. {meanwhile}"
    return Condition("Reconciled", "False", "Unreadable", cut(message), meta.generation)


def _summary(nodeset: NodeSetObject, plan: Plan, conditions: Sequence[Condition], workers: Sequence[Worker], ready: int) -> tuple[str, str]:
    """Phase and reason: the most pressing fact."""
    by_type = {condition.type: condition for condition in conditions}
    leaving = [worker for worker in workers if worker.pod is not None and worker.ordinal not in plan.wanted]
    busy = [worker.ordinal for worker in leaving if not worker.may_go]
    name = nodeset.metadata.name
    if by_type["SlurmAnswers"].status != "True":
        return "SlurmSilent", by_type["SlurmAnswers"].message
    held_up = by_type["DrainsEnd"].message if by_type["DrainsEnd"].status == "False" else ""
    if nodeset.metadata.deletion_timestamp is not None:
        if held_up:
            return "Deleting", held_up
        return "Deleting", f"{range_text(name, busy)} still busy; each goes when its jobs have ended." if busy else "Pods are stopping."
    for kind in ("Reconciled", "MachinesAnswer", "PodsEnd", "GpusAsDeclared", "NodesRegister", "PodsStart"):
        if kind in by_type and by_type[kind].status == "False":
            return "Degraded", by_type[kind].message
    if plan.repairs.is_systemic and "Remedied" in by_type:
        return "Degraded", by_type["Remedied"].message
    if held_up:
        return "Draining", held_up
    if busy:
        return "Draining", f"{range_text(name, busy)} leaving; each goes when its jobs have ended."
    if plan.roll.outdated or plan.roll.resized:
        return "Updating", by_type["Updated"].message
    if ready < len(plan.wanted):
        return "Progressing", f"{ready} of {len(plan.wanted)} wanted nodes are registered."
    return "Ready", by_type["Undrained"].message


def dated(nodeset: NodeSetObject, condition: Condition, now_text: str) -> Condition:
    """The condition with the time when its status last changed."""
    before = next((known for known in nodeset.status.conditions if known.type == condition.type), None)
    since = before.last_transition_time if before is not None and before.status == condition.status else now_text
    return Condition(
        condition.type,
        condition.status,
        condition.reason,
        cut(condition.message),
        observed_generation=nodeset.metadata.generation or 0,
        last_transition_time=since or now_text,
    )


def cut(message: str) -> str:
    """Cuts a message to the length that an event may have. What to do comes first in a message, lists of nodes last."""
    if len(message.encode()) <= _LONGEST:
        return message
    head = message.encode()[: _LONGEST - 4].decode(errors="ignore")
    complete, _, partial = head.rpartition(",")
    return (complete if complete and len(partial) < _LONGEST_ITEM else head) + " ..."
