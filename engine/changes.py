"""What applying the declared objects would do to the live objects. Pure. The package `changes` says what that does to pods and jobs.

A declared object is compared as the API server's dry run returns it, so no schema is needed.
"""

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from changes.data import RETENTION, takes_claims
from changes.disks import quantity
from changes.steps import Difference, Op, Step, differences
from engine.plan import MASK, masked
from engine.readiness import has_failed
from engine.render import CRD, Document, Key, key_of, value_at
from engine.render import annotation as annotation_of
from engine.replacement import dotted
from names import annotations, labels

_TAKEN_OVER = "becomes this stack's"
_UNTRIED = f"the API server can check it only after its {CRD} has changed"
_CLAIMS = "volumeClaimTemplates"
_SERVER_OWNED = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink")


@dataclass(frozen=True)
class ObjectChange:
    """What happens to one object. `live` is None if it is new, `document` if it is no longer declared."""

    op: Op
    key: Key
    document: Document | None = None
    live: Mapping[str, Any] | None = None
    differences: tuple[Difference, ...] = ()
    note: str = ""

    def is_marked(self, annotation: str) -> bool:
        """True if the live object carries `annotation: "true"`, as declared when it was last applied."""
        return annotation_of(self.live or {}, annotation) == "true"

    @property
    def spec(self) -> Mapping[str, Any]:
        """The live object's spec; empty if it has none."""
        return (self.live or {}).get("spec", {})


def applyset_id(name: str, namespace: str) -> str:
    """The label value that kubectl gives the members of the ApplySet whose parent is ConfigMap `namespace/name`.

    Source: kubectl/pkg/cmd/apply/applyset.go, ApplySet.ID.
    """
    digest = hashlib.sha256(f"{name}.{namespace}.ConfigMap.".encode()).digest()
    return f"applyset-{base64.urlsafe_b64encode(digest).decode().rstrip('=')}-v1"


def labelled(manifest: Mapping[str, Any], set_id: str) -> dict[str, Any]:
    """The manifest as a member of the ApplySet, as kubectl would send it."""
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), labels.APPLYSET: set_id}}}


def object_changes(
    declared: Sequence[Document],
    live: Mapping[Key, Mapping[str, Any]],
    results: Mapping[Key, Mapping[str, Any]],
    immutable: Mapping[Key, str],
    members: Iterable[Mapping[str, Any]],
    untried: Collection[Key] = (),
) -> list[ObjectChange]:
    """One change for each object, in the order of `declared`, then the objects to prune.

    `immutable`: why the server refuses to update an object in place. `untried`: objects without a dry-run result, as the definition of
    their kind changes first.
    """
    changes: list[ObjectChange] = []
    for document in declared:
        key, before = document.key, live.get(document.key)
        if before is None:
            changes.append(ObjectChange("create", key, document))
        elif has_failed(before) and document.hints.get("replaceUnready") == "true":
            changes.append(ObjectChange("replace", key, document, before, note="it failed last time"))
        elif key in immutable:
            changes.append(ObjectChange("replace", key, document, before, note=immutable[key]))
        elif key in untried:
            changed_fields = tuple(differences(clean(before), _overlaid(clean(before), masked(document.manifest))))
            changes.append(ObjectChange("update", key, document, before, changed_fields, _UNTRIED))
        else:
            after = results[key]
            changed_fields = tuple(differences(clean(before), clean(after)))
            if key.kind == "Secret" or document.has_secrets:
                changed_fields = tuple(map(_hidden, changed_fields))
            is_taken = _owner(before) != _owner(after)
            op, note = ("update" if changed_fields or is_taken else "same"), (_TAKEN_OVER if is_taken else "")
            changes.append(ObjectChange(op, key, document, before, changed_fields, note))
    declared_keys = {document.key for document in declared}
    undeclared = sorted((member for member in members if key_of(member) not in declared_keys), key=key_of, reverse=True)
    changes += [ObjectChange("delete", key_of(live), live=live) for live in undeclared if not live["metadata"].get("deletionTimestamp")]
    return [_successor(change, changes) if change.op == "create" and change.key.kind == "ConfigMap" else change for change in changes]


def _overlaid(old: Any, new: Any) -> Any:
    """The old value with the declared one merged into it: the result of an apply, estimated without the server."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        before, after = cast(Mapping[str, Any], old), cast(Mapping[str, Any], new)
        return {**before, **{key: _overlaid(before.get(key), value) for key, value in after.items()}}
    return new


def _successor(new: ObjectChange, changes: Sequence[ObjectChange]) -> ObjectChange:
    """A new ConfigMap, named by its content, that replaces a deleted one gets the differences between the two."""
    stem = _stem(new.key.name)
    deleted_maps = (change for change in changes if change.op == "delete" and change.key.kind == "ConfigMap")
    predecessor = next((change for change in deleted_maps if stem and _stem(change.key.name) == stem), None)
    if predecessor is None or predecessor.live is None or new.document is None:
        return new
    changed_fields = differences(predecessor.live.get("data"), masked(new.document.manifest.get("data")), ("data",))
    return replace(new, differences=tuple(changed_fields), note=f"takes the place of {predecessor.key.name}")


def _stem(name: str) -> str | None:
    match = re.fullmatch(r"(.+)-[0-9a-f]{8,10}", name)
    return match.group(1) if match else None


def clean(value: Mapping[str, Any]) -> dict[str, Any]:
    """An object without the fields that only the server writes."""
    metadata: dict[str, Any] = value["metadata"]
    all_labels: dict[str, str] = metadata.get("labels") or {}
    stack_labels = {key: text for key, text in all_labels.items() if key != labels.APPLYSET}
    kept_metadata: dict[str, Any] = {key: field for key, field in metadata.items() if key not in (*_SERVER_OWNED, "labels")}
    if stack_labels:
        kept_metadata["labels"] = stack_labels
    return {**{key: field for key, field in value.items() if key != "status"}, "metadata": kept_metadata}


def _owner(value: Mapping[str, Any]) -> str | None:
    """The ApplySet that an object is a member of."""
    object_labels: dict[str, str] = value.get("metadata", {}).get("labels") or {}
    return object_labels.get(labels.APPLYSET)


def refusals(changes: Iterable[ObjectChange], set_id: str, adopt: bool) -> list[str]:
    """Why these changes must not be made: protected objects, objects of others, objects that are being deleted."""
    reasons: list[str] = []
    for change in changes:
        metadata: dict[str, Any] = (change.live or {}).get("metadata", {})
        owner = _owner(change.live or {})
        if change.op in ("delete", "replace") and change.is_marked(annotations.PROTECT):
            verb = "no longer declared" if change.op == "delete" else f"cannot change in place ({change.note})"
            reasons.append(f"{change.key} is protected and {verb}. Remove its protection, run `up`, then try again.")
        elif change.document and change.live and metadata.get("deletionTimestamp"):
            kind, name = change.key.kind.lower(), change.key.name
            reasons.append(f"{change.key} is being deleted; wait until it is gone (kubectl get {kind} {name}).")
        elif change.document and change.live and owner != set_id and not adopt and not _is_left_over(change, owner):
            whose = "belongs to another stack" if owner else "was not made by this stack"
            alternative = "Let one stack bring the kind and leave it out of this one" if change.key.kind == CRD else "Choose another name"
            reasons.append(f"{change.key} exists and {whose}. {alternative}, or take it over with --adopt.")
    return reasons


def _is_left_over(change: ObjectChange, owner: str | None) -> bool:
    """True if the object has no owner and this stack may take it over, for one of three reasons.

    Its provider upserts, an earlier stack retained its CustomResourceDefinition, or a controller is to delete it and has not yet.
    The Pulumi CLI does not mark what it retains.
    """
    if owner is not None or change.document is None:
        return False
    declared_in = annotation_of(change.document.manifest, annotations.DECLARED_IN)
    is_listed = bool(declared_in) and annotation_of(change.live or {}, annotations.DECLARED_IN) == declared_in
    return change.document.adopts or is_listed or (change.key.kind == CRD and change.is_marked(annotations.RETAIN))


def retained(changes: Iterable[ObjectChange]) -> list[Key]:
    """Objects that are no longer declared and stay in the cluster (`retainOnDelete`)."""
    return [change.key for change in changes if change.op == "delete" and change.is_marked(annotations.RETAIN)]


def deleted_by_controller(changes: Sequence[ObjectChange]) -> list[Key]:
    """Objects that are no longer declared and that their controller deletes, as their name leaves a declared list. If kubectl pruned them
    too, it would fail for each one that the controller deletes first."""
    lists = {(change.key.namespace, change.key.name) for change in changes if change.document and change.key.kind == "ConfigMap"}
    deletions = ((change.key, change.live) for change in changes if change.op == "delete" and change.live)
    return [key for key, live in deletions if (key.namespace, annotation_of(live, annotations.DECLARED_IN)) in lists]


def steps(changes: Sequence[ObjectChange]) -> list[Step]:
    """The changes in the form that the package `changes` reads. Secrets stay masked."""
    return [
        Step(
            change.op,
            change.key.group,
            change.key.kind,
            change.key.namespace,
            change.key.name,
            clean(change.live) if change.live else {},
            masked(change.document.manifest) if change.document else {},
            change.differences,
            is_retained=change.is_marked(annotations.RETAIN),
        )
        for change in changes
    ]


def left_as_they_are(changes: Sequence[ObjectChange]) -> list[str]:
    """A message for each field whose declared value is ignored (`ignoreChanges`). Secrets are left out, and so are disks whose claims are
    declared: `changes.settled` covers these."""
    messages: list[str] = []
    claims = {change.key.name for change in changes if change.document and change.key.kind == "PersistentVolumeClaim"}
    for change in changes:
        if change.document is None or change.live is None or change.key.kind == "Secret":
            continue  # a key is meant to stay until it is rotated, and is never shown
        if annotation_of(change.document.manifest, annotations.STORAGE_CLASS):
            continue
        for path in change.document.ignored:
            for difference in differences(value_at(change.live, path), masked(value_at(change.document.resource.inputs, path)), path):
                old, new = difference.old, difference.new
                has_claims = path[-1] == _CLAIMS and _claims_of(change) <= claims
                if new is not None and not has_claims and not _is_same_quantity(old, new):
                    messages.append(f"{change.key}: {dotted(difference.path)} stays {old}: only a new object gets {new}.")
    return messages


def _claims_of(change: ObjectChange) -> set[str]:
    """The claims of a set's first pod."""
    return {f"{template['metadata']['name']}-{change.key.name}-0" for template in change.spec.get(_CLAIMS) or ()}


def _is_same_quantity(left: Any, right: Any) -> bool:
    """True for `1Ti` and `1024Gi`: the API server normalizes quantities."""
    return quantity(left) is not None and quantity(left) == quantity(right)


def _hidden(difference: Difference) -> Difference:
    if difference.path[0] not in ("data", "stringData"):
        return difference
    return Difference(difference.path, MASK if difference.old is not None else None, MASK if difference.new is not None else None)


def claims_left(claims: Iterable[Mapping[str, Any]], workloads: Iterable[ObjectChange]) -> list[str]:
    """Claims made from the templates of sets that stay when the sets are deleted, by their retention policy."""
    remaining: list[str] = []
    for change in workloads:
        if change.key.kind not in RETENTION or takes_claims(change.key.kind, change.spec):
            continue
        templates: list[dict[str, Any]] = change.spec.get("volumeClaimTemplates", [])
        stems = [f"{template['metadata']['name']}-{change.key.name}-" for template in templates]
        names = [claim["metadata"]["name"] for claim in claims]
        remaining += [name for name in names if any(name.startswith(stem) and name.removeprefix(stem).isdigit() for stem in stems)]
    return sorted(remaining)
