"""Kubernetes manifests from a plan: one document an object, in dependency order, ready for kubectl, Argo CD or Flux. Pure.

What the Pulumi provider reads from annotations (`pulumi.com/*`) is taken off and kept beside the manifest. Protection travels as
annotations of ours, because once an object is no longer declared, the cluster is the only place that still knows.
"""

import functools
import graphlib
import heapq
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import yaml

from engine.faults import SlipwayError, rows
from engine.plan import Plan, Resource, Secret, masked, revealed, unknown_path
from names import annotations

CRD = "CustomResourceDefinition"
_FIRST = ("Namespace", CRD, "PriorityClass", "RuntimeClass", "StorageClass", "PersistentVolume", "PersistentVolumeClaim")
_LAST = ("Pod", "Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob")
CLUSTER_SCOPED = frozenset(_FIRST) - {"PersistentVolumeClaim"} | {
    *("APIService", "ClusterRole", "ClusterRoleBinding", "CSIDriver", "IngressClass", "MutatingWebhookConfiguration", "Node"),
    *("ValidatingWebhookConfiguration", "VolumeSnapshotClass"),
}
"""Kinds without a namespace, as far as they are known without a cluster; see `scoped`."""


class Key(NamedTuple):
    """What tells one object of a cluster from another."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def sort(self) -> "Sort":
        """What it is an object of."""
        return Sort(self.group, self.kind)


class Sort(NamedTuple):
    """A kind of objects in its group."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}".rstrip(".")

    @property
    def is_custom(self) -> bool:
        """True for a kind that a CustomResourceDefinition brings, by its group: Kubernetes' own end in `.k8s.io` or have no dot."""
        return "." in self.group and not self.group.endswith(".k8s.io")


@dataclass(frozen=True)
class Document:
    """One object to apply: its manifest (with Secret where a value is one), the resource it comes from, and the provider's annotations."""

    resource: Resource
    manifest: Mapping[str, Any]
    hints: Mapping[str, str]
    adopts: bool = False
    """True where the object may exist already and is taken over: the provider says `upsertExistingObjects`."""

    @property
    def key(self) -> Key:
        """The object's identity in the cluster."""
        return key_of(self.manifest)

    @property
    def is_waited_for(self) -> bool:
        """False where the stack says `pulumi.com/skipAwait`."""
        return self.hints.get("skipAwait", "").lower() != "true"

    @property
    def waits_for(self) -> tuple[str, ...]:
        """What `pulumi.com/waitFor` says: one expression, or a JSON list of them."""
        said = self.hints.get("waitFor", "")
        if not said:
            return ()
        try:
            listed: Any = json.loads(said)
        except ValueError:
            listed = None
        return tuple(str(expression) for expression in cast(list[Any], listed)) if isinstance(listed, list) else (said,)

    @property
    def is_forced(self) -> bool:
        """True where the stack says `pulumi.com/patchForce`: fields of other managers are taken over."""
        return self.hints.get("patchForce", "").lower() == "true"

    @property
    def brings(self) -> Sort | None:
        """The kind that a CustomResourceDefinition makes known; None for any other object."""
        if self.key.kind != CRD:
            return None
        spec: Mapping[str, Any] = self.manifest["spec"]
        return Sort(spec["group"], spec["names"]["kind"])

    @property
    def plural(self) -> str:
        """What a CustomResourceDefinition calls the objects of its kind in paths and rights."""
        return str(self.manifest["spec"]["names"]["plural"])

    @property
    def ignored(self) -> tuple[tuple[str, ...], ...]:
        """Paths of fields that only a new object gets as declared: its `ignoreChanges`."""
        return tuple(tuple(str(path).split(".")) for path in self.resource.options.get("ignoreChanges", ()))

    def beside(self, live: Mapping[str, Any]) -> "Document":
        """The document to apply where the object is there: ignored fields are as the cluster has them. So does the provider.

        Source: pulumi-kubernetes, provider/pkg/await/await.go, handleSSAIgnoreFields.
        """
        manifest = dict(self.manifest)
        for path in self.ignored:
            value = value_at(live, path)
            manifest = _with(manifest, path, Secret(value) if self.key.kind == "Secret" and value is not None else value)
        return replace(self, manifest=manifest)

    def without_namespace(self) -> "Document":
        """The document of an object that is in no namespace."""
        about = {key: value for key, value in self.manifest["metadata"].items() if key != "namespace"}
        return replace(self, manifest={**self.manifest, "metadata": about})

    @property
    def has_secrets(self) -> bool:
        """True when the manifest holds a value that must not be shown."""
        return masked(self.manifest) != revealed(self.manifest)


def value_at(manifest: Any, path: Sequence[str]) -> Any:
    """The value at a path of field names; None where there is none."""
    for key in path:
        manifest = cast(Mapping[str, Any], manifest).get(key) if isinstance(manifest, Mapping) else None
    return manifest


def _with(manifest: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """The manifest with another value at a path; without the field for None."""
    key, *rest = path
    inner: Any = _with(manifest.get(key) or {}, rest, value) if rest else value
    return {**{name: field for name, field in manifest.items() if name != key}, **({} if inner is None else {key: inner})}


def key_of(manifest: Mapping[str, Any]) -> Key:
    """The identity of a manifest or a live object."""
    group = str(manifest["apiVersion"]).rpartition("/")[0]
    about = manifest.get("metadata", {})
    return Key(group, manifest["kind"], str(about.get("namespace") or ""), str(about.get("name") or ""))


def annotation(manifest: Mapping[str, Any], name: str) -> str:
    """The value of an annotation of a manifest or a live object; empty where it has none."""
    given: dict[str, str] = manifest.get("metadata", {}).get("annotations") or {}
    return given.get(name, "")


def documents(plan: Plan) -> list[Document]:
    """Every Kubernetes object of the plan, each after what it depends on.

    Raises SlipwayError that names all resources `slipway` cannot make, or the first value that only a provider could compute.
    """
    if refused := sorted(f"{resource.type} {resource.name}" for resource in plan.resources if not _is_ours(resource)):
        raise SlipwayError(f"Only the pulumi CLI can make these {len(refused)} resources; run `pulumi up`:\n{rows(refused)}")
    known = {resource.urn: resource for resource in plan.resources}
    return [_document(resource, known) for resource in ordered(plan.resources)]


def own_documents(plan: Plan) -> list[Document]:
    """The objects of a plan, leaving aside what is not ours: a preview still shows the rest."""
    return documents(replace(plan, resources=tuple(filter(_is_ours, plan.resources))))


def scoped(declared: Sequence[Document], is_namespaced: Mapping[Sort, bool]) -> list[Document]:
    """The documents without a namespace where their kind has none: as the API server says, or the definition that the stack brings."""
    brought = {document.brings: document.manifest["spec"].get("scope") != "Cluster" for document in declared if document.brings}
    known = {**brought, **is_namespaced}
    return [document if known.get(document.key.sort, True) else document.without_namespace() for document in declared]


def depths(plan: Plan, declared: Iterable[Document]) -> dict[Key, int]:
    """For each object, how many others stand below it, one upon another; 0 where it depends on none. The deepest are destroyed first."""
    needs = _needs(plan.resources)

    @functools.cache
    def depth(urn: str) -> int:
        return 1 + max((depth(need) for need in needs[urn]), default=-1)

    return {document.key: depth(document.resource.urn) for document in declared}


def _needs(resources: Sequence[Resource]) -> dict[str, set[str]]:
    """The objects that each object depends on. What a component depends on, everything in it depends on: Pulumi's engine makes a resource
    after its parent, and a component after its dependencies."""
    known = {resource.urn: resource for resource in resources}

    def needs(resource: Resource) -> set[str]:
        found = set(resource.dependencies)
        above = known.get(resource.parent or "")
        while above:
            found.update(above.dependencies)
            above = known.get(above.parent or "")
        return {urn for urn in found if urn in known and known[urn].is_object}

    return {resource.urn: needs(resource) for resource in resources if resource.is_object}


def provider_inputs(resources: Iterable[Resource]) -> Mapping[str, Any]:
    """The inputs of the stack's Kubernetes provider; of the first by name where there are several."""
    providers = [provider for provider in resources if provider.type == "pulumi:providers:kubernetes"]
    return min(providers, key=lambda provider: provider.name).inputs if providers else {}


def ordered(resources: Sequence[Resource]) -> list[Resource]:
    """The objects, dependencies first; among the free ones by kind (namespaces first, workloads last), then by name. Stable."""
    objects = {resource.urn: resource for resource in resources if resource.is_object}
    sorter = graphlib.TopologicalSorter(_needs(resources))
    sorter.prepare()
    ready: list[tuple[int, str]] = []
    done: list[Resource] = []
    while sorter.is_active():
        for urn in sorter.get_ready():
            heapq.heappush(ready, (_rank(objects[urn]), urn))
        _, urn = heapq.heappop(ready)
        done.append(objects[urn])
        sorter.done(urn)
    return done


def namespace_of(found: Iterable[Document]) -> str:
    """The one namespace of the stack's objects, where its ApplySet and its random values are kept too.

    Raises SlipwayError for several: kubectl's ApplySets cover the namespace of their parent.
    """
    namespaces: dict[str, list[str]] = {}
    for document in found:
        if document.key.namespace:
            namespaces.setdefault(document.key.namespace, []).append(str(document.key))
    if len(namespaces) > 1:
        lines = rows(f"{name}: {', '.join(sorted(keys)[:3])}" for name, keys in sorted(namespaces.items()))
        raise SlipwayError(f"The stack has objects in several namespaces, which only the pulumi CLI can apply:\n{lines}")
    return next(iter(namespaces), "default")


class _Dumper(yaml.SafeDumper):
    """Files as literal blocks, so that a reviewer reads them line by line."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return cast(Any, dumper).represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def yaml_text(manifest: Mapping[str, Any]) -> str:
    """One manifest as YAML with its values as they are; keys sorted after apiVersion, kind and metadata. Stable."""
    first = {key: revealed(manifest[key]) for key in ("apiVersion", "kind", "metadata") if key in manifest}
    rest = {key: revealed(manifest[key]) for key in sorted(manifest) if key not in first}
    texts = (yaml.dump({key: value}, Dumper=_Dumper, allow_unicode=True, width=10_000) for key, value in {**first, **rest}.items())
    return "".join(texts)


def _is_ours(resource: Resource) -> bool:
    """False of a resource that only the pulumi CLI can make."""
    is_made_here = resource.is_object and "read" not in resource.options
    return is_made_here or resource.type.startswith("random:") or not resource.is_counted


def _document(resource: Resource, known: Mapping[str, Resource]) -> Document:
    if path := unknown_path(resource.inputs):
        raise SlipwayError(f"{resource.type} {resource.name}: {path} is known only after another resource was made; run `pulumi up`.")
    if path := next((str(path) for path in resource.options.get("ignoreChanges", ()) if set(str(path)) & set('["*')), None):
        raise SlipwayError(
            f"{resource.type} {resource.name}: ignoreChanges {path}: only names of fields with dots are understood; run `pulumi up`."
        )
    manifest: dict[str, Any] = {key: value for key, value in resource.inputs.items() if key != "status"}
    about = dict(manifest.get("metadata", {}))
    given = cast(dict[str, str], revealed(about.pop("annotations", {})))
    hints = {key.removeprefix("pulumi.com/"): value for key, value in given.items() if key.startswith("pulumi.com/")}
    kept = {key: value for key, value in given.items() if not key.startswith("pulumi.com/")}
    if resource.options.get("protect"):
        kept[annotations.PROTECT] = "true"
    if resource.options.get("retainOnDelete") and annotations.DECLARED_IN not in kept:
        kept[annotations.RETAIN] = "true"
    if manifest["kind"] == "Namespace" and (said := _provider(resource, known).get("clusterIdentifier")):
        kept[annotations.CLUSTER_IDENTIFIER] = str(said)
    if kept:
        about["annotations"] = kept
    if manifest["kind"] not in CLUSTER_SCOPED and not about.get("namespace"):
        about["namespace"] = str(_provider(resource, known).get("namespace") or "default")
    adopts = str(_provider(resource, known).get("upsertExistingObjects", "")).lower() == "true"
    return Document(resource, {**manifest, "metadata": about}, hints, adopts)


def _provider(resource: Resource, known: Mapping[str, Resource]) -> Mapping[str, Any]:
    """The inputs of the object's own provider."""
    provider = known.get(str(resource.options.get("provider", "")))
    return provider.inputs if provider else {}


def _rank(resource: Resource) -> int:
    kind = str(resource.inputs.get("kind"))
    if kind in _FIRST:
        return _FIRST.index(kind)
    return len(_FIRST) + 1 + _LAST.index(kind) if kind in _LAST else len(_FIRST)
