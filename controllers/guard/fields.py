"""What an object's managed fields tell: who wrote it, which fields are whose. And how two versions of an object differ. Pure.

Source: Kubernetes' documentation of server-side apply. `time` is when a manager last wrote; that others took fields from it leaves it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from controllers.guard.record import Path
from names import annotations, labels, writers

_OUR_OWN = frozenset({writers.SLIPWAY, writers.GUARD})
_COMPARED_META = ("labels", "annotations", "finalizers")
_ATOM: Mapping[str, Any] = {}
_ANNOTATION = ("f:metadata", "f:annotations", f"f:{annotations.GUARD}")
"""The guard's own field."""


@dataclass(frozen=True)
class Manager:
    """An entry of an object's managed fields."""

    manager: str
    operation: str
    time: str
    """RFC 3339 in UTC, so the later time is the greater text."""
    fields: Mapping[str, Any]

    @property
    def program(self) -> str:
        """writers.SLIPWAY or writers.PULUMI for what `up` wrote, else empty."""
        deployed_by = program(self.manager)
        return "" if deployed_by == writers.SLIPWAY and self.operation != "Apply" else deployed_by

    def __str__(self) -> str:
        return f"{self.manager} at {self.time}"


def program(manager: str) -> str:
    """The program that deploys stacks under this name: writers.SLIPWAY, writers.PULUMI, or none."""
    if manager.startswith(writers.PULUMI):
        return writers.PULUMI
    return writers.SLIPWAY if manager == writers.SLIPWAY else ""


def managers(live: Mapping[str, Any]) -> list[Manager]:
    """Who wrote an object, but for its status."""
    entries = cast(list[dict[str, Any]], live["metadata"].get("managedFields") or [])
    return [
        Manager(str(entry.get("manager", "")), str(entry.get("operation", "")), str(entry.get("time", "")), entry.get("fieldsV1") or {})
        for entry in entries
        if entry.get("subresource") != "status"
    ]


def deployer(entries: Iterable[Manager], by: str) -> Manager | None:
    """The program's last apply, else the entry that it created the object with."""
    return max(
        (entry for entry in entries if entry.program == by), key=lambda entry: (entry.operation == "Apply", entry.time), default=None
    )


def deployed_at(entries: Iterable[Manager]) -> str:
    """When `up` last wrote, by either program; empty for never."""
    return max((entry.time for entry in entries if entry.program), default="")


def mended(live: Mapping[str, Any], by: str) -> list[dict[str, Any]] | None:
    """The object's managed fields, with the fields that the guard restored under another name given back to the program `by`, which
    deployed it. None if there are none. Otherwise the program's next change of them would meet a conflict.

    The guard writes as itself where applying as Slipway's engine is refused. Older guards restored objects of the Pulumi CLI as the engine.
    """
    entries = cast(list[dict[str, Any]], live["metadata"].get("managedFields") or [])
    main_entries = [entry for entry in entries if not entry.get("subresource")]
    writer = (writers.SLIPWAY, "Apply") if by == writers.PULUMI else (writers.GUARD, "Update")
    stray = next((entry for entry in main_entries if (entry.get("manager"), entry.get("operation")) == writer), None)
    if stray is None or (
        by == writers.PULUMI and f"f:{labels.APPLYSET}" in (value_at(stray, ("fieldsV1", "f:metadata", "f:labels")) or {})
    ):
        return None  # none, or the engine's own: it is taking the stack over
    taken = _without(stray.get("fieldsV1") or {}, _ANNOTATION)
    if not taken:
        return None
    heirs = [
        entry
        for entry in main_entries
        if program(str(entry.get("manager"))) == by and (by == writers.PULUMI or entry.get("operation") == "Apply")
    ]
    heir = max(heirs, key=lambda entry: (entry.get("operation") == "Apply", str(entry.get("time"))), default=None)
    if heir is None:
        merged: dict[str, Any] = {**stray, "manager": by, "operation": "Update" if by == writers.PULUMI else "Apply", "fieldsV1": taken}
    else:
        merged = {**heir, "fieldsV1": _union(heir.get("fieldsV1") or {}, taken)}
    has_annotation = value_at(stray, ("fieldsV1", *_ANNOTATION)) is not None
    left: list[dict[str, Any]] = [{**stray, "fieldsV1": {"f:metadata": {"f:annotations": {_ANNOTATION[-1]: {}}}}}] if has_annotation else []
    return [*(entry for entry in entries if entry is not stray and entry is not heir), *left, merged]


def owners(entries: Iterable[Manager], live: Mapping[str, Any], path: Path) -> list[Manager]:
    """The managers that own a field."""
    return [entry for entry in entries if _has(entry.fields, live, path)]


def culprits(entries: Sequence[Manager], live: Mapping[str, Any], paths: Iterable[Path]) -> list[Manager]:
    """The known managers that changed these fields. A removed field has no owner, so the last writer after the deployment is returned for
    it. `kubectl scale` of an object of the Pulumi CLI leaves no trace.
    """
    strangers = [entry for entry in entries if not entry.program and entry.manager not in _OUR_OWN]
    named = [entry for path in paths for entry in owners(strangers, live, path)]
    if not named:
        since = [entry for entry in strangers if entry.time >= deployed_at(entries)]
        named = [max(since, key=lambda entry: entry.time)] if since else []
    return sorted({str(entry): entry for entry in named}.values(), key=lambda entry: entry.time)


def content(item: Mapping[str, Any]) -> dict[str, Any]:
    """An object without its status and the server's own bookkeeping."""
    body = {key: value for key, value in item.items() if key not in ("status", "apiVersion", "kind", "metadata")}
    about: Mapping[str, Any] = item.get("metadata") or {}
    return body | {"metadata": {key: about[key] for key in _COMPARED_META if key in about}}


def differences(live: Any, would: Any, at: Path = ()) -> list[Path]:
    """Where two values differ. Lists of unequal length differ whole."""
    if isinstance(live, Mapping) and isinstance(would, Mapping):
        left, right = cast(Mapping[str, Any], live), cast(Mapping[str, Any], would)
        return [path for key in sorted({*left, *right}) for path in differences(left.get(key), right.get(key), (*at, key))]
    if isinstance(live, list) and isinstance(would, list):
        before, after = cast(list[Any], live), cast(list[Any], would)
        if len(before) != len(after):
            return [at]
        pairs = enumerate(zip(before, after, strict=True))
        return [path for index, (left_item, right_item) in pairs for path in differences(left_item, right_item, (*at, index))]
    return [] if live == would else [at]


def merge_patch(live: Mapping[str, Any], would: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7396) that leads from one value to the other."""
    patch: dict[str, Any] = {}
    for key in sorted({*live, *would}):
        before, after = live.get(key), would.get(key)
        if before == after:
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            patch[key] = merge_patch(cast(Mapping[str, Any], before), cast(Mapping[str, Any], after))
        else:
            patch[key] = after
    return patch


def value_at(value: Any, path: Path) -> Any:
    """The value at a path; None where there is none."""
    for part in path:
        if isinstance(value, Mapping) and isinstance(part, str):
            value = cast(Mapping[str, Any], value).get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(cast(list[Any], value)):
            value = cast(list[Any], value)[part]
        else:
            return None
    return value


def show(path: Path) -> str:
    """A path as people write it: `spec.containers[0].image`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".")


def _has(fields: Mapping[str, Any], value: Any, path: Path) -> bool:
    """True if a set of fields (FieldsV1) has a path. A field without fields of its own is owned as a whole."""
    if not path:
        return True
    head, tail = path[0], path[1:]
    below = value_at(value, (head,))
    if isinstance(head, str):
        node = fields.get(f"f:{head}")
        return node is not None and (node == _ATOM or _has(node, below, tail))
    for key, node in fields.items():
        if key.startswith("k:") and isinstance(below, Mapping):
            item = cast(Mapping[str, Any], below)
            if all(item.get(name) == expected for name, expected in json.loads(key[2:]).items()):
                return node == _ATOM or _has(node, below, tail)
        if key.startswith("v:") and json.loads(key[2:]) == below:
            return True
    return False


def _without(fields: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """A set of fields (FieldsV1) without a path, and without maps that this leaves empty."""
    head, tail = path[0], path[1:]
    left = {key: node for key, node in fields.items() if key != head}
    below = _without(fields[head], tail) if tail and head in fields else {}
    return left | ({head: below} if below.keys() - {"."} else {})


def _union(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Both sets of fields (FieldsV1). A field without fields of its own is a member; a field with some is a member if `.` is among them."""
    union = dict(first)
    for key, node in second.items():
        present = union.get(key)
        if present is None or present == node:
            union[key] = node
        else:
            union[key] = _union(present or {".": {}}, node or {".": {}})
    return union
