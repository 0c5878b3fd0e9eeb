"""Disks that get another size: what a claim asks for before and after, and what Kubernetes refuses. Pure.

Source: Kubernetes, "Expanding Persistent Volumes Claims": a claim grows if its StorageClass allows that, and never shrinks.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from changes.steps import Step

SIZE = ("spec", "resources", "requests", "storage")
"""Path of a claim's size."""
GROW_REMEDY = (
    "Set the size back. If the driver of its StorageClass can grow volumes, say so first: "
    "kubectl patch storageclass NAME --patch '{\"allowVolumeExpansion\": true}'"
)
SHRINK_REMEDY = "A disk cannot shrink: set the size to what the claim has (kubectl get pvc), or more"
_UNITS = {"": 1, **{unit: 1000**at for at, unit in enumerate("kMGTPE", 1)}, **{f"{unit}i": 1024**at for at, unit in enumerate("KMGTPE", 1)}}


@dataclass(frozen=True)
class Resize:
    """A claim that asks for another size."""

    namespace: str
    name: str
    old: str
    new: str
    storage_class: str
    """Empty if the claim names none."""

    @property
    def shrinks(self) -> bool:
        """True where the new size is smaller."""
        before, after = quantity(self.old), quantity(self.new)
        return before is not None and after is not None and after < before

    def __str__(self) -> str:
        return f"PersistentVolumeClaim {self.namespace}/{self.name}: {self.old} to {self.new}"


def resizes(steps: Sequence[Step]) -> list[Resize]:
    """Existing claims that get another size."""
    claims = [step for step in steps if step.kind == "PersistentVolumeClaim" and step.op in ("update", "replace")]
    resized = [
        (step, difference)
        for step in claims
        for difference in step.differences
        if difference.path == SIZE and difference.old and difference.new
    ]
    return [
        Resize(step.namespace, step.name, str(difference.old), str(difference.new), str(step.spec.get("storageClassName") or ""))
        for step, difference in resized
        if quantity(difference.old) != quantity(difference.new)
    ]


def refusals(found: Sequence[Resize], classes: Mapping[str, bool] | None = None, claims: Mapping[str, str] | None = None) -> list[str]:
    """The resizes that Kubernetes will refuse, a line each with the remedy. `classes`: whether each StorageClass lets disks grow; `claims`:
    the class of each claim, both from the cluster.
    """
    lines: list[str] = []
    for resize in found:
        storage_class = resize.storage_class or (claims or {}).get(resize.name, "")
        if resize.shrinks:
            lines.append(f"{resize}. {SHRINK_REMEDY}.")
        elif classes is not None and not classes.get(storage_class, False):
            lines.append(f"{resize}: StorageClass {storage_class or '(none)'} does not let disks grow. {GROW_REMEDY}.")
    return lines


def quantity(text: Any) -> Decimal | None:
    """Kubernetes' quantity in bytes; None for any other text."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTPE]i|[kMGTPE]?)", str(text))
    return Decimal(match[1]) * _UNITS[match[2]] if match else None
