"""What applying the declared objects would do to the live objects. Pure. What that does to pods and jobs: `changes`.

The truth is the API server's: each declared object as a server-side dry run returned it, against the live object. No schema is guessed at.
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
from names import annotations, labels

_TAKEN_OVER = "becomes this stack's"
_CLAIMS = "volumeClaimTemplates"
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
    return {**manifest, "metadata": {**about, "labels": {**about.get("labels", {}), labels.APPLYSET: set_id}}}


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
            new = results[document.key]
            changed = tuple(differences(clean(old), clean(new)))
            is_taken = _owner(old) != _owner(new)
            secret = document.key.kind == "Secret" or document.has_secrets
            changed = tuple(_hidden(each) for each in changed) if secret else changed
            op, note = ("update" if changed or is_taken else "same"), (_TAKEN_OVER if is_taken else "")
            found.append(ObjectChange(op, document.key, document, old, changed, note))
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
    own = {key: text for key, text in given.items() if key != labels.APPLYSET}
    about: dict[str, Any] = {key: field for key, field in metadata.items() if key not in (*_SERVER_OWNED, "labels")}
    if own:
        about["labels"] = own
    return {**{key: field for key, field in value.items() if key != "status"}, "metadata": about}


def _owner(value: Mapping[str, Any]) -> str | None:
    """The ApplySet that an object is a member of; None for one that is nobody's."""
    given: dict[str, str] = value.get("metadata", {}).get("labels") or {}
    return given.get(labels.APPLYSET)


def refusals(found: Iterable[ObjectChange], set_id: str, adopt: bool) -> list[str]:
    """Why these changes must not be made: protection, objects of others, a namespace on its way out. Empty when they may."""
    said: list[str] = []
    for change in found:
        about: dict[str, Any] = (change.live or {}).get("metadata", {})
        owner = _owner(change.live or {})
        if change.op in ("delete", "replace") and change.is_marked(annotations.PROTECT):
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
    declared_in = annotation_of(change.document.manifest, annotations.DECLARED_IN)
    is_listed = bool(declared_in) and annotation_of(change.live or {}, annotations.DECLARED_IN) == declared_in
    return change.document.adopts or is_listed or (change.key.kind == CRD and change.is_marked(annotations.RETAIN))


def retained(found: Iterable[ObjectChange]) -> list[Key]:
    """Objects no longer declared that stay in the cluster, as their `retainOnDelete` said."""
    return [change.key for change in found if change.op == "delete" and change.is_marked(annotations.RETAIN)]


def deleted_by_controller(found: Sequence[ObjectChange]) -> list[Key]:
    """Objects no longer declared whose controller deletes them, as their name leaves a list that is declared. If kubectl pruned them too,
    it would fail on each that the controller was quicker with."""
    lists = {(change.key.namespace, change.key.name) for change in found if change.document and change.key.kind == "ConfigMap"}
    gone = ((change.key, change.live) for change in found if change.op == "delete" and change.live)
    return [key for key, live in gone if (key.namespace, annotation_of(live, annotations.DECLARED_IN)) in lists]


def steps(found: Sequence[ObjectChange]) -> list[Step]:
    """The changes as `changes` tells their story: secrets stay masked."""
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
        for change in found
    ]


def left_as_they_are(found: Sequence[ObjectChange]) -> list[str]:
    """Fields whose declared value no longer counts, as their resource ignores changes: what is declared, and what stays. No keys, and
    nothing of disks whose claims are declared themselves: `changes.settled` tells of these."""
    said: list[str] = []
    claims = {change.key.name for change in found if change.document and change.key.kind == "PersistentVolumeClaim"}
    for change in found:
        if change.document is None or change.live is None or change.key.kind == "Secret":
            continue  # a key stays until it is rotated, which is what its declaration means, and is shown to nobody
        if annotation_of(change.document.manifest, annotations.STORAGE_CLASS):
            continue
        for path in change.document.ignored:
            for each in differences(value_at(change.live, path), masked(value_at(change.document.resource.inputs, path)), path):
                where = ".".join(each.path).replace(".[", "[")
                has_claims = path[-1] == _CLAIMS and _claims_of(change) <= claims
                if each.new is not None and not has_claims and not _is_same_quantity(each.old, each.new):
                    said.append(f"{change.key}: {where} stays {each.old}; {each.new} is for a new one only.")
    return said


def _claims_of(change: ObjectChange) -> set[str]:
    """The claims of a set's first pod."""
    return {f"{template['metadata']['name']}-{change.key.name}-0" for template in change.spec.get(_CLAIMS) or ()}


def _is_same_quantity(left: Any, right: Any) -> bool:
    """True for `1Ti` and `1024Gi`: the API server writes quantities its own way."""
    return quantity(left) is not None and quantity(left) == quantity(right)


def _hidden(difference: Difference) -> Difference:
    if difference.path[0] not in ("data", "stringData"):
        return difference
    return Difference(difference.path, MASK if difference.old is not None else None, MASK if difference.new is not None else None)


def claims_left(claims: Iterable[Mapping[str, Any]], workloads: Iterable[ObjectChange]) -> list[str]:
    """Claims that were made from the templates of sets, and that stay when these are deleted, as their retention says."""
    kept: list[str] = []
    for change in workloads:
        if change.key.kind not in RETENTION or takes_claims(change.key.kind, change.spec):
            continue
        templates: list[dict[str, Any]] = change.spec.get("volumeClaimTemplates", [])
        stems = [f"{template['metadata']['name']}-{change.key.name}-" for template in templates]
        names = [claim["metadata"]["name"] for claim in claims]
        kept += [name for name in names if any(name.startswith(stem) and name.removeprefix(stem).isdigit() for stem in stems)]
    return sorted(kept)
