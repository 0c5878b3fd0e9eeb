"""The record of the deployed objects, for the guard: each object as it was declared, in Secrets that are written last.

During a deployment, the record is that of the previous one. `destroy` deletes it first. controllers/guard reads it.
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
"""Guarded kinds: neither data (a deleted claim cannot be restored) nor rights."""
_MOST_BYTES = 700_000
"""Limit of the compressed content of one Secret of the record. Kubernetes' own limit is 1 MiB."""
_CONTENT = "data"
"""Not recorded for an immutable ConfigMap: nobody can edit it, and the guard recreates a deleted one from what it has seen. The Pulumi
CLI's state has three copies of the record, and the programs of the pods are nine tenths of what a stack declares."""
_OUTPUT_BYTES = 2_000
"""Assumed size of a value that is known only later: a key or password."""


def build_deployed(cluster: str, namespace: str, declared: Sequence[Declared]) -> list[Manifest]:
    """The Secrets of the record. An object that is too large for one Secret is left out and not guarded."""
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
    """The value of an entry, and its approximate size in bytes."""
    # The guard must not restore what others set: a rotated key, or the size of a disk.
    manifest, ignored = declared.manifest, list(declared.ignored)
    if manifest["kind"] == "ConfigMap" and manifest.get("immutable"):
        ignored.append(_CONTENT)
    for path in ignored:
        manifest = _without(manifest, path.split("."))
    content: dict[str, Any] = {"manifest": manifest, **({"ignored": ignored} if ignored else {})}
    try:
        packed = _pack(json.dumps(content, sort_keys=True))
    except TypeError:  # it contains Outputs; they take a hundred times as long, so they are handled only here
        stand_in = json.dumps(content, sort_keys=True, default=lambda _: "x" * _OUTPUT_BYTES)
        return pulumi.Output.secret(pulumi.Output.json_dumps(content, sort_keys=True)).apply(_pack), len(stand_in.encode())
    return pulumi.Output.secret(packed), len(packed) * 3 // 4


def _pack(text: str) -> str:
    """Compressed text in base64, for a Secret's `data`.

    bzip2 gives the same bytes everywhere. The bytes of gzip differ between builds of zlib (zlib-ng, Apple's), so a preview on another
    machine would show every entry as changed.
    """
    return base64.b64encode(bz2.compress(text.encode())).decode()


def _without(part: Manifest, path: list[str]) -> Manifest:
    key, steps = path[0], path[1:]
    if not steps or key not in part:
        return {name: value for name, value in part.items() if name != key}
    return {**part, key: _without(part[key], steps)}


def _build_secret(cluster: str, namespace: str, number: int, data: dict[str, pulumi.Input[str]]) -> Manifest:
    about = metadata(deployed_name(cluster, number), namespace, labels(cluster, COMPONENT))
    return {"apiVersion": "v1", "kind": "Secret", "metadata": about, "type": "Opaque", "data": data}
