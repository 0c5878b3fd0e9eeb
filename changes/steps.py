"""One object before and after a change, from the engine's dry run, a saved plan or the Pulumi CLI. Objects are those of Kubernetes, and
node groups of EKS.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from names import crds

Op = Literal["create", "update", "replace", "delete", "same"]

NODE_SET = (crds.GROUP, "NodeSet")
NODE_GROUP = ("eks.aws", "NodeGroup")
_NODE_GROUP_TYPE = "aws:eks/nodeGroup:NodeGroup"


@dataclass(frozen=True)
class Difference:
    """One changed path: old and new value, None where there is none. Long text is shown as a line diff."""

    path: tuple[str, ...]
    old: Any
    new: Any


@dataclass(frozen=True)
class Step:
    """What happens to one object. `old` is empty for a new object, `new` for an object that goes."""

    op: Op
    group: str
    kind: str
    namespace: str
    name: str
    old: Mapping[str, Any]
    new: Mapping[str, Any]
    differences: tuple[Difference, ...] = ()
    """From `old` to the result, without fields that only the API server fills in."""
    is_retained: bool = False
    """True when the object stays in the cluster though it is no longer declared."""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def is_node_set(self) -> bool:
        """True for a NodeSet, the object that stands for a range of Slurm nodes."""
        return (self.group, self.kind) == NODE_SET

    @property
    def is_node_group(self) -> bool:
        """True for a node group of EKS, the only object here that is not of Kubernetes."""
        return (self.group, self.kind) == NODE_GROUP

    @property
    def spec(self) -> Mapping[str, Any]:
        """The spec before the change; empty without one."""
        return self.old.get("spec", {})

    def touches(self, *path: str) -> bool:
        """True if something at or below a path changes."""
        return any(difference.path[: len(path)] == path for difference in self.differences)

    def numbers(self, field: str) -> list[tuple[int, int]]:
        """The old and the new value of a number in the spec; empty if it stays, or is not a number."""
        values = [(difference.old, difference.new) for difference in self.differences if difference.path == ("spec", field)]
        return [(old, new) for old, new in values if isinstance(old, int) and isinstance(new, int)]


def step_of(
    op: Op,
    type_: str,
    name: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    changed: tuple[Difference, ...],
    is_retained: bool = False,
) -> Step | None:
    """The step of a Pulumi resource, from its type, name and inputs. None for components and resources that previews leave out."""
    if type_ == _NODE_GROUP_TYPE:
        return Step(op, *NODE_GROUP, "", name, old, new, changed, is_retained)
    if not type_.startswith("kubernetes:"):
        return None
    manifest = new or old
    group, _, _ = str(manifest.get("apiVersion", "")).rpartition("/")
    about: Mapping[str, Any] = manifest.get("metadata") or {}
    kind = str(manifest.get("kind") or type_.rpartition(":")[2])
    return Step(op, group, kind, str(about.get("namespace") or ""), str(about.get("name") or ""), old, new, changed, is_retained)


def differences(old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[Difference]:
    """Every changed leaf between two JSON values. Lists whose items all have a name are matched by name."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        before, after = cast(Mapping[str, Any], old), cast(Mapping[str, Any], new)
        for key in sorted({*before, *after}):
            yield from differences(before.get(key), after.get(key), (*path, key))
    elif isinstance(old, list) and isinstance(new, list):
        before, after = _keyed(cast(list[Any], old)), _keyed(cast(list[Any], new))
        if before is not None and after is not None:
            yield from differences(before, after, path)
        elif old != new:
            yield from differences(_numbered(cast(list[Any], old)), _numbered(cast(list[Any], new)), path)
    elif old != new:
        yield Difference(path, old, new)


def _numbered(items: Sequence[Any]) -> dict[str, Any]:
    return {f"[{at}]": item for at, item in enumerate(items)}


def _keyed(items: Sequence[Any]) -> dict[str, Any] | None:
    names = [str(cast(dict[str, Any], item)["name"]) for item in items if isinstance(item, dict) and "name" in item]
    if not items or len(names) != len(items) or len(set(names)) != len(names):
        return None
    return {f"[{name}]": item for name, item in zip(names, items, strict=True)}
