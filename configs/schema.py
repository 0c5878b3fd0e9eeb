"""The JSON schema of stack files, for completion and checks in editors: each key's type, limits, default and an example.

Made from the models alone. Rules that span keys are in `rules`.
"""

import inspect
import json
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import annotated_types
from pydantic import AfterValidator
from pydantic.fields import FieldInfo

from configs.models.cluster import Cluster
from configs.models.fields import AtMost, Matching, Model, Shown
from configs.yaml_text import parse_yaml

STACK_FILES = ("Pulumi.h100.yaml", "Pulumi.dev.yaml", "Pulumi.cluster.yaml")
"""Where examples come from, unless a field or its type has an example: the first file that has the key."""
KEY = "slipway:cluster"
REF = "#/definitions/"

_LONGEST_EXAMPLE = 78
_TYPES: Mapping[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}

Found = Mapping[tuple[type[Model], str], list[Any]]
"""Values that the stack files give to a key of a model, the first file's first."""


def stack_schema(root: Path) -> dict[str, Any]:
    """The schema of a stack file. The stack files in `root`, the project's folder, provide the examples."""
    examples = _values_in(root)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Stack file of Slipway (Pulumi.<stack>.yaml)",
        "type": "object",
        "required": ["config"],
        "additionalProperties": False,
        "properties": {
            "config": {
                "description": "Settings of the stack. A key starts with the name of a project or provider.",
                "type": "object",
                "required": [KEY],
                "properties": {KEY: {"$ref": f"{REF}{Cluster.__name__}", "description": _one_line(Cluster.__doc__)}},
                "patternProperties": {"^(?!slipway:)[^:]+:.+$": {"description": "A setting of a provider, such as aws:region."}},
                "additionalProperties": False,
            },
            **{key: {"description": "Written by the Pulumi CLI."} for key in ("encryptionsalt", "encryptedkey", "secretsprovider")},
            "environment": {"description": "Pulumi ESC environments of the stack."},
        },
        "definitions": {model.__name__: _definition(model, examples) for model in models()},
    }


def models() -> list[type[Model]]:
    """Every model, in the order in which a reader of a stack file meets it first."""
    met: dict[type[Model], None] = {}

    def meet(model: type[Model]) -> None:
        if model not in met:
            met[model] = None
            for field in model.model_fields.values():
                for inner in models_in(field.annotation):
                    meet(inner)

    meet(Cluster)
    return list(met)


def models_in(annotation: Any) -> Iterator[type[Model]]:
    """The models that values of a type are or hold."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from models_in(argument)


def key_of(name: str, field: FieldInfo) -> str:
    """The field's key in a stack file."""
    return field.alias or name


def flow(value: Any) -> str:
    """A value as one line of YAML."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{flow(key)}: {flow(item)}' for key, item in typing.cast(Mapping[Any, Any], value).items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(flow(item) for item in typing.cast(Iterable[Any], value))}]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value, ensure_ascii=False)


_PLAIN = re.compile(r"[A-Za-z/.][\w./@+=-]*(:[\w./@+=-]+)*|\d+[A-Za-z]+", re.ASCII)
_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n", "~", ".inf", ".nan")


def _definition(model: type[Model], examples: Found) -> dict[str, Any]:
    fields = [(key_of(name, field), field) for name, field in model.model_fields.items()]
    return {
        "description": _one_line(model.__doc__),
        "type": "object",
        "required": [key for key, field in fields if field.is_required()],
        "properties": {key: _property(model, key, field, examples) for key, field in fields},
        "additionalProperties": False,
    }


def _property(model: type[Model], key: str, field: FieldInfo, examples: Found) -> dict[str, Any]:
    default = {} if field.default is None or not _is_plain(field.default) else {"default": _plain(field.default)}
    about = {"description": _one_line(field.description), **default, "examples": [_plain(_example(model, key, field, examples))]}
    return {**_schema(_whole_type(field)), **about}


def _whole_type(field: FieldInfo) -> Any:
    return Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation


def _schema(annotation: Any) -> dict[str, Any]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        schema = _schema(arguments[0])
        for part in arguments[1:]:
            schema = _narrowed(schema, part)
        return schema
    if origin in (Union, types.UnionType):
        kinds = [_schema(argument) for argument in arguments if argument is not types.NoneType]
        schema = kinds[0] if len(kinds) == 1 else {"type": [kind["type"] for kind in kinds]}
        return _or_null(schema) if types.NoneType in arguments else schema
    if origin is Literal:
        return {"type": _TYPES[type(arguments[0])], "enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0])}
    if origin is dict:
        return {"type": "object", "propertyNames": _schema(arguments[0]), "additionalProperties": _schema(arguments[1])}
    return {"type": _TYPES[annotation]} if annotation in _TYPES else {"$ref": f"{REF}{annotation.__name__}"}


def _narrowed(schema: dict[str, Any], part: Any) -> dict[str, Any]:
    """The schema with the constraint that one part of a type's metadata adds."""
    match part:
        case FieldInfo():
            for constraint in part.metadata:
                schema = _narrowed(schema, constraint)
            return schema
        case AfterValidator(func=Matching() as check):
            pattern = {"maxLength": check.longest, "pattern": f"^({check.pattern})$"}
            return {**schema, **pattern, "patternErrorMessage": f"Not {check.what}."}
        case AfterValidator(func=AtMost(most=most)) | annotated_types.Le(le=most):
            return {**schema, "maximum": min(typing.cast(int, most), schema.get("maximum", most))}
        case annotated_types.Ge(ge=least):
            return {**schema, "minimum": least}
        case annotated_types.MinLen(min_length=least):
            return {**schema, "minItems": least}
        case Shown():
            return {**schema, **part.keywords, "patternErrorMessage": f"Not {part.what}."}
        case _:
            return schema


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    kind: Any = schema["type"]
    choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, **choices, "type": [*(kind if isinstance(kind, list) else [kind]), "null"]}


# Examples: of the field, else of the stack files, else of the type.


def _example(model: type[Model], key: str, field: FieldInfo, examples: Found) -> Any:
    if field.examples:
        return field.examples[0]
    if fitting := [value for value in examples.get((model, key), []) if len(flow(value)) <= _LONGEST_EXAMPLE]:
        return fitting[0]
    example = _example_of(_whole_type(field), field.default, examples)
    if example is None:
        raise LookupError(f"{model.__name__}.{key} has no example: add Field(examples=[...]) to it")
    return example


def _example_of(annotation: Any, default: object, examples: Found) -> Any:
    """A value of the type, other than the default if there is a choice; None if the type has no example."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        parts = [argument.func if isinstance(argument, AfterValidator) else argument for argument in arguments[1:]]
        told = [part.example for part in parts if isinstance(part, Matching | Shown) and part.example is not None]
        return told[-1] if told else _example_of(arguments[0], default, examples)
    if origin in (Union, types.UnionType):
        return _example_of(arguments[0], default, examples)
    if origin is Literal:
        return next(argument for argument in arguments if argument != default)
    if origin is tuple:
        item = _example_of(arguments[0], None, examples)
        return None if item is None else [item]
    if origin is dict:
        name, value = (_example_of(argument, None, examples) for argument in arguments)
        return None if name is None or value is None else {name: value}
    if annotation is bool:
        return not default
    if isinstance(annotation, type) and issubclass(annotation, Model):
        fields = [(key_of(name, field), field) for name, field in annotation.model_fields.items()]
        shown = [(key, field) for key, field in fields if field.is_required()] or fields[:1]
        return {key: _example(annotation, key, field, examples) for key, field in shown}
    return None


def _values_in(root: Path) -> Found:
    values: dict[tuple[type[Model], str], list[Any]] = {}

    def look(annotation: Any, value: Any) -> None:
        for model in models_in(annotation):
            for part in typing.cast(list[Any], value) if isinstance(value, list) else [value]:
                for name, field in model.model_fields.items():
                    if isinstance(part, dict) and (key := key_of(name, field)) in part:
                        values.setdefault((model, key), []).append(part[key])
                        look(field.annotation, part[key])

    for name in STACK_FILES:
        look(Cluster, parse_yaml((root / name).read_text())["config"][KEY])
    return values


def _is_plain(value: object) -> bool:
    return isinstance(value, bool | int | float | str | tuple | dict)


def _plain(value: Any) -> Any:
    return [_plain(item) for item in typing.cast(Iterable[Any], value)] if isinstance(value, tuple) else value


def _one_line(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").split())
