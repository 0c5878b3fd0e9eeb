"""The data that a change deletes: claims, claims of sets that delete theirs, whole namespaces. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from changes.steps import Step

RETENTION = {"StatefulSet": "persistentVolumeClaimRetentionPolicy", "NodeSet": "volumeClaimRetention"}
"""By kind, the field with the fate of claims that were created from a set's templates."""


def losses(steps: Sequence[Step]) -> list[str]:
    """The data that is lost with deleted or replaced objects, one line each."""
    lines: list[str] = []
    for step in steps:
        if step.op not in ("delete", "replace") or (step.op == "delete" and step.is_retained):
            continue
        if step.kind == "PersistentVolumeClaim":
            lines.append(f"{step}: the claim and the data on its volume")
        elif step.kind == "Namespace":
            lines.append(f"{step}: the namespace with all that is in it")
        elif step.spec.get("volumeClaimTemplates") and takes_claims(step.kind, step.spec):
            lines.append(f"{step}: the set with its claims and the data on their volumes")
    return lines


def takes_claims(kind: str, spec: Mapping[str, Any]) -> bool:
    """True for a set whose claims are deleted with it."""
    retention: Mapping[str, Any] = spec.get(RETENTION.get(kind, "")) or {}
    return retention.get("whenDeleted") == "Delete"
