"""Generates docs/reference/stack-file.md with its schema, the table in checks.md beside it, and configs/cluster_args.py from the models.

`python -m configs.reference write` writes them; `check` reports which are out of date.
"""

import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from configs import typed_dicts
from configs.key_facts import description, facts, link
from configs.models import check_texts
from configs.models.cluster import Cluster
from configs.schema import KEY, flow, key_of, models_in, stack_schema

PAGE = "docs/reference/stack-file.md"
SCHEMA = "docs/reference/stack.schema.json"
CHECKS = "docs/reference/checks.md"
ARGUMENTS = "configs/cluster_args.py"
ROOT = Path(__file__).parents[1]

_WIDTH = 100
_TABLE_BEGINS = "<!-- From programs/node_checks/kinds.py: run `make reference` after a change. -->"
_TABLE_ENDS = "<!-- The end of the table. -->"
_OPENING = """\
# Keys of a stack file

For platform teams: look up any key of `Pulumi.<stack>.yaml`: its type, unit, default and an
example. An editor with the YAML language server completes and checks the keys as you type (in VS
Code, the extension YAML). For that, the first line of the file is

    # yaml-language-server: $schema=docs/reference/stack.schema.json

where the path is that of `docs/reference/stack.schema.json` relative to the stack file. The schema refuses
unknown keys, values of another type and values out of range.

All paths below start at `slipway:cluster`, and `[]` stands for each item of a list:

    config:
      slipway:cluster:
        name: ml
        ...

**Neither this page nor the schema can express rules that span keys.** For example, a name has to exist
elsewhere, or only one of several keys may be set. Numbers have to fit together, and Slurm itself
must know a key. The loader checks these rules. `slipway preview --stack STACK` and `pulumi preview`
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
    return {
        PAGE: reference(schema),
        SCHEMA: json.dumps(schema, indent=1, ensure_ascii=False) + "\n",
        ARGUMENTS: typed_dicts.module(schema["definitions"]),
        CHECKS: _with_table((root / CHECKS).read_text()),
    }


def _with_table(page: str) -> str:
    """The page with the current table of health checks between its marks. Raises ValueError if the marks are missing."""
    before, begin, after_begin = page.partition(_TABLE_BEGINS)
    _old, end, after = after_begin.partition(_TABLE_ENDS)
    if not (begin and end):
        raise ValueError(f"{CHECKS}: the table of checks belongs between the lines {_TABLE_BEGINS!r} and {_TABLE_ENDS!r}.")
    return "".join((before, begin, "\n\n", check_texts.table(), "\n", end, after))


def outdated(root: Path) -> list[str]:
    """The committed files that differ from what the models give."""
    return [path for path, text in files(root).items() if not (root / path).is_file() or (root / path).read_text() != text]


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Exit status of `write` and of `check`."""
    try:
        return _run(arguments, root)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def _run(arguments: list[str], root: Path) -> int:
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


def _places() -> dict[str, list[str]]:
    """Paths of each model in a stack file, by the model's name."""
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
                yield f"{'  ' * depth}- `{key_of(name, field)}{_inside(field.annotation)}`: {link(inner.__name__)}"
                if inner.__name__ not in seen:
                    seen.add(inner.__name__)
                    yield from lines(inner, depth + 1)

    yield f"- `slipway:cluster`: {link(Cluster.__name__)}"
    yield from lines(Cluster, 1)


def _section(name: str, model: Mapping[str, Any], places: list[str]) -> str:
    shown = ", ".join(f"`{place}`" for place in places if place) or f"`{KEY}`"
    required: list[str] = model["required"]
    keys = [_key(key, about, key in required) for key, about in model["properties"].items()]
    return "\n".join([f"\n## `{name}`\n", _wrapped(model["description"]), "", _wrapped(f"Path: {shown}"), "", *keys])


def _key(key: str, about: Mapping[str, Any], is_required: bool) -> str:
    return "\n".join(
        [
            _wrapped(f"- **`{key}`**: {description(about)}", "  "),
            _wrapped(f"  - {facts(key, about, is_required)}", "    "),
            f"  - Example: `{key}: {flow(about['examples'][0])}`",
        ]
    )


def _wrapped(text: str, indent: str = "") -> str:
    return "\n".join(textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
