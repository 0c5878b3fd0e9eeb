"""The record of what was last deployed: Secrets that the stack writes after all else, with an entry `<kind>.<name>` for each guarded
object.

An entry is `{"manifest": ..., "ignored": [paths whose values are not the stack's]}` as JSON in bzip2. Earlier versions did not compress it:
an upgrade rolls the guard before it writes the record, so the guard reads both.
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
"""Path of a value in an object: keys of maps, and indexes of lists."""

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
    """A Secret of the record. Its values are decoded when an object is asked for."""

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
    """The record of all objects."""

    entries: Mapping[Name, tuple[Key, str]] = field(default_factory=dict[Name, tuple[Key, str]])
    """For each guarded object, the Secret that holds it and its key there."""
    secrets: Mapping[Key, RecordSecret] = field(default_factory=dict[Key, RecordSecret])
    is_paused: bool = False

    def declared(self, name: Name) -> Declared | None:
        """The object as declared. None if it is not the stack's. Raises ValueError for an invalid entry."""
        location = self.entries.get(name)
        if location is None:
            return None
        secret, key = location
        try:
            entry = msgspec.json.decode(_unpacked(self.secrets[secret].data[key]), type=_Entry)
        except (msgspec.DecodeError, OSError, ValueError) as error:
            raise ValueError(f"entry {key} of Secret {secret[1]} cannot be read: {error}") from None
        about = entry.manifest.get("metadata")
        if not isinstance(about, dict) or (entry.manifest.get("kind"), cast(dict[str, Any], about).get("name")) != name:
            raise ValueError(f"entry {key} of Secret {secret[1]} holds another object than {' '.join(name)}")
        return Declared(entry.manifest, tuple(tuple(path.split(".")) for path in entry.ignored))

    def secret_of(self, name: Name) -> RecordSecret | None:
        """The Secret that holds the object."""
        location = self.entries.get(name)
        return self.secrets[location[0]] if location else None


def _unpacked(text: str) -> bytes:
    """An entry's JSON. Raises OSError or ValueError for any other content."""
    content = base64.b64decode(text)
    return bz2.decompress(content) if content.startswith(_BZIP2) else content


class _Entry(msgspec.Struct):
    manifest: dict[str, Any]
    ignored: list[str] = []


def read_record(secrets: Iterable[RecordSecret]) -> Record:
    """The record in its Secrets. A Secret that is being deleted guards nothing: the stack is going."""
    present = {secret.metadata.key: secret for secret in secrets if secret.metadata.deletion_timestamp is None}
    entries: dict[Name, tuple[Key, str]] = {}
    for key in sorted(present):
        for entry_key in present[key].data:
            kind, _, name = entry_key.partition(".")
            if kind in KINDS:
                entries[kind, name] = key, entry_key
    return Record(entries, present, any(annotations.GUARD in secret.metadata.annotations for secret in present.values()))
