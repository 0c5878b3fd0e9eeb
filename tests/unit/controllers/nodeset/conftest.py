"""A cluster in memory for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.support.controllers.nodeset.memory_cluster import Cluster
from tests.support.fakes.kubernetes import FakeKubernetes


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with FakeKubernetes() as server:
        made = Cluster(server)
        yield made
        await made.process.end()
