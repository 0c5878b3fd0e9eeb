"""Slurm in the images has all known security fixes. Compares the version in an image's tag; asks no registry.

The releases, and the day on which they were looked up, are in slurm_releases.json: a later release changes only that file.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from policies.pods import containers
from policies.records import Fault, Resource, Rule

Version = tuple[int, int, int]
_RELEASES: Mapping[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text())
_IMAGE = re.compile(r"(?:.*/)?(?:slurm[a-z-]*|sackd|login):v?(\d\d)\.(\d\d)\.(\d+)(?:[^\d].*)?")


def fixed_releases() -> tuple[Version, ...]:
    """The first release of each supported series with the newest known security fixes, oldest series first."""
    fixed: list[str] = _RELEASES["fixed"]
    return tuple(sorted(_version(*release.split(".")) for release in fixed))


def check(resources: Sequence[Resource]) -> Iterator[Fault]:
    """Images whose tag names a Slurm release that lacks security fixes."""
    for container in containers(resources):
        image = container.spec.get("image")
        if fault := image_fault(image if isinstance(image, str) else "", fixed_releases()):
            remedy = f"Build or name an image of Slurm {_newest()} or later."
            yield Fault(container.pod.resource, f"{container.path}.image", fault, remedy)


def image_fault(image: str, fixed: Sequence[Version]) -> str:
    """Why an image's Slurm lacks security fixes; empty if it has them, or if its tag names no release."""
    match = _IMAGE.fullmatch(image.partition("@")[0])
    if match is None:
        return ""
    version = _version(*match.groups())
    same_series = [release for release in fixed if release[:2] == version[:2]]
    if any(version >= release for release in same_series) or version[:2] > max(fixed)[:2]:
        return ""
    if not same_series:
        return f'"{image}" has a series of Slurm that gets no security fixes any more, as of {_RELEASES["read"]}.'
    return f'"{image}" lacks the security fixes of Slurm {_text(same_series[0])}, known since {_RELEASES["read"]}.'


def _version(year: str, month: str, patch: str) -> Version:
    return int(year), int(month), int(patch)


def _text(version: Version) -> str:
    return "{:02}.{:02}.{}".format(*version)


def _newest() -> str:
    return _text(max(fixed_releases()))


RULE = Rule(
    "slurm-security-fixes",
    "Images whose tag names a Slurm release have the newest known security fixes of Slurm.",
    f"{_RELEASES['source']}.",
    check,
    level="advisory",
    is_for_all=True,
)
