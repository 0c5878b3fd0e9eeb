"""Objects as a stack declares them and as a cluster has them, and the changes between the two."""

from collections.abc import Mapping
from typing import Any

from engine.changes import (
    ObjectChange,
    applyset_id,
    labelled,
    object_changes,
)
from engine.plan import Resource
from engine.render import Document, key_of
from names import annotations

SET = applyset_id("slipway-demo-dev", "slurm")


def config_map(name: str, data: Mapping[str, Any] | None = None, kind: str = "ConfigMap", **about: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "slurm", **about}, "data": dict(data or {})}


def document(manifest: Mapping[str, Any], ignored: tuple[str, ...] = (), adopts: bool = False) -> Document:
    name = manifest["metadata"]["name"]
    options = {"ignoreChanges": list(ignored)} if ignored else {}
    return Document(Resource(name, f"kubernetes:core/v1:{manifest['kind']}", name, inputs=manifest, options=options), manifest, {}, adopts)


def live(manifest: Mapping[str, Any], set_id: str | None = SET, **about: Any) -> dict[str, Any]:
    made = labelled(manifest, set_id) if set_id else dict(manifest)
    server: dict[str, Any] = {"uid": "u", "resourceVersion": "7", "creationTimestamp": "now", "generation": 3, "managedFields": [{}]}
    return {**made, "metadata": {**made["metadata"], **server, **about}, "status": {"x": 1}}


def changes_of(
    declared: list[dict[str, Any]], there: list[dict[str, Any]], results: list[dict[str, Any]] | None = None
) -> list[ObjectChange]:
    answers = {key_of(manifest): manifest for manifest in ([live(manifest) for manifest in declared] if results is None else results)}
    return object_changes(
        [document(manifest) for manifest in declared], {key_of(manifest): manifest for manifest in there}, answers, {}, there
    )


def annotated(name: str, annotation: str) -> dict[str, Any]:
    return live(config_map(name), annotations={annotation: "true"})


def widget_set(**spec: Any) -> dict[str, Any]:
    about = {"name": "gpu", "namespace": "slurm"}
    return {"apiVersion": "slipway.dev/v1alpha1", "kind": "NodeSet", "metadata": about, "spec": spec}


def listed(name: str, declared_in: str = "sets") -> dict[str, Any]:
    return config_map(name, kind="NodeSet", annotations={annotations.DECLARED_IN: declared_in})
