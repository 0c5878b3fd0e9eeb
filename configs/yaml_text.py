"""Parses Slipway's own YAML, with libyaml if PyYAML has it (8 times faster). Stack files and kubeconfigs are not read here."""

from typing import Any

import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(text: str) -> Any:
    """What a YAML text holds, as plain data. Raises yaml.YAMLError."""
    return yaml.load(text, Loader=_Loader)  # noqa: S506 (a SafeLoader, whichever)
