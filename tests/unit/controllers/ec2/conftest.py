"""asyncio, and an account of AWS for all tests of a module: making one takes half a second."""

from collections.abc import Iterator

import pytest
from moto import mock_aws

from controllers.ec2 import steps
from tests.support.patience import patience


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is decided on by the machine's pace."""
    monkeypatch.setattr(steps, "DECIDED_S", steps.DECIDED_S * patience())


@pytest.fixture(scope="module", autouse=True)
def aws() -> Iterator[None]:
    with mock_aws():
        yield
