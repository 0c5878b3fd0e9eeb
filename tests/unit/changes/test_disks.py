"""Disks that get another size, and what Kubernetes refuses of that."""

from typing import Any

import pytest

from changes.disks import refusals, resizes
from changes.steps import Op, Step, differences
from changes.workloads import consequences


def step(old: str, new: str, op: Op = "update", storage_class: str | None = None) -> Step:
    """A claim that asks for another size."""
    about = {} if storage_class is None else {"storageClassName": storage_class}
    before, after = ({"spec": {"resources": {"requests": {"storage": size}}, **about}} for size in (old, new))
    return Step(op, "", "PersistentVolumeClaim", "slurm", "home", before, after, tuple(differences(before, after)))


CLASSES = {"grows": True, "fixed": False}
REFUSED: dict[str, tuple[Step, Any, Any, str]] = {
    "grows": (step("5Gi", "6Gi", storage_class="grows"), CLASSES, {}, ""),
    "class-of-the-live-claim": (step("5Gi", "6Gi"), CLASSES, {"home": "grows"}, ""),
    "fixed-class": (step("5Gi", "6Gi"), CLASSES, {"home": "fixed"}, "5Gi to 6Gi: StorageClass fixed does not let disks grow. Set"),
    "class-that-is-gone": (step("5Gi", "6Gi", storage_class="gone"), CLASSES, {}, "StorageClass gone does not let disks grow"),
    "no-class": (step("5Gi", "6Gi"), CLASSES, {"home": ""}, "StorageClass (none) does not let disks grow"),
    "nobody-was-asked": (step("5Gi", "6Gi"), None, None, ""),
    "shrinks": (step("5Gi", "4096Mi"), None, None, "5Gi to 4096Mi. A disk cannot shrink"),
    "same-in-other-words": (step("1Ti", "1024Gi"), CLASSES, {}, ""),
    "new": (step("5Gi", "6Gi", "create"), CLASSES, {}, ""),
}


@pytest.mark.parametrize(("one", "classes", "claims", "words"), REFUSED.values(), ids=REFUSED)
def test_size_that_kubernetes_will_not_make_is_refused_with_the_remedy(one: Step, classes: Any, claims: Any, words: str) -> None:
    said = refusals(resizes([one]), classes, claims)
    assert len(said) == bool(words)
    assert words in "".join(said)


def test_disk_that_grows_is_told() -> None:
    assert consequences([step("5Gi", "6Gi")]) == [
        "PersistentVolumeClaim slurm/home: 5Gi to 6Gi: the disk grows while it is in use, where its StorageClass lets disks grow"
    ]
