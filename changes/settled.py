"""Changes of the stack file that no deployment applies, because the object keeps the value that it was created with. Pure.

Sources: Kubernetes, "Persistent Volumes": a claim's class is fixed; components/node_pool.py: the machines of a node group are the
autoscaler's.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from changes.steps import Step
from names import annotations

_CLASS_REMEDY = 'Set it back; docs/operate/storage.md, "Another storage class", has more'
_CLAIMS = "volumeClaimTemplates"


def settled(steps: Sequence[Step]) -> list[str]:
    """One line for each such change, with the remedy."""
    lines: list[str] = []
    for step in steps:
        if step.op not in ("update", "same"):
            continue
        if step.kind == "PersistentVolumeClaim":
            lines += _kept_class(step)
        elif step.kind == "Secret":
            lines += _kept_key(step)
        elif step.is_node_set:
            lines += _kept_disks(step)
        elif step.is_node_group:
            lines += _kept_machines(step)
        elif step.kind == "PersistentVolume" and step.touches("spec", "mountOptions"):
            lines.append(f"{step}: a machine that has it mounted keeps the old mount options until no pod there has it any more")
    return lines


def _kept_class(step: Step) -> Iterator[str]:
    before, now = (_annotations(manifest).get(annotations.STORAGE_CLASS, "") for manifest in (step.old, step.new))
    has = str(step.spec.get("storageClassName") or before)
    if now != has and (now or now != before):
        new = f"{now or 'the default class'} is for a new disk only"
        yield f"{step}: the disk keeps its StorageClass{f' {has}' if has else ''}; {new}. {_CLASS_REMEDY}"


def _kept_key(step: Step) -> Iterator[str]:
    before, now = (int(_annotations(manifest).get(annotations.GENERATION, 1)) for manifest in (step.old, step.new))
    if before == now:
        return
    if annotations.KEPT in _annotations(step.new):
        yield f"{step}: the key stays, as keys.keep lists it; generation {now} makes none. Take it out of keys.keep for a new key"
    elif now == 1:
        yield f"{step}: the key of generation {before} stays, as the first is made once. Set the generation back, or raise it for a new key"


def _kept_disks(step: Step) -> Iterator[str]:
    was, now = (_templates(manifest) for manifest in (step.old, step.new))
    for name in sorted(was.keys() & now.keys()):
        size, larger = (claim.get("resources", {}).get("requests", {}).get("storage") for claim in (was[name], now[name]))
        if size != larger:
            patch = f'{{"spec":{{"resources":{{"requests":{{"storage":"{larger}"}}}}}}}}'
            grow = f"Grow each: kubectl -n {step.namespace} patch pvc {name}-{step.name}-0 -p '{patch}'"
            yield f"{step}: the disks {name} that its nodes have stay {size}; {larger} is for new ones only. {grow}"
        old, new = (claim.get("storageClassName") or "the default class" for claim in (was[name], now[name]))
        if old != new:
            yield (
                f"{step}: the disks {name} that its nodes have stay in {old}; {new} is for new ones only. "
                "Give the disk another name: each node then gets a new one"
            )


def _kept_machines(step: Step) -> Iterator[str]:
    tags: list[Mapping[str, str]] = [manifest.get("tags") or {} for manifest in (step.old, step.new)]
    before, now = (group_tags.get(annotations.DESIRED) for group_tags in tags)
    if before and now and before != now:
        cluster = step.new.get("clusterName") or step.old.get("clusterName")
        first = "first, as EKS refuses a min above them: " if step.touches("scalingConfig", "minSize") else ""
        yield (
            f"{step}: the machines that are up stay as many as they are; desired {now} is for a new group only. To have {now}: "
            f"{first}aws eks update-nodegroup-config --cluster-name {cluster} --nodegroup-name NAME --scaling-config desiredSize={now}"
        )


def _annotations(manifest: Mapping[str, Any]) -> Mapping[str, str]:
    return manifest.get("metadata", {}).get("annotations") or {}


def _templates(manifest: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The specs of a set's claims, by name."""
    return {template["metadata"]["name"]: template["spec"] for template in manifest.get("spec", {}).get(_CLAIMS) or ()}
