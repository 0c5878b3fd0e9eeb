"""What a program declares: resources with inputs and options. JSON of a plan never contains secrets. Pure.

Golden plans and saved plans (`.slipway/plans/<stack>.json`) are made by `as_json`. `compare` matches two of them as Pulumi's engine does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from changes.steps import Difference, Step, differences, step_of
from engine.replacement import replacing_path

MASK = "[secret]"
Op = Literal["create", "update", "replace", "delete", "same", "cli"]
"""`cli`: only the Pulumi CLI can compare the resource."""


@dataclass(frozen=True)
class Secret:
    """A value that must never be shown or stored: a JSON value, or a part of one."""

    value: Any

    def __repr__(self) -> str:
        return MASK


@dataclass(frozen=True)
class Unknown:
    """A value that is known only after a provider has created a resource."""

    def __repr__(self) -> str:
        return "[known after up]"


@dataclass(frozen=True)
class Resource:
    """A registered resource. `inputs` may contain Secret and Unknown."""

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
        """True for a Kubernetes object: a typed or custom resource with exactly one manifest."""
        kind = self.inputs.get("kind")
        tail = self.type.rpartition(":")[2]
        return self.type.startswith("kubernetes:") and isinstance(kind, str) and kind == tail and not kind.endswith("List")

    @property
    def is_counted(self) -> bool:
        """True if the count line counts it: it is neither a component nor a provider."""
        return self.custom and not self.type.startswith("pulumi:providers:")


@dataclass(frozen=True)
class Plan:
    """What one run of the program declared, sorted by URN, and its exports."""

    project: str
    stack: str
    resources: tuple[Resource, ...]
    outputs: Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """What happens to one resource, and why (`differences`, `note`). `urn` is empty if it is no longer declared."""

    op: Op
    type: str
    name: str
    urn: str = ""
    differences: tuple[Difference, ...] = ()
    note: str = ""
    old_urn: str = ""
    """Its URN in the saved plan that it was compared with, if that has it."""


def masked(value: Any) -> Any:
    """The value as JSON, with text in place of every Secret and Unknown."""
    return mapped(value, lambda leaf: repr(leaf) if isinstance(leaf, (Secret, Unknown)) else leaf)


def revealed(value: Any) -> Any:
    """The value with its secrets in plain."""
    return mapped(value, lambda leaf: revealed(leaf.value) if isinstance(leaf, Secret) else leaf)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with `change` applied to every leaf. Keys of mappings are sorted."""
    if isinstance(value, Mapping):
        return {key: mapped(inner, change) for key, inner in sorted(cast(Mapping[str, Any], value).items())}
    if isinstance(value, (list, tuple)):
        return [mapped(item, change) for item in cast(Sequence[Any], value)]
    return change(value)


def secret_texts(value: Any) -> Iterator[str]:
    """Every text inside a Secret of `value`."""
    return (leaf for _, leaf, is_secret in _leaves(value) if is_secret and isinstance(leaf, str))


def unknown_path(value: Any) -> str | None:
    """The path of the first Unknown."""
    return next((path for path, leaf, _ in _leaves(value) if isinstance(leaf, Unknown)), None)


def _leaves(value: Any, path: str = "", is_secret: bool = False) -> Iterator[tuple[str, Any, bool]]:
    """Every leaf of a value: its path, itself, and whether it is inside a Secret."""
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
    """The plan as JSON: sorted, stable and without secrets."""
    return {
        "project": plan.project,
        "stack": plan.stack,
        "outputs": masked(plan.outputs),
        "resources": [_resource_json(resource) for resource in sorted(plan.resources, key=lambda resource: resource.urn)],
    }


def _resource_json(resource: Resource) -> dict[str, Any]:
    required: dict[str, Any] = {"urn": resource.urn, "type": resource.type, "name": resource.name, "custom": resource.custom}
    optional = {
        "parent": resource.parent,
        "options": masked(resource.options),
        "dependencies": sorted(resource.dependencies),
        "aliases": sorted(resource.aliases),
    }
    return required | {key: value for key, value in optional.items() if value} | {"inputs": masked(resource.inputs)}


def compare(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> list[Change]:
    """The changes from one plan's JSON to another's, without components and providers. Secrets are masked, so they are not compared.

    Source: Pulumi's engine matches by URN, then by aliases. A resource without a match is created; an old resource without one is deleted.
    The note of a replacement names the path that causes it (see replacement.py).
    """
    old_resources = {resource["urn"]: resource for resource in (old or {}).get("resources", []) if _counts(resource)}
    changes: list[Change] = []
    for resource in (resource for resource in new["resources"] if _counts(resource)):
        old_urn = next((urn for urn in (resource["urn"], *resource.get("aliases", [])) if urn in old_resources), None)
        if old_urn is None:
            changes.append(Change("create", resource["type"], resource["name"], resource["urn"]))
            continue
        ignored = [tuple(path.split(".")) for path in resource.get("options", {}).get("ignoreChanges", [])]
        old_inputs = old_resources.pop(old_urn)["inputs"]
        all_differences = differences(old_inputs, resource["inputs"])
        relevant = tuple(difference for difference in all_differences if not any(difference.path[: len(path)] == path for path in ignored))
        replacing = replacing_path(resource["type"], old_inputs, (difference.path for difference in relevant))
        op: Op = "replace" if replacing else "update" if relevant else "same"
        note = f"{replacing} cannot change in place" if replacing else ""
        changes.append(Change(op, resource["type"], resource["name"], resource["urn"], relevant, note, old_urn))
    changes += [Change("delete", resource["type"], resource["name"], old_urn=urn) for urn, resource in old_resources.items()]
    return changes


def saved_steps(changes: Iterable[Change], old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> Iterator[Step]:
    """The changes that `compare` found between two plans' JSON, as steps."""
    old_resources, new_resources = ({resource["urn"]: resource for resource in (plan or {}).get("resources", [])} for plan in (old, new))
    for change in changes:
        if change.op == "cli":
            continue
        old_resource = old_resources.get(change.old_urn, {})
        old_inputs, new_inputs = old_resource.get("inputs", {}), new_resources.get(change.urn, {}).get("inputs", {})
        is_retained = bool(old_resource.get("options", {}).get("retainOnDelete"))
        if step := step_of(change.op, change.type, change.name, old_inputs, new_inputs, change.differences, is_retained):
            yield step


def _counts(resource: Mapping[str, Any]) -> bool:
    return resource["custom"] and not resource["type"].startswith("pulumi:providers:")
