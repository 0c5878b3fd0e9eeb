"""The record of what is deployed, for the guard: each object as it was declared, in Secrets that are written after all else.

While a deployment is going on, the record is that of the one before; `destroy` deletes it first. controllers/guard reads it.
"""

import base64
import bz2
import json
from collections.abc import Sequence
from typing import Any

import pulumi

from components.labels import Manifest, labels, metadata, object_name
from components.objects import Declared

COMPONENT = "deployed"
"""Tail of the Secrets' names: `<cluster>-deployed`, `<cluster>-deployed-2`, ..."""
GUARDED = (
    *("ConfigMap", "Secret", "Service", "ServiceAccount", "Deployment", "StatefulSet", "CronJob", "NetworkPolicy"),
    *("PodDisruptionBudget", "NodeSet"),
)
"""Kinds that are guarded. Not: what holds data (a deleted claim cannot be restored), and what grants rights."""
_MOST_BYTES = 700_000
"""Of what a Secret of the record holds, compressed. Kubernetes takes 1 MiB."""
_CONTENT = "data"
"""Of an immutable ConfigMap it is not recorded: nobody can edit it, and a deleted one is made again from what the guard has seen. The state
of the Pulumi CLI has three copies of the record, and the programs of the pods are nine tenths of what a stack declares."""
_OUTPUT_BYTES = 2_000
"""What a Secret's values are taken for: keys and passwords, which are known only later."""


def build_deployed(cluster: str, namespace: str, declared: Sequence[Declared]) -> list[Manifest]:
    """The Secrets of the record. An object that is too large for a Secret of its own is left out, and is not guarded."""
    secrets: list[dict[str, pulumi.Input[str]]] = [{}]
    used_bytes = 0
    for item in declared:
        if item.manifest["kind"] not in GUARDED or item.manifest["metadata"].get("namespace") != namespace:
            continue
        entry, entry_bytes = _entry(item)
        if entry_bytes > _MOST_BYTES:
            continue
        if used_bytes + entry_bytes > _MOST_BYTES:
            secrets.append({})
            used_bytes = 0
        used_bytes += entry_bytes
        secrets[-1][f"{item.manifest['kind']}.{item.manifest['metadata']['name']}"] = entry
    return [_build_secret(cluster, namespace, number, data) for number, data in enumerate(secrets, start=1)]


def deployed_name(cluster: str, number: int = 1) -> str:
    """Name of a Secret of the record."""
    return object_name(cluster, COMPONENT if number == 1 else f"{COMPONENT}-{number}")


def _entry(declared: Declared) -> tuple[pulumi.Input[str], int]:
    """The value of an entry, and about how many bytes it has."""
    # What others set is not the stack's to restore: a rotated key, a disk that cannot be resized in place.
    manifest, ignored = declared.manifest, list(declared.ignored)
    if manifest["kind"] == "ConfigMap" and manifest.get("immutable"):
        ignored.append(_CONTENT)
    for path in ignored:
        manifest = _without(manifest, path.split("."))
    content: dict[str, Any] = {"manifest": manifest, **({"ignored": ignored} if ignored else {})}
    try:
        packed = _pack(json.dumps(content, sort_keys=True))
    except TypeError:  # it has Outputs, which take a hundred times as long, so only where there are some
        stand_in = json.dumps(content, sort_keys=True, default=lambda _: "x" * _OUTPUT_BYTES)
        return pulumi.Output.secret(pulumi.Output.json_dumps(content, sort_keys=True)).apply(_pack), len(stand_in.encode())
    return pulumi.Output.secret(packed), len(packed) * 3 // 4


def _pack(text: str) -> str:
    """Text compressed, as the base64 that a Secret's `data` holds.

    By bzip2, which gives the same bytes everywhere. Those of gzip differ between builds of zlib (zlib-ng, Apple's), so that a preview on
    another machine would find each entry changed.
    """
    return base64.b64encode(bz2.compress(text.encode())).decode()


def _without(part: Manifest, path: list[str]) -> Manifest:
    """A copy without the value at a path."""
    key, rest = path[0], path[1:]
    if not rest or key not in part:
        return {name: value for name, value in part.items() if name != key}
    return {**part, key: _without(part[key], rest)}


def _build_secret(cluster: str, namespace: str, number: int, data: dict[str, pulumi.Input[str]]) -> Manifest:
    about = metadata(deployed_name(cluster, number), namespace, labels(cluster, COMPONENT))
    return {"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": "Opaque", "data": data}
