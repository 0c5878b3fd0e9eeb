"""Adds the images of a release to the wheel: the file that `python -m images push --record` wrote, where SLIPWAY_IMAGES names it."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ReleaseImages(BuildHookInterface[Any]):
    """With that file, a stack without `images:` runs the release's images; configs/images.py reads it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        if record := os.environ.get("SLIPWAY_IMAGES"):
            build_data["force_include"][record] = "images.json"
