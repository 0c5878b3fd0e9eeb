"""Versions are fixed: no image and no chart is `latest`, so that a restart runs what the last deployment ran. Asks no registry."""

from collections.abc import Iterator, Sequence

from policies.pods import containers
from policies.records import UNKNOWN, Fault, Resource, Rule, mapping

_CHARTS = ("kubernetes:helm.sh/v3:Release", "kubernetes:helm.sh/v3:Chart", "kubernetes:helm.sh/v4:Chart")
_REMEDY = "Name a tag that is never moved, or a digest."


def check(resources: Sequence[Resource]) -> Iterator[Fault]:
    """Images without a fixed version, and charts without a version."""
    for container in containers(resources):
        image = container.spec.get("image")
        fault = "" if image == UNKNOWN else image_fault(image if isinstance(image, str) else "")
        if fault:
            yield Fault(container.pod.resource, f"{container.path}.image", fault, _REMEDY)
    for resource in resources:
        version = resource.props.get("version")
        chart = resource.props.get("chart")
        if resource.type in _CHARTS and not str(chart).endswith(".tgz") and (not version or mapping(version) or version == "latest"):
            yield Fault(resource, "version", f"the chart {chart} has no fixed version.", "Name the version of the chart.")


def image_fault(image: str) -> str:
    """The fault in an image's name; empty if there is none. A digest fixes the version, whatever the tag."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    if not name:
        return "no image is named."
    if digest.startswith("sha256:") or (tag and tag != "latest"):
        return ""
    return f'"{image}" has no fixed version.' if tag else f'"{image}" has no tag, so it means latest.'


RULE = Rule(
    "fixed-images",
    "Every image has a fixed tag or a digest, and every Helm chart a version.",
    "Kubernetes, Images: a container that is started again may run another `latest`.",
    check,
)
