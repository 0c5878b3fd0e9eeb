"""Pulumi.yaml, Pulumi.<stack>.yaml and `--config`, read as the Pulumi CLI reads them and given to the program as it gives them.

YAML follows the CLI's Go parser, not PyYAML's defaults: `1:00:00` and `yes` are strings, and a key said twice is an error.
Encrypted values stay with the CLI: they need its secrets provider.
"""

import difflib
import json
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from standalone.faults import StandaloneError


@dataclass(frozen=True)
class Project:
    """A Pulumi project on disk, one of its stacks, and that stack's config as the program gets it: full key to string."""

    root: Path
    name: str
    program: Path
    stack: str
    config: Mapping[str, str]


def load(root: Path, stack: str, overrides: tuple[str, ...] = (), config_file: Path | None = None) -> Project:
    """Reads project and stack file, then applies `KEY.PATH=VALUE` overrides in order. Raises StandaloneError naming file and line."""
    root = root.resolve()
    about = _read(root / "Pulumi.yaml")
    name = str(about.get("name", ""))
    file = config_file or root / f"Pulumi.{stack}.yaml"
    if not file.exists():
        raise StandaloneError(_unknown_stack(root, stack) if config_file is None else f"{file}: no such file.")
    settings = _read(file)
    if settings.get("environment"):
        raise StandaloneError(f"{file.name}: `environment:` (Pulumi ESC) is read by the pulumi CLI only; run `pulumi up`.")
    config: dict[str, Any] = {}
    for key, declared in _mapping(about.get("config"), "Pulumi.yaml: config").items():
        given = cast(dict[str, Any], declared) if isinstance(declared, dict) else {"value": declared}
        if "value" in given or "default" in given:
            config[_full(key, name)] = given.get("value", given.get("default"))
    config |= {_full(key, name): value for key, value in _mapping(settings.get("config"), f"{file.name}: config").items()}
    for key, value in config.items():
        if where := _secure(value, key):
            raise StandaloneError(f"{file.name}: {where} is encrypted (`secure:`), which only the pulumi CLI can read; run `pulumi up`.")
    for override in overrides:
        set_path(config, override, name)
    main = root / str(about.get("main", "."))
    program = main if main.suffix == ".py" else main / "__main__.py"
    return Project(root, name, program, stack, {key: _text(value) for key, value in config.items() if value is not None})


def set_path(config: dict[str, Any], override: str, project: str) -> None:
    """Sets one `KEY.PATH=VALUE` as `pulumi up --config-path` does; a VALUE that starts with `{` or `[` is JSON.

    An index may be at most the list's length (which appends). Raises StandaloneError with the part that does not fit.
    """
    path, equals, text = override.partition("=")
    if not equals or not path:
        raise StandaloneError(f"--config {override}: expected KEY.PATH=VALUE, for instance cluster.nodeSets[0].size=3.")
    first, *rest = parse_path(path)
    _put(config, [_full(str(first), project), *rest], _typed(text, override), override)


def parse_path(path: str) -> list[str | int]:
    """`a.b[0]["c.d"]` to its steps. Raises StandaloneError when it is not a property path."""
    found = list(re.finditer(r'(?:^|\.)([^.\[\]"]+)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]', path))
    if not found or "".join(one.group(0) for one in found) != path or found[0].group(2) is not None:
        raise StandaloneError(f'{path}: not a property path; write a.b, a[0] or a["b.c"].')
    return [int(one.group(2)) if one.group(2) is not None else re.sub(r"\\(.)", r"\1", one.group(1) or one.group(3) or "") for one in found]


def _put(holder: Any, steps: list[str | int], value: Any, override: str) -> Any:
    """Puts `value` under `steps` and gives the holder back, made where there was none. A list takes one more at its end."""
    if not steps:
        return value
    step, *rest = steps
    if isinstance(step, int) and isinstance(holder, list | None):
        items = cast(list[Any], [] if holder is None else holder)
        if step > len(items):
            raise StandaloneError(f"--config {override}: index {step} is past the end ({len(items)} there).")
        items[step:] = [_put(items[step] if step < len(items) else None, rest, value, override), *items[step + 1 :]]
        return items
    if isinstance(step, str) and isinstance(holder, dict | None):
        entries = cast(dict[str, Any], {} if holder is None else holder)
        entries[step] = _put(entries.get(step), rest, value, override)
        return entries
    wanted = "a list" if isinstance(step, int) else "an object"
    raise StandaloneError(f"--config {override}: {step!r} needs {wanted}, found {type(holder).__name__}.")


def _typed(text: str, override: str) -> Any:
    """A value as the CLI types it: true, false, integers without leading zero; JSON for objects and lists; else text."""
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError as error:
            raise StandaloneError(f"--config {override}: not JSON: {error}.") from error
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"[-+]?(0|[1-9]\d*)", text) else text


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(cast(Any, value))


def _full(key: str, project: str) -> str:
    return key if ":" in key else f"{project}:{key}"


def _secure(value: Any, path: str) -> str | None:
    """The path of the first encrypted value in a config value."""
    if isinstance(value, dict):
        entries = cast(dict[str, Any], value)
        if list(entries) == ["secure"]:
            return path
        return next((found for key, one in entries.items() if (found := _secure(one, f"{path}.{key}"))), None)
    if isinstance(value, list):
        return next((found for at, one in enumerate(cast(list[Any], value)) if (found := _secure(one, f"{path}[{at}]"))), None)
    return None


def _unknown_stack(root: Path, stack: str) -> str:
    stacks = sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in root.glob("Pulumi.*.yaml"))
    near = difflib.get_close_matches(stack, stacks, 1)
    meant = f' Did you mean "{near[0]}"?' if near else ""
    return f'No stack is called "{stack}".{meant} There are: {", ".join(stacks) or "none"} (Pulumi.<stack>.yaml in {root}).'


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise StandaloneError(f"{what}: expected `key: value` lines, found {type(value).__name__}.")
    return {str(key): one for key, one in cast(dict[Any, Any], value).items()}


class _Loader(yaml.SafeLoader):
    """YAML 1.2 scalars, as the CLI's Go parser decodes them. The pure-Python loader: a stack file is small, and libyaml may be absent."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        said: dict[Any, yaml.Node] = {}
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:merge" and key.value in said:
                raise yaml.constructor.ConstructorError(None, None, f'"{key.value}" is said twice', key.start_mark)
            said[key.value] = key
        return super().construct_mapping(node, deep=deep)


_KEPT = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")
_Loader.yaml_implicit_resolvers = {
    first: [one for one in resolvers if one[0] in _KEPT] for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
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
    cast(Any, _Loader).add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))


def _read(file: Path) -> dict[str, Any]:
    """A YAML mapping. Raises StandaloneError with file, line and what is wrong there."""
    try:
        return _mapping(yaml.load(file.read_text(), Loader=_Loader), file.name)  # noqa: S506 (a SafeLoader, above)
    except FileNotFoundError as error:
        raise StandaloneError(f"{file}: no such file. Run from the project's root, or give --root.") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file.name}:{mark.line + 1}:{mark.column + 1}" if mark else file.name
        raise StandaloneError(f"{where}: {error.problem or 'not YAML'}.") from error
