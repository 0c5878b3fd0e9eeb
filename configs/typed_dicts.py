"""Generates configs/cluster_args.py from the models: typed dictionaries that programs in any language hand to `SlurmCluster`.

Pulumi's analyser supports neither `Literal`, unions nor forward references. So parts come before what holds them, a key of several types is
`Any` (the loader checks it), and docstrings state choices and ranges.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from configs.key_facts import description, facts
from configs.models.cluster import Cluster
from configs.schema import REF

_CALLED = {Cluster.__name__: "SlurmClusterArgs"}
"""Names that differ from the model's."""
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_OPENING = '''\
"""The arguments of `SlurmCluster`: the keys of a stack file's `slipway:cluster` with their types and descriptions.

Generated from the models by `make reference`, which runs `configs/typed_dicts.py`.
"""

from typing import Any, NotRequired, TypedDict
'''


def module(definitions: Mapping[str, Any]) -> str:
    """The module's text, from the definitions of a stack file's JSON schema."""
    return "\n\n".join([_OPENING, *(_class(name, definitions[name]) for name in _parts_first(definitions))])


def _parts_first(definitions: Mapping[str, Any]) -> list[str]:
    """The names of all definitions, each after those that it refers to."""
    met: dict[str, None] = {}

    def meet(name: str) -> None:
        for part in _references(definitions[name]["properties"]):
            meet(part)
        met.setdefault(name)

    meet(Cluster.__name__)
    return list(met)


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in cast(Mapping[str, Any], schema).items():
            if key == "$ref":
                yield value.removeprefix(REF)
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for item in cast(list[Any], schema):
            yield from _references(item)


def _class(name: str, definition: Mapping[str, Any]) -> str:
    lines = [f"class {_CALLED.get(name, name)}(TypedDict):", _docstring(definition["description"]), ""]
    for key, about in definition["properties"].items():
        is_required = key in definition["required"]
        kind = _type(about) if is_required else f"NotRequired[{_type(about)}]"
        lines += [f"    {key}: {kind}", _docstring(f"{description(about)} {_in_words(facts(key, about, is_required))}")]
    return "\n".join([*lines, ""])


def _docstring(text: str) -> str:
    """The text on one line: the analyser would keep a second line's indent."""
    escaped = text.replace("\\", "\\\\")
    return f'    """{escaped}"""'


def _in_words(told: str) -> str:
    """Without the page's links and hints for editors of stack files."""
    return re.sub(r"\[(\w+)\]\(#\w+\)", r"\1", told).replace(", which an editor lists", "")


def _type(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return _type(schema["anyOf"][0])  # the other is null
    if "$ref" in schema:
        name = str(schema["$ref"]).removeprefix(REF)
        return _CALLED.get(name, name)
    schema_type = schema["type"]
    kinds = [kind for kind in (cast(list[str], schema_type) if isinstance(schema_type, list) else [schema_type]) if kind != "null"]
    if kinds == ["array"]:
        return f"list[{_type(schema['items'])}]"
    if kinds == ["object"]:
        return f"dict[str, {_type(schema['additionalProperties'])}]"
    return _TYPES[kinds[0]] if len(kinds) == 1 else "Any"
