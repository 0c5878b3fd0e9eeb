"""Slurm's own programs, from the built image, in runc and network namespaces: the packages for that come from where `make up` gets them."""

import pytest

from local import packages


@pytest.fixture(scope="session", autouse=True)
def tools() -> None:
    """runc, iproute2 and the rest of what the local cluster needs, on a machine that has none of it yet."""
    if missing := packages.find_missing():
        packages.install(missing)
