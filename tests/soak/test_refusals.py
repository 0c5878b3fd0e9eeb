"""A node set for which there is no room: two machines can take two of its nodes at most."""

import json
import re

from tests.support.cluster.dev_stack import DevStack
from tests.support.cluster.refusals import refusal


def test_node_set_that_cannot_fit_is_named_with_what_it_asks_for(restored: DevStack) -> None:
    """Quick: tests/cluster/test_command.py, with a StatefulSet that cannot fit."""
    big = json.dumps({"name": "big", "pool": "workers", "size": 3, "cpus": 2, "memoryMiB": 512, "resources": {"cpu": "1900m"}})
    partition = ("--config", 'cluster.partitions[2]={"name": "big", "nodeSets": ["big"]}')
    said = refusal(restored, "--config", f"cluster.nodeSets[2]={big}", *partition, "--timeout", "20")
    assert re.search(r"big-\d: no node with slipway.dev/pool=workers can take it", said), said
    assert "cpu 1900m" in said
