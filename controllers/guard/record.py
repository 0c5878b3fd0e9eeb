"""What was last deployed: Secrets that the stack writes after all else, with each guarded object as it was declared.

An entry's key is `<kind>.<name>`, its value `{"manifest": ..., "ignored": [paths whose values are not the stack's]}` as JSON, compressed by
bzip2. Earlier versions of Slipway did not compress it. An upgrade rolls the guard before it writes the record, so it reads both.
"""

import base64
import bz2
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from controllers.runtime.structs import Key, ObjectMeta, PartialObject, Resource
from names import annotations, crds, labels

COMPONENT = f"{labels.COMPONENT}=deployed"
"""Selects the Secrets of the record."""

_BZIP2 = b"BZh"
"""Output of bzip2 starts with it, and JSON cannot."""

Name = tuple[str, str]
"""Kind and name of a guarded object. All are in the cluster's namespace."""
Path = tuple[str | int, ...]
"""Where a value is in an object: keys of maps, and places in lists."""

KINDS: Mapping[str, Resource[PartialObject]] = {
    kind: Resource(api_version, plural, kind, PartialObject, is_metadata_only=True)
    for api_version, plural, kind in (
        ("v1", "configmaps", "ConfigMap"),
        ("v1", "secrets", "Secret"),
        ("v1", "services", "Service"),
        ("v1", "serviceaccounts", "ServiceAccount"),
        ("apps/v1", "deployments", "Deployment"),
        ("apps/v1", "statefulsets", "StatefulSet"),
        ("batch/v1", "cronjobs", "CronJob"),
        ("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy"),
        ("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
        (crds.API_VERSION, "nodesets", "NodeSet"),
    )
}
"""The kinds that are guarded."""


class ManagedEntry(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Who wrote to an object, and when; which fields does not matter here."""

    manager: str = ""
    operation: str = ""
    time: str = ""


class RecordMeta(ObjectMeta, frozen=True, rename="camel", gc=False):
    """Metadata with the writers."""

    managed_fields: tuple[ManagedEntry, ...] = ()


class RecordSecret(msgspec.Struct, frozen=True, gc=False):
    """A Secret of the record; its values stay as they came until one is asked for."""

    metadata: RecordMeta
    data: dict[str, str] = {}


RECORD = Resource("v1", "secrets", "Secret", RecordSecret)


@dataclass(frozen=True)
class Declared:
    """An object as the stack declared it."""

    manifest: dict[str, Any]
    ignored: tuple[Path, ...]


@dataclass(frozen=True)
class Record:
    """The whole record."""

    entries: Mapping[Name, tuple[Key, str]] = field(default_factory=dict[Name, tuple[Key, str]])
    """Of each guarded object the Secret that has it, and its key there."""
    secrets: Mapping[Key, RecordSecret] = field(default_factory=dict[Key, RecordSecret])
    is_paused: bool = False

    def declared(self, name: Name) -> Declared | None:
        """What was declared; None where the object is none of the stack's. Raises ValueError for an entry that is none."""
        found = self.entries.get(name)
        if found is None:
            return None
        secret, key = found
        try:
            entry = msgspec.json.decode(_unpacked(self.secrets[secret].data[key]), type=_Entry)
        except (msgspec.DecodeError, OSError, ValueError) as error:
            raise ValueError(f"entry {key} of Secret {secret[1]} cannot be read: {error}") from None
        about = entry.manifest.get("metadata")
        if not isinstance(about, dict) or (entry.manifest.get("kind"), cast(dict[str, Any], about).get("name")) != name:
            raise ValueError(f"entry {key} of Secret {secret[1]} holds another object than {' '.join(name)}")
        return Declared(entry.manifest, tuple(tuple(path.split(".")) for path in entry.ignored))

    def secret_of(self, name: Name) -> RecordSecret | None:
        """The Secret that has the object."""
        found = self.entries.get(name)
        return self.secrets[found[0]] if found else None


def _unpacked(text: str) -> bytes:
    """An entry's JSON. Raises OSError or ValueError for what is neither form."""
    content = base64.b64decode(text)
    return bz2.decompress(content) if content.startswith(_BZIP2) else content


class _Entry(msgspec.Struct):
    manifest: dict[str, Any]
    ignored: list[str] = []


def read_record(secrets: Iterable[RecordSecret]) -> Record:
    """The record as its Secrets have it. One that is being deleted guards nothing any more: the stack is going."""
    found = {secret.metadata.key: secret for secret in secrets if secret.metadata.deletion_timestamp is None}
    entries: dict[Name, tuple[Key, str]] = {}
    for key in sorted(found):
        for each in found[key].data:
            kind, _, name = each.partition(".")
            if kind in KINDS:
                entries[kind, name] = key, each
    return Record(entries, found, any(annotations.GUARD in secret.metadata.annotations for secret in found.values()))
