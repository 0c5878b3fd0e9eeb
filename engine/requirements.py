"""What a stack needs of a cluster that is not made for it: nodes with its labels, images that nodes can pull, classes for its disks. Pure.

Said all at once, each with its remedy, before anything is touched. What Kubernetes itself would say an hour later, as a Pending pod.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from engine.plan import revealed
from engine.render import Document

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_HERE_ONLY = "localhost/"
"""Images of that name were built on some machine, and no registry has them."""
_REPELS = ("NoSchedule", "NoExecute")
_NAMED = 3


@dataclass(frozen=True)
class Offer:
    """What a cluster has: its nodes and storage classes as the API server lists them, and the names of the namespace's claims."""

    nodes: Sequence[Mapping[str, Any]] = ()
    classes: Sequence[Mapping[str, Any]] = ()
    claims: frozenset[str] = frozenset()


def plan_missing(declared: Iterable[Document], offer: Offer) -> list[str]:
    """One line for each thing that the cluster lacks: what, for which objects, and what to do."""
    documents = [(document, cast(dict[str, Any], revealed(document.manifest))) for document in declared]
    made = {document.key.name for document, _ in documents if document.key.kind == "PersistentVolumeClaim"}
    selectors, images, classes, claims = (defaultdict[Any, dict[str, None]](dict) for _ in range(4))  # by want, the objects that have it
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
                if claim and claim not in made and claim not in offer.claims:
                    claims[claim][str(document.key)] = None
        for spec in _claim_specs(manifest):
            if (said := _missing_class(spec, offer.classes)) is not None:
                classes[said][str(document.key)] = None
    return [
        *(_say_selector(selector, labelled, names) for (selector, labelled), names in selectors.items()),
        *(_say_image(image, names) for image, names in images.items()),
        *(_say_class(name, names, offer.classes) for name, names in classes.items()),
        *(_say_claim(name, names) for name, names in claims.items()),
        *(_say_folder(path, sorted(nodes)) for path, nodes in folders.items() if len(nodes) > 1),
    ]


def _say_selector(selector: tuple[tuple[str, str], ...], labelled: bool, names: Iterable[str]) -> str:
    words = " ".join(f"{key}={value}" for key, value in selector)
    if labelled:
        remedy = "Say it in the stack's taints, or label another node."
        return f"Every node with the label {words} has a taint that the pods do not tolerate; {_for(names)}. {remedy}"
    return f"No node has the label {words}; {_for(names)}. Label one: kubectl label node NAME {words}"


def _say_image(image: str, names: Iterable[str]) -> str:
    remedy = "Push it to a registry that the nodes pull from, and put what this prints into the stack file: python -m images push REGISTRY"
    return f"Image {image} is only on the machine that built it; {_for(names)}. {remedy}"


def _say_class(name: str, names: Iterable[str], classes: Sequence[Mapping[str, Any]]) -> str:
    there = ", ".join(sorted(str(storage_class["metadata"]["name"]) for storage_class in classes)) or "none"
    what = f"StorageClass {name} is not there" if name else "The cluster has no default StorageClass"
    return f"{what}; {_for(names)}. There are: {there}. Name one of them as storageClass{'' if name else ', or make one the default'}."


def _say_claim(name: str, names: Iterable[str]) -> str:
    return f"PersistentVolumeClaim {name} is not in the namespace; {_for(names)}. Make it, or give the volume another source."


def _say_folder(path: str, nodes: Sequence[str]) -> str:
    where = f"is a folder of each node alone, and the pods that share it may run on {len(nodes)} nodes ({_few(nodes)})"
    return f"hostPath {path} {where}. Give the volume another source (docs/operate/storage.md)."


def _for(names: Iterable[str]) -> str:
    return f"wanted by {_few(list(names))}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _pods(value: Any) -> Iterator[dict[str, Any]]:
    """Every pod spec inside a manifest, whatever kind it is of."""
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
    """False for a set without pods: its machines may be made when it gets some."""
    return cast(dict[str, Any], manifest.get("spec") or {}).get("replicas", 1) != 0


def _has_labels(node: Mapping[str, Any], selector: Iterable[tuple[str, str]]) -> bool:
    labels: dict[str, str] = node["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in selector)


def _is_tolerated(node: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    taints: list[dict[str, str]] = node.get("spec", {}).get("taints") or []
    tolerations: list[dict[str, str]] = pod.get("tolerations") or []
    return all(any(_tolerates(each, taint) for each in tolerations) for taint in taints if taint.get("effect") in _REPELS)


def _tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    """Source: Kubernetes' API conventions of Toleration: no key or no effect means every one."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", "")


def _has_image(node: Mapping[str, Any], image: str) -> bool:
    listed: list[dict[str, Any]] = node.get("status", {}).get("images") or []
    return any(image in (entry.get("names") or []) for entry in listed)


def _claim_specs(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The claims that an object is, or makes from its templates."""
    spec: dict[str, Any] = manifest.get("spec") or {}
    if manifest["kind"] == "PersistentVolumeClaim":
        return [spec]
    templates: list[dict[str, Any]] = spec.get("volumeClaimTemplates") or []
    return [template["spec"] for template in templates]


def _missing_class(spec: Mapping[str, Any], classes: Sequence[Mapping[str, Any]]) -> str | None:
    """The class that is not there; empty for the default class; None where nothing is missing."""
    name = spec.get("storageClassName")
    if name is None:
        annotations = [cast(dict[str, str], storage_class["metadata"].get("annotations") or {}) for storage_class in classes]
        return None if any(given.get(_DEFAULT_CLASS) == "true" for given in annotations) else ""
    return None if name == "" or any(storage_class["metadata"]["name"] == name for storage_class in classes) else str(name)
