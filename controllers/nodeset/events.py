"""The events that `kubectl describe nodeset` shows: one for each condition that changed its status, and for each failure of a health check
that drains nothing. Pure. One change, one name."""

import hashlib
from collections.abc import Mapping
from typing import Any

from controllers.nodeset.plans.causes import CHECK_CAUSE
from controllers.nodeset.pods import node_name
from controllers.nodeset.structs import NodeSetObject, NodeSetStatus, SlurmNodeStatus
from names import crds, writers

_GOOD = "True"


def build_events(nodeset: NodeSetObject, present: NodeSetStatus, instance: str) -> list[dict[str, Any]]:
    """Events for the conditions of `present` whose status differs from the object's. A condition that is new and good needs none."""
    before = {condition.type: condition.status for condition in nodeset.status.conditions}
    turned = [condition for condition in present.conditions if condition.status != before.get(condition.type, _GOOD)]
    return [
        _event(
            nodeset,
            instance,
            f"{condition.type} {condition.status} {condition.last_transition_time}",
            condition.last_transition_time,
            condition.type,
            condition.reason,
            condition.message or f"{condition.type} is {condition.status}",
            condition.status == _GOOD,
        )
        for condition in turned
    ]


def build_told(
    nodeset: NodeSetObject, present: Mapping[int, SlurmNodeStatus], known: Mapping[int, SlurmNodeStatus], instance: str
) -> list[dict[str, Any]]:
    """Events for new failures of health checks that drain nothing: no drain would show them. `known` are the nodes' present objects."""
    events: list[dict[str, Any]] = []
    for ordinal, status in present.items():
        before = {cause.name for cause in known[ordinal].causes} if ordinal in known else set[str]()
        for cause in status.causes:
            if cause.wish == "none" and cause.name.startswith(CHECK_CAUSE) and cause.name not in before:
                node = node_name(nodeset.metadata.name, ordinal)
                note = f"{node} fails {cause.source}, which does not drain it: {cause.evidence}"
                content = f"{node} {cause.name} {cause.since}"
                events.append(_event(nodeset, instance, content, cause.since, "CheckHealth", "CheckFailed", note, False))
    return events


def _event(
    nodeset: NodeSetObject, instance: str, content: str, at: str, action: str, reason: str, note: str, is_good: bool
) -> dict[str, Any]:
    """`content` and the set decide the name of the event."""
    meta = nodeset.metadata
    name = f"{meta.name}.{hashlib.sha256(f'{meta.uid} {content}'.encode()).hexdigest()[:16]}"
    about = {"apiVersion": crds.API_VERSION, "kind": "NodeSet", "name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": meta.namespace},
        "eventTime": f"{at.removesuffix('Z')}.000000Z",
        "reportingController": writers.NODESET_CONTROLLER_REPORTS,
        "reportingInstance": instance,
        "action": action,
        "reason": reason,
        "note": note,
        "type": "Normal" if is_good else "Warning",
        "regarding": about,
    }
