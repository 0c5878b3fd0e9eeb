"""The pods in a stack: every object's pod template, of any kind, and its containers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from names import labels
from policies.records import Resource, items, mapping

_TEMPLATES = ("spec.template", "spec.jobTemplate.spec.template", "template")
"""Paths of pod templates, by kind: Deployment, StatefulSet, DaemonSet, Job and NodeSet; CronJob; PodTemplate."""


@dataclass(frozen=True)
class Container:
    """A container of a pod."""

    pod: "Pod"
    path: str
    """Path in the resource's properties, with the container's name: `spec.template.spec.containers[slurmd]`."""
    name: str
    spec: Mapping[str, Any]

    @property
    def security(self) -> Mapping[str, Any]:
        """Its security context."""
        return mapping(self.spec.get("securityContext"))


@dataclass(frozen=True)
class Pod:
    """A pod that an object creates, or is."""

    resource: Resource
    path: str
    """Path of its spec in the resource's properties."""
    component: str
    """Its label `app.kubernetes.io/component`."""
    spec: Mapping[str, Any]

    @property
    def security(self) -> Mapping[str, Any]:
        """Its security context."""
        return mapping(self.spec.get("securityContext"))

    @property
    def containers(self) -> Iterator[Container]:
        """Its containers of any sort."""
        for sort in ("initContainers", "containers", "ephemeralContainers"):
            for item in items(self.spec.get(sort)):
                spec = mapping(item)
                name = str(spec.get("name", "?"))
                yield Container(self, f"{self.path}.{sort}[{name}]", name, spec)


def pods(resources: Iterable[Resource]) -> Iterator[Pod]:
    """The pods of all Kubernetes objects."""
    for resource in resources:
        if resource.kind == "Pod":
            yield Pod(resource, "spec", str(resource.labels.get(labels.COMPONENT, "")), mapping(resource.props.get("spec")))
        elif resource.kind and resource.kind != "CustomResourceDefinition":
            yield from _templates(resource)


def _templates(resource: Resource) -> Iterator[Pod]:
    for path in _TEMPLATES:
        value: Any = resource.props
        for key in path.split("."):
            value = mapping(value).get(key)
        template = mapping(value)
        spec = mapping(template.get("spec"))
        if "containers" in spec:
            pod_labels = mapping(mapping(template.get("metadata")).get("labels"))
            yield Pod(resource, f"{path}.spec", str(pod_labels.get(labels.COMPONENT, "")), spec)


def containers(resources: Iterable[Resource]) -> Iterator[Container]:
    """The containers of all pods."""
    for pod in pods(resources):
        yield from pod.containers
