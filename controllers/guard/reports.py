"""The guard's events, shown by `kubectl describe` of the object. Pure. One deed, one name."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from names import writers

_NOTE_MOST = 1024
"""Characters that Kubernetes takes."""


def build_event(live: Mapping[str, Any], reason: str, note: str, wall_s: float, instance: str) -> dict[str, Any]:
    """A warning about an object. `wall_s` in seconds since 1970."""
    about = live["metadata"]
    content = f"{about['uid']} {reason} {wall_s}"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": f"{about['name'][:200]}.{hashlib.sha256(content.encode()).hexdigest()[:16]}",
            "namespace": about["namespace"],
        },
        "eventTime": datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": writers.GUARD_REPORTS,
        "reportingInstance": instance,
        "action": "Restore",
        "reason": reason,
        "note": note if len(note) <= _NOTE_MOST else f"{note[: _NOTE_MOST - 1]}…",
        "type": "Warning",
        "regarding": {
            "apiVersion": live["apiVersion"],
            "kind": live["kind"],
            "name": about["name"],
            "namespace": about["namespace"],
            "uid": about["uid"],
        },
    }
