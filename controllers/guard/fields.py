"""What an object's managed fields tell: who wrote it, which fields are whose. And how two versions of an object differ. Pure.

Source: Kubernetes' documentation of server-side apply. `time` is when a manager last wrote; that others took fields from it leaves it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from controllers.guard.record import Path

_STANDALONE = "slipway"
_PULUMI = "pulumi-kubernetes"
_OUR_OWN = frozenset({_STANDALONE, "slipway-guard"})
_COMPARED_META = ("labels", "annotations", "finalizers")
_ATOM: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Manager:
    """An entry of an object's managed fields."""

    manager: str
    operation: str
    time: str
    """RFC 3339 in UTC, so that the later one is the greater text."""
    fields: Mapping[str, Any]

    @property
    def is_deployer(self) -> bool:
        """True of `up`, by whichever program."""
        return self.operation == "Apply" and is_deployer(self.manager)

    def __str__(self) -> str:
        return f"{self.manager} at {self.time}"


def is_deployer(manager: str) -> bool:
    """True of the names under which stacks are deployed: standalone's, and those of the Pulumi provider, which end in a suffix."""
    return manager == _STANDALONE or manager.startswith(_PULUMI)


def managers(live: Mapping[str, Any]) -> list[Manager]:
    """Who wrote an object, but for its status."""
    found = cast(list[dict[str, Any]], live["metadata"].get("managedFields") or [])
    return [
        Manager(str(each.get("manager", "")), str(each.get("operation", "")), str(each.get("time", "")), each.get("fieldsV1") or {})
        for each in found
        if each.get("subresource") != "status"
    ]


def deployer(entries: Iterable[Manager]) -> Manager | None:
    """The deployer that wrote last."""
    return max((each for each in entries if each.is_deployer), key=lambda each: each.time, default=None)


def owners(entries: Iterable[Manager], live: Mapping[str, Any], path: Path) -> list[Manager]:
    """Whose a field is."""
    return [each for each in entries if _has(each.fields, live, path)]


def culprits(entries: Sequence[Manager], live: Mapping[str, Any], paths: Iterable[Path]) -> list[Manager]:
    """Who changed these fields, as far as can be told. A field that was removed has no owner: then it is whoever wrote last."""
    strangers = [each for each in entries if not each.is_deployer and each.manager not in _OUR_OWN]
    named = [each for path in paths for each in owners(strangers, live, path)]
    if not named and strangers:
        named = [max(strangers, key=lambda each: each.time)]
    return sorted({str(each): each for each in named}.values(), key=lambda each: each.time)


def differences(live: Any, would: Any, at: Path = ()) -> list[Path]:
    """Where two versions of an object differ, but for its status and the server's own bookkeeping. Lists of unequal length differ whole."""
    if isinstance(live, Mapping) and isinstance(would, Mapping):
        left, right = cast(Mapping[str, Any], live), cast(Mapping[str, Any], would)
        keys = sorted({*left, *right})
        if at == ():
            keys = [key for key in keys if key not in ("status", "apiVersion", "kind")]
        if at == ("metadata",):
            keys = [key for key in keys if key in _COMPARED_META]
        return [path for key in keys for path in differences(left.get(key), right.get(key), (*at, key))]
    if isinstance(live, list) and isinstance(would, list):
        before, after = cast(list[Any], live), cast(list[Any], would)
        if len(before) != len(after):
            return [at]
        pairs = enumerate(zip(before, after, strict=True))
        return [path for index, (left_item, right_item) in pairs for path in differences(left_item, right_item, (*at, index))]
    return [] if live == would else [at]


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
