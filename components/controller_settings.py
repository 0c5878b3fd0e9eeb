"""Settings of a node set for the NodeSet controller: turns the model into the NodeSet object's spec and the schema of its kind.

Only the model spells their keys: `deadline_s` there is `deadlineSeconds` in the object.
"""

import re
from typing import Any, cast

from pydantic.alias_generators import to_camel

from components.labels import Manifest
from configs.models.node_set import CONTROLLER_SETTINGS, NodeSet

_RENAMED = {"update": "updateStrategy"}
"""Settings with another name in the object."""
_SAME = ("type", "enum", "default", "description", "minimum", "maximum")
_SCHEMA_WORDS = {**{word: word for word in _SAME}, "ge": "minimum", "le": "maximum"}
"""Keys of pydantic's JSON schema and of the kind's schema. Pydantic writes a limit before another validator as `ge` or `le`."""


def controller_settings(node_set: NodeSet) -> Manifest:
    """The settings in the object's spec. A setting without a value is left out."""
    return _spelled(node_set.model_dump(mode="json", include=set(CONTROLLER_SETTINGS), exclude_none=True))


def settings_schema() -> Manifest:
    """The schema of these settings: types, limits, defaults and descriptions of the model. The kind's own schema has the optional parts,
    which have rules of their own."""
    schema = NodeSet.model_json_schema(by_alias=False)
    settings = {name: schema["properties"][name] for name in CONTROLLER_SETTINGS}
    settings = {name: field for name, field in settings.items() if not any("$ref" in kind for kind in field.get("anyOf", []))}
    return {"type": "object", "properties": _properties(settings, schema["$defs"])}


def add_missing_fields(schema: Manifest, wanted: Manifest) -> None:
    """Adds the fields of `wanted` that a schema lacks. Existing fields keep their descriptions, rules and limits."""
    fields = schema.setdefault("properties", {})
    for name, field in wanted["properties"].items():
        if name not in fields:
            fields[name] = field
        elif "properties" in field:
            add_missing_fields(fields[name], field)


def _properties(fields: Manifest, parts: Manifest) -> Manifest:
    return {_key(name): _field(schema, parts) for name, schema in fields.items()}


def _field(schema: Manifest, parts: Manifest) -> Manifest:
    # `int | None` is an optional integer; `int | str` has no single type.
    kinds = [kind for kind in schema.get("anyOf", []) if kind.get("type") != "null"]
    model: Manifest = parts[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else {}
    merged: Manifest = {**model, **(kinds[0] if len(kinds) == 1 else {}), **schema}
    field = {word: merged[name] for name, word in _SCHEMA_WORDS.items() if merged.get(name) is not None}
    if "default" in field:
        field["default"] = _spelled(field["default"])
    if {"integer", "string"} == {kind.get("type") for kind in kinds}:
        field["x-kubernetes-int-or-string"] = True
    if "properties" in merged:
        field["properties"] = _properties(merged["properties"], parts)
    return field


def _spelled(value: Any) -> Any:
    """A value with the object's keys, without those that have no value."""
    if not isinstance(value, dict):
        return value
    values = cast(dict[str, Any], value)
    return {_key(name): _spelled(inner) for name, inner in values.items() if inner is not None}


def _key(name: str) -> str:
    return _RENAMED.get(name) or to_camel(re.sub("_s$", "_seconds", name))
