"""A key of a stack file in words: its type with limits, its unit and its default, from its JSON schema.

`reference` makes the page of these facts, and `typed_dicts` the descriptions that programs in other languages see.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from configs.schema import REF, flow

_MOST_CHOICES = 20
_UNITS = {"S": "seconds", "MiB": "MiB", "GiB": "GiB", "Days": "days", "Percent": "percent"}
"""The end of a key's name, and the unit that it says."""


def description(about: Mapping[str, Any]) -> str:
    """What a key is for, without the words on its default."""
    return about["description"].partition(" Default: ")[0]


def facts(key: str, about: Mapping[str, Any], is_required: bool) -> str:
    """Type, unit and default of a key, a sentence each."""
    told = about["description"].partition(" Default: ")[2].removesuffix(".")
    unit = f" Unit: {measure}." if (measure := unit_of(key)) else ""
    default = "Required." if is_required else f"Default: {_default(about, told)}."
    return f"Type: {_type(about)}.{unit} {default}"


def unit_of(key: str) -> str | None:
    """The unit that a key's name says."""
    if re.search(r"Tres(Run)?Mins", key):
        return "TRES-minutes"
    return next((unit for end, unit in _UNITS.items() if key.endswith(end)), None)


def link(name: str) -> str:
    """A link to a model's section of the page."""
    return f"[`{name}`](#{name.lower()})"


def _default(about: Mapping[str, Any], told: str) -> str:
    """A key's default, in the words of its description if these state it."""
    if "default" in about:
        return f"`{flow(about['default'])}`{f' ({told})' if told else ''}"
    return told or ("those of its keys" if "$ref" in about else "not set")


def _type(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return _type(schema["anyOf"][0])
    if "$ref" in schema:
        return link(schema["$ref"].removeprefix(REF))
    if "enum" in schema:
        choices = [f"`{flow(choice)}`" for choice in schema["enum"] if choice is not None]
        return f"one of {', '.join(choices)}" if len(choices) <= _MOST_CHOICES else f"one of {len(choices)} names, which an editor lists"
    what = str(schema.get("patternErrorMessage", "")).removeprefix("Not ").removesuffix(".")
    schema_type = schema["type"]
    kinds = [kind for kind in (cast(list[str], schema_type) if isinstance(schema_type, list) else [schema_type]) if kind != "null"]
    match kinds[0]:
        case "array":
            least = f" (at least {schema['minItems']} item)" if "minItems" in schema else ""
            element = _type(schema["items"])
            return f"list{least}, each {element}" if "enum" in schema["items"] else f"list{least} of {element}"
        case "object":
            return f"mapping. Name: {_type(schema['propertyNames'])}. Value: {_type(schema['additionalProperties'])}"
        case "boolean":
            return "true or false"
        case "integer" | "number" as kind if len(kinds) == 1:
            return f"{kind}{_range(schema)}"
        case _:
            longest = f", at most {schema['maxLength']:,} characters" if "maxLength" in schema else ""
            return f"{' or '.join(kinds)}{f' ({what}{longest})' if what else ''}"


def _range(schema: Mapping[str, Any]) -> str:
    return f", {schema['minimum']:,} to {schema['maximum']:,}" if "maximum" in schema else ""
