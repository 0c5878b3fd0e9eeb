"""Property tests search at random here, and the same way every time in CI, where a failure must be of the change; no test is timed.

`make test` runs two processes: one has the local cluster to itself, the other does the rest.
"""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("search", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "search")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives each test its process; a plain `pytest` takes no notice."""
    cluster = Path(__file__).parent / "cluster"
    for item in items:
        item.add_marker(pytest.mark.xdist_group("cluster" if cluster in item.path.parents else "rest"))
