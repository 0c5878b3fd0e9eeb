"""With deletion protection, everything that holds data is protected. A stack without any protection has `deletionProtection: false`. Judges
one plan; previews report what a change deletes.
"""

from collections.abc import Iterator, Sequence

from policies.exceptions import COPIES, UNPROTECTED
from policies.records import Fault, Resource, Rule, items, mapping

_STATE = frozenset({"Namespace", "PersistentVolume", "PersistentVolumeClaim", "Secret", "RandomPassword"})
_RETENTION = "persistentVolumeClaimRetentionPolicy"


def check(resources: Sequence[Resource]) -> Iterator[Fault]:
    """Stateful parts without protection in a stack where others have it. A program's own parts are not judged."""
    ours = [resource for resource in resources if resource.is_slipways]
    if not any(resource.protect or _retains(resource) for resource in ours):
        return
    for resource in ours:
        if _holds_data(resource) and not resource.protect:
            remedy = "Protect it as the others are (protect of its resource options)."
            yield Fault(resource, "protect", "is off, although deletionProtection is on.", remedy)
        for when in ("whenDeleted", "whenScaled"):
            if _claims(resource) and resource.kind == "StatefulSet" and _retention(resource, when) != "Retain":
                remedy = "Set it to Retain: Kubernetes deletes the claims otherwise."
                yield Fault(resource, f"spec.{_RETENTION}.{when}", f"is {_retention(resource, when)}.", remedy)


def _holds_data(resource: Resource) -> bool:
    if resource.kind in UNPROTECTED or (resource.kind == "Secret" and resource.component in COPIES):
        return False
    return resource.type.rpartition(":")[2] in _STATE or _claims(resource)


def _claims(resource: Resource) -> bool:
    return bool(items(mapping(resource.props.get("spec")).get("volumeClaimTemplates")))


def _retention(resource: Resource, when: str) -> str:
    """Kubernetes' default is Retain."""
    return str(mapping(mapping(resource.props.get("spec")).get(_RETENTION)).get(when, "Retain"))


def _retains(resource: Resource) -> bool:
    return resource.kind == "StatefulSet" and _claims(resource) and _retention(resource, "whenDeleted") == "Retain"


RULE = Rule(
    "protected-state",
    "With deletionProtection, every part that holds data is protected, and its claims are retained.",
    "docs/explain/architecture.md: storage, accounting database and keys are protected when deletionProtection is on.",
    check,
)
