"""What an image says of itself beside its files: its architecture, its size, its variables and its folder."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from .refusals import Refused


def choose_manifest(raw: bytes, architecture: str) -> str:
    """The digest of the manifest for this node's architecture. Raises Refused with words that follow the image's name."""
    manifest = json.loads(raw)
    if "manifests" not in manifest:
        return f"sha256:{hashlib.sha256(raw).hexdigest()}"
    offered = {entry.get("platform", {}).get("architecture", "?"): entry["digest"] for entry in reversed(manifest["manifests"])}
    if architecture not in offered:
        named = ", ".join(sorted(name for name in offered if name not in ("unknown", "?"))) or "no architecture"
        raise Refused(f"is for {named}, and this node is {architecture}")
    return offered[architecture]


def sum_layers(raw: bytes) -> int:
    """Bytes that may be needed on the disk: the layers as they are fetched, and what is in them."""
    layers = json.loads(raw).get("layers", [])
    packed = sum(layer.get("size", 0) for layer in layers)
    return packed + sum(layer.get("size", 0) * (2 if layer.get("mediaType", "").endswith("gzip") else 1) for layer in layers)


def read_environment(config: Mapping[str, Any]) -> tuple[bytes, str]:
    """An image's variables, each ended by a zero byte, and its folder."""
    inner: Mapping[str, Any] = config.get("config") or {}
    entries: list[Any] = inner.get("Env") or []
    variables = [word for word in entries if isinstance(word, str) and "=" in word and "\0" not in word]
    folder = inner.get("WorkingDir") or ""
    return "".join(f"{word}\0" for word in variables).encode(), folder if folder.startswith("/") and "\n" not in folder else ""


def read_squashed(environment: str, start: str) -> tuple[bytes, str]:
    """The same for an image in enroot's format, from /etc/environment and the `cd` of /etc/rc."""
    assignments = [line.strip() for line in environment.splitlines() if "=" in line and not line.lstrip().startswith("#")]
    folder = ""
    for line in start.splitlines():
        if line.startswith("cd "):
            folder = line[3:].split("&&")[0].split(";")[0].strip().strip("\"'")
    plain = [
        f"{name}={value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in chr(34) + chr(39) else value}\0"
        for name, _, value in (assignment.partition("=") for assignment in assignments)
    ]
    return "".join(plain).encode(), folder if folder.startswith("/") else ""
