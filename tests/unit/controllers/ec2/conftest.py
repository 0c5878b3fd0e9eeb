"""asyncio, and an account of AWS for all tests of a module: making one takes half a second."""

from collections.abc import Iterator

import pytest
from moto import mock_aws


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", autouse=True)
def aws() -> Iterator[None]:
    with mock_aws():
        yield
