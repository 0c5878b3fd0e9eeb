"""Disks of daemons' own."""

import pytest

from components.claims import claim_template
from configs.models.storage import Disk


@pytest.mark.parametrize(
    ("disk", "named"),
    [
        pytest.param(Disk(size="5Gi"), {}, id="default-class"),
        pytest.param(Disk(size="5Gi", storage_class="fast"), {"storageClassName": "fast"}, id="named-class"),
    ],
)
def test_disk_names_a_class_only_when_the_user_does(disk: Disk, named: dict[str, str]) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}, **named}
    assert claim_template("data", disk) == {"metadata": {"name": "data"}, "spec": spec}
