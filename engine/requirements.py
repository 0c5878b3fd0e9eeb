"""What a stack needs of the cluster: nodes with its labels, images that nodes can pull, storage classes and claims. Pure.

All missing things are reported at once, each with its remedy, before any change. Otherwise pods would stay Pending later.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from engine.plan import revealed
from engine.render import Document

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_HERE_ONLY = "localhost/"
"""The prefix of images that were built on a machine and are in no registry."""
_REPELS = ("NoSchedule", "NoExecute")
_NAMED = 3


@dataclass(frozen=True)
class Offer:
    """What a cluster has: its nodes and storage classes from the API server, and the names of the namespace's claims."""

    nodes: Sequence[Mapping[str, Any]] = ()
    classes: Sequence[Mapping[str, Any]] = ()
    claims: frozenset[str] = frozenset()


def plan_missing(declared: Iterable[Document], offer: Offer) -> list[str]:
    """A line for each missing thing: what is missing, which objects need it, and what to do."""
    documents = [(document, cast(dict[str, Any], revealed(document.manifest))) for document in declared]
    declared_claims = {document.key.name for document, _ in documents if document.key.kind == "PersistentVolumeClaim"}
    selectors, images, classes, claims = (defaultdict[Any, dict[str, None]](dict) for _ in range(4))  # the objects by need
    folders: dict[str, set[str]] = {}
    for document, manifest in documents:
        for pod in _pods(manifest):
            selector = tuple(sorted(cast(dict[str, str], pod.get("nodeSelector") or {}).items()))
            fits = [node for node in offer.nodes if _has_labels(node, selector) and _is_tolerated(node, pod)]
            if selector and not fits and _runs_now(manifest):
                selectors[selector, any(_has_labels(node, selector) for node in offer.nodes)][str(document.key)] = None
            for image in _images(pod):
                if image.startswith(_HERE_ONLY) and not (fits and all(_has_image(node, image) for node in fits)):
                    images[image][str(document.key)] = None
            for volume in cast(list[dict[str, Any]], pod.get("volumes") or []):
                folder = cast(dict[str, str], volume.get("hostPath") or {})
                if folder.get("type") == "DirectoryOrCreate":
                    folders.setdefault(folder["path"], set()).update(str(node["metadata"]["name"]) for node in fits)
                claim = str(cast(dict[str, Any], volume.get("persistentVolumeClaim") or {}).get("claimName") or "")
                if claim and claim not in declared_claims and claim not in offer.claims:
                    claims[claim][str(document.key)] = None
        for spec in _claim_specs(manifest):
            if (missing_class := _missing_class(spec, offer.classes)) is not None:
                classes[missing_class][str(document.key)] = None
    return [
        *(_say_selector(selector, labelled, names) for (selector, labelled), names in selectors.items()),
        *(_say_image(image, names) for image, names in images.items()),
        *(_say_class(name, names, offer.classes) for name, names in classes.items()),
        *(_say_claim(name, names) for name, names in claims.items()),
        *(_say_folder(path, sorted(nodes)) for path, nodes in folders.items() if len(nodes) > 1),
    ]


def _say_selector(selector: tuple[tuple[str, str], ...], is_labelled: bool, names: Iterable[str]) -> str:
    label_text = " ".join(f"{key}={value}" for key, value in selector)
    if is_labelled:
        remedy = "Add the taint to the stack's taints, or label another node."
        return f"Every node with the label {label_text} has a taint that the pods do not tolerate; {_for(names)}. {remedy}"
    return f"No node has the label {label_text}; {_for(names)}. Label one: kubectl label node NAME {label_text}"


def _say_image(image: str, names: Iterable[str]) -> str:
    remedy = "Push it to a registry that the nodes pull from, and put what this prints into the stack file: python -m images push REGISTRY"
    return f"Image {image} is only on the machine that built it; {_for(names)}. {remedy}"


def _say_class(name: str, names: Iterable[str], classes: Sequence[Mapping[str, Any]]) -> str:
    class_names = ", ".join(sorted(str(storage_class["metadata"]["name"]) for storage_class in classes)) or "none"
    problem = f"There is no StorageClass {name}" if name else "The cluster has no default StorageClass"
    remedy = f"Set storageClass to one of them{'' if name else ', or make one the default'}."
    return f"{problem}; {_for(names)}. There are: {class_names}. {remedy}"


def _say_claim(name: str, names: Iterable[str]) -> str:
    return f"PersistentVolumeClaim {name} is not in the namespace; {_for(names)}. Create it, or give the volume another source."


def _say_folder(path: str, nodes: Sequence[str]) -> str:
    where = f"is local to each node, but the pods that share it may run on {len(nodes)} nodes ({_few(nodes)})"
    return f"hostPath {path} {where}. Give the volume another source (docs/operate/storage.md)."


def _for(names: Iterable[str]) -> str:
    return f"needed by {_few(list(names))}"


def _few(names: Sequence[str]) -> str:
    suffix = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + suffix


def _pods(value: Any) -> Iterator[dict[str, Any]]:
    """Every pod spec inside a manifest of any kind."""
    if isinstance(value, Mapping):
        entries = cast(dict[str, Any], value)
        if isinstance(entries.get("containers"), list):
            yield entries
            return
        for inner in entries.values():
            yield from _pods(inner)


def _images(pod: Mapping[str, Any]) -> list[str]:
    containers: list[dict[str, Any]] = [*(pod.get("initContainers") or []), *pod["containers"]]
    return sorted({str(container["image"]) for container in containers if container.get("image")})


def _runs_now(manifest: Mapping[str, Any]) -> bool:
    """False for a set with no replicas: its machines may be created when it is scaled up."""
    return cast(dict[str, Any], manifest.get("spec") or {}).get("replicas", 1) != 0


def _has_labels(node: Mapping[str, Any], selector: Iterable[tuple[str, str]]) -> bool:
    labels: dict[str, str] = node["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in selector)


def _is_tolerated(node: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    taints: list[dict[str, str]] = node.get("spec", {}).get("taints") or []
    tolerations: list[dict[str, str]] = pod.get("tolerations") or []
    return all(any(_tolerates(toleration, taint) for toleration in tolerations) for taint in taints if taint.get("effect") in _REPELS)


def _tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    """Source: Kubernetes' API type Toleration: no key or no effect matches all."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", "")


def _has_image(node: Mapping[str, Any], image: str) -> bool:
    node_images: list[dict[str, Any]] = node.get("status", {}).get("images") or []
    return any(image in (entry.get("names") or []) for entry in node_images)


def _claim_specs(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The spec of a claim, or of the claim templates of a workload."""
    spec: dict[str, Any] = manifest.get("spec") or {}
    if manifest["kind"] == "PersistentVolumeClaim":
        return [spec]
    templates: list[dict[str, Any]] = spec.get("volumeClaimTemplates") or []
    return [template["spec"] for template in templates]


def _missing_class(spec: Mapping[str, Any], classes: Sequence[Mapping[str, Any]]) -> str | None:
    """The name of the missing class, empty for the default class; None if no class is missing."""
    name = spec.get("storageClassName")
    if name is None:
        annotations = [cast(dict[str, str], storage_class["metadata"].get("annotations") or {}) for storage_class in classes]
        return None if any(class_annotations.get(_DEFAULT_CLASS) == "true" for class_annotations in annotations) else ""
    return None if name == "" or any(storage_class["metadata"]["name"] == name for storage_class in classes) else str(name)
