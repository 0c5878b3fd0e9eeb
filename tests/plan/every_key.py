"""Each key of a stack file with other values, by rule from the models: its example, other choices, larger and smaller figures, one item
less, no value. For tests only."""

import copy
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from configs.schema import REF, stack_schema
from tests.support.configs.stacks import ROOT

Place = tuple[str | int, ...]
Config = dict[str, Any]
_GONE = object()
_SIZES = ("6Gi", "7Gi", "70Gi", "2Ti")
_ONE_OF = (
    (("hostPath",), ("claim",), ("storageClass", "size"), ("nfs",), ("nfsServer",), ("disk",)),
    *((("machine",), ("hardware",)), (("existing",), ("eks",)), (("preset",), ("tree",), ("block",))),
    *((("image",), ("tar",)), (("condition",), ("taint",)), (("size",), ("min", "max"))),
)
"""Keys that exclude each other: to say one, the others go."""


@dataclass(frozen=True)
class Key:
    """A key at one place of a config, said there or not."""

    place: Place
    about: Mapping[str, Any]
    """Its JSON schema."""

    @property
    def name(self) -> str:
        """The place without positions in lists and names in mappings, as in docs/reference/stack-file.md."""
        return ".".join(str(part) for part in self.place if isinstance(part, str) and not part.startswith("="))


@functools.cache
def definitions() -> Mapping[str, Any]:
    """The models, as the JSON schema of stack files has them."""
    return stack_schema(ROOT)["definitions"]


@functools.cache
def reference_keys() -> frozenset[str]:
    """The name of every key of the reference, at each place that it has in a stack file."""

    def below(model: str, path: str) -> Iterator[str]:
        for name, about in definitions()[model]["properties"].items():
            yield path + name
            if inner := model_of(about):
                yield from below(inner, f"{path}{name}.")

    return frozenset(below("Cluster", ""))


def model_of(about: Mapping[str, Any]) -> str | None:
    """The model that values of a key are, or hold."""
    parts: tuple[Mapping[str, Any], ...] = (
        about,
        *about.get("anyOf", ()),
        about.get("items") or {},
        about.get("additionalProperties") or {},
    )
    found = [str(part["$ref"]).removeprefix(REF) for part in parts if "$ref" in part]
    return found[0] if found else None


def holds_keys(about: Mapping[str, Any]) -> bool:
    """True of a key that always has keys below it: its change is theirs."""
    return "$ref" in about


def keys(config: Mapping[str, Any]) -> Iterator[Key]:
    """The keys of all mappings that a config has, said or not."""
    return _keys("Cluster", config, ())


def others(config: Mapping[str, Any], key: Key) -> Iterator[Config]:
    """The config with other values of a key, valid or not."""
    given = _at(config, key.place)
    tried: list[Any] = [given]
    for value in _values(key.about, given):
        if value in tried:
            continue
        tried.append(value)
        made = copy.deepcopy(dict(config))
        parent = _filled(made, key.place[:-1])
        if value is _GONE:
            parent.pop(_bare(key.place[-1]), None)
        else:
            parent[_bare(key.place[-1])] = copy.deepcopy(value)
        yield made
        if rivals := _rivals(str(key.place[-1])) & parent.keys():
            for rival in rivals:
                parent.pop(rival)
            yield made


def _rivals(name: str) -> set[str]:
    return {other for group in _ONE_OF for own in group if name in own for each in group if each != own for other in each}


def _keys(model: str, value: Any, at: Place) -> Iterator[Key]:
    for name, about in definitions()[model]["properties"].items():
        place = (*at, name)
        yield Key(place, about)
        inner = model_of(about)
        given = cast(Mapping[str, Any], value).get(name) if isinstance(value, Mapping) else None
        if inner is None:
            continue
        if "items" in about:
            for index, item in enumerate(given or ()):
                yield from _keys(inner, item, (*place, index))
        elif "additionalProperties" in about:
            for each, item in cast(Mapping[str, Any], given or {}).items():
                yield from _keys(inner, item, (*place, f"={each}"))
        elif given is not None or "anyOf" not in about:  # a model that is there without being said, or one that is
            yield from _keys(inner, given or {}, place)


def _values(about: Mapping[str, Any], given: Any) -> Iterator[Any]:
    start = given if given is not None else about.get("default")
    yield from about["examples"]
    yield from (choice for choice in about.get("enum", ()) if choice is not None)
    if isinstance(start, bool) or about.get("type") == "boolean":
        yield not start
    elif isinstance(start, int):
        yield from (start + 1, start * 2, start - 1, start + 1024, 1, 60, 3600)
    elif isinstance(start, str):
        yield re.sub(r"\d(?=\D*$)", lambda last: str((int(last[0]) + 1) % 10), start)
        yield from (*_SIZES, f"{start}x", f"x{start}", "other", "/other", "02:00:00")
    elif isinstance(start, list):
        items = cast(list[Any], start)
        yield from (items[:-1], [*items, *about["examples"][0]], items[::-1])
    elif isinstance(start, dict):
        yield {**start, "example": "other"}
    if given is not None:
        yield _GONE
    yield from ({}, [], 2)


def _bare(part: str | int) -> str | int:
    return part.removeprefix("=") if isinstance(part, str) else part


def _at(value: Any, place: Place) -> Any:
    for part in place:
        if isinstance(part, int):
            value = value[part]
        else:
            value = cast(Mapping[Any, Any], value).get(_bare(part)) if isinstance(value, Mapping) else None
    return value


def _filled(config: Config, place: Place) -> Any:
    """The mapping at a place, made where it is only implied."""
    value: Any = config
    for part in place:
        value = value[part] if isinstance(part, int) else value.setdefault(_bare(part), {})
    return value
