"""What the check of a node pool says of the nodes it finds."""

from dataclasses import replace
from typing import Any

import pytest

from programs.node_checks.pool import shortfall
from programs.node_checks.pool_settings import ExpectedNodes, Taint

WANTED = ExpectedNodes(
    pool="workers",
    labels={"slipway.dev/pool": "workers"},
    taints=(Taint("slipway.dev/pool", "workers", "NoSchedule"),),
    count=2,
    gpu_resource="nvidia.com/gpu",
    gpus=4,
    wait_s=60,
)
OWN = {"key": "slipway.dev/pool", "value": "workers", "effect": "NoSchedule"}


def node(name: str, gpus: int = 4, ready: str = "True", taints: list[dict[str, str]] | None = None) -> dict[str, Any]:
    allocatable = {"cpu": "2", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    conditions = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}]
    return {
        "metadata": {"name": name},
        "spec": {"taints": [OWN]} if taints is None else {"taints": taints},
        "status": {"allocatable": allocatable, "conditions": conditions},
    }


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        pytest.param([node("worker-0"), node("worker-1")], "", id="enough"),
        pytest.param([node("worker-0"), node("worker-1", gpus=8), node("worker-2", gpus=0)], "", id="more-than-enough"),
        pytest.param(
            [node("worker-0")],
            'pool "workers": 2 nodes wanted with slipway.dev/pool=workers and 4 nvidia.com/gpu, 1 found: worker-0',
            id="one-is-missing",
        ),
        pytest.param([], 'pool "workers": 2 nodes wanted with slipway.dev/pool=workers and 4 nvidia.com/gpu, 0 found', id="none"),
        pytest.param(
            [node("worker-1", gpus=2), node("worker-0"), node("worker-2", gpus=0)],
            'pool "workers": 2 nodes wanted with slipway.dev/pool=workers and 4 nvidia.com/gpu, 1 found: worker-0; '
            "worker-1 has 2; worker-2 has 0",
            id="too-few-gpus",
        ),
        pytest.param(
            [node("worker-0"), node("worker-1", ready="Unknown")],
            'pool "workers": 2 nodes wanted with slipway.dev/pool=workers and 4 nvidia.com/gpu, 1 found: worker-0; worker-1 is not ready',
            id="not-ready",
        ),
        pytest.param(
            [node("worker-0"), node("worker-1", taints=[OWN, {"key": "dedicated", "value": "db", "effect": "NoExecute"}])],
            'pool "workers": 2 nodes wanted with slipway.dev/pool=workers and 4 nvidia.com/gpu, 1 found: worker-0; '
            "worker-1 has the taint dedicated=db:NoExecute, which the pool does not name",
            id="foreign-taint",
        ),
        pytest.param(
            [node("a", taints=[]), node("b", taints=[{"key": "x", "effect": "PreferNoSchedule"}])], "", id="taints-need-not-be-there"
        ),
    ],
)
def test_shortfall(nodes: list[dict[str, Any]], said: str) -> None:
    assert shortfall(WANTED, nodes) == said


def test_pool_without_gpus_says_nothing_of_them() -> None:
    wanted = replace(WANTED, gpus=0)
    assert shortfall(wanted, [node("a", gpus=0), node("b", gpus=0)]) == ""
    assert shortfall(wanted, []) == 'pool "workers": 2 nodes wanted with slipway.dev/pool=workers, 0 found'
