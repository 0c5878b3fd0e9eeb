"""What a program declares, as data: resources with their inputs and options, secrets masked the moment it becomes JSON.

Pure. The golden plans and the saved plans (`.slipway/plans/<stack>.json`) are `as_json`; `compare` says what changed between two of them
in the terms of Pulumi's engine: identity is the URN, or a URN that an alias names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from changes.steps import Difference, Step, differences, step_of
from engine.replacement import replacing_path

MASK = "[secret]"
Op = Literal["create", "update", "replace", "delete", "same", "cli"]
"""`cli`: nothing `slipway` can compare; only the Pulumi CLI can."""


@dataclass(frozen=True)
class Secret:
    """A value that must never be shown or stored: any JSON value, or a part of it."""

    value: Any

    def __repr__(self) -> str:
        return MASK


@dataclass(frozen=True)
class Unknown:
    """A value that exists only once a provider has made something."""

    def __repr__(self) -> str:
        return "[known after up]"


@dataclass(frozen=True)
class Resource:
    """One registration: what was declared, under which options. `inputs` may hold Secret and Unknown."""

    urn: str
    type: str
    name: str
    parent: str = ""
    custom: bool = True
    inputs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Only those given: protect, retainOnDelete, deleteBeforeReplace, ignoreChanges, replaceOnChanges, provider, import, read."""
    dependencies: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def is_object(self) -> bool:
        """True for a plain Kubernetes object: a typed or custom resource of exactly one manifest."""
        kind = self.inputs.get("kind")
        tail = self.type.rpartition(":")[2]
        return self.type.startswith("kubernetes:") and isinstance(kind, str) and kind == tail and not kind.endswith("List")

    @property
    def is_counted(self) -> bool:
        """True for what the count line counts: neither components nor providers."""
        return self.custom and not self.type.startswith("pulumi:providers:")


@dataclass(frozen=True)
class Plan:
    """All that one run of the program declared, sorted by URN, and what it exports."""

    project: str
    stack: str
    resources: tuple[Resource, ...]
    outputs: Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """What will happen to one resource (`urn`, empty for what is no longer declared), and why in `differences` or `note`."""

    op: Op
    type: str
    name: str
    urn: str = ""
    differences: tuple[Difference, ...] = ()
    note: str = ""
    old_urn: str = ""
    """Its URN in the saved plan that it was compared with, if it is there."""


def masked(value: Any) -> Any:
    """The value as JSON, with every secret as `[secret]` and every unknown in words."""
    return mapped(value, lambda leaf: repr(leaf) if isinstance(leaf, (Secret, Unknown)) else leaf)


def revealed(value: Any) -> Any:
    """The value with secrets as they are."""
    return mapped(value, lambda leaf: revealed(leaf.value) if isinstance(leaf, Secret) else leaf)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with `change` made to whatever in it is neither a mapping, whose keys are sorted, nor a list."""
    if isinstance(value, Mapping):
        return {key: mapped(inner, change) for key, inner in sorted(cast(Mapping[str, Any], value).items())}
    if isinstance(value, (list, tuple)):
        return [mapped(item, change) for item in cast(Sequence[Any], value)]
    return change(value)


def secret_texts(value: Any) -> Iterator[str]:
    """Every piece of text inside a Secret of `value`."""
    return (leaf for _, leaf, is_secret in _leaves(value) if is_secret and isinstance(leaf, str))


def unknown_path(value: Any) -> str | None:
    """The path of the first value that only the cluster or a provider could tell."""
    return next((path for path, leaf, _ in _leaves(value) if isinstance(leaf, Unknown)), None)


def _leaves(value: Any, path: str = "", is_secret: bool = False) -> Iterator[tuple[str, Any, bool]]:
    """Whatever in a value is neither a mapping nor a list: its path, itself, and whether a Secret holds it."""
    if isinstance(value, Secret):
        yield from _leaves(value.value, path, True)
    elif isinstance(value, Mapping):
        for key, inner in cast(Mapping[str, Any], value).items():
            yield from _leaves(inner, f"{path}.{key}" if path else key, is_secret)
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(cast(Sequence[Any], value)):
            yield from _leaves(item, f"{path}[{at}]", is_secret)
    else:
        yield path, value, is_secret


def as_json(plan: Plan) -> dict[str, Any]:
    """The plan as JSON: sorted, stable, no secret in it."""
    return {
        "project": plan.project,
        "stack": plan.stack,
        "outputs": masked(plan.outputs),
        "resources": [_resource_json(resource) for resource in sorted(plan.resources, key=lambda resource: resource.urn)],
    }


def _resource_json(resource: Resource) -> dict[str, Any]:
    shown: dict[str, Any] = {"urn": resource.urn, "type": resource.type, "name": resource.name, "custom": resource.custom}
    optional = {
        "parent": resource.parent,
        "options": masked(resource.options),
        "dependencies": sorted(resource.dependencies),
        "aliases": sorted(resource.aliases),
    }
    return shown | {key: value for key, value in optional.items() if value} | {"inputs": masked(resource.inputs)}


def compare(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> list[Change]:
    """What going from one plan's JSON to another's would do, resource by resource. Secrets are masked in both, so not compared.

    Source: Pulumi's engine matches by URN, then by aliases; a URN that nothing matches is a new resource, an old resource left
    over is deleted.
    What replaces is for `replacement`, and the change's note names it. Components and providers are left aside.
    """
    before = {resource["urn"]: resource for resource in (old or {}).get("resources", []) if _counts(resource)}
    changes: list[Change] = []
    for resource in (resource for resource in new["resources"] if _counts(resource)):
        known = next((urn for urn in (resource["urn"], *resource.get("aliases", [])) if urn in before), None)
        if known is None:
            changes.append(Change("create", resource["type"], resource["name"], resource["urn"]))
            continue
        ignored = [tuple(path.split(".")) for path in resource.get("options", {}).get("ignoreChanges", [])]
        earlier = before.pop(known)["inputs"]
        every = differences(earlier, resource["inputs"])
        found = tuple(each for each in every if not any(each.path[: len(path)] == path for path in ignored))
        replacing = replacing_path(resource["type"], earlier, (each.path for each in found))
        op: Op = "replace" if replacing else "update" if found else "same"
        note = f"{replacing} cannot change in place" if replacing else ""
        changes.append(Change(op, resource["type"], resource["name"], resource["urn"], found, note, known))
    changes += [Change("delete", resource["type"], resource["name"], old_urn=urn) for urn, resource in before.items()]
    return changes


def saved_steps(found: Iterable[Change], old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> Iterator[Step]:
    """The changes of objects between two plans' JSON, which `compare` found."""
    before, after = ({each["urn"]: each for each in (plan or {}).get("resources", [])} for plan in (old, new))
    for change in found:
        if change.op == "cli":
            continue
        known = before.get(change.old_urn, {})
        was, will = known.get("inputs", {}), after.get(change.urn, {}).get("inputs", {})
        is_retained = bool(known.get("options", {}).get("retainOnDelete"))
        if step := step_of(change.op, change.type, change.name, was, will, change.differences, is_retained):
            yield step


def _counts(resource: Mapping[str, Any]) -> bool:
    return resource["custom"] and not resource["type"].startswith("pulumi:providers:")
