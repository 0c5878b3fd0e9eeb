"""What objects keep from when they were made, although the stack file says otherwise: a preview tells it, with the remedy."""

import json
from typing import Any

import pytest

from changes.printed import as_json, markdown, text
from changes.pulumi import read_preview
from changes.settled import settled
from changes.steps import NODE_GROUP, Op, Step, differences
from changes.story import Level, Queue, tell
from changes.workloads import consequences
from names import annotations


def claim(has: str | None, before: str | None, now: str | None, op: Op = "update") -> Step:
    """A claim of a class that has a mark, and gets another."""
    spec = {} if has is None else {"storageClassName": has}
    old, new = (
        {"metadata": {"annotations": {} if mark is None else {annotations.STORAGE_CLASS: mark}}, "spec": spec} for mark in (before, now)
    )
    return Step(op, "", "PersistentVolumeClaim", "slurm", "state", old, new, tuple(differences(old, new)))


CLASSES: dict[str, tuple[Step, str]] = {
    "another": (claim("gp2", "gp2", "gp3"), "keeps its StorageClass gp2; gp3 is for a new disk only. Set it back"),
    "still-another": (claim("gp2", "gp3", "gp3", "same"), "keeps its StorageClass gp2; gp3"),
    "left-out": (claim("gp2", "gp2", None), "keeps its StorageClass gp2; the default class is for a new disk only"),
    "never-said": (claim("standard", None, None), ""),
    "stack-from-before-the-mark": (claim("gp2", None, "gp2"), ""),
    "of-a-disk-of-the-default-class": (claim(None, None, "gp3"), "keeps its StorageClass; gp3"),
    "same": (claim("gp3", "gp3", "gp3", "same"), ""),
    "new": (claim(None, None, "gp3", "create"), ""),
}


@pytest.mark.parametrize(("step", "words"), CLASSES.values(), ids=CLASSES)
def test_class_of_a_disk_that_is_there_stays_and_is_told(step: Step, words: str) -> None:
    said = settled([step])
    assert len(said) == bool(words)
    assert words in "".join(said)


def key(before: str | None, now: str | None, *kept: str) -> Step:
    """The Secret of a key that gets another generation."""
    marks = [{} if generation is None else {annotations.GENERATION: generation} for generation in (before, now)]
    old, new = ({"metadata": {"annotations": {**each, **dict.fromkeys(kept, "true")}}, "data": {}} for each in marks)
    return Step("update", "", "Secret", "slurm", "dev-munge", old, new, tuple(differences(old, new)))


KEYS: dict[str, tuple[Step, str]] = {
    "first-again": (key("2", None), "the key of generation 2 stays, as the first is made once. Set the generation back, or raise it"),
    "kept": (key("2", "3", annotations.KEPT), "the key stays, as keys.keep lists it; generation 3 makes none. Take it out of keys.keep"),
    "rotated": (key("2", "3"), ""),
    "rotated-for-the-first-time": (key(None, "2"), ""),
    "an-earlier-one": (key("3", "2"), ""),
    "kept-as-it-was": (key("2", "2", annotations.KEPT), ""),
}


@pytest.mark.parametrize(("step", "words"), KEYS.values(), ids=KEYS)
def test_key_that_no_generation_changes_is_told(step: Step, words: str) -> None:
    said = settled([step])
    assert len(said) == bool(words)
    assert words in "".join(said)
    in_place = ["dev-munge: running pods get the new files in place within about a minute; none restarts for it"]
    assert consequences([step]) == ([] if words else in_place)


def a_set(size: str, storage_class: str | None = None, name: str = "scratch") -> dict[str, Any]:
    about = {} if storage_class is None else {"storageClassName": storage_class}
    template = {"metadata": {"name": name}, "spec": {"resources": {"requests": {"storage": size}}, **about}}
    return {"spec": {"replicas": 2, "volumeClaimTemplates": [template]}}


DISKS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "size": (a_set("6Gi"), ["the disks scratch that its nodes have stay 5Gi; 6Gi is for new ones only. Grow each: kubectl -n slurm patch"]),
    "class": (a_set("5Gi", "gp3"), ["stay in the default class; gp3 is for new ones only. Give the disk another name"]),
    "another-disk": (a_set("6Gi", name="other"), []),
    "none": (a_set("5Gi"), []),
}


@pytest.mark.parametrize(("new", "words"), DISKS.values(), ids=DISKS)
def test_disks_of_nodes_that_are_there_stay_and_are_told(new: dict[str, Any], words: list[str]) -> None:
    old = a_set("5Gi")
    said = settled([Step("update", "slipway.dev", "NodeSet", "slurm", "gpu", old, new, tuple(differences(old, new)))])
    assert len(said) == len(words)
    assert all(part in line for part, line in zip(words, said, strict=True))


def test_mount_options_of_a_mounted_volume_are_told() -> None:
    old, new = ({"spec": {"mountOptions": [each]}} for each in ("nconnect=4", "nconnect=8"))
    [said] = settled([Step("update", "", "PersistentVolume", "", "slurm-home", old, new, tuple(differences(old, new)))])
    assert (
        said == "PersistentVolume slurm-home: a machine that has it mounted keeps the old mount options until no pod there has it any more"
    )


def group(desired: str, version: str = "1", least: int = 0) -> dict[str, Any]:
    scaling = {"minSize": least}
    return {"clusterName": "ml", "tags": {annotations.DESIRED: desired}, "launchTemplate": {"version": version}, "scalingConfig": scaling}


def told_by_the_cli(op: str, new: dict[str, Any]) -> list[Step]:
    """What the pulumi CLI says of a node group of EKS."""
    states = {
        side: {"type": "aws:eks/nodeGroup:NodeGroup", "inputs": inputs} for side, inputs in (("oldState", group("8")), ("newState", new))
    }
    urn = "urn:pulumi:h100::slipway::slipway:index:GpuNodePool$aws:eks/nodeGroup:NodeGroup::h100-pool-h100"
    return read_preview(json.dumps({"steps": [{"op": op, "urn": urn, **states}]}))


def test_machines_of_a_node_group_stay_as_many_and_are_told() -> None:
    [step] = told_by_the_cli("update", group("16"))
    assert (step.group, step.kind) == NODE_GROUP
    told = tell([step], Queue(unknown="not asked"))
    [said] = told.not_applied
    assert "NodeGroup h100-pool-h100: the machines that are up stay as many as they are; desired 16" in said
    assert "aws eks update-nodegroup-config --cluster-name ml --nodegroup-name NAME --scaling-config desiredSize=16" in said
    assert (told.level, told.consequences) == (Level.CHANGES, ())
    assert f"  {said}" in text(told)
    assert said in markdown(told, "t", "").replace("\\", "")
    assert as_json(told)["notApplied"] == [said]


def test_raised_least_number_of_machines_says_what_comes_first() -> None:
    [said] = settled(told_by_the_cli("update", group("16", least=16)))
    assert "To have 16: first, as EKS refuses a min above them: aws eks update-nodegroup-config" in said


@pytest.mark.parametrize(
    ("op", "words"),
    [
        pytest.param("update", "EKS replaces the machines, and first evicts their pods", id="another-disk"),
        pytest.param(
            "replace", "EKS creates a new group, then deletes this one with its machines and the jobs on them", id="another-subnet"
        ),
        pytest.param("delete", "the group and its machines are deleted, after the node sets on them", id="no-longer-declared"),
        pytest.param("create", "", id="new"),
    ],
)
def test_machines_of_a_node_group_that_are_replaced_are_told(op: str, words: str) -> None:
    told = tell(told_by_the_cli(op, group("8", "2")), Queue(unknown="not asked"))
    assert len(told.consequences) == bool(words)
    assert words in "".join(told.consequences)
    assert told.not_applied == ()
