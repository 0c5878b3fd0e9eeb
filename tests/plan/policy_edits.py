"""What rules see of the example stacks, and edits that break it: of a property, of protection, with a resource or a secret more."""

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from engine.policy import record_of
from policies.records import Hidden, Resource
from tests.plan.examples import plan_of

Stack = list[Resource]
Edit = Callable[[Stack], None]
GONE = object()
"""As a value of an edit: the key goes."""
_CLUSTER = "urn:pulumi:dev::slipway::slipway:index:SlurmCluster$"


def records(stack: str, *overrides: str) -> Stack:
    """What rules see of an example stack."""
    return [record_of(resource) for resource in plan_of(stack, *overrides).resources]


def found(stack: Stack, name: str) -> int:
    """Where a resource is, named as in messages."""
    [at] = [at for at, each in enumerate(stack) if str(each) == name]
    return at


def edit(name: str, path: str, value: object) -> Edit:
    """Sets a property of a resource, or of a container by its name: `spec.template.spec.containers[login].image`."""

    def apply(stack: Stack) -> None:
        at = found(stack, name)
        props = copy.deepcopy(dict(stack[at].props))
        *steps, last = re.findall(r"[^.\[\]]+", path)
        parent: Any = props
        for step in steps:
            parent = _named(parent, step) if isinstance(parent, list) else parent.setdefault(step, {})
        if value is GONE:
            del parent[last]
        elif isinstance(parent.get(last), list) and not isinstance(value, list):
            parent[last].append(value)
        else:
            parent[last] = value
        stack[at] = replace(stack[at], props=props)

    return apply


def unprotect(name: str) -> Edit:
    """Takes the protection of a resource away."""

    def apply(stack: Stack) -> None:
        at = found(stack, name)
        stack[at] = replace(stack[at], protect=False)

    return apply


def add(type_: str, name: str, props: Mapping[str, Any] | None = None, times: int = 1) -> Edit:
    """Declares one more resource inside of the cluster, or several that differ by a number."""

    def apply(stack: Stack) -> None:
        names = [f"{name}-{at}" for at in range(times)] if times > 1 else [name]
        stack.extend(Resource(f"{_CLUSTER}{type_}::{each}", type_, each, props or {}) for each in names)

    return apply


def secret_text(stack: Stack) -> str:
    """A value that the plan keeps in a Secret."""
    munge = stack[found(stack, "Secret dev-munge")]
    value = next(iter(cast(Mapping[str, Hidden], munge.props["data"]).values()))
    return str(value.value)


def leak(name: str, path: str, text: str = "") -> Edit:
    """Puts a secret value into another resource, in the middle of a text."""
    return lambda stack: edit(name, path, f"{text}{secret_text(stack)}")(stack)


def leak_result(stack: Stack) -> None:
    """Puts into a ConfigMap what a random value came to, as the engine knows it in an update."""
    add("random:index/randomPassword:RandomPassword", "drawn", {"result": "correcthorsebattery"})(stack)
    edit("ConfigMap dev-slurm-config", "data.extra", "key=correcthorsebattery")(stack)


def leak_as_name(stack: Stack) -> None:
    add("kubernetes:core/v1:ConfigMap", f"key-{secret_text(stack)}")(stack)


def _named(parts: Any, name: str) -> Any:
    return next(each for each in parts if each["name"] == name)
