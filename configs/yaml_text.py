"""YAML that belongs to Slipway: read by libyaml where PyYAML has it, which takes an eighth of the time.

Stack files and kubeconfigs are not read here: their mistakes are told in the words of PyYAML's own parser.
"""

from typing import Any

import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(text: str) -> Any:
    """What a YAML text holds, as plain data. Raises yaml.YAMLError."""
    return yaml.load(text, Loader=_Loader)  # noqa: S506 (a SafeLoader, whichever)
