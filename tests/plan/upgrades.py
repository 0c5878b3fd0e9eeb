"""What an upgrade does to a stack that an earlier release deployed: the state that it would lose, and the pods that it replaces. Pure.

Both sides are plans as JSON (`engine.plan.as_json`): that of the release, and that of the present code for the same stack file.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from changes.steps import differences
from engine.plan import Change, compare

Resource = Mapping[str, Any]
PlanJson = Mapping[str, Any]

_STATEFUL = ("Namespace", "PersistentVolume", "PersistentVolumeClaim", "Secret")
_WORKLOADS = ("StatefulSet", "Deployment", "DaemonSet", "NodeSet")
_TEMPLATE = ("spec", "template")


@dataclass(frozen=True)
class Step:
    """What becomes of a resource: as it was, as it will be (None where there is none), and the engine's change."""

    old: Resource | None
    new: Resource | None
    change: Change

    @property
    def known(self) -> Resource:
        """The resource as it was; a new resource as it will be."""
        return cast(Resource, self.old or self.new)

    @property
    def name(self) -> str:
        """`StatefulSet dev-mariadb`."""
        return f"{kind(self.known)} {object_name(self.known)}"


def kind(resource: Resource) -> str:
    """`StatefulSet` of `kubernetes:apps/v1:StatefulSet`."""
    return str(resource["type"]).rpartition(":")[2]


def object_name(resource: Resource) -> str:
    """The Kubernetes object's name; of anything else the name in the program."""
    return str(resource["inputs"].get("metadata", {}).get("name") or resource["name"])


def steps(old: PlanJson, new: PlanJson) -> list[Step]:
    """A step for each resource of either plan, sorted by kind and name."""
    before: dict[str, Resource] = {each["urn"]: each for each in old["resources"]}
    after: dict[str, Resource] = {each["urn"]: each for each in new["resources"]}
    found = [Step(before.get(change.old_urn), after.get(change.urn), change) for change in compare(old, new)]
    return sorted(found, key=lambda step: (kind(step.known), object_name(step.known)))


def losses(old: PlanJson, new: PlanJson) -> list[str]:
    """All state that the upgrade would delete, replace or leave behind, a line each; empty for an upgrade that is safe."""
    found = steps(old, new)
    sources = {step.old["urn"]: step.new["urn"] for step in found if step.old and step.new and step.change.op != "replace"}
    said = [f"cluster identifiers: {one} → {other}" for one, other in [(_identifiers(old), _identifiers(new))] if one != other]
    for step in found:
        if step.old is None:
            continue
        if step.change.op in ("delete", "replace") and _is_stateful(step.old) and not _is_copied(step.old, found):
            outcome = f"is replaced: {step.change.note}" if step.change.op == "replace" else "is deleted"
            said.append(f"{step.name} {outcome}")
        elif step.new is not None:
            said += [f"{step.name} {words}" for words in _left_behind(step.old, step.new, sources)]
    return said


def refusals(old: PlanJson, new: PlanJson) -> list[str]:
    """What the upgrade deletes or replaces although it is protected, so that the engine refuses until its protection is taken off."""
    return [
        f"{step.name} is protected"
        for step in steps(old, new)
        if step.old and step.change.op in ("delete", "replace") and step.old.get("options", {}).get("protect")
    ]


def _identifiers(plan: PlanJson) -> list[str]:
    """What the Kubernetes providers call their cluster; another name replaces every object."""
    providers = (each["inputs"] for each in plan["resources"] if each["type"] == "pulumi:providers:kubernetes")
    return sorted({str(inputs.get("clusterIdentifier")) for inputs in providers})


def _is_stateful(resource: Resource) -> bool:
    is_set_with_claims = bool(resource["inputs"].get("spec", {}).get("volumeClaimTemplates"))
    return is_random(resource["type"]) or kind(resource) in _STATEFUL or is_set_with_claims


def is_random(type_: str) -> bool:
    """True of keys and passwords."""
    return type_.startswith("random:")


def _is_copied(resource: Resource, found: list[Step]) -> bool:
    """True of a random value that may go, as each Secret made from it stays and ignores changes of its data."""
    if not is_random(resource["type"]):
        return False
    secrets = [step for step in found if step.old and kind(step.old) == "Secret" and resource["urn"] in step.old.get("dependencies", ())]
    return bool(secrets) and all(step.new is not None and step.change.op != "replace" and _keeps_data(step.new) for step in secrets)


def _keeps_data(secret: Resource) -> bool:
    return kind(secret) == "Secret" and "data" in secret.get("options", {}).get("ignoreChanges", ())


def _left_behind(old: Resource, new: Resource, sources: Mapping[str, str]) -> Iterator[str]:
    """What a resource that stays loses: its key, its claims, its volumes. `sources` leads from an old URN to the new one."""
    if kind(old) == "Secret" and not _keeps_data(new):
        random_before = {urn for urn in old.get("dependencies", ()) if is_random(_type(urn))}
        random_after = {urn for urn in new.get("dependencies", ()) if is_random(_type(urn))}
        if {sources.get(urn) for urn in random_before} != random_after:
            yield "gets another key: it is made from another random value"
    yield from _claim_faults(old, new)
    for claim in sorted(_claims(old) - _claims(new)):
        yield f"no longer mounts {claim}"


def _type(urn: str) -> str:
    return urn.split("::")[2].rpartition("$")[2]


def _claim_faults(old: Resource, new: Resource) -> Iterator[str]:
    """Changed templates of a set's claims. A StatefulSet may ignore changes of them, but its pods find their volumes by name."""
    before, after = (_templates(each) for each in (old, new))
    is_ignored = "spec.volumeClaimTemplates" in new.get("options", {}).get("ignoreChanges", ())
    for name, template in before.items():
        if name not in after:
            yield f"no longer has the claim {name} of its volumeClaimTemplates"
        elif not is_ignored and any(differences(template, after[name])):
            yield f"has another claim {name} in its volumeClaimTemplates"


def _templates(resource: Resource) -> dict[str, Any]:
    listed: list[dict[str, Any]] = resource["inputs"].get("spec", {}).get("volumeClaimTemplates") or []
    return {each["metadata"]["name"]: each for each in listed}


def _claims(resource: Resource) -> set[str]:
    """The shared volumes that the pods of a workload mount: claims, and folders of NFS servers."""
    if kind(resource) not in _WORKLOADS:
        return set()
    volumes: list[dict[str, Any]] = resource["inputs"]["spec"].get("template", {}).get("spec", {}).get("volumes") or []
    claims = {f"the claim {each['persistentVolumeClaim']['claimName']}" for each in volumes if "persistentVolumeClaim" in each}
    return claims | {f"{each['nfs']['server']}:{each['nfs']['path']}" for each in volumes if "nfs" in each}


def rolls(old: PlanJson, new: PlanJson) -> list[str]:
    """Each workload whose pods the upgrade makes, ends or replaces; below it, indented, the parts of the pod that change."""
    said: list[str] = []
    for step in steps(old, new):
        if kind(step.known) not in _WORKLOADS:
            continue
        if step.change.op in ("create", "delete"):
            said.append(f"{step.name} is {'new' if step.change.op == 'create' else 'deleted'}")
        elif step.change.op == "replace":
            said.append(f"{step.name} is replaced: {step.change.note}")
        elif paths := [each.path[2:] for each in step.change.differences if each.path[:2] == _TEMPLATE]:
            said += [f"{step.name} rolls", *(f"  {line}" for line in _parts(paths))]
    return said


def _parts(paths: Iterable[tuple[str, ...]]) -> list[str]:
    """The parts of a pod that paths below its template belong to, as `containers[slurmd]: command, image`."""
    found: dict[str, set[str]] = {}
    for top, *below in paths:
        depth = 2 if below[0] in ("containers", "initContainers") and len(below) > 1 else 1
        group, fields = ("metadata", below) if top == "metadata" else ("".join(below[:depth]), below[depth:])
        found.setdefault(group, set()).update(field.strip("[]") for field in fields[:1])
    return [f"{group}: {', '.join(sorted(fields))}" if fields else group for group, fields in sorted(found.items())]
