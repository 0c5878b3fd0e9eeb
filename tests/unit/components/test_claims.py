"""Disks of daemons' own."""

import pytest

from components.claims import claim_args
from configs.models.storage import Disk


@pytest.mark.parametrize(
    ("disk", "claim"),
    [
        pytest.param(Disk(size="5Gi"), {"size": "5Gi"}, id="default-class"),
        pytest.param(Disk(size="5Gi", storage_class="fast"), {"size": "5Gi", "storage_class": "fast"}, id="named-class"),
    ],
)
def test_disk_names_a_class_only_when_the_user_does(disk: Disk, claim: dict[str, str]) -> None:
    assert claim_args(disk) == claim
