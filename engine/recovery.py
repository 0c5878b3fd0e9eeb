"""Random values whose Secret is gone, read back from the live Secrets that were made from them. Pure.

The program is run with stand-ins first, so each place that a stand-in has in a declared Secret is where the live Secret has the value:
as it is, in base64 or hex, between other text, or in the body of a PEM file. A value that went through a hash is not read back; then
`up` refuses, as a new value would be a new key beside running daemons.
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
"""Random resources whose value is any bytes; the others give text."""
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
    """Values by their key, the place each was read from, the random resource each is of; and what could not be read."""

    values: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    places: Mapping[str, Place] = field(default_factory=dict[str, Place])
    live: Live = field(default_factory=dict[Key, Mapping[str, bytes]])
    unread: Mapping[str, Sequence[Key]] = field(default_factory=dict[str, Sequence[Key]])
    """Random resources that nothing can be read of, and the live Secrets that were made from them."""


def plan_recovery(plan: Plan, live: Live) -> Recovered:
    """What the live Secrets tell of the random values of a plan that was recorded with stand-ins."""
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
        users = [each for each in secrets if resource.urn in each.resource.dependencies]
        found = [(place, value) for each in users for place, value in _readings(stand_in, each, live[each.key]) if _can_be(resource, value)]
        # A Secret that ignores changes of its data keeps it, whatever is declared: a key of an older version, for instance.
        depend = [each for each in users if ("data",) not in each.ignored]
        if found and len({value for _, value in found}) == 1:
            places[key], values[key] = found[0]
        elif depend:
            unread[f"{resource.type.rpartition(':')[2]} {resource.name}"] = [each.key for each in depend]
    return Recovered(values, places, live, unread)


def refuse_unread(lost: Recovered, declared: Sequence[Document], keeper: Key) -> None:
    """Raises SlipwayError for values that could not be read, or that do not make the Secret they were read from."""
    made = {document.key: declared_data(document) for document in declared if document.key.kind == "Secret"}
    wrong = {str(place): [place.secret] for place in lost.places.values() if _differs(made, lost.live, place)}
    if not (unread := {**lost.unread, **wrong}):
        return
    named = rows(f"{name}: {', '.join(map(str, keys))}" for name, keys in sorted(unread.items()))
    raise SlipwayError(
        f"Nothing was changed: {keeper}, which keeps the stack's random values, is not there, and these live Secrets were made from values "
        f"that cannot be read back from them:\n{named}\nRestore {keeper} from a backup. To have new values made instead, which every "
        "daemon that uses them must be restarted for, delete the Secrets named here."
    )


def explained(lost: Recovered, keeper: Key) -> list[str]:
    """A message about values that were read back; it contains no value."""
    if not lost.values:
        return []
    return [f"{keeper} is not there; its values are taken from what live Secrets have: {', '.join(sorted(map(str, lost.places.values())))}"]


def declared_data(document: Document) -> dict[str, bytes]:
    """The content of a declared Secret, as its pods see it."""
    manifest: dict[str, Any] = revealed(document.manifest)
    encoded: dict[str, str] = manifest.get("data") or {}
    plain: dict[str, str] = manifest.get("stringData") or {}
    return {**{name: base64.b64decode(text) for name, text in encoded.items()}, **{name: text.encode() for name, text in plain.items()}}


def _can_be(resource: Resource, value: bytes) -> bool:
    """False for bytes that are no text where the resource gives text."""
    if resource.type.rpartition(":")[2] in _BYTES:
        return True
    try:
        return value.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _differs(made: Live, live: Live, place: Place) -> bool:
    return made.get(place.secret, {}).get(place.entry) != live[place.secret].get(place.entry)


def _readings(stand_in: bytes, secret: Document, live: Mapping[str, bytes]) -> Iterator[tuple[Place, bytes]]:
    """Each place of a Secret that holds the value, and the value there."""
    for entry, declared in declared_data(secret).items():
        if entry in live and (value := _read(declared, live[entry], stand_in)) is not None:
            yield Place(secret.key, entry), value


def _read(declared: bytes, live: bytes, stand_in: bytes) -> bytes | None:
    """The value that the live bytes have where the declared bytes have the stand-in; None where that cannot be told."""
    if len(stand_in) < _SHORTEST:
        return None
    forms = ((stand_in, bytes), (base64.b64encode(stand_in), _from_base64), (stand_in.hex().encode(), _from_hex))
    for form, decode in forms:
        before, there, after = declared.partition(form)
        fits = live.startswith(before) and live.endswith(after) and len(live) >= len(before) + len(after)
        if there and fits and (value := decode(live[len(before) : len(live) - len(after)])):
            return value
    for inner, other in zip(_inside(declared), _inside(live), strict=False):
        if (value := _read(inner, other, stand_in)) is not None:
            return value
    return None


def _inside(content: bytes) -> Iterator[bytes]:
    """What is encoded in the content: the bodies of PEM files."""
    for found in _PEM.finditer(content):
        yield _from_base64(b"".join(found[2].split())) or b""


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
