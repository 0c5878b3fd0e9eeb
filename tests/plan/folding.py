"""Writes once what repeats: data relative to a prototype, which has what most parts of one sort have in common. Pure.

A folded part holds what differs from its prototype, and `<none>` for a key that only the prototype has. Mappings are compared key by key,
anything else as a whole. Two parts that differ in anything but the order of keys are folded to different ones.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

ABSENT = "<none>"
Part = dict[str, Any]


def prototype(parts: Sequence[Mapping[str, Any]], whole: Collection[str] = ()) -> Part:
    """What more than half of the parts have in common, and two at least. The values of the keys in `whole` are not compared key by key."""
    common: Part = {}
    for key in sorted({key for part in parts for key in part}):
        values = [part[key] for part in parts if key in part]
        mappings = [cast(Part, value) for value in values if isinstance(value, dict)]
        if key not in whole and _are_most(len(mappings), len(parts)) and (inner := prototype(mappings, whole)):
            common[key] = inner
        elif (value := most_common(values, len(parts))) is not None:
            common[key] = value
    return common


def most_common(values: Iterable[Any], total: int) -> Any:
    """The value that more than half of the parts have, and two at least; None if there is none."""
    [(text, count)] = Counter(map(exact, values)).most_common(1)
    return json.loads(text) if _are_most(count, total) else None


def prototypes_by_name(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """For each name the value that more than half of its items have: also that of a single item."""
    values: dict[str, list[Any]] = {}
    for name, value in items:
        values.setdefault(name, []).append(value)
    chosen = {name: each[0] if len(each) == 1 else most_common(each, len(each)) for name, each in sorted(values.items())}
    return {name: value for name, value in chosen.items() if value is not None}


def _are_most(count: int, total: int) -> bool:
    return count > 1 and count * 2 > total


def fold(value: Any, proto: Any, whole: Collection[str] = ()) -> Any:
    """The value relative to a prototype: of two mappings what differs, else the value."""
    if value == ABSENT:
        raise ValueError(f"a plan cannot hold the text {ABSENT}: it marks a key that is missing")
    if not isinstance(value, dict) or not isinstance(proto, dict):
        return cast(Any, value)
    part, common = cast(Part, value), cast(Part, proto)
    folded = {key: ABSENT for key in common if key not in part}
    for key, inner in part.items():
        if key not in common or exact(inner) != exact(common[key]):
            folded[key] = inner if key in whole else fold(inner, common.get(key), whole)
    return dict(sorted(folded.items()))


def fold_list(items: Iterable[Part], prototypes: Mapping[str, Any], key: str = "name") -> list[Any]:
    """Parts that have a name, each as `name: rest`, or as its name alone where the rest is that of the prototype of this name."""
    pairs = [named(item, key) for item in items]
    return [
        name if name in prototypes and exact(rest) == exact(prototypes[name]) else {name: fold(rest, prototypes.get(name))}
        for name, rest in pairs
    ]


def named(item: Part, key: str = "name") -> tuple[str, Any]:
    """The name of a part, and the rest of it: of a variable, the value alone."""
    rest = {each: value for each, value in item.items() if each != key}
    return item[key], rest["value"] if set(rest) == {"value"} and isinstance(rest["value"], str) else rest


def exact(value: Any) -> str:
    """A text that two values share only if they are equal in type and content."""
    return json.dumps(value, sort_keys=True)
