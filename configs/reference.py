"""docs/reference.md and docs/stack.schema.json, written from the models: `python -m configs.reference write`, or `check`.

`schema` has the facts; here they become a page, one section a model. In configs because all of it is made from the models: `make lint`
needs no other layer for it. Both files are committed, so that an editor and a reader need no Python.
"""

import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from configs.models.cluster import Cluster
from configs.schema import KEY, REF, flow, key_of, models_in, stack_schema

PAGE = "docs/reference.md"
SCHEMA = "docs/stack.schema.json"
ROOT = Path(__file__).parents[1]

_WIDTH = 100
_MOST_CHOICES = 20
_UNITS = {"S": "seconds", "MiB": "MiB", "GiB": "GiB", "Days": "days", "Percent": "percent"}
"""The end of a key's name, and the unit that it says."""
_OPENING = """\
# Keys of a stack file

Look up any key of `Pulumi.<stack>.yaml` here: its type, unit, default and an example. Let an editor
complete and check the keys as you type: any editor with the YAML language server (in VS Code, the
extension YAML) does so when the first line of the file is

    # yaml-language-server: $schema=docs/stack.schema.json

where the path is that of `docs/stack.schema.json` relative to the stack file. The schema refuses
unknown keys, values of another type and values out of range.

All paths below start at `slipway:cluster`, and `[]` stands for each item of a list:

    config:
      slipway:cluster:
        name: ml
        ...

**Neither this page nor the schema can express rules that span keys**: names that refer to each other,
exactly one of several keys, figures that have to fit together, keys and values that Slurm itself must
know. The loader checks these rules. `python -m standalone preview --stack STACK` and `pulumi preview`
list all mistakes at once, with path and remedy, before anything is touched.

A key that is left out has its default; "not set" means no value. Keys are case-sensitive. Text that
looks like a number or a time needs quotes, such as `"1-00:00:00"`.

This page and the schema are generated from `configs/`: change the models, then run `make reference`.
"""


def reference(schema: Mapping[str, Any]) -> str:
    """The page, from the schema of a stack file."""
    places = _places()
    sections = [_section(name, model, places[name]) for name, model in schema["definitions"].items()]
    return "\n".join([_OPENING, "## Contents\n", *_contents(), *sections, ""])


def files(root: Path) -> dict[str, str]:
    """The text of each file, by its path in the project."""
    schema = stack_schema(root)
    return {PAGE: reference(schema), SCHEMA: json.dumps(schema, indent=1, ensure_ascii=False) + "\n"}


def outdated(root: Path) -> list[str]:
    """The committed files that differ from what the models give."""
    return [path for path, text in files(root).items() if not (root / path).is_file() or (root / path).read_text() != text]


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Exit status of `write` and of `check`."""
    match arguments:
        case ["write"]:
            for path, text in files(root).items():
                (root / path).write_text(text)
            return 0
        case ["check"]:
            late = outdated(root)
            for path in late:
                print(f"{path} is out of date: run `make reference`", file=sys.stderr)
            return 1 if late else 0
        case _:
            print("usage: python -m configs.reference write|check", file=sys.stderr)
            return 2


def unit_of(key: str) -> str | None:
    """The unit that a key's name says."""
    if re.search(r"Tres(Run)?Mins", key):
        return "TRES-minutes"
    return next((unit for end, unit in _UNITS.items() if key.endswith(end)), None)


def _places() -> dict[str, list[str]]:
    """Where each model stands in a stack file, by the model's name."""
    places: dict[str, list[str]] = {}

    def visit(model: Any, path: str) -> None:
        places.setdefault(model.__name__, []).append(path)
        for name, field in model.model_fields.items():
            for inner in models_in(field.annotation):
                visit(inner, f"{path}.{key_of(name, field)}{_inside(field.annotation)}".lstrip("."))

    visit(Cluster, "")
    return places


def _inside(annotation: Any) -> str:
    shown = str(annotation)
    return "[]" if shown.startswith("tuple[") else ".NAME" if shown.startswith("dict[") else ""


def _contents() -> Iterator[str]:
    seen: set[str] = set()

    def lines(model: Any, depth: int) -> Iterator[str]:
        for name, field in model.model_fields.items():
            for inner in models_in(field.annotation):
                yield f"{'  ' * depth}- `{key_of(name, field)}{_inside(field.annotation)}`: {_link(inner.__name__)}"
                if inner.__name__ not in seen:
                    seen.add(inner.__name__)
                    yield from lines(inner, depth + 1)

    yield f"- `slipway:cluster`: {_link(Cluster.__name__)}"
    yield from lines(Cluster, 1)


def _section(name: str, model: Mapping[str, Any], places: list[str]) -> str:
    shown = ", ".join(f"`{place}`" for place in places if place) or f"`{KEY}`"
    required: list[str] = model["required"]
    keys = [_key(key, about, key in required) for key, about in model["properties"].items()]
    return "\n".join([f"\n## {name}\n", _wrapped(model["description"]), "", _wrapped(f"Path: {shown}"), "", *keys])


def _key(key: str, about: Mapping[str, Any], is_required: bool) -> str:
    facts = [f"Type: {_type(about)}."]
    if unit := unit_of(key):
        facts.append(f"Unit: {unit}.")
    text, _, told = about["description"].partition(" Default: ")
    facts.append("Required." if is_required else f"Default: {_default(about, told.removesuffix('.'))}.")
    return "\n".join(
        [
            _wrapped(f"- **`{key}`**: {text}", "  "),
            _wrapped(f"  - {' '.join(facts)}", "    "),
            f"  - Example: `{key}: {flow(about['examples'][0])}`",
        ]
    )


def _default(about: Mapping[str, Any], told: str) -> str:
    """A key's default, as a value and in the words of its description, if these tell it."""
    if "default" in about:
        return f"`{flow(about['default'])}`{f' ({told})' if told else ''}"
    return told or ("those of its keys" if "$ref" in about else "not set")


def _type(schema: Mapping[str, Any]) -> str:
    """A value's type and limits, in words."""
    if "anyOf" in schema:
        return _type(schema["anyOf"][0])
    if "$ref" in schema:
        return _link(schema["$ref"].removeprefix(REF))
    if "enum" in schema:
        choices = [f"`{flow(each)}`" for each in schema["enum"] if each is not None]
        return f"one of {', '.join(choices)}" if len(choices) <= _MOST_CHOICES else f"one of {len(choices)} names, which an editor lists"
    what = str(schema.get("patternErrorMessage", "")).removeprefix("Not ").removesuffix(".")
    given = schema["type"]
    kinds = [kind for kind in (cast(list[str], given) if isinstance(given, list) else [given]) if kind != "null"]
    match kinds[0]:
        case "array":
            least = f" (at least {schema['minItems']} item)" if "minItems" in schema else ""
            each = _type(schema["items"])
            return f"list{least}, each {each}" if "enum" in schema["items"] else f"list{least} of {each}"
        case "object":
            return f"mapping of {_type(schema['propertyNames'])} to {_type(schema['additionalProperties'])}"
        case "boolean":
            return "true or false"
        case "integer" | "number" as kind if len(kinds) == 1:
            return f"{kind}{_range(schema)}"
        case _:
            longest = f", at most {schema['maxLength']:,} characters" if "maxLength" in schema else ""
            return f"{' or '.join(kinds)}{f' ({what}{longest})' if what else ''}"


def _range(schema: Mapping[str, Any]) -> str:
    return f", {schema['minimum']:,} to {schema['maximum']:,}" if "maximum" in schema else ""


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _wrapped(text: str, indent: str = "") -> str:
    return "\n".join(textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
