"""What a sweep of a set at rest costs: it comes every half minute, for as long as the cluster lives."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from controllers.nodeset import observed, status
from controllers.nodeset.workers import Worker
from tests.support.controllers.nodeset.memory_cluster import KEY, Cluster
from tests.support.fakes.kubernetes import FakeKubernetes

NODES = 50


def test_a_sweep_looks_at_template_and_workers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    revision = status.revision

    def counted_revision(spec: Any) -> str:
        calls["revision"] += 1
        return revision(spec)

    def counted_worker(*fields: Any) -> Worker:
        calls["worker"] += 1
        return Worker(*fields)

    async def sweep() -> None:
        async with FakeKubernetes() as server:
            cluster = Cluster(server)
            cluster.declare(nodes=NODES, replicas=NODES, ordinals=NODES, maxPodsInFlight=NODES)
            await cluster.rounds(3)
            monkeypatch.setattr(status, "revision", counted_revision)
            monkeypatch.setattr(observed, "Worker", counted_worker)
            await cluster.process.reconciler.reconcile(KEY)
            await cluster.process.end()

    asyncio.run(sweep())
    assert calls["revision"] <= 1
    assert 0 < calls["worker"] <= 2 * NODES  # a plan, and no more than one look besides
