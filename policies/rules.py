"""All rules of Slipway, and those of a project: `slipway_policies.py` beside its Pulumi.yaml.

That file may have `POLICIES`, a list of plain functions over the resources, and `LEVELS`, a level for any rule by its name.
"""

import re
import runpy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from policies import images, protection, resource_limits, restricted, secret_values, size, slurm_releases
from policies.records import Check, Fault, Level, Resource, Rule

FILE = "slipway_policies.py"
RULES: tuple[Rule, ...] = (
    secret_values.VALUES,
    secret_values.IDS,
    images.RULE,
    slurm_releases.RULE,
    protection.RULE,
    restricted.RULE,
    resource_limits.RULE,
    size.COUNT,
    size.PER_NODE,
)


class OwnRulesError(Exception):
    """The project's own file cannot be used. The message gives the reason and the fix."""


def rules_for(project: Path) -> tuple[Rule, ...]:
    """The rules for a project: Slipway's, and those of its own file if it has one. Raises OwnRulesError."""
    file = project / FILE
    return with_own(file) if file.exists() else RULES


def with_own(file: Path) -> tuple[Rule, ...]:
    """Slipway's rules and those of a file. Raises OwnRulesError."""
    try:
        namespace = runpy.run_path(str(file))
    except Exception as error:
        raise OwnRulesError(f"{file}: {type(error).__name__}: {error}") from error
    functions: object = namespace.get("POLICIES", [])
    if not isinstance(functions, (list, tuple)):
        raise OwnRulesError(f"{file}: POLICIES is {functions!r}. Give a list of functions.")
    project_rules = [_own_rule(file, function) for function in cast(Sequence[object], functions)]
    rules = (*RULES, *project_rules)
    levels = _levels(file, namespace.get("LEVELS", {}), [rule.name for rule in rules])
    return tuple(replace(rule, level=levels[rule.name], is_for_all=True) if rule.name in levels else rule for rule in rules)


def _own_rule(file: Path, function: object) -> Rule:
    name, described = getattr(function, "__name__", ""), getattr(function, "__doc__", None)
    if not callable(function) or not re.fullmatch(r"[a-z][a-z0-9_]*", name) or not described:
        raise OwnRulesError(f"{file}: POLICIES has {function!r}. Give functions with a name in lower case and a docstring.")
    check = cast(Check, function)

    def checked(resources: Sequence[Resource]) -> list[Fault]:
        try:
            return [Fault(*parts) for parts in check(resources)]
        except Exception as error:
            raise OwnRulesError(f"{file}: {name}: {type(error).__name__}: {error}") from error

    description = str(described).strip().splitlines()[0]
    return Rule(name.replace("_", "-"), description, file.name, checked, is_for_all=True)


def _levels(file: Path, levels: Any, names: Sequence[str]) -> Mapping[str, Level]:
    if not isinstance(levels, dict):
        raise OwnRulesError(f'{file}: LEVELS is {levels!r}. Give a dictionary, such as {{"{names[0]}": "advisory"}}.')
    for name, level in cast(dict[Any, Any], levels).items():
        if name not in names:
            raise OwnRulesError(f"{file}: LEVELS names {name!r}, which is not a rule. The rules are: {', '.join(names)}.")
        if level not in get_args(Level):
            raise OwnRulesError(f"{file}: LEVELS[{name!r}] is {level!r}. Give mandatory or advisory.")
    return cast(Mapping[str, Level], levels)
