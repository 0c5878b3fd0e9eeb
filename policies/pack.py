"""The rules as a CrossGuard pack. Every rule is a stack policy, so that each runs over all resources, in a preview and in an update.

A rule that binds only what SlurmCluster declares is two policies: `<rule>`, and `<rule>-elsewhere`, which advises on all others.
`SLIPWAY_POLICIES_FILE` names the file of a project's own rules: the engine starts a pack in the pack's folder.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pulumi_policy import EnforcementLevel, PolicyPack, PolicyResource, ReportViolation, StackValidationArgs, StackValidationPolicy
from pulumi_policy.proxy import UnknownValueError

from names import variables
from policies.records import UNKNOWN, Fault, Level, Resource, Rule, level_of
from policies.rules import RULES, with_own

NAME = "slipway"
_STACK = "pulumi:pulumi:Stack"


def serve() -> None:
    """Prints the port and answers the engine until that ends the process. Raises OwnRulesError."""
    file = os.environ.get(variables.POLICIES_FILE)
    rules = with_own(Path(file)) if file else RULES
    PolicyPack(name=NAME, enforcement_level=EnforcementLevel.MANDATORY, policies=[policy for rule in rules for policy in policies(rule)])


def policies(rule: Rule) -> Iterator[StackValidationPolicy]:
    """The policies of a rule."""
    yield _policy(rule, rule.name, rule.level)
    if not rule.is_for_all and rule.level == "mandatory":
        yield _policy(rule, f"{rule.name}-elsewhere", "advisory")


def _policy(rule: Rule, name: str, level: Level) -> StackValidationPolicy:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        for fault in (Fault(*parts) for parts in rule.check(records(args.resources))):
            if level_of(rule, fault) == level:
                place = f"{fault.path}: " if fault.path else ""
                report(f"{place}{fault.found} {fault.remedy}", fault.resource.urn if fault.resource else None)

    return StackValidationPolicy(name, f"{rule.description} Source: {rule.source}", validate, EnforcementLevel(level))


def records(resources: Sequence[PolicyResource]) -> list[Resource]:
    """The engine's resources as rules see them, without the stack itself."""
    declared = (resource for resource in resources if resource.resource_type != _STACK)
    return [
        Resource(resource.urn, resource.resource_type, resource.name, _plain(resource.props), resource.opts.protect)
        for resource in declared
    ]


def _plain(value: Any) -> Any:
    """A value without the SDK's proxies, which raise for values that are not known yet."""
    if isinstance(value, Mapping):
        mapping = cast(Mapping[str, Any], value)
        return {key: _item(mapping, key) for key in mapping}
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = cast(Sequence[Any], value)
        return [_item(items, at) for at in range(len(items))]
    return value


def _item(container: Any, key: Any) -> Any:
    try:
        return _plain(container[key])
    except UnknownValueError:
        return UNKNOWN
