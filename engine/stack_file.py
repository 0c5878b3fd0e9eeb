"""Reads Pulumi.yaml and stack files as the Pulumi CLI's Go parser does: `1:00:00` and `yes` are strings, and a repeated key is an error.

Any file yields plain data (text, numbers, booleans, lists, mappings) or an error of one line with file and position.
"""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, cast

import yaml

from engine.faults import SlipwayError

DEEPEST = 60
"""Levels of nesting. A cluster has fewer than ten."""
_MOST_PARTS = 200_000
"""Nodes of a file with its aliases expanded."""
_PREFIX = "tag:yaml.org,2002:"
_PLAIN = frozenset(f"{_PREFIX}{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map"))
_LARGEST = 2**64


def read(file: Path) -> Any:
    """The data in a file. Raises SlipwayError."""
    try:
        data = file.read_bytes()
    except FileNotFoundError as error:
        raise SlipwayError(f"{file}: no such file. Run from the project's root, or give --root.") from error
    except OSError as error:
        raise SlipwayError(f"{file}: cannot be read: {error.strerror}.") from error
    text = _decoded(data, file.name)
    try:
        _check(text)
        return yaml.load(text, Loader=_Loader)  # noqa: S506 (a SafeLoader, below)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file.name}:{mark.line + 1}:{mark.column + 1}" if mark else file.name
        raise SlipwayError(f"{where}: {_one_line(error.problem or 'not YAML')}.") from error
    except (yaml.YAMLError, ArithmeticError, LookupError, ValueError) as error:
        # Escapes or directives with numbers that are not a valid character or version.
        raise SlipwayError(f"{file.name}: is not YAML: {_one_line(str(error))}.") from error


def _decoded(data: bytes, name: str) -> str:
    """The text of a UTF-8 file, with or without a byte order mark."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise SlipwayError(f"{name}: is UTF-16. Save it as UTF-8.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SlipwayError(f"{name}:{line}: is not UTF-8. Save it as UTF-8.") from error
    if match := yaml.reader.Reader.NON_PRINTABLE.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise SlipwayError(f"{name}:{line}: holds the control character U+{ord(match[0]):04X}, which YAML does not allow. Remove it.")
    return text


def _check(text: str) -> None:
    """Refuses tags, which no stack file needs, and what would exhaust memory or Python's stack."""
    sizes: dict[str, int] = {}
    opened: list[tuple[str | None, int]] = []
    total = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor in (anchor for anchor, _ in opened):
                raise _refusal(f"*{event.anchor} is inside &{event.anchor}, so it would never end", event)
            total += sizes.get(event.anchor or "", 1)
        elif isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            if event.tag is not None and event.tag != "!" and event.tag not in _PLAIN:
                tag = f"!!{event.tag.removeprefix(_PREFIX)}" if event.tag.startswith(_PREFIX) else event.tag
                raise _refusal(f"has the tag {tag}, which a stack file cannot contain. Write text, a number, true or false", event)
            total += 1
            if isinstance(event, yaml.CollectionStartEvent):
                opened.append((event.anchor, total))
                if len(opened) > DEEPEST:
                    raise _refusal("is nested too deeply", event)
            elif event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            if anchor:
                sizes[anchor] = total - before + 1
        if total > _MOST_PARTS:
            raise _refusal("is too large when its aliases are expanded", event)


def _refusal(what: str, at: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=what, problem_mark=at.start_mark)


def _one_line(text: str) -> str:
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return plain if len(plain) <= 200 else f"{plain[:200]}..."


class _Loader(yaml.SafeLoader):
    """YAML 1.2 scalars, as the CLI's Go parser decodes them. In pure Python: a stack file is small, and libyaml may be missing."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen_keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                key_type = "list" if isinstance(key, yaml.SequenceNode) else "mapping"
                raise _refusal(f"has a {key_type} as a key. A key is text", key)
            if key.tag != f"{_PREFIX}merge" and key.value in seen_keys:
                raise _refusal(f'"{key.value}" is set twice', key)
            seen_keys.add(cast(str, key.value))
        return super().construct_mapping(node, deep=deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            value = cast(Any, super()).construct_object(node, deep=deep)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise _refusal("does not match its tag, or is a number with thousands of digits", node) from error
        if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise _refusal("contains half of a character (a surrogate), which is not valid text", node)
        if isinstance(value, int) and abs(value) >= _LARGEST:
            raise _refusal("is a number with too many digits", node)
        return value


_KEPT_TAGS = (f"{_PREFIX}null", f"{_PREFIX}merge")
_Loader.yaml_implicit_resolvers = {
    first: [resolver for resolver in resolvers if resolver[0] in _KEPT_TAGS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:[0-9][0-9_]*)?\.?[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+\.|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
):
    cast(Any, _Loader).add_implicit_resolver(f"{_PREFIX}{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))
