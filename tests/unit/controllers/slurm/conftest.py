"""A client of a slurmrestd in this process."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controllers.slurm.client import SlurmClient
from controllers.slurm.tokens import TokenSource
from tests.support.controllers.slurm.fake_rest import FakeRest
from tests.support.patience import patience


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def rest() -> FakeRest:
    return FakeRest()


@pytest.fixture
async def client(rest: FakeRest, tmp_path: Path) -> AsyncIterator[SlurmClient]:
    key = tmp_path / "key"
    key.write_bytes(b"key")
    server = await asyncio.start_server(rest.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with SlurmClient(url, TokenSource(key, lambda: rest.wall), deadline_s=0.5 * patience(), jobs_url=url) as client:
        yield client
    server.close()
