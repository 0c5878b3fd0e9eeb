"""Checks the shape of a stack file: translates pydantic's errors into our messages, and still builds a complete config.

A stand-in of the right type replaces every refused part, so that the other rules can run too. With a fault the loader returns no cluster.
"""

import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from configs.faults import Fault, closest, did_you_mean, kind_of, quoted
from configs.models.cluster import Cluster
from configs.models.fields import Matching

ROOT = "cluster"

_DEEPEST = 30
_ROUNDS = 40
_IDS = (
    "arn:aws:iam::000000000000:role/stand-in",
    "subnet-00000000",
    "sg-00000000",
    "cr-00000000",
    "v0.0.0",
    "192.0.2.1",
    "192.0.2.0/24",
    "no-region-0",
)
_STAND_INS: tuple[Any, ...] = (
    "stand-in",
    "x",
    0,
    1,
    False,
    [],
    {},
    "/stand-in",
    "stand-in:0",
    "1Gi",
    "1g.10gb",
    "https://stand-in/x",
    "ldaps://stand-in",
    "dc=x",
    "0" * 64,
    *_IDS,
)

Location = tuple[str | int, ...]


def read_structure(data: dict[str, Any]) -> tuple[Cluster, list[Fault]]:
    """The cluster that `data` describes, with stand-ins where there are faults. Changes `data`; raises nothing."""
    faults: dict[str, Fault] = {}
    for _ in range(_ROUNDS):
        try:
            return Cluster.model_validate(data, by_alias=True, by_name=False), _without_echoes(faults.values())
        except ValidationError as refused:
            errors = refused.errors(include_url=False)
        for error in errors:
            # One fault per place: later faults there are caused by the stand-in.
            if fault := _fault(error):
                faults.setdefault(fault.path, fault)
        # From the last to the first: replacing one part must not move another.
        for error in reversed(errors):
            _mend(data, error)
    raise AssertionError("a part of the config could not be replaced by a stand-in")


def spelled(location: Sequence[str | int]) -> str:
    """A place as users write it: `cluster.nodeSets[1].size`."""
    path = ROOT
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if part.isprintable() and part else f".{quoted(part)}"
    return path


def order_of(path: str) -> tuple[object, ...]:
    """A key that sorts faults in the order of the models, which is that of the example files."""
    parts = re.findall(r"[^.\[\]]+", path)[1:]
    keys = _keys_at(())
    first = keys.index(parts[0]) if parts and parts[0] in keys else -1
    return (first, *((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts[:8]))


def plain_data(raw: object) -> tuple[dict[str, Any], list[Fault]]:
    """A copy in mappings, lists and scalars with text keys. Anything else is a fault: YAML can hold loops and other keys."""
    if raw is None or raw == {}:
        return {}, [Fault(ROOT, "is empty. Pulumi.dev.yaml is an example to start from.")]
    if not isinstance(raw, Mapping):
        return {}, [Fault(ROOT, f"is {_a(kind_of(raw))}, where a mapping of keys is wanted. Pulumi.dev.yaml is an example.")]
    faults: list[Fault] = []

    def copy(value: Any, location: Location) -> Any:
        if len(location) > _DEEPEST:
            faults.append(Fault(spelled(location[:3]), "is nested too deeply: no part of a cluster is more than a few levels deep."))
            return None
        if isinstance(value, Mapping):
            items: dict[str, Any] = {}
            for key, item in typing.cast(Mapping[Any, Any], value).items():
                if isinstance(key, str):
                    items[key] = copy(item, (*location, key))
                else:
                    faults.append(Fault(spelled(location), f"has the key {quoted(key)}, which is not text. Put it in quotes."))
            return items
        if isinstance(value, list | tuple):
            return [copy(item, (*location, at)) for at, item in enumerate(typing.cast(Sequence[Any], value))]
        return value

    return copy(raw, ()), list({fault.path: fault for fault in reversed(faults)}.values())


def _without_echoes(faults: Iterable[Fault]) -> list[Fault]:
    """Leaves out faults that another explains: "is missing" beside its misspelling, "is empty" of a list with refused elements."""
    faults = list(faults)
    meant = {fault.depends[0] for fault in faults if fault.depends}

    def echoes(fault: Fault) -> bool:
        misspelled = fault.path in meant and fault.message.startswith("is missing")
        return misspelled or (fault.message.startswith("is empty") and any(cause.path.startswith(f"{fault.path}[") for cause in faults))

    return [Fault(fault.path, fault.message) for fault in faults if not echoes(fault)]


def _fault(error: ErrorDetails) -> Fault | None:
    if error["type"] == "default_factory_not_called":
        return None  # the fault that kept it from being called is in the list
    location = error["loc"]
    if location and location[-1] == "[key]":
        return Fault(spelled(location[:-2]), f"has a key that cannot stand here: {_message(error, None)}")
    if error["type"] == "extra_forbidden":
        known = _keys_at(location[:-1])
        unknown_key = str(location[-1])
        meant = closest(unknown_key, known)
        depends = (spelled((*location[:-1], meant)),) if meant else ()
        return Fault(spelled(location), f"there is no such key. {did_you_mean(unknown_key, known)}", depends)
    return Fault(spelled(location), _message(error, field_at(location), type_at(location)))


def _message(error: ErrorDetails, field: FieldInfo | None, annotation: Any = None) -> str:
    """Our message for pydantic's error at a place of that type."""
    value, context = error.get("input"), error.get("ctx", {})
    match error["type"]:
        case "missing":
            return f"is missing. {_first_sentence(field)}".rstrip()
        case "slipway":
            return str(context["message"])
        case "literal_error":
            allowed = _literals(annotation)
            return f"{quoted(value)} is none of {', '.join(allowed)}.{_meant(value, allowed)}"
        case "greater_than_equal":
            return f"{quoted(value)} is less than {context['ge']}, the least allowed."
        case "less_than_equal":
            return f"{quoted(value)} is more than {context['le']}, the most allowed."
        case "too_short":
            return "is empty; at least one is needed."
        case _:
            return _wrong_kind(value, error["type"])


def _wrong_kind(value: object, error_type: str) -> str:
    if value is None:
        return "has no value. Give it one, or leave the key out."
    wanted = {
        "string": "text",
        "int": "a whole number",
        "bool": "true or false",
        "tuple": "a list",
        "dict": "a mapping of keys",
        "model": "a mapping of keys",
        "float": "a number",
    }.get(error_type.split("_")[0], "another kind of value")
    hint = ""
    if wanted == "text" and isinstance(value, bool | int | float):
        hint = f' Put it in quotes: "{value}".' if not isinstance(value, bool) else " Put it in quotes."
    elif isinstance(value, str) and wanted in {"a whole number", "true or false"}:
        hint = " Write it without quotes." if value.strip().lstrip("-").isdecimal() or value in {"true", "false"} else ""
    elif wanted == "a list":
        hint = " Write [..], or one line with a dash for each."
    shown = f"{quoted(value)} " if isinstance(value, str | int | float) else ""
    return f"{shown}is {_a(kind_of(value))}; {wanted} is wanted.{hint}"


def _a(noun: str) -> str:
    return noun if noun == "text" else f"a {noun}"


def _meant(value: object, allowed: Sequence[str]) -> str:
    likeliest = closest(value, allowed) if isinstance(value, str) else None
    return f' Did you mean "{likeliest}"?' if likeliest else ""


def _first_sentence(field: FieldInfo | None) -> str:
    return field.description.replace("\n", " ") if field and field.description else ""


def _literals(annotation: Any) -> list[str]:
    return [str(choice) for choice in typing.get_args(bare_type(annotation))]


# From the location of an error to its place in the models.


def bare_type(annotation: Any) -> Any:
    """The type without `Annotated` and without `| None`."""
    while True:
        if typing.get_origin(annotation) is Annotated:
            annotation = typing.get_args(annotation)[0]
        elif typing.get_origin(annotation) in (typing.Union, types.UnionType):
            annotation = next(choice for choice in typing.get_args(annotation) if choice is not type(None))
        else:
            return annotation


def _step(annotation: Any, part: str | int) -> tuple[Any, FieldInfo | None]:
    """The type of a part: of a model's field, a list's element or a mapping's value."""
    bare = bare_type(annotation)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        field = next((candidate for candidate in bare.model_fields.values() if candidate.alias == part), None)
        return (field and Annotated[(field.annotation, *field.metadata)] if field and field.metadata else field and field.annotation), field
    arguments = typing.get_args(bare)
    if typing.get_origin(bare) is tuple and isinstance(part, int):
        return arguments[0], None
    if typing.get_origin(bare) is dict:
        return arguments[1], None
    return None, None


def type_at(location: Sequence[str | int]) -> Any:
    """The type of a place, with its checks; None for a place that no stack file can have."""
    annotation: Any = Cluster
    for part in location:
        annotation, _ = _step(annotation, part)
    return annotation


def field_at(location: Sequence[str | int]) -> FieldInfo | None:
    """The field of a model at a place; None for elements and keys of lists and mappings."""
    return _step(type_at(location[:-1]), location[-1])[1] if location else None


def _keys_at(location: Sequence[str | int]) -> list[str]:
    bare = bare_type(type_at(location))
    fields: Mapping[str, FieldInfo] = bare.model_fields if isinstance(bare, type) and issubclass(bare, BaseModel) else {}
    return [field.alias or name for name, field in fields.items()]


# Putting stand-ins in place.


def _mend(data: dict[str, Any], error: ErrorDetails) -> None:
    """Deletes the part at the place of an error, or replaces it if it is required."""
    location: Location = error["loc"]
    if location and location[-1] == "[key]":
        location = location[:-1]
    parent: Any = data
    for part in location[:-1]:
        try:
            parent = parent[part]
        except (KeyError, IndexError, TypeError):
            return
    last = location[-1] if location else ""
    if isinstance(parent, list) and isinstance(last, int):
        items: list[Any] = parent  # pyright: ignore[reportUnknownVariableType]
        if last < len(items):
            items[last] = _stand_in(type_at(location))
    elif isinstance(parent, dict):
        mapping: dict[str, Any] = parent  # pyright: ignore[reportUnknownVariableType]
        field = field_at(location)
        mapping.pop(str(last), None)
        if field is not None and field.is_required():
            mapping[str(last)] = _stand_in(type_at(location))


def _stand_in(annotation: Any) -> Any:
    """The simplest value of the type."""
    bare = bare_type(annotation)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        fields = bare.model_fields.items()
        return {field.alias or name: _stand_in(_step(bare, field.alias or name)[0]) for name, field in fields if field.is_required()}
    if typing.get_origin(bare) is tuple:
        least = next((part.min_length for part in getattr(annotation, "__metadata__", ()) if hasattr(part, "min_length")), 0)
        return [_stand_in(typing.get_args(bare)[0]) for _ in range(least)]
    checks = [getattr(part, "func", part) for part in getattr(annotation, "__metadata__", ())]
    shown = [check.example for check in checks if isinstance(check, Matching)]
    choices = typing.get_args(bare) if typing.get_origin(bare) is typing.Literal else (*_STAND_INS, *shown)
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    for choice in choices:
        try:
            adapter.validate_python(choice)
        except ValidationError:
            continue
        return choice
    raise AssertionError(f"no stand-in for {annotation}")
