"""The engine's rules that a migration stands on, on recorded plans: which old resource a new one continues, what `ignoreChanges` keeps, and
what a deployment that makes one object at a time comes to.

Source: pulumi's pkg/resource/deploy (step_generator.go: URN, then aliases; applyIgnoreChanges: the old state's value wins).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.plan import Plan, Resource


def continued(plan: Plan, urns: Sequence[str]) -> dict[str, Resource]:
    """The new resource of each old URN that one continues: by its own URN, or by an alias."""
    found = {urn: one for one in plan.resources for urn in one.aliases if urn in urns}
    return found | {one.urn: one for one in plan.resources if one.urn in urns}


def kept_inputs(resource: Resource, before: Mapping[str, Any]) -> dict[str, Any]:
    """A resource's inputs after its `ignoreChanges` beside those of its last deployment. Whole top-level properties only."""
    ignored = resource.options.get("ignoreChanges", ())
    assert all(str(path).isalpha() for path in ignored), f"{resource.name} ignores {ignored}"
    rest = {key: value for key, value in resource.inputs.items() if key not in ignored}
    return rest | {key: before[key] for key in ignored if key in before}


def needs(plan: Plan) -> dict[str, frozenset[str]]:
    """For each resource all that is made before it: what it depends on, and what the components around it do, at any distance."""
    known = {one.urn: one for one in plan.resources}
    inside: dict[str, set[str]] = {}
    for one in plan.resources:
        for above in _around(one, known):
            inside.setdefault(above.urn, set()).add(one.urn)
    found: dict[str, frozenset[str]] = {}

    def of(urn: str) -> frozenset[str]:
        if urn not in found:
            found[urn] = frozenset()  # a circle would end here; the engine refuses one
            one = known[urn]
            direct = {need for each in (one, *_around(one, known)) for need in each.dependencies if need in known}
            direct |= {child for need in direct for child in inside.get(need, ())}
            found[urn] = frozenset(direct.union(*(of(need) for need in direct)))
        return found[urn]

    return {one.urn: of(one.urn) for one in plan.resources}


def _around(one: Resource, known: Mapping[str, Resource]) -> Iterator[Resource]:
    above = known.get(one.parent)
    while above is not None:
        yield above
        above = known.get(above.parent)
