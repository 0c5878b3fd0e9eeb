"""The faults that are found in an edited example stack."""

from pathlib import Path
from typing import Any

import pytest

from configs.faults import ConfigFaults
from configs.load import load_cluster
from tests.support.configs.stacks import edited


def faults(name: str, edits: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(ConfigFaults) as caught:
        load_cluster(edited(name, edits), Path("/nowhere"), f"Pulumi.{name}.yaml")
    return [(fault.path, fault.message) for fault in caught.value.faults]
