"""The data that goes with a change: claims, those of sets that take them along, whole namespaces. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from changes.steps import Step

RETENTION = {"StatefulSet": "persistentVolumeClaimRetentionPolicy", "NodeSet": "volumeClaimRetention"}
"""By kind, the field that says what becomes of claims that were made from a set's templates."""


def losses(steps: Sequence[Step]) -> list[str]:
    """What is lost with objects that are no longer declared, or that are made again; a line each."""
    said: list[str] = []
    for step in steps:
        if step.op not in ("delete", "replace") or (step.op == "delete" and step.is_retained):
            continue
        if step.kind == "PersistentVolumeClaim":
            said.append(f"{step}: the claim and the data on its volume")
        elif step.kind == "Namespace":
            said.append(f"{step}: the namespace with all that is in it")
        elif step.spec.get("volumeClaimTemplates") and takes_claims(step.kind, step.spec):
            said.append(f"{step}: the set with its claims and the data on their volumes")
    return said


def takes_claims(kind: str, spec: Mapping[str, Any]) -> bool:
    """True of a set whose claims are deleted with it."""
    retention: Mapping[str, Any] = spec.get(RETENTION.get(kind, "")) or {}
    return retention.get("whenDeleted") == "Delete"
