"""Reads from and writes to the cluster. Decisions are in changes.py and readiness.py.

A stack has two objects beside its declared ones: the parent of its ApplySet (ConfigMap `slipway-<project>-<stack>`) and its random values
(Secret `slipway-<project>-<stack>-random`). The Secret is created before any object that uses a value, and never overwritten. The ApplySet
is exactly kubectl's, so `kubectl apply --applyset --prune` works on it.
"""

import base64
import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any

from changes.disks import GROW_REMEDY, SHRINK_REMEDY
from changes.workloads import RECORD
from engine.api import Api, RefusedError, side_by_side
from engine.changes import applyset_id, labelled
from engine.faults import SlipwayError, rows
from engine.plan import revealed
from engine.readiness import has_condition
from engine.render import CRD, Document, Key, Sort, annotation, key_of
from engine.render import scoped as scoped_as
from engine.requirements import Offer
from names import annotations, crds, labels
from slurm.logs import readable

_NO_OPERATOR = "The stack sets monitoring.prometheus: Operator. Install the Prometheus Operator, or set Own."
_KINDS = "applyset.kubernetes.io/contains-group-kinds"
_IMMUTABLE = ("immutable", "updates to statefulset spec", "may not change", "cannot be changed")
"""Parts of the API server's messages about immutable fields; it has no error code for these."""
_CLI = 'conflict with "pulumi-kubernetes'
_CLIS = (
    "Nothing was changed: the Pulumi CLI deployed namespace {namespace}, and its provider manages fields of the objects. Use only one of "
    "the two tools in a namespace: run pulumi up, or run pulumi destroy and then this command. See docs/start/pulumi.md. To take the "
    "objects over, give --force-conflicts."
)
_RESIZES = {"must support resize": GROW_REMEDY, "can not be less than status.capacity": SHRINK_REMEDY}
"""Parts of the API server's messages about a disk size that it refuses, each with its remedy."""
_OWN_PODS = ("CronJob", "DaemonSet", "Deployment", "Job", "StatefulSet")
_VERBS = ("get", "list", "create", "patch", "delete")


@dataclass(frozen=True)
class Home:
    """A stack's place: its cluster, its namespace and the names of its own two objects."""

    api: Api
    namespace: str
    name: str

    @property
    def set_id(self) -> str:
        """The label value of the stack's objects."""
        return applyset_id(self.name, self.namespace)

    @property
    def keeper(self) -> Key:
        """The Secret with the random values."""
        return Key("", "Secret", self.namespace, f"{self.name}-random")

    @property
    def parent(self) -> Key:
        """The ConfigMap that is the parent of the ApplySet."""
        return Key("", "ConfigMap", self.namespace, self.name)


@dataclass(frozen=True)
class Kept:
    """What the stack's own two objects contain: random values by key, the Secret's version, and the kinds the stack has had."""

    values: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    version: str | None = None
    kinds: tuple[str, ...] = ()
    identifier: str = ""
    """The clusterIdentifier of the stack that stored the values."""

    @property
    def is_known(self) -> bool:
        """True if the stack has been applied to this cluster before."""
        return self.version is not None or bool(self.kinds)


@dataclass(frozen=True)
class Seen:
    """Live objects, the server's dry-run results, why it refuses to change some in place, and the members of the ApplySet."""

    live: Mapping[Key, Mapping[str, Any]]
    results: Mapping[Key, Mapping[str, Any]]
    immutable: Mapping[Key, str]
    members: Sequence[Mapping[str, Any]]
    untried: frozenset[Key] = frozenset()
    """Objects of a kind whose definition changes first: the server cannot check them before."""


def kept(home: Home) -> Kept:
    """The stack's own objects; empty before its first `up`."""
    secret, parent = (home.api.find(key) or {} for key in (home.keeper, home.parent))
    values = _data(secret)
    kinds = tuple(kind for kind in annotation(parent, _KINDS).split(",") if kind)
    return Kept(values, secret.get("metadata", {}).get("resourceVersion"), kinds, annotation(secret, annotations.CLUSTER_IDENTIFIER))


def keep(home: Home, before: Kept, fresh: Mapping[str, bytes], identifier: str) -> None:
    """Stores new random values and the stack's clusterIdentifier. Raises SlipwayError if the Secret was written in the meantime: the next
    run reads those values."""
    is_marked = before.version is None or before.identifier == identifier
    if not fresh and is_marked:
        return
    data = {key: base64.b64encode(value).decode() for key, value in fresh.items()}
    owner = {annotations.CLUSTER_IDENTIFIER: identifier} if identifier else {}
    try:
        if before.version is None:
            managed = {labels.MANAGED_BY: "slipway"}
            metadata = {"name": home.keeper.name, "namespace": home.namespace, "labels": managed, "annotations": owner}
            home.api.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": crds.RANDOM, "data": data})
        else:
            home.api.merge(home.keeper, {"metadata": {"resourceVersion": before.version, "annotations": owner}, "data": data})
    except RefusedError as error:
        raise SlipwayError(f"The stack's random values could not be stored, so nothing was applied: {error}") from error


def offer(home: Home) -> Offer:
    """What the cluster has that a stack may need. Raises SlipwayError if this user may not read it."""
    nodes, classes = home.api.list(Sort("", "Node")), home.api.list(Sort("storage.k8s.io", "StorageClass"))
    return Offer(nodes, classes, frozenset(str(claim["metadata"]["name"]) for claim in claims(home)))


def claims(home: Home) -> list[dict[str, Any]]:
    """The claims of the stack's namespace."""
    return home.api.list(Sort("", "PersistentVolumeClaim"), home.namespace)


def live_secrets(home: Home, declared: Sequence[Document]) -> dict[Key, Mapping[str, bytes]]:
    """The data of the declared Secrets that exist, whoever created them."""
    secrets = [document for document in declared if document.key.kind == "Secret"]
    return {key: _data(live) for key, live in _live(home, secrets).items()}


def _data(secret: Mapping[str, Any]) -> dict[str, bytes]:
    data: dict[str, str] = secret.get("data") or {}
    return {name: base64.b64decode(text) for name, text in data.items()}


def sort_of(name: str) -> Sort:
    """A kind from its name in an ApplySet: `NodeSet.slipway.dev`."""
    kind, _, group = name.partition(".")
    return Sort(group, kind)


def scoped(home: Home, declared: Sequence[Document]) -> list[Document]:
    """The documents, without a namespace if their kind has none."""
    return scoped_as(declared, {sort: served.is_namespaced for sort, served in home.api.kinds().items()})


def look(home: Home, declared: Sequence[Document], before: Kept, force_conflicts: bool) -> Seen:
    """Live objects, members and dry-run results. Raises SlipwayError with everything that the server refuses.

    Objects of a kind that the stack itself adds are new: the server is not asked about them.
    """
    _refuse_unknown(home, declared)
    known = [document for document in declared if document.key.sort in home.api.kinds()]
    live = _live(home, known)
    namespaces = {document.key.name for document in known if document.key.kind == "Namespace" and document.key not in live}

    def dry_run(document: Document) -> dict[str, Any] | RefusedError:
        try:
            return apply(home, document, force_conflicts, dry_run=True)
        except RefusedError as error:
            return error

    # In a namespace that does not exist yet, every object is new.
    answerable = [document for document in known if document.key.namespace not in namespaces]
    answers = dict(zip((document.key for document in answerable), side_by_side(dry_run, answerable), strict=True))
    results = {key: answer for key, answer in answers.items() if not isinstance(answer, RefusedError)}
    faults = {key: answer for key, answer in answers.items() if isinstance(answer, RefusedError)}
    changing = {document.brings for document in known if document.brings and _changes(live.get(document.key), results.get(document.key))}
    untried = frozenset(key for key, fault in faults.items() if key.sort in changing and fault.reason != "Conflict")
    immutable = {key: str(fault) for key, fault in faults.items() if key not in untried and _is_immutable(fault)}
    if refused := {key: fault for key, fault in faults.items() if key not in immutable and key not in untried}:
        if any(_CLI in str(fault) for fault in refused.values() if fault.reason == "Conflict"):
            raise SlipwayError(_CLIS.format(namespace=home.namespace))
        lines = rows(f"{key}: {_in_words(fault)}" for key, fault in refused.items())
        reason = "Forbidden" if any(fault.reason == "Forbidden" for fault in refused.values()) else "Invalid"
        raise RefusedError(f"The API server refuses {len(refused)} of the objects; nothing was changed:\n{lines}", 422, reason)
    return Seen(live, results, immutable, members(home, before, {document.key.sort for document in declared}), untried)


def _refuse_unknown(home: Home, declared: Sequence[Document]) -> None:
    """Raises SlipwayError with every object whose kind neither the API server nor the stack has."""
    known = {*home.api.kinds(), *(document.brings for document in declared)}
    if unknown := sorted(str(document.key) for document in declared if document.key.sort not in known):
        lacking = f"The API server does not know the kind of these {len(unknown)} objects, and the stack brings no {CRD} for it:"
        groups = {document.key.group for document in declared if document.key.sort not in known}
        remedy = f"\n{_NO_OPERATOR}" if "monitoring.coreos.com" in groups else ""
        raise SlipwayError(f"{lacking}\n{rows(unknown)}{remedy}")


def _is_immutable(fault: RefusedError) -> bool:
    return fault.reason == "Invalid" and any(sign in str(fault).lower() for sign in _IMMUTABLE)


def _in_words(fault: RefusedError) -> str:
    if fault.reason != "Conflict":
        remedy = next((remedy for sign, remedy in _RESIZES.items() if sign in str(fault)), "")
        return f"{fault}. {remedy}." if remedy else str(fault)
    return str(fault).replace("\n", " ") + "; take the fields over with --force-conflicts, or stop the other manager"


def beside_live(home: Home, declared: Sequence[Document]) -> list[Document]:
    """The documents, with the live values of the fields that ignore changes."""
    live = _live(home, [document for document in declared if document.ignored and document.key.sort in home.api.kinds()])
    return [document.beside(live[document.key]) if document.key in live else document for document in declared]


def _changes(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    return old is not None and new is not None and old.get("spec") != new.get("spec")


def _live(home: Home, declared: Iterable[Document]) -> dict[Key, Mapping[str, Any]]:
    objects = side_by_side(lambda document: home.api.find(document.key, str(document.manifest["apiVersion"])), declared)
    return {key_of(live): live for live in objects if live is not None}


def members(home: Home, before: Kept, more: Iterable[Sort] = ()) -> list[Mapping[str, Any]]:
    """Every live object of the stack: of the kinds it has had, and of `more`."""
    return of_sorts(home, {*map(sort_of, before.kinds), *more})


def of_sorts(home: Home, sorts: Iterable[Sort]) -> list[Mapping[str, Any]]:
    """The objects of these kinds that carry the ApplySet's label."""
    list_members = partial(home.api.list, namespace=home.namespace, labelSelector=f"{labels.APPLYSET}={home.set_id}")
    return [live for objects in side_by_side(list_members, sorted(set(sorts) & home.api.kinds().keys())) for live in objects]


def unlisted(home: Home, before: Kept) -> list[Sort]:
    """Kinds the stack has had that the API server does not list now, for instance as an aggregated API is down."""
    return sorted(set(map(sort_of, before.kinds)) - home.api.kinds().keys())


def lacking_rights(home: Home, declared: Iterable[Document]) -> list[str]:
    """The rights that the stack needs and this user lacks, a line for each kind: `statefulsets.apps: create, delete`."""
    kinds = home.api.kinds()
    resources = {(document.key.group, kinds[document.key.sort].plural) for document in declared if document.key.sort in kinds}
    resources |= {(document.brings.group, document.plural) for document in declared if document.brings}
    resources |= {("", "secrets"), ("", "configmaps")}
    cluster_wide = {(sort.group, served.plural) for sort, served in kinds.items() if not served.is_namespaced}

    def is_refused(right: tuple[str, str, str]) -> bool:
        group, plural, verb = right
        scope = {} if (group, plural) in cluster_wide else {"namespace": home.namespace}
        spec = {"resourceAttributes": {"group": group, "resource": plural, "verb": verb, **scope}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {}, "spec": spec}
        return not home.api.create(review).get("status", {}).get("allowed")

    rights = [(group, plural, verb) for group, plural in sorted(resources) for verb in _VERBS]
    refused_verbs: dict[str, list[str]] = {}
    for (group, plural, verb), is_lacking in zip(rights, side_by_side(is_refused, rights), strict=True):
        if is_lacking:
            refused_verbs.setdefault(f"{plural}.{group}".rstrip("."), []).append(verb)
    return [f"{name}: {', '.join(verbs)}" for name, verbs in refused_verbs.items()]


def apply(home: Home, document: Document, force_conflicts: bool, dry_run: bool = False) -> dict[str, Any]:
    """Applies an object as a member of the ApplySet, see Api.apply."""
    manifest: dict[str, Any] = revealed(labelled(document.manifest, home.set_id))
    return home.api.apply(manifest, force_conflicts or document.is_forced, dry_run)


def make_kinds(home: Home, definitions: Sequence[Document], force_conflicts: bool, timeout_s: float) -> None:
    """Applies CustomResourceDefinitions and returns when the API server serves their kinds. Raises SlipwayError after `timeout_s`."""
    live = [apply(home, document, force_conflicts) for document in definitions]
    deadline = time.monotonic() + timeout_s
    for definition in live:
        while not has_condition(definition, "Established"):
            if time.monotonic() > deadline:
                raise SlipwayError(f"The API server has not established {key_of(definition)} after {timeout_s:.0f} s.")
            home.api.await_change(definition, 1)
            definition = home.api.find(key_of(definition)) or definition
    # A kind is listed a moment after its definition is Established.
    while missing := {document.brings for document in definitions} - home.api.kinds(again=True).keys():
        if time.monotonic() > deadline:
            raise SlipwayError(f"The API server does not serve {', '.join(sorted(map(str, missing)))} after {timeout_s:.0f} s.")
        time.sleep(0.3)


def enlist(home: Home, sorts: Iterable[Sort]) -> None:
    """Records the kinds of the ApplySet's members at its parent, and creates the parent if it does not exist.

    Before objects are applied, these are all old and new kinds; afterwards, those that are left. Source: KEP-3659.
    """
    metadata = {
        "name": home.name,
        "namespace": home.namespace,
        "labels": {"applyset.kubernetes.io/id": home.set_id},
        "annotations": {
            "applyset.kubernetes.io/tooling": "kubectl/v1",
            "applyset.kubernetes.io/additional-namespaces": "",
            _KINDS: ",".join(sorted(map(str, set(sorts)))),
        },
    }
    home.api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, force=True, manager="kubectl-applyset")


def release(home: Home, keys: Iterable[Key]) -> None:
    """Removes objects from the ApplySet, so that they are not pruned. An object that does not exist does not count as an error."""
    for key in keys:
        try:
            home.api.merge(key, {"metadata": {"labels": {labels.APPLYSET: None}}})
        except RefusedError as error:
            if error.reason != "NotFound":
                raise SlipwayError(f"{key} could not be released: {error}") from error


def unrecord(home: Home, keys: Iterable[Key]) -> None:
    """Removes objects from the guard's record, so that it does not recreate them while they are replaced. `up` rewrites the record."""
    if not (entries := {f"{key.kind}.{key.name}": None for key in keys}):
        return
    for secret in home.api.list(Sort("", "Secret"), home.namespace, labelSelector="=".join(RECORD)):
        if entries.keys() & (secret.get("data") or {}).keys():
            home.api.merge(key_of(secret), {"data": entries})


def delete(home: Home, objects: Iterable[Mapping[str, Any]]) -> list[Key]:
    """Requests the deletion of objects without waiting. Returns those that were recreated: the new object is not deleted.

    Kubernetes' own workloads are deleted in the foreground, so they stay until their pods are gone. Other kinds are not: Kubernetes would
    delete their dependents at once, before their controller can stop them (a NodeSet drains its nodes first).
    """
    recreated: list[Key] = []
    for live in objects:
        propagation = "Foreground" if live["kind"] in _OWN_PODS else "Background"
        try:
            home.api.delete(key_of(live), str(live["apiVersion"]), propagation, str(live["metadata"].get("uid") or ""))
        except RefusedError as error:
            if error.code != HTTPStatus.CONFLICT:
                raise
            recreated.append(key_of(live))
    return recreated


def remaining(home: Home, objects: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The objects that still exist, as they are now. An object recreated under the same name does not count."""
    uids = {live["metadata"].get("uid") for live in objects}
    current = side_by_side(lambda live: home.api.find(key_of(live), str(live["apiVersion"])), objects)
    return [live for live in current if live and live["metadata"].get("uid") in uids]


def forget(home: Home) -> None:
    """Deletes the stack's own two objects."""
    for key in (home.parent, home.keeper):
        home.api.delete(key)


def last_words(home: Home, pod: str, container: str) -> list[str]:
    """The last log lines of a container that keeps ending: of its newest run, or of the previous one if that has logged nothing."""
    path = home.api.path("", Key("", "Pod", home.namespace, pod), "log")
    for previous in ("false", "true"):
        with contextlib.suppress(RefusedError):
            text = home.api.request("GET", path, container=container, tailLines="8", previous=previous).text
            if lines := [line for line in text.splitlines() if line and not line.startswith("unable to retrieve container logs")]:
                return [readable(line) for line in lines]
    return []


def growing_classes(home: Home) -> dict[str, bool]:
    """Whether each StorageClass allows its disks to grow."""
    classes = home.api.list(Sort("storage.k8s.io", "StorageClass"))
    return {str(storage_class["metadata"]["name"]): storage_class.get("allowVolumeExpansion") is True for storage_class in classes}
