"""The events that `kubectl describe nodeset` shows: one for each condition that changed its status. Pure. One change, one name."""

import hashlib
from typing import Any

from controllers.nodeset.structs import GROUP_VERSION, NodeSet, NodeSetStatus

CONTROLLER = "slipway.dev/nodeset-controller"
_GOOD = "True"


def build_events(nodeset: NodeSet, present: NodeSetStatus, instance: str) -> list[dict[str, Any]]:
    """Events for the conditions of `present` whose status differs from the object's. A condition that is new and good needs none."""
    before = {condition.type: condition.status for condition in nodeset.status.conditions}
    turned = [condition for condition in present.conditions if condition.status != before.get(condition.type, _GOOD)]
    meta = nodeset.metadata
    events: list[dict[str, Any]] = []
    for condition in turned:
        content = f"{meta.uid} {condition.type} {condition.status} {condition.last_transition_time}"
        events.append(
            {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": f"{meta.name}.{hashlib.sha256(content.encode()).hexdigest()[:16]}", "namespace": meta.namespace},
                "eventTime": f"{condition.last_transition_time.removesuffix('Z')}.000000Z",
                "reportingController": CONTROLLER,
                "reportingInstance": instance,
                "action": condition.type,
                "reason": condition.reason,
                "note": condition.message or f"{condition.type} is {condition.status}",
                "type": "Normal" if condition.status == _GOOD else "Warning",
                "regarding": {
                    "apiVersion": GROUP_VERSION,
                    "kind": "NodeSet",
                    "name": meta.name,
                    "namespace": meta.namespace,
                    "uid": meta.uid,
                },
            }
        )
    return events
