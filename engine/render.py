"""Makes Kubernetes manifests from a plan, in dependency order, ready for kubectl, Argo CD or Flux. Pure.

The Pulumi provider's annotations (`pulumi.com/*`) are removed from the manifest and kept beside it. Protection is written to annotations of
Slipway, as only the cluster still knows it once an object is no longer declared.
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
"""Cluster-scoped kinds that are known without a cluster; see `scoped`."""


class Key(NamedTuple):
    """The identity of an object in a cluster."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def sort(self) -> "Sort":
        """Its kind."""
        return Sort(self.group, self.kind)


class Sort(NamedTuple):
    """A kind and its API group."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}".rstrip(".")

    @property
    def is_custom(self) -> bool:
        """True for a kind of a CustomResourceDefinition. Kubernetes' own groups end in `.k8s.io` or have no dot."""
        return "." in self.group and not self.group.endswith(".k8s.io")


@dataclass(frozen=True)
class Document:
    """An object to apply: its manifest, which may contain Secret values, its resource, and the provider's annotations."""

    resource: Resource
    manifest: Mapping[str, Any]
    hints: Mapping[str, str]
    adopts: bool = False
    """True if an existing object is taken over: the provider has `upsertExistingObjects`."""

    @property
    def key(self) -> Key:
        """The object's identity in the cluster."""
        return key_of(self.manifest)

    @property
    def is_waited_for(self) -> bool:
        """False if the stack sets `pulumi.com/skipAwait`."""
        return self.hints.get("skipAwait", "").lower() != "true"

    @property
    def waits_for(self) -> tuple[str, ...]:
        """The expressions of `pulumi.com/waitFor`, which holds one or a JSON list of them."""
        hint = self.hints.get("waitFor", "")
        if not hint:
            return ()
        try:
            expressions: Any = json.loads(hint)
        except ValueError:
            expressions = None
        return tuple(str(expression) for expression in cast(list[Any], expressions)) if isinstance(expressions, list) else (hint,)

    @property
    def is_forced(self) -> bool:
        """True if the stack sets `pulumi.com/patchForce`: fields of other managers are taken over."""
        return self.hints.get("patchForce", "").lower() == "true"

    @property
    def brings(self) -> Sort | None:
        """The kind that a CustomResourceDefinition defines; None for any other object."""
        if self.key.kind != CRD:
            return None
        spec: Mapping[str, Any] = self.manifest["spec"]
        return Sort(spec["group"], spec["names"]["kind"])

    @property
    def plural(self) -> str:
        """The plural name in a CustomResourceDefinition, for paths and rights."""
        return str(self.manifest["spec"]["names"]["plural"])

    @property
    def ignored(self) -> tuple[tuple[str, ...], ...]:
        """The paths of `ignoreChanges`: only a new object gets the declared values."""
        return tuple(tuple(str(path).split(".")) for path in self.resource.options.get("ignoreChanges", ()))

    def beside(self, live: Mapping[str, Any]) -> "Document":
        """The document to apply to an existing object: ignored fields have their live values, as the provider does it.

        Source: pulumi-kubernetes, provider/pkg/await/await.go, handleSSAIgnoreFields.
        """
        manifest = dict(self.manifest)
        for path in self.ignored:
            value = value_at(live, path)
            manifest = _with(manifest, path, Secret(value) if self.key.kind == "Secret" and value is not None else value)
        return replace(self, manifest=manifest)

    def without_namespace(self) -> "Document":
        """The document of a cluster-scoped object."""
        metadata = {key: value for key, value in self.manifest["metadata"].items() if key != "namespace"}
        return replace(self, manifest={**self.manifest, "metadata": metadata})

    @property
    def has_secrets(self) -> bool:
        """True if the manifest contains a Secret value."""
        return masked(self.manifest) != revealed(self.manifest)


def value_at(manifest: Any, path: Sequence[str]) -> Any:
    """The value at a path of field names, or None."""
    for key in path:
        manifest = cast(Mapping[str, Any], manifest).get(key) if isinstance(manifest, Mapping) else None
    return manifest


def _with(manifest: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """The manifest with another value at a path; None removes the field."""
    key, *later_keys = path
    inner: Any = _with(manifest.get(key) or {}, later_keys, value) if later_keys else value
    return {**{name: field for name, field in manifest.items() if name != key}, **({} if inner is None else {key: inner})}


def key_of(manifest: Mapping[str, Any]) -> Key:
    """The identity of a manifest or a live object."""
    group = str(manifest["apiVersion"]).rpartition("/")[0]
    metadata = manifest.get("metadata", {})
    return Key(group, manifest["kind"], str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))


def annotation(manifest: Mapping[str, Any], name: str) -> str:
    """The value of an annotation of a manifest or a live object; empty if it is not set."""
    object_annotations: dict[str, str] = manifest.get("metadata", {}).get("annotations") or {}
    return object_annotations.get(name, "")


def documents(plan: Plan) -> list[Document]:
    """Every Kubernetes object of the plan, in dependency order.

    Raises SlipwayError with all resources that need the Pulumi CLI, or with the first value that only a provider could compute.
    """
    if refused := sorted(f"{resource.type} {resource.name}" for resource in plan.resources if not _is_ours(resource)):
        raise SlipwayError(f"Only the Pulumi CLI can make these {len(refused)} resources; run `pulumi up`:\n{rows(refused)}")
    known = {resource.urn: resource for resource in plan.resources}
    return [_document(resource, known) for resource in ordered(plan.resources)]


def own_documents(plan: Plan) -> list[Document]:
    """The objects of a plan, without resources that need the Pulumi CLI."""
    return documents(replace(plan, resources=tuple(filter(_is_ours, plan.resources))))


def scoped(declared: Sequence[Document], is_namespaced: Mapping[Sort, bool]) -> list[Document]:
    """The documents, without a namespace if their kind has none by the API server or by a declared CustomResourceDefinition."""
    defined = {document.brings: document.manifest["spec"].get("scope") != "Cluster" for document in declared if document.brings}
    known = {**defined, **is_namespaced}
    return [document if known.get(document.key.sort, True) else document.without_namespace() for document in declared]


def depths(plan: Plan, declared: Iterable[Document]) -> dict[Key, int]:
    """The length of each object's longest chain of dependencies; 0 if it depends on none. The deepest are destroyed first."""
    needs = _needs(plan.resources)

    @functools.cache
    def depth(urn: str) -> int:
        return 1 + max((depth(need) for need in needs[urn]), default=-1)

    return {document.key: depth(document.resource.urn) for document in declared}


def _needs(resources: Sequence[Resource]) -> dict[str, set[str]]:
    """The objects that each object depends on, itself or through its components. Pulumi's engine creates a resource after its parent, and
    a component after its dependencies."""
    known = {resource.urn: resource for resource in resources}

    def needs(resource: Resource) -> set[str]:
        urns = set(resource.dependencies)
        ancestor = known.get(resource.parent or "")
        while ancestor:
            urns.update(ancestor.dependencies)
            ancestor = known.get(ancestor.parent or "")
        return {urn for urn in urns if urn in known and known[urn].is_object}

    return {resource.urn: needs(resource) for resource in resources if resource.is_object}


def provider_inputs(resources: Iterable[Resource]) -> Mapping[str, Any]:
    """The inputs of the stack's Kubernetes provider; if there are several, of the first by name."""
    providers = [provider for provider in resources if provider.type == "pulumi:providers:kubernetes"]
    return min(providers, key=lambda provider: provider.name).inputs if providers else {}


def ordered(resources: Sequence[Resource]) -> list[Resource]:
    """The objects, dependencies first, then by kind (namespaces first, workloads last), then by name. Stable."""
    objects = {resource.urn: resource for resource in resources if resource.is_object}
    sorter = graphlib.TopologicalSorter(_needs(resources))
    sorter.prepare()
    ready: list[tuple[int, str]] = []
    sorted_objects: list[Resource] = []
    while sorter.is_active():
        for urn in sorter.get_ready():
            heapq.heappush(ready, (_rank(objects[urn]), urn))
        _, urn = heapq.heappop(ready)
        sorted_objects.append(objects[urn])
        sorter.done(urn)
    return sorted_objects


def namespace_of(declared: Iterable[Document]) -> str:
    """The one namespace of the stack's objects, its ApplySet and its random values.

    Raises SlipwayError if there are several: kubectl's ApplySets cover the namespace of their parent.
    """
    namespaces: dict[str, list[str]] = {}
    for document in declared:
        if document.key.namespace:
            namespaces.setdefault(document.key.namespace, []).append(str(document.key))
    if len(namespaces) > 1:
        lines = rows(f"{name}: {', '.join(sorted(keys)[:3])}" for name, keys in sorted(namespaces.items()))
        raise SlipwayError(f"The stack has objects in several namespaces, which only the Pulumi CLI can apply:\n{lines}")
    return next(iter(namespaces), "default")


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as literal blocks, for reviewers."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return cast(Any, dumper).represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def yaml_text(manifest: Mapping[str, Any]) -> str:
    """A manifest as YAML, secrets in plain; apiVersion, kind and metadata first, then sorted keys. Stable."""
    head = {key: revealed(manifest[key]) for key in ("apiVersion", "kind", "metadata") if key in manifest}
    tail = {key: revealed(manifest[key]) for key in sorted(manifest) if key not in head}
    texts = (yaml.dump({key: value}, Dumper=_Dumper, allow_unicode=True, width=10_000) for key, value in {**head, **tail}.items())
    return "".join(texts)


def _is_ours(resource: Resource) -> bool:
    """False for a resource that only the Pulumi CLI can make."""
    is_made_here = resource.is_object and "read" not in resource.options
    return is_made_here or resource.type.startswith("random:") or not resource.is_counted


def _document(resource: Resource, known: Mapping[str, Resource]) -> Document:
    if path := unknown_path(resource.inputs):
        raise SlipwayError(f"{resource.type} {resource.name}: {path} is known only after another resource is created; run `pulumi up`.")
    if path := next((str(path) for path in resource.options.get("ignoreChanges", ()) if set(str(path)) & set('["*')), None):
        raise SlipwayError(
            f"{resource.type} {resource.name}: ignoreChanges {path}: only field names joined by dots are supported; run `pulumi up`."
        )
    manifest: dict[str, Any] = {key: value for key, value in resource.inputs.items() if key != "status"}
    metadata = dict(manifest.get("metadata", {}))
    all_annotations = cast(dict[str, str], revealed(metadata.pop("annotations", {})))
    hints = {key.removeprefix("pulumi.com/"): value for key, value in all_annotations.items() if key.startswith("pulumi.com/")}
    object_annotations = {key: value for key, value in all_annotations.items() if not key.startswith("pulumi.com/")}
    if resource.options.get("protect"):
        object_annotations[annotations.PROTECT] = "true"
    if resource.options.get("retainOnDelete") and annotations.DECLARED_IN not in object_annotations:
        object_annotations[annotations.RETAIN] = "true"
    if manifest["kind"] == "Namespace" and (cluster_identifier := _provider(resource, known).get("clusterIdentifier")):
        object_annotations[annotations.CLUSTER_IDENTIFIER] = str(cluster_identifier)
    if object_annotations:
        metadata["annotations"] = object_annotations
    if manifest["kind"] not in CLUSTER_SCOPED and not metadata.get("namespace"):
        metadata["namespace"] = str(_provider(resource, known).get("namespace") or "default")
    adopts = str(_provider(resource, known).get("upsertExistingObjects", "")).lower() == "true"
    return Document(resource, {**manifest, "metadata": metadata}, hints, adopts)


def _provider(resource: Resource, known: Mapping[str, Resource]) -> Mapping[str, Any]:
    provider = known.get(str(resource.options.get("provider", "")))
    return provider.inputs if provider else {}


def _rank(resource: Resource) -> int:
    kind = str(resource.inputs.get("kind"))
    if kind in _FIRST:
        return _FIRST.index(kind)
    return len(_FIRST) + 1 + _LAST.index(kind) if kind in _LAST else len(_FIRST)
