"""Mistakes in the example stack files, made by rule from the models: each place of each file, wrong in every way that its type can be.

Whether a change is a mistake is decided by the type of the place, never by trying. Of places that differ by their position alone, and of
the same place in several files, the first one stands for all. For tests only.
"""

import copy
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, cast

import annotated_types
import yaml
from pydantic import AfterValidator, BaseModel
from pydantic.fields import FieldInfo

from configs.models.cluster import Cluster
from configs.models.fields import Matching, Model
from configs.models.slurm_keys import GLOBAL_KEYS, NODE_KEYS, PARTITION_KEYS
from configs.rules.slurm_types import Value
from configs.rules.slurm_words import GLOBAL_VALUES, NODE_VALUES, PARTITION_VALUES
from configs.rules.structure import bare_type, field_at, spelled, type_at
from slurm.conf import known
from tests.support.configs.stacks import KEY, ROOT, places

FILES: Mapping[str, Path] = {
    "template": ROOT / "templates/slurm-python/Pulumi.dev.yaml",
    "mini": ROOT / "Pulumi.cluster.yaml",
    "dev": ROOT / "Pulumi.dev.yaml",
    "h100": ROOT / "Pulumi.h100.yaml",
}
Place = tuple[str | int, ...]

_GONE = object()
_TABLES: Mapping[tuple[str, ...], tuple[frozenset[str], Mapping[str, Value]]] = {
    ("slurm", "settings"): (GLOBAL_KEYS, GLOBAL_VALUES),
    ("nodeSets", "slurmd"): (NODE_KEYS, NODE_VALUES),
    ("partitions", "settings"): (PARTITION_KEYS, PARTITION_VALUES),
}
"""Mappings whose keys are Slurm's, by their place without positions."""
_OF_LINES = {("login", "banner")}
"""Texts that may have several lines."""
_NEEDED: Mapping[tuple[str, ...], str | None] = {
    ("nodePools",): "cluster.nodeSets",
    ("nodeSets",): "cluster.nodeSets",
    ("partitions",): "cluster.partitions",
    ("partitions", "nodeSets"): None,
    ("healthChecks", "nodeSets"): None,
    ("nodePools", "existing", "labels"): None,
}
"""Lists and mappings that may not be empty by a rule, and where that is told where it is elsewhere."""
_OF_A_DIRECTORY = {("accounting", "accounts", "users"), ("accounting", "accounts", "groups")}
"""References that only the directory can resolve, where there is one."""


@dataclass(frozen=True)
class Mutation:
    """One mistake in one file."""

    file: str
    place: Place
    kind: str
    value: Any
    told: tuple[str, ...]
    """Where it may be told: at one of these paths, or below it."""

    @property
    def id(self) -> str:
        return f"{self.file}-{spelled(self.place).removeprefix('cluster.')}-{self.kind}"

    def raw(self) -> dict[str, Any]:
        """The file with the mistake in it."""
        made = copy.deepcopy(stack(self.file))
        parent: Any = made
        for part in self.place[:-1]:
            parent = parent[part]
        last = self.place[-1]
        if self.kind == "misspelled":
            items = list(cast(dict[str, Any], parent).items())
            parent.clear()
            parent.update({self.value if key == last else key: value for key, value in items})
        elif self.kind == "twice":
            parent.append(copy.deepcopy(parent[last]))
        elif self.value is _GONE:
            del parent[last]
        else:
            parent[last] = copy.deepcopy(self.value)
        return made


@cache
def stack(file: str) -> dict[str, Any]:
    """What a file says under slipway:cluster; keys of key files stand in it, so that no file is needed."""
    raw = yaml.safe_load(FILES[file].read_text())["config"]["slipway:cluster"]
    for user in raw["login"]["users"]:
        if user.pop("sshKeyFiles", None):
            user["sshKeys"] = [KEY]
    return raw


def mutations() -> list[Mutation]:
    """All of them, the same in every run."""
    met: dict[tuple[Place, str], Mutation] = {}
    for file in FILES:
        for place in places(stack(file)):
            for mutation in _of_place(file, place):
                met.setdefault((tuple(0 if isinstance(part, int) else part for part in place), mutation.kind), mutation)
    return list(met.values())


def _of_place(file: str, place: Place) -> Iterator[Mutation]:
    annotation, field = type_at(place), field_at(place)
    given = _at(stack(file), place)

    def wrong(kind: str, value: Any, *told: str) -> Mutation:
        return Mutation(file, place, kind, value, told or (spelled(place),))

    bare = bare_type(annotation)
    yield wrong("a-list", [["x"]]) if typing.get_origin(bare) is not tuple else wrong("a-mapping", {"x": 1})
    yield wrong("a-truth-value-in-words", {"maybe": "x"}) if not _is_mapping(bare) else wrong("a-text", "x")
    if not _may_be_none(annotation):
        yield wrong("no-value", None)
    if field is not None and field.is_required():
        yield wrong("removed", _GONE)
    if isinstance(place[-1], str) and (misspelled := _misspelled(place)):
        yield wrong("misspelled", misspelled, spelled((*place[:-1], misspelled)))
    if isinstance(place[-1], int) and place[-2] != "raw":
        yield wrong("twice", None, spelled((*place[:-1], len(_at(stack(file), place[:-1])))))
    is_needed = _class(place) in _NEEDED and isinstance(place[-1], str)
    if (is_needed or any(isinstance(part, annotated_types.MinLen) for part in _parts(annotation))) and given:
        yield wrong("empty", type(given)(), _NEEDED.get(_class(place)) or spelled(place))
    if bare is int:
        yield from (wrong("negative", -1), wrong("absurd", 10**12), wrong("a-fraction", 1.5), wrong("in-words", "many"))
    elif bare is bool:
        yield from (wrong("in-quotes", "true"), wrong("a-number", 1))
    elif typing.get_origin(bare) is typing.Literal:
        yield from (wrong("no-such-word", "nosuchword"), wrong("no-word", ""))
    elif bare is str:
        yield from _of_text(file, place, annotation, given)


def _of_text(file: str, place: Place, annotation: Any, given: Any) -> Iterator[Mutation]:
    here = (spelled(place),)
    checks = [part.func for part in _parts(annotation) if isinstance(part, AfterValidator)]
    if _class(place) not in _OF_LINES:
        yield Mutation(file, place, "line-break", f"{given}\nx", here)
    for check in checks:
        if isinstance(check, Matching):
            yield Mutation(file, place, "too-long", "x" * (check.longest + 1), here)
            if not _matches_nothing(check):
                yield Mutation(file, place, "empty", "", here)
    if table := _TABLES.get(_class(place[:-1])):
        name = known(str(place[-1]), table[1])
        if name is not None:
            yield Mutation(file, place, "no-such-value", "nosuchvalue", here)
    if _is_reference(annotation) and not (_class(place) in _OF_A_DIRECTORY and "ldap" in stack(file)["login"]):
        yield Mutation(file, place, "unknown", f"{given}x", here)
    if place[-1] == "name" and (referring := _referring(file, place, given)):
        yield Mutation(file, place, "renamed", f"{given}x", tuple(referring))


def _referring(file: str, place: Place, name: str) -> list[str]:
    """Where else a part is named, so that another name of the part itself is a mistake there."""
    whole = stack(file)
    kinds: Mapping[tuple[str, ...], set[tuple[str, ...]]] = {
        ("nodePools", "name"): {("nodeSets", "pool")},
        ("nodeSets", "name"): {("partitions", "nodeSets"), ("healthChecks", "nodeSets")},
        ("storage", "mounts", "name"): {("nodeSets", "mounts")},
        ("login", "groups", "name"): {("login", "users", "groups")},
        ("accounting", "accounts", "name"): {("accounting", "accounts", "parent")},
        ("accounting", "qos", "name"): {("accounting", "accounts", "qos")},
    }
    referring = kinds.get(_class(place), set())
    return [spelled(each) for each in places(whole) if _class(each) in referring and _at(whole, each) == name]


def _class(place: Place) -> tuple[str, ...]:
    """A place without positions in lists."""
    return tuple(part for part in place if isinstance(part, str))


def _at(raw: Any, place: Place) -> Any:
    for part in place:
        raw = raw[part]
    return raw


def _parts(annotation: Any) -> list[Any]:
    """The checks of a type, those of fields in it, too."""
    if typing.get_origin(annotation) in (typing.Union, UnionType):
        return [part for each in typing.get_args(annotation) for part in _parts(each)]
    if typing.get_origin(annotation) is not Annotated:
        return []
    parts: list[Any] = []
    for part in typing.get_args(annotation)[1:]:
        parts += part.metadata if isinstance(part, FieldInfo) else [part]
    return parts + _parts(typing.get_args(annotation)[0])


def _may_be_none(annotation: Any) -> bool:
    while typing.get_origin(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    return NoneType in typing.get_args(annotation)


def _is_mapping(bare: Any) -> bool:
    return typing.get_origin(bare) is dict or (isinstance(bare, type) and issubclass(bare, BaseModel))


def _is_reference(annotation: Any) -> bool:
    """True for the type Name: a text without a check of its own."""
    return not any(isinstance(part, AfterValidator) for part in _parts(annotation))


def _matches_nothing(check: Matching) -> bool:
    try:
        check("")
    except ValueError:
        return False
    return True


def _misspelled(place: Place) -> str | None:
    """The key with a letter too many; None where the user's own keys stand, or where that is another key."""
    key = str(place[-1])
    wrong = f"{key[:-1]}q{key[-1]}"
    parent = bare_type(type_at(place[:-1])) if place[:-1] else Cluster
    if isinstance(parent, type) and issubclass(parent, Model):
        return None if wrong in {field.alias or name for name, field in parent.model_fields.items()} else wrong
    table = _TABLES.get(_class(place[:-1]))
    return wrong if table and known(wrong, table[0]) is None else None
