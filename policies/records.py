"""What a rule sees and reports: resources as plain data, faults with path, value and remedy.

The data is that of the engine's recorded plan, or of the Pulumi engine through the CrossGuard pack. Knows no rule.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from names import labels

Level = Literal["mandatory", "advisory"]
"""`mandatory` stops `preview` and `up`; `advisory` is a warning. The words are CrossGuard's."""
UNKNOWN = "[known after up]"
"""Stands for a value that exists only once a provider has made something."""
_OURS = "slipway:index:"
_NO_OBJECTS = ("helm.sh/", "kustomize/", "yaml/")
"""Modules of the Kubernetes provider whose resources are not objects themselves."""


@dataclass(frozen=True)
class Hidden:
    """A secret value: any JSON value, or a part of it. Nothing prints it."""

    value: Any

    def __repr__(self) -> str:
        return "[secret]"


@dataclass(frozen=True)
class Resource:
    """A resource that a program declares. `props` may hold Hidden."""

    urn: str
    type: str
    """The type's token, for instance `kubernetes:apps/v1:StatefulSet`."""
    name: str
    """The name in the program."""
    props: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The declared properties; the manifest of a Kubernetes object."""
    protect: bool = False

    @property
    def kind(self) -> str:
        """The kind of a Kubernetes object; empty for all other resources."""
        package, _, module_and_kind = self.type.partition(":")
        group, _, kind = module_and_kind.rpartition(":")
        return kind if package == "kubernetes" and "/" in group and not group.startswith(_NO_OBJECTS) else ""

    @property
    def about(self) -> Mapping[str, Any]:
        """A Kubernetes object's metadata."""
        return mapping(self.props.get("metadata"))

    @property
    def component(self) -> str:
        """Slipway's component that a Kubernetes object belongs to, by its label."""
        return str(self.labels.get(labels.COMPONENT, "")) if self.is_slipways else ""

    @property
    def labels(self) -> Mapping[str, Any]:
        """A Kubernetes object's labels."""
        return mapping(self.about.get("labels"))

    @property
    def is_slipways(self) -> bool:
        """True for resources that SlurmCluster declares; all others are the user's own."""
        return _OURS in self.urn

    def __str__(self) -> str:
        """The resource as messages name it: `StatefulSet dev-mariadb`."""
        return f"{self.kind or self.type} {self.about.get('name') or self.name}"


class Fault(NamedTuple):
    """A rule's complaint about a resource, or about the whole stack if that is None. Never holds a secret."""

    resource: Resource | None
    path: str
    """The place in its properties; empty for the resource as a whole."""
    found: str
    """The value or fault, worded to follow the path."""
    remedy: str


Check = Callable[[Sequence[Resource]], Iterable[tuple[Resource | None, str, str, str]]]


@dataclass(frozen=True)
class Rule:
    """A rule: a pure function over all resources of a stack."""

    name: str
    """In words of Pulumi policies: lower case and dashes."""
    description: str
    """The rule as a sentence."""
    source: str
    """Source of the rule."""
    check: Check
    level: Level = "mandatory"
    is_for_all: bool = False
    """False: binding for resources of SlurmCluster, and advice for resources that a program declares beside it."""


@dataclass(frozen=True)
class Finding:
    """A fault with the rule that found it."""

    rule: str
    level: Level
    fault: Fault

    @property
    def place(self) -> str:
        """The resource and the path."""
        resource = str(self.fault.resource) if self.fault.resource else "the stack"
        return f"{resource}, {self.fault.path}" if self.fault.path else resource

    def __str__(self) -> str:
        return f"{self.rule}: {self.place}: {self.fault.found} {self.fault.remedy}"


def findings(resources: Sequence[Resource], rules: Iterable[Rule]) -> list[Finding]:
    """All findings, in the order of rules."""
    collected: list[Finding] = []
    for rule in rules:
        for fault in (Fault(*parts) for parts in rule.check(resources)):
            collected.append(Finding(rule.name, level_of(rule, fault), fault))
    return collected


def lines(found: Iterable[Finding]) -> list[str]:
    """Findings for people: the same finding in several places is printed once, above a line for each place."""
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in found:
        alike.setdefault((finding.rule, finding.fault.found, finding.fault.remedy), []).append(finding)
    output: list[str] = []
    for (rule, what, remedy), group in alike.items():
        output += [str(group[0])] if len(group) == 1 else [f"{rule}: {what} {remedy}", *(f"  {finding.place}" for finding in group)]
    return output


def level_of(rule: Rule, fault: Fault) -> Level:
    """How binding a fault is."""
    is_bound = rule.is_for_all or fault.resource is None or fault.resource.is_slipways
    return rule.level if is_bound else "advisory"


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one: a rule reads values of any form."""
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[Any]:
    """The value if it is a list, else an empty one."""
    return cast(Sequence[Any], value) if isinstance(value, (list, tuple)) else ()


def leaves(value: Any, path: str = "", is_hidden: bool = False) -> Iterator[tuple[str, Any, bool]]:
    """Each part of a value that is neither a mapping nor a list: its path, its value, and whether it is secret."""
    if isinstance(value, Hidden):
        yield from leaves(value.value, path, True)
    elif isinstance(value, Mapping):
        for key, inner in cast(Mapping[str, Any], value).items():
            step = key if re.fullmatch(r"[\w-]+", key) else f'["{key}"]'
            yield from leaves(inner, f"{path}.{step}" if path and not step.startswith("[") else f"{path}{step}", is_hidden)
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(cast(Sequence[Any], value)):
            yield from leaves(item, f"{path}[{at}]", is_hidden)
    else:
        yield path, value, is_hidden
