"""Every container says what it needs and the most it may take, so that no pod ends another's work. Numbers are not judged."""

from collections.abc import Iterator, Sequence

from policies.exceptions import UNLIMITED
from policies.pods import Container, containers
from policies.records import Fault, Resource, Rule, mapping

_ASKED = ("requests.cpu", "requests.memory", "limits.memory")


def check(resources: Sequence[Resource]) -> Iterator[Fault]:
    """Containers without requests of CPU and memory, or without a limit of memory.

    A limit of CPU is not required: it slows a daemon down while the machine is idle. Source: Kubernetes' CFS quota.
    """
    for container in containers(resources):
        for path in _ASKED:
            group, _, name = path.partition(".")
            if not mapping(mapping(container.spec.get("resources")).get(group)).get(name) and not _is_exempt(container, path):
                yield Fault(container.pod.resource, f"{container.path}.resources.{path}", "is missing.", _REMEDIES[group])


def _is_exempt(container: Container, path: str) -> bool:
    return path == "limits.memory" and container.pod.resource.is_slipways and (container.pod.component, container.name) in UNLIMITED


_REMEDIES = {
    "requests": "Say what the container needs: the scheduler counts with it.",
    "limits": "Name the most that it may take: without it, a leak ends other pods of the machine.",
}

RULE = Rule(
    "requests-and-limits",
    "Every container requests CPU and memory, and has a limit of memory.",
    "Kubernetes, Resource Management for Pods and Containers.",
    check,
)
