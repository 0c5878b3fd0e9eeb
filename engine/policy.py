"""Runs the policies on a recorded plan: mandatory ones stop a command before it asks a cluster; advice is returned."""

import os
from typing import Any

from engine.faults import SlipwayError, rows
from engine.plan import Plan, Secret, Unknown, mapped
from engine.plan import Resource as Declared
from engine.project import Project
from names import variables
from policies.records import UNKNOWN, Hidden, Resource, findings, lines
from policies.rules import OwnRulesError, rules_for

_GUIDE = "docs/operate/policies.md says what each policy asks for."


def enforce(project: Project, plan: Plan) -> tuple[str, ...]:
    """The policies' advice, one line each. Raises SlipwayError with everything that they refuse."""
    if os.environ.get(variables.POLICIES) == "off":
        return ()
    try:
        all_findings = findings([record_of(resource) for resource in plan.resources], rules_for(project.root))
    except OwnRulesError as error:
        raise SlipwayError(str(error)) from error
    refused = [finding for finding in all_findings if finding.level == "mandatory"]
    if refused:
        places = "1 place" if len(refused) == 1 else f"{len(refused)} places"
        raise SlipwayError(f"{plan.project}/{plan.stack}: policies refuse {places}\n{rows(lines(refused))}\n{_GUIDE}")
    return tuple(str(finding) for finding in all_findings)


def markdown(advice: tuple[str, ...]) -> str:
    """The advice as a part of a comment."""
    return "".join(["\n**What the policies advise**\n\n", *(f"- {line}\n" for line in advice)]) if advice else ""


def record_of(resource: Declared) -> Resource:
    """A recorded resource as rules see it."""
    props: dict[str, Any] = mapped(resource.inputs, _leaf)
    return Resource(resource.urn, resource.type, resource.name, props, bool(resource.options.get("protect")))


def _leaf(value: Any) -> Any:
    if isinstance(value, Secret):
        return Hidden(mapped(value.value, _leaf))
    return UNKNOWN if isinstance(value, Unknown) else value
