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
    """RFC 3339 in UTC, so that the later one is the greater text."""
    fields: Mapping[str, Any]

    @property
    def program(self) -> str:
        """writers.SLIPWAY or writers.PULUMI for what `up` wrote, else empty."""
        found = program(self.manager)
        return "" if found == writers.SLIPWAY and self.operation != "Apply" else found

    def __str__(self) -> str:
        return f"{self.manager} at {self.time}"


def program(manager: str) -> str:
    """The program that deploys stacks under this name: writers.SLIPWAY, writers.PULUMI, or none."""
    if manager.startswith(writers.PULUMI):
        return writers.PULUMI
    return writers.SLIPWAY if manager == writers.SLIPWAY else ""


def managers(live: Mapping[str, Any]) -> list[Manager]:
    """Who wrote an object, but for its status."""
    found = cast(list[dict[str, Any]], live["metadata"].get("managedFields") or [])
    return [
        Manager(str(each.get("manager", "")), str(each.get("operation", "")), str(each.get("time", "")), each.get("fieldsV1") or {})
        for each in found
        if each.get("subresource") != "status"
    ]


def deployer(entries: Iterable[Manager], by: str) -> Manager | None:
    """What a program has applied last, else what it made the object with."""
    return max((each for each in entries if each.program == by), key=lambda each: (each.operation == "Apply", each.time), default=None)


def deployed_at(entries: Iterable[Manager]) -> str:
    """When `up` last wrote, by whichever program; empty for never."""
    return max((each.time for each in entries if each.program), default="")


def mended(live: Mapping[str, Any], by: str) -> list[dict[str, Any]] | None:
    """Managed fields of an object that the program `by` deployed, where fields that the guard has restored under another name are that
    program's again; None where there are none. Else the program's next change of them would meet a conflict.

    The guard writes as itself where applying as Slipway's engine is refused. Older guards restored objects of the Pulumi CLI as the engine.
    """
    entries = cast(list[dict[str, Any]], live["metadata"].get("managedFields") or [])
    own = [each for each in entries if not each.get("subresource")]
    writer = (writers.SLIPWAY, "Apply") if by == writers.PULUMI else (writers.GUARD, "Update")
    stray = next((each for each in own if (each.get("manager"), each.get("operation")) == writer), None)
    if stray is None or (
        by == writers.PULUMI and f"f:{labels.APPLYSET}" in (value_at(stray, ("fieldsV1", "f:metadata", "f:labels")) or {})
    ):
        return None  # none, or the engine's own: it is taking the stack over
    taken = _without(stray.get("fieldsV1") or {}, _ANNOTATION)
    if not taken:
        return None
    heirs = [each for each in own if program(str(each.get("manager"))) == by and (by == writers.PULUMI or each.get("operation") == "Apply")]
    heir = max(heirs, key=lambda each: (each.get("operation") == "Apply", str(each.get("time"))), default=None)
    if heir is None:
        made: dict[str, Any] = {**stray, "manager": by, "operation": "Update" if by == writers.PULUMI else "Apply", "fieldsV1": taken}
    else:
        made = {**heir, "fieldsV1": _union(heir.get("fieldsV1") or {}, taken)}
    has_annotation = value_at(stray, ("fieldsV1", *_ANNOTATION)) is not None
    left: list[dict[str, Any]] = [{**stray, "fieldsV1": {"f:metadata": {"f:annotations": {_ANNOTATION[-1]: {}}}}}] if has_annotation else []
    return [*(each for each in entries if each is not stray and each is not heir), *left, made]


def owners(entries: Iterable[Manager], live: Mapping[str, Any], path: Path) -> list[Manager]:
    """Whose a field is."""
    return [each for each in entries if _has(each.fields, live, path)]


def culprits(entries: Sequence[Manager], live: Mapping[str, Any], paths: Iterable[Path]) -> list[Manager]:
    """Who changed these fields, as far as can be told. A field that was removed has no owner: then it is whoever wrote last, if that was
    since the deployment. `kubectl scale` of an object of the Pulumi CLI leaves no trace."""
    strangers = [each for each in entries if not each.program and each.manager not in _OUR_OWN]
    named = [each for path in paths for each in owners(strangers, live, path)]
    if not named:
        since = [each for each in strangers if each.time >= deployed_at(entries)]
        named = [max(since, key=lambda each: each.time)] if since else []
    return sorted({str(each): each for each in named}.values(), key=lambda each: each.time)


def content(item: Mapping[str, Any]) -> dict[str, Any]:
    """An object without its status and the server's own bookkeeping."""
    kept = {key: value for key, value in item.items() if key not in ("status", "apiVersion", "kind", "metadata")}
    about: Mapping[str, Any] = item.get("metadata") or {}
    return kept | {"metadata": {key: about[key] for key in _COMPARED_META if key in about}}


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
    """Whether a set of fields (FieldsV1) has a path. A field without fields of its own is owned as a whole."""
    if not path:
        return True
    head, rest = path[0], path[1:]
    below = value_at(value, (head,))
    if isinstance(head, str):
        node = fields.get(f"f:{head}")
        return node is not None and (node == _ATOM or _has(node, below, rest))
    for key, node in fields.items():
        if key.startswith("k:") and isinstance(below, Mapping):
            item = cast(Mapping[str, Any], below)
            if all(item.get(name) == said for name, said in json.loads(key[2:]).items()):
                return node == _ATOM or _has(node, below, rest)
        if key.startswith("v:") and json.loads(key[2:]) == below:
            return True
    return False


def _without(fields: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """A set of fields (FieldsV1) without one, and without the maps that would have nothing else."""
    head, rest = path[0], path[1:]
    left = {key: node for key, node in fields.items() if key != head}
    below = _without(fields[head], rest) if rest and head in fields else {}
    return left | ({head: below} if below.keys() - {"."} else {})


def _union(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Both sets of fields (FieldsV1). A field without fields of its own is a member; one with some is where `.` says so."""
    made = dict(one)
    for key, node in other.items():
        mine = made.get(key)
        if mine is None or mine == node:
            made[key] = node
        else:
            made[key] = _union(mine or {".": {}}, node or {".": {}})
    return made
