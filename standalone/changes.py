"""What applying the declared objects would do to the live objects, and to the pods of running jobs. Pure.

The truth is the API server's: each declared object as a server-side dry run returned it, against the live object. No schema is guessed at.
"""

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, cast

from standalone.plan import MASK, Difference, Op, differences, masked
from standalone.readiness import has_failed
from standalone.render import CRD, DECLARED_IN, PROTECT, RETAIN, Document, Key, Sort, key_of, value_at
from standalone.render import annotation as annotation_of

PART_OF = "applyset.kubernetes.io/part-of"
NODESET = "slipway.dev/nodeset"
_RETENTION = {"StatefulSet": "persistentVolumeClaimRetentionPolicy", "NodeSet": "volumeClaimRetention"}
"""By kind, the field that says what becomes of claims that were made from a set's templates."""
NODE_SETS = Sort("slipway.dev", "NodeSet")
_CLAIMS = "volumeClaimTemplates"
_GROW = "A claim that is there is grown itself: kubectl edit pvc."
_ON_DELETE = "running pods, and their jobs, go on as they are; each gets the change when it is next deleted"
_UNITS = {"": 1, **{unit: 1000**at for at, unit in enumerate("kMGTPE", 1)}, **{f"{unit}i": 1024**at for at, unit in enumerate("KMGTPE", 1)}}
_WORKLOADS = ("StatefulSet", "Deployment", "DaemonSet")
_SERVER_OWNED = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink")


@dataclass(frozen=True)
class ObjectChange:
    """What happens to one object. `live` is None for a new object, `document` for an object that is no longer declared."""

    op: Op
    key: Key
    document: Document | None = None
    live: Mapping[str, Any] | None = None
    differences: tuple[Difference, ...] = ()
    note: str = ""

    def is_marked(self, annotation: str) -> bool:
        """True when the live object carries `annotation: "true"`: what was said when it was last applied."""
        return annotation_of(self.live or {}, annotation) == "true"

    @property
    def spec(self) -> Mapping[str, Any]:
        """The live object's spec; empty without one."""
        return (self.live or {}).get("spec", {})


def applyset_id(name: str, namespace: str) -> str:
    """The label value that kubectl gives the members of the ApplySet whose parent is ConfigMap `namespace/name`.

    Source: kubectl/pkg/cmd/apply/applyset.go, ApplySet.ID.
    """
    digest = hashlib.sha256(f"{name}.{namespace}.ConfigMap.".encode()).digest()
    return f"applyset-{base64.urlsafe_b64encode(digest).decode().rstrip('=')}-v1"


def labelled(manifest: Mapping[str, Any], set_id: str) -> dict[str, Any]:
    """The manifest as a member of the ApplySet, as kubectl would send it."""
    about = manifest["metadata"]
    return {**manifest, "metadata": {**about, "labels": {**about.get("labels", {}), PART_OF: set_id}}}


def object_changes(
    declared: Sequence[Document],
    live: Mapping[Key, Mapping[str, Any]],
    results: Mapping[Key, Mapping[str, Any]],
    immutable: Mapping[Key, str],
    members: Iterable[Mapping[str, Any]],
    untried: Collection[Key] = (),
) -> list[ObjectChange]:
    """One change an object, in the order of `declared`, then those to prune. `immutable`: refused in place. `untried`: no result, because
    the definition of their kind changes first."""
    found: list[ObjectChange] = []
    for document in declared:
        old = live.get(document.key)
        if old is None:
            found.append(ObjectChange("create", document.key, document))
        elif has_failed(old) and document.hints.get("replaceUnready") == "true":
            found.append(ObjectChange("replace", document.key, document, old, note="it failed last time"))
        elif document.key in immutable:
            found.append(ObjectChange("replace", document.key, document, old, note=immutable[document.key]))
        elif document.key in untried:
            changed = tuple(differences(clean(old), _overlaid(clean(old), masked(document.manifest))))
            found.append(ObjectChange("update", document.key, document, old, changed, note=f"the server judges it once its {CRD} is new"))
        else:
            changed = tuple(differences(clean(old), clean(results[document.key])))
            secret = document.key.kind == "Secret" or document.has_secrets
            changed = tuple(_hidden(each) for each in changed) if secret else changed
            found.append(ObjectChange("update" if changed else "same", document.key, document, old, changed))
    names = {document.key for document in declared}
    gone = sorted((member for member in members if key_of(member) not in names), key=key_of, reverse=True)
    found += [ObjectChange("delete", key_of(member), live=member) for member in gone if not member["metadata"].get("deletionTimestamp")]
    return [_successor(change, found) if change.op == "create" and change.key.kind == "ConfigMap" else change for change in found]


def _overlaid(old: Any, new: Any) -> Any:
    """The old value with what is declared laid over it: what an apply comes to, as far as that can be told without the server."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        before, after = cast(Mapping[str, Any], old), cast(Mapping[str, Any], new)
        return {**before, **{key: _overlaid(before.get(key), value) for key, value in after.items()}}
    return new


def _successor(new: ObjectChange, found: Sequence[ObjectChange]) -> ObjectChange:
    """A new ConfigMap named by its content takes the place of a ConfigMap that goes: show what differs between the two."""
    stem = _stem(new.key.name)
    gone = (change for change in found if change.op == "delete" and change.key.kind == "ConfigMap")
    old = next((change for change in gone if stem and _stem(change.key.name) == stem), None)
    if old is None or old.live is None or new.document is None:
        return new
    changed = differences(old.live.get("data"), masked(new.document.manifest.get("data")), ("data",))
    return replace(new, differences=tuple(changed), note=f"takes the place of {old.key.name}")


def _stem(name: str) -> str | None:
    found = re.fullmatch(r"(.+)-[0-9a-f]{8,10}", name)
    return found.group(1) if found else None


def clean(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object without what only the server writes."""
    metadata: dict[str, Any] = value["metadata"]
    given: dict[str, str] = metadata.get("labels") or {}
    labels = {key: text for key, text in given.items() if key != PART_OF}
    about: dict[str, Any] = {key: field for key, field in metadata.items() if key not in (*_SERVER_OWNED, "labels")}
    if labels:
        about["labels"] = labels
    return {**{key: field for key, field in value.items() if key != "status"}, "metadata": about}


def refusals(found: Iterable[ObjectChange], set_id: str, adopt: bool) -> list[str]:
    """Why these changes must not be made: protection, objects of others, a namespace on its way out. Empty when they may."""
    said: list[str] = []
    for change in found:
        about: dict[str, Any] = (change.live or {}).get("metadata", {})
        labels: dict[str, str] = about.get("labels") or {}
        owner = labels.get(PART_OF)
        if change.op in ("delete", "replace") and change.is_marked(PROTECT):
            verb = "no longer declared" if change.op == "delete" else f"cannot change in place ({change.note})"
            said.append(f"{change.key} is protected and {verb}. Take its protection off, `up`, then try again.")
        elif change.document and change.live and about.get("deletionTimestamp"):
            said.append(f"{change.key} is being deleted; wait until it is gone (kubectl get {change.key.kind.lower()} {change.key.name}).")
        elif change.document and change.live and owner != set_id and not adopt and not _is_left_over(change, owner):
            whose = "belongs to another stack" if owner else "was not made by this stack"
            other = "Let one stack bring the kind and leave it out of this one" if change.key.kind == CRD else "Choose another name"
            said.append(f"{change.key} exists and {whose}. {other}, or take it over with --adopt.")
    return said


def _is_left_over(change: ObjectChange, owner: str | None) -> bool:
    """True of an object that is nobody's and that the next stack takes over: its provider says so, an earlier stack left it so, or it was
    left to its controller, which has not deleted it yet.

    The pulumi CLI leaves no mark on what it retains.
    """
    if owner is not None or change.document is None:
        return False
    declared_in = annotation_of(change.document.manifest, DECLARED_IN)
    is_listed = bool(declared_in) and annotation_of(change.live or {}, DECLARED_IN) == declared_in
    return change.document.adopts or is_listed or (change.key.kind == CRD and change.is_marked(RETAIN))


def retained(found: Iterable[ObjectChange]) -> list[Key]:
    """Objects no longer declared that stay in the cluster, as their `retainOnDelete` said."""
    return [change.key for change in found if change.op == "delete" and change.is_marked(RETAIN)]


def deleted_by_controller(found: Sequence[ObjectChange]) -> list[Key]:
    """Objects no longer declared whose controller deletes them, as their name leaves a list that is declared. If kubectl pruned them too,
    it would fail on each that the controller was quicker with."""
    lists = {(change.key.namespace, change.key.name) for change in found if change.document and change.key.kind == "ConfigMap"}
    gone = ((change.key, change.live) for change in found if change.op == "delete" and change.live)
    return [key for key, live in gone if (key.namespace, annotation_of(live, DECLARED_IN)) in lists]


def losses(found: Sequence[ObjectChange]) -> list[str]:
    """The data that goes with what is no longer declared, or is made again: claims, those of sets that take them along, the namespace."""
    kept = set(retained(found))
    said: list[str] = []
    for change in found:
        if change.op not in ("delete", "replace") or change.key in kept:
            continue
        if change.key.kind == "PersistentVolumeClaim":
            said.append(f"{change.key}: the claim and the data on its volume")
        elif change.key.kind == "Namespace":
            said.append(f"{change.key}: the namespace with all that is in it")
        elif change.spec.get("volumeClaimTemplates") and _takes_claims(change):
            said.append(f"{change.key}: the set with its claims and the data on their volumes")
    return said


def _takes_claims(change: ObjectChange) -> bool:
    """True of a set whose claims are deleted with it."""
    return change.spec.get(_RETENTION.get(change.key.kind, ""), {}).get("whenDeleted") == "Delete"


def consequences(found: Sequence[ObjectChange]) -> list[str]:
    """For each workload that changes: whether its pods, and so its jobs, go on. For files changed in place: that no pod restarts."""
    said: list[str] = []
    updated = [change for change in found if change.op == "update"]
    in_place = [change.key.name for change in updated if change.key.kind in ("ConfigMap", "Secret") and not _is_a_list(change)]
    if in_place:
        said.append(f"{', '.join(in_place)}: running pods get the new files in place within about a minute; none restarts for it")
    for change in found:
        effect = _effect_on_nodes if change.key.sort == NODE_SETS else _effect
        if (change.key.kind in _WORKLOADS or change.key.sort == NODE_SETS) and (words := effect(change)):
            said.append(f"{change.key.kind} {change.key.name}: {words}")
    return said


def _is_a_list(change: ObjectChange) -> bool:
    """True of a ConfigMap that a controller reads, and no pod mounts: its finalizer says so."""
    return change.document is not None and bool(change.document.manifest["metadata"].get("finalizers"))


def left_as_they_are(found: Iterable[ObjectChange]) -> list[str]:
    """Fields whose declared value no longer counts, as their resource ignores changes: what is declared, and what stays. No keys."""
    said: list[str] = []
    for change in found:
        if change.document is None or change.live is None or change.key.kind == "Secret":
            continue  # a key stays until it is rotated, which is what its declaration means, and is shown to nobody
        for path in change.document.ignored:
            hint = f" {_GROW}" if path[-1] == _CLAIMS else ""
            for each in differences(value_at(change.live, path), masked(value_at(change.document.resource.inputs, path)), path):
                where = ".".join(each.path).replace(".[", "[")
                if each.new is not None and not _is_same_quantity(each.old, each.new):
                    said.append(f"{change.key}: {where} stays {each.old}; {each.new} is for a new one only.{hint}")
    return said


def _is_same_quantity(left: Any, right: Any) -> bool:
    """True for `1Ti` and `1024Gi`: the API server writes quantities its own way."""
    sizes = [re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTPE]i|[kMGTPE]?)", str(value)) for value in (left, right)]
    first, second = (Decimal(size[1]) * _UNITS[size[2]] if size else None for size in sizes)
    return first is not None and first == second


def _effect_on_nodes(change: ObjectChange) -> str:
    """What becomes of the Slurm nodes of a NodeSet: its controller drains each before its pod goes."""
    declared: Mapping[str, Any] = change.document.manifest.get("spec", {}) if change.document else {}
    if change.op in ("delete", "replace"):
        again = "; then the set is made again" if change.op == "replace" else ""
        return f"goes: all its nodes are drained, and each pod ends when no job is left on it{again}"
    if change.op != "update":
        return ""
    said: list[str] = []
    for field, words in (("replicas", "nodes"), ("max", "nodes at most"), ("min", "nodes at least")):
        for old, new in _numbers(change, field):
            fate = "; those that go are drained first" if new < old and field != "min" else "; those there stay"
            said.append(f"{old} to {new} {words}{fate}")
    if any(each.path[:2] in (("spec", "template"), ("spec", "volumeClaimTemplates")) for each in change.differences):
        said.append(_roll({**change.spec.get("updateStrategy", {}), **declared.get("updateStrategy", {})}))
    return "; ".join(said) or "no pod restarts"


def _numbers(change: ObjectChange, field: str) -> list[tuple[int, int]]:
    """The old and the new value of a number in an object's spec; empty where it stays, or is no number."""
    found = [(each.old, each.new) for each in change.differences if each.path == ("spec", field)]
    return [(old, new) for old, new in found if isinstance(old, int) and isinstance(new, int)]


def _roll(strategy: Mapping[str, Any]) -> str:
    if strategy.get("type") == "OnDelete":
        return _ON_DELETE
    when = f" while reservation {strategy.get('reservation')} is active" if strategy.get("type") == "Maintenance" else ""
    return f"its nodes are drained and their pods replaced, at most {strategy.get('maxUnavailable', 1)} at a time{when}; jobs end first"


def _effect(change: ObjectChange) -> str:
    is_worker = NODESET in change.spec.get("template", {}).get("metadata", {}).get("labels", {})
    jobs = "; jobs on them are waited for as long as the pods' grace period allows" if is_worker else ""
    if change.op == "delete":
        return f"is removed and its {change.spec.get('replicas', 1)} pods end{jobs}"
    if change.op == "replace":
        return f"cannot change in place: it is deleted and made again, and its pods end{jobs}"
    if change.op != "update":
        return ""
    said = [f"{old} to {new} pods{jobs if new < old else '; those there stay'}" for old, new in _numbers(change, "replicas")]
    if any(each.path[:2] == ("spec", "template") for each in change.differences):
        strategy = change.spec.get("updateStrategy", change.spec.get("strategy", {})).get("type", "RollingUpdate")
        if strategy == "OnDelete":
            said.append(_ON_DELETE)
        else:
            said.append("its pods are replaced " + ("all at once" if strategy == "Recreate" else "one after the other") + jobs)
    return "; ".join(said) or "no pod restarts"


def _hidden(difference: Difference) -> Difference:
    if difference.path[0] not in ("data", "stringData"):
        return difference
    return Difference(difference.path, MASK if difference.old is not None else None, MASK if difference.new is not None else None)


def claims_left(claims: Iterable[Mapping[str, Any]], workloads: Iterable[ObjectChange]) -> list[str]:
    """Claims that were made from the templates of sets, and that stay when these are deleted, as their retention says."""
    kept: list[str] = []
    for change in workloads:
        if change.key.kind not in _RETENTION or _takes_claims(change):
            continue
        templates: list[dict[str, Any]] = change.spec.get("volumeClaimTemplates", [])
        stems = [f"{template['metadata']['name']}-{change.key.name}-" for template in templates]
        names = [claim["metadata"]["name"] for claim in claims]
        kept += [name for name in names if any(name.startswith(stem) and name.removeprefix(stem).isdigit() for stem in stems)]
    return sorted(kept)
