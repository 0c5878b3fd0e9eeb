"""Disks that get another size: what a claim asks for before and after, and what Kubernetes will not do. Pure.

Source: Kubernetes, "Expanding Persistent Volumes Claims": a claim grows where its StorageClass allows that, and never shrinks.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from changes.steps import Step

SIZE = ("spec", "resources", "requests", "storage")
"""Where a claim says its size."""
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
    """As far as the claim says it."""

    @property
    def shrinks(self) -> bool:
        """True where the new size is smaller."""
        before, after = quantity(self.old), quantity(self.new)
        return before is not None and after is not None and after < before

    def __str__(self) -> str:
        return f"PersistentVolumeClaim {self.namespace}/{self.name}: {self.old} to {self.new}"


def resizes(steps: Sequence[Step]) -> list[Resize]:
    """The claims that are there, and get another size."""
    claims = [step for step in steps if step.kind == "PersistentVolumeClaim" and step.op in ("update", "replace")]
    found = [(step, each) for step in claims for each in step.differences if each.path == SIZE and each.old and each.new]
    return [
        Resize(step.namespace, step.name, str(each.old), str(each.new), str(step.spec.get("storageClassName") or ""))
        for step, each in found
        if quantity(each.old) != quantity(each.new)
    ]


def refusals(found: Sequence[Resize], classes: Mapping[str, bool] | None = None, claims: Mapping[str, str] | None = None) -> list[str]:
    """Why Kubernetes will refuse some of them, a line each with the remedy. Of a cluster that was asked: whether each StorageClass lets
    disks grow, and the class of each claim."""
    said: list[str] = []
    for each in found:
        storage_class = each.storage_class or (claims or {}).get(each.name, "")
        if each.shrinks:
            said.append(f"{each}. {SHRINK_REMEDY}.")
        elif classes is not None and not classes.get(storage_class, False):
            said.append(f"{each}: StorageClass {storage_class or '(none)'} does not let disks grow. {GROW_REMEDY}.")
    return said


def quantity(text: Any) -> Decimal | None:
    """Kubernetes' quantity in bytes; None for what is none."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTPE]i|[kMGTPE]?)", str(text))
    return Decimal(found[1]) * _UNITS[found[2]] if found else None
