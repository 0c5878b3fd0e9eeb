"""Secrets are in Secrets, and nowhere else: not in another object, not in a name, not as an id. No finding shows the value.

A value is secret if the program marked it, or if a Secret holds it. The engine passes no marks to Python policies, so there only the second
counts.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from policies.exceptions import COPIES
from policies.pods import containers
from policies.records import UNKNOWN, Fault, Hidden, Resource, Rule, leaves, mapping

_SHORTEST = 12
"""Characters of a text that is looked for elsewhere: shorter ones are words."""
_ID_IS_VALUE = frozenset({"RandomBytes", "RandomId", "RandomString", "RandomUuid"})
_RESULTS = ("result", "base64", "hex")
_IN_CLEAR = re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/]{20}|^\s*StoragePass\s*=\s*\S", re.MULTILINE)
"""A private key, and the database password of slurmdbd.conf."""
_NAMED_SECRET = re.compile(r"(?:PASSWORD|PASSWD|TOKEN|SECRET)$", re.IGNORECASE)
_REMEDY = "Keep it in a Secret, and mount that."


def check(resources: Sequence[Resource]) -> Iterator[Fault]:
    """Secret values outside of Secrets."""
    secrets = {text for resource in resources for text in _texts(resource)}
    pattern = re.compile("|".join(re.escape(text) for text in sorted(secrets, key=len, reverse=True))) if secrets else None
    for resource in resources:
        names = (resource.name, str(resource.about.get("name", "")))
        if pattern and any(pattern.search(name) for name in names):
            masked = replace(resource, name=pattern.sub("[secret]", resource.name), props={})
            yield Fault(masked, "name", "has a secret value in it.", "Names are seen by everybody: name it otherwise.")
        if not resource.kind or resource.kind == "Secret":
            continue  # providers and random values are encrypted in the state
        for path, value, is_hidden in leaves(resource.props):
            if is_hidden:
                yield Fault(resource, path, f"a secret value is in a {resource.kind}, which Kubernetes shows to readers.", _REMEDY)
            elif isinstance(value, str) and pattern and pattern.search(value):
                yield Fault(resource, path, "holds the value of a Secret.", _REMEDY)
            elif isinstance(value, str) and _IN_CLEAR.search(value):
                yield Fault(resource, path, "holds a private key or a password.", _REMEDY)
    for container in containers(resources):
        for variable in (mapping(item) for item in container.spec.get("env") or ()):
            name, value = str(variable.get("name", "")), variable.get("value")
            if _NAMED_SECRET.search(name) and isinstance(value, str) and value and not value.startswith("/"):
                path = f"{container.path}.env[{name}]"
                yield Fault(container.pod.resource, path, "has its value in clear.", "Take it from a Secret: valueFrom.secretKeyRef.")


def check_ids(resources: Sequence[Resource]) -> Iterator[Fault]:
    """Random values whose id is the value itself: ids are in clear in the state, in previews and in logs."""
    for resource in resources:
        kind = resource.type.rpartition(":")[2]
        if resource.type.startswith("random:") and kind in _ID_IS_VALUE:
            remedy = 'Use RandomPassword: its id is the word "none".'
            yield Fault(resource, "id", f"the id of {kind} is its value, in clear text.", remedy)


def _texts(resource: Resource) -> Iterator[str]:
    """The secret texts of a resource that are long enough to search for elsewhere, also decoded from base64."""
    if resource.kind == "Secret" and resource.component in COPIES:
        return
    for _, value, is_hidden in leaves(_as_secret(resource)):
        if is_hidden and isinstance(value, str) and value:
            for text in (value, _decoded(value)):
                if len(text.strip()) >= _SHORTEST and text != UNKNOWN:
                    yield text.strip()


def _as_secret(resource: Resource) -> dict[str, object]:
    """The properties, with a Secret's data hidden, and the results of a random value, which the engine passes to policies in an update."""
    keys = ("data", "stringData") if resource.kind == "Secret" else _RESULTS if resource.type.startswith("random:") else ()
    return {**resource.props, **{key: Hidden(resource.props[key]) for key in keys if key in resource.props}}


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


VALUES = Rule(
    "secrets-only-in-secrets",
    "Secret values are in Secrets alone, and never in a name.",
    "Kubernetes, Good practices for Secrets: all else is readable with plain read rights, and is not encrypted at rest.",
    check,
)
IDS = Rule(
    "secrets-never-as-ids",
    "No random value is its resource's id.",
    "pulumi-random issues 39 and 190: the id of RandomBytes, RandomId, RandomString and RandomUuid is the value.",
    check_ids,
)
