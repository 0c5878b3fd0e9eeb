"""Reads Pulumi.yaml, Pulumi.<stack>.yaml and `--config`, and passes them to the program as the Pulumi CLI does.

`stack_file` reads the YAML. Encrypted values need the CLI's secrets provider, so they are refused.
"""

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from engine import stack_file
from engine.faults import SlipwayError

_LONGEST = 200


@dataclass(frozen=True)
class Project:
    """A Pulumi project on disk, one of its stacks, and the config that the program gets: full key to string."""

    root: Path
    name: str
    program: Path
    stack: str
    config: Mapping[str, str]
    file: Path
    """The stack file, or the file given in its place."""


def load(root: Path, stack: str, overrides: tuple[str, ...] = (), config_file: Path | None = None) -> Project:
    """Reads project and stack file, then applies `KEY.PATH=VALUE` overrides in order. Raises SlipwayError naming file and line."""
    root = root.resolve()
    manifest = _read(root / "Pulumi.yaml")
    name = str(manifest.get("name", ""))
    file = config_file or root / f"Pulumi.{stack}.yaml"
    if not file.exists():
        raise SlipwayError(_unknown_stack(root, stack) if config_file is None else f"{file}: no such file.")
    settings = _read(file)
    if settings.get("environment"):
        raise SlipwayError(f"{file.name}: `environment:` (Pulumi ESC) is read by the Pulumi CLI only; run `pulumi up`.")
    config: dict[str, Any] = {}
    for key, declared in _mapping(manifest.get("config"), "Pulumi.yaml: config").items():
        spec = cast(dict[str, Any], declared) if isinstance(declared, dict) else {"value": declared}
        if "value" in spec or "default" in spec:
            config[_full(key, name)] = spec.get("value", spec.get("default"))
    config |= {_full(key, name): value for key, value in _mapping(settings.get("config"), f"{file.name}: config").items()}
    for key, value in config.items():
        if secure_path := _secure(value, key):
            raise SlipwayError(f"{file.name}: {secure_path} is encrypted (`secure:`), which only the Pulumi CLI can read; run `pulumi up`.")
    for override in overrides:
        set_path(config, override, name)
    main = root / str(manifest.get("main", "."))
    program = main if main.suffix == ".py" else main / "__main__.py"
    return Project(root, name, program, stack, {key: _text(value) for key, value in config.items() if value is not None}, file)


def set_path(config: dict[str, Any], override: str, project: str) -> None:
    """Sets `KEY.PATH=VALUE` as `pulumi up --config-path` does. A VALUE that starts with `{` or `[` is JSON.

    An index that equals the list's length appends. Raises SlipwayError with the part that does not fit.
    """
    path, equals, text = override.partition("=")
    if not equals or not path:
        raise SlipwayError(f"--config {override}: expected KEY.PATH=VALUE, for instance cluster.nodeSets[0].size=3.")
    first, *steps = parse_path(path)
    if len(steps) > stack_file.DEEPEST:
        raise SlipwayError(f"--config {_short(override)}: is nested too deeply.")
    _put(config, [_full(str(first), project), *steps], _typed(text, override), override)


def parse_path(path: str) -> list[str | int]:
    """Splits `a.b[0]["c.d"]` into its steps. Raises SlipwayError if it is not a property path."""
    matches = list(re.finditer(r'(?:^|\.)([^.\[\]"]+)|\[(\d{1,9})\]|\["((?:[^"\\]|\\.)*)"\]', path))
    if not matches or "".join(match.group(0) for match in matches) != path or matches[0].group(2) is not None:
        raise SlipwayError(f'{_short(path)}: not a property path; write a.b, a[0] or a["b.c"].')
    return [
        int(match.group(2)) if match.group(2) is not None else re.sub(r"\\(.)", r"\1", match.group(1) or match.group(3) or "")
        for match in matches
    ]


def _put(holder: Any, steps: list[str | int], value: Any, override: str) -> Any:
    """Sets `value` at `steps` and returns the holder, which is created if it is None."""
    if not steps:
        return value
    step, *later_steps = steps
    if isinstance(step, int) and isinstance(holder, list | None):
        items = cast(list[Any], [] if holder is None else holder)
        if step > len(items):
            raise SlipwayError(f"--config {override}: index {step} is past the end of the list, which has {len(items)} items.")
        items[step:] = [_put(items[step] if step < len(items) else None, later_steps, value, override), *items[step + 1 :]]
        return items
    if isinstance(step, str) and isinstance(holder, dict | None):
        entries = cast(dict[str, Any], {} if holder is None else holder)
        entries[step] = _put(entries.get(step), later_steps, value, override)
        return entries
    expected = "a list" if isinstance(step, int) else "an object"
    raise SlipwayError(f"--config {override}: {step!r} needs {expected}, found {type(holder).__name__}.")


def _typed(text: str, override: str) -> Any:
    """A value as the CLI types it: true, false, integers without leading zero; JSON for objects and lists; else text."""
    if text[:1] in ("{", "["):
        try:
            value = json.loads(text)
            json.dumps(value)
        except RecursionError as error:
            raise SlipwayError(f"--config {_short(override)}: is nested too deeply.") from error
        except ValueError as error:
            raise SlipwayError(f"--config {_short(override)}: not JSON: {error}.") from error
        return value
    if text in ("true", "false"):
        return text == "true"
    # Python does not parse longer numbers; as text, the value is refused with its path.
    return int(text) if re.fullmatch(r"[-+]?(0|[1-9]\d{0,4000})", text, re.ASCII) else text


def _short(override: str) -> str:
    return override if len(override) <= _LONGEST else f"{override[:_LONGEST]}..."


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
        return next((secure for key, inner in entries.items() if (secure := _secure(inner, f"{path}.{key}"))), None)
    if isinstance(value, list):
        items = enumerate(cast(list[Any], value))
        return next((secure for index, inner in items if (secure := _secure(inner, f"{path}[{index}]"))), None)
    return None


def _unknown_stack(root: Path, stack: str) -> str:
    stacks = sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in root.glob("Pulumi.*.yaml"))
    matches = difflib.get_close_matches(stack, stacks, 1)
    suggestion = f' Did you mean "{matches[0]}"?' if matches else ""
    return f'No stack is called "{stack}".{suggestion} There are: {", ".join(stacks) or "none"} (Pulumi.<stack>.yaml in {root}).'


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SlipwayError(f"{what}: expected `key: value` lines, found {type(value).__name__}.")
    return {str(key): entry for key, entry in cast(dict[Any, Any], value).items()}


def _read(file: Path) -> dict[str, Any]:
    """The mapping in a YAML file. Raises SlipwayError with file, line and mistake."""
    return _mapping(stack_file.read(file), file.name)
