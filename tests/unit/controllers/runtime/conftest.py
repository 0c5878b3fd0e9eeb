"""Tests here may be coroutines (anyio's pytest plugin runs them), against an API server that can fail in every way."""

from collections.abc import AsyncIterator

import pytest

from controllers.runtime.api import Api, connect
from tests.support.fakes.kubernetes import FakeKubernetes


@pytest.fixture
def anyio_backend() -> str:
    """The one event loop that the controllers run on."""
    return "asyncio"


@pytest.fixture
async def server() -> AsyncIterator[FakeKubernetes]:
    """An empty API server."""
    async with FakeKubernetes() as server:
        yield server


@pytest.fixture
async def api(server: FakeKubernetes) -> AsyncIterator[Api]:
    """A client of it."""
    api = connect(server.config())
    yield api
    await api.close()
