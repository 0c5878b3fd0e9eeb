"""The argument of the check of a pool (pool.py): the nodes that it expects. components/node_pool.py writes it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Taint:
    """A taint of a Kubernetes node."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True)
class ExpectedNodes:
    """The Kubernetes nodes of a pool."""

    pool: str
    labels: Mapping[str, str]
    """Labels that tell them from others."""
    taints: tuple[Taint, ...]
    """Taints that they may have; a node with another taint does not count."""
    count: int
    """How many there must be, at least."""
    gpu_resource: str
    """What Kubernetes calls their GPUs, such as `nvidia.com/gpu`."""
    gpus: int
    """How many of these each must offer; 0 for none."""
    wait_s: int
    """Seconds that they have to appear."""


def to_json(nodes: ExpectedNodes) -> str:
    """The argument."""
    return json.dumps(
        {
            "pool": nodes.pool,
            "labels": nodes.labels,
            "taints": [vars(taint) for taint in nodes.taints],
            "count": nodes.count,
            "gpuResource": nodes.gpu_resource,
            "gpus": nodes.gpus,
            "waitS": nodes.wait_s,
        },
        sort_keys=True,
    )


def from_json(text: str) -> ExpectedNodes:
    """Reads what `to_json` wrote."""
    values: dict[str, Any] = json.loads(text)
    return ExpectedNodes(
        pool=values["pool"],
        labels=values["labels"],
        taints=tuple(Taint(**taint) for taint in values["taints"]),
        count=values["count"],
        gpu_resource=values["gpuResource"],
        gpus=values["gpus"],
        wait_s=values["waitS"],
    )
