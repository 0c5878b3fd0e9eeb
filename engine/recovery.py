"""Recovers random values, if the Secret that stores them is gone, from the live Secrets that were made from them. Pure.

The program first runs with stand-ins. Where a declared Secret contains a stand-in, the live Secret has the value. It may be plain, in
base64 or hex, between other text, or in the body of a PEM file. A hashed value cannot be recovered. Then `up` refuses, as daemons run with
the old key.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine import random_values
from engine.faults import SlipwayError, rows
from engine.plan import Plan, Resource, revealed
from engine.render import Document, Key, own_documents

Live = Mapping[Key, Mapping[str, bytes]]
"""Data of the live Secrets."""

_SHORTEST = 4
_BYTES = ("RandomBytes", "RandomId")
"""Random resources whose value is any bytes; the value of others is text."""
_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\s*([A-Za-z0-9+/=\s]+?)\s*-----END \1-----\s*")


@dataclass(frozen=True)
class Place:
    """One entry of one Secret."""

    secret: Key
    entry: str

    def __str__(self) -> str:
        return f"{self.entry} of {self.secret}"


@dataclass(frozen=True)
class Recovered:
    """Recovered values and their places by key, and the values that could not be recovered."""

    values: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    places: Mapping[str, Place] = field(default_factory=dict[str, Place])
    live: Live = field(default_factory=dict[Key, Mapping[str, bytes]])
    unread: Mapping[str, Sequence[Key]] = field(default_factory=dict[str, Sequence[Key]])
    """Random resources whose value cannot be recovered, and the live Secrets that were made from them."""


def plan_recovery(plan: Plan, live: Live) -> Recovered:
    """Recovers the random values of a plan that was recorded with stand-ins."""
    values: dict[str, bytes] = {}
    places: dict[str, Place] = {}
    unread: dict[str, Sequence[Key]] = {}
    secrets = [document for document in own_documents(plan) if document.key.kind == "Secret" and live.get(document.key)] if live else []
    for resource in plan.resources if secrets else ():
        if not resource.type.startswith("random:"):
            continue
        inputs = revealed(resource.inputs)
        key = random_values.key(resource.type, resource.name, inputs)
        stand_in = random_values.make(resource.type, inputs, random_values.placeholder(key))
        users = [secret for secret in secrets if resource.urn in secret.resource.dependencies]
        all_readings = (reading for secret in users for reading in _readings(stand_in, secret, live[secret.key]))
        readings = [(place, value) for place, value in all_readings if _can_be(resource, value)]
        # A Secret that ignores changes of its data keeps them, for instance a key of an older version.
        changing_users = [secret for secret in users if ("data",) not in secret.ignored]
        if readings and len({value for _, value in readings}) == 1:
            places[key], values[key] = readings[0]
        elif changing_users:
            unread[f"{resource.type.rpartition(':')[2]} {resource.name}"] = [secret.key for secret in changing_users]
    return Recovered(values, places, live, unread)


def refuse_unread(lost: Recovered, declared: Sequence[Document], keeper: Key) -> None:
    """Raises SlipwayError for values that were not recovered, or that do not yield the Secret they were read from."""
    declared_values = {document.key: declared_data(document) for document in declared if document.key.kind == "Secret"}
    mismatched = {str(place): [place.secret] for place in lost.places.values() if _differs(declared_values, lost.live, place)}
    if not (unread := {**lost.unread, **mismatched}):
        return
    lines = rows(f"{name}: {', '.join(map(str, keys))}" for name, keys in sorted(unread.items()))
    raise SlipwayError(
        f"Nothing was changed: {keeper}, which keeps the stack's random values, is not there, and these live Secrets were made from values "
        f"that cannot be read back from them:\n{lines}\nRestore {keeper} from a backup. To generate new values instead, delete the "
        "Secrets named here, and restart every daemon that uses them after the next `up`."
    )


def explained(lost: Recovered, keeper: Key) -> list[str]:
    """A message about the recovered values; it contains no value."""
    if not lost.values:
        return []
    return [f"{keeper} is missing; its values were recovered from live Secrets: {', '.join(sorted(map(str, lost.places.values())))}"]


def declared_data(document: Document) -> dict[str, bytes]:
    """The decoded content of a declared Secret."""
    manifest: dict[str, Any] = revealed(document.manifest)
    encoded: dict[str, str] = manifest.get("data") or {}
    plain_text: dict[str, str] = manifest.get("stringData") or {}
    return {
        **{name: base64.b64decode(text) for name, text in encoded.items()},
        **{name: text.encode() for name, text in plain_text.items()},
    }


def _can_be(resource: Resource, value: bytes) -> bool:
    """False for bytes that are not text if the resource's value is text."""
    if resource.type.rpartition(":")[2] in _BYTES:
        return True
    try:
        return value.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _differs(declared_values: Live, live: Live, place: Place) -> bool:
    return declared_values.get(place.secret, {}).get(place.entry) != live[place.secret].get(place.entry)


def _readings(stand_in: bytes, secret: Document, live: Mapping[str, bytes]) -> Iterator[tuple[Place, bytes]]:
    for entry, declared in declared_data(secret).items():
        if entry in live and (value := _read(declared, live[entry], stand_in)) is not None:
            yield Place(secret.key, entry), value


def _read(declared: bytes, live: bytes, stand_in: bytes) -> bytes | None:
    """The live bytes where the declared bytes have the stand-in; None if they cannot be identified."""
    if len(stand_in) < _SHORTEST:
        return None
    forms = ((stand_in, bytes), (base64.b64encode(stand_in), _from_base64), (stand_in.hex().encode(), _from_hex))
    for form, decode in forms:
        prefix, separator, suffix = declared.partition(form)
        fits = live.startswith(prefix) and live.endswith(suffix) and len(live) >= len(prefix) + len(suffix)
        if separator and fits and (value := decode(live[len(prefix) : len(live) - len(suffix)])):
            return value
    for declared_inner, live_inner in zip(_inside(declared), _inside(live), strict=False):
        if (value := _read(declared_inner, live_inner, stand_in)) is not None:
            return value
    return None


def _inside(content: bytes) -> Iterator[bytes]:
    """The decoded bodies of PEM files in the content."""
    for match in _PEM.finditer(content):
        yield _from_base64(b"".join(match[2].split())) or b""


def _from_base64(text: bytes) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return None


def _from_hex(text: bytes) -> bytes | None:
    try:
        return bytes.fromhex(text.decode("ascii"))
    except ValueError:
        return None
