"""The events that `kubectl describe nodeset` shows: one for each condition that changed its status. Pure. One change, one name."""

import hashlib
from typing import Any

from controllers.nodeset.structs import GROUP_VERSION, NodeSet, NodeSetStatus

CONTROLLER = "slipway.dev/nodeset-controller"
_GOOD = "True"


def build_events(nodeset: NodeSet, present: NodeSetStatus, instance: str) -> list[dict[str, Any]]:
    """Events for the conditions of `present` whose status differs from the object's. A condition that is new and good needs none."""
    before = {one.type: one.status for one in nodeset.status.conditions}
    turned = [one for one in present.conditions if one.status != before.get(one.type, _GOOD)]
    meta = nodeset.metadata
    events: list[dict[str, Any]] = []
    for one in turned:
        content = f"{meta.uid} {one.type} {one.status} {one.last_transition_time}"
        events.append(
            {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": f"{meta.name}.{hashlib.sha256(content.encode()).hexdigest()[:16]}", "namespace": meta.namespace},
                "eventTime": f"{one.last_transition_time.removesuffix('Z')}.000000Z",
                "reportingController": CONTROLLER,
                "reportingInstance": instance,
                "action": one.type,
                "reason": one.reason,
                "note": one.message or f"{one.type} is {one.status}",
                "type": "Normal" if one.status == _GOOD else "Warning",
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
