"""Property tests search at random here, and the same way every time in CI, where a failure must be of the change; no test is timed.

Every session begins with how patient it is (support/patience.py) and ends with the modules that took longest (support/timing.py).
"""

import gc
import os
import shutil
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_timeout
from hypothesis import settings

from cli.__main__ import RARELY

pytest.register_assert_rewrite("tests.support")

from tests.support import patience, timing  # noqa: E402

settings.register_profile("search", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "search")

gc.set_threshold(*RARELY)

_times: dict[str, timing.Times] = {}
_began = pytest.StashKey[timing.Times]()


@pytest.fixture(scope="session", autouse=True)
def bytecode_goes_with_its_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs that ran from the session's folders leave no bytecode in the user's cache."""
    yield
    if sys.pycache_prefix is not None:
        shutil.rmtree(f"{sys.pycache_prefix}{tmp_path_factory.getbasetemp().resolve()}", ignore_errors=True)


def pytest_report_header() -> str:
    """How patient the tests of real programs are."""
    return patience.describe()


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> object:
    """A test that waits by the machine's pace may last longer; one that hangs does not take the time of all others."""
    plugin = cast(Any, pytest_timeout)
    return plugin.pytest_timeout_set_timer(item, settings._replace(timeout=settings.timeout * min(2.0, patience.patience())))


def pytest_collection_finish() -> None:
    """What was imported stays: the collector need not look through it again and again, which was a sixth of the unit tests' time."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The first phase of a test begins."""
    item.stash[_began] = timing.now()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Notes what a phase of a test took, fixtures included; with several processes the report brings it to the one that sums up."""
    report = yield
    now = timing.now()
    taken, item.stash[_began] = now - item.stash.get(_began, now), now
    report.user_properties.append(("times", [taken.wall, taken.own, taken.machine]))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Adds a phase to its test."""
    for name, value in report.user_properties:
        if name == "times":
            taken = timing.Times(*cast("list[float]", value))
            _times[report.nodeid] = _times.get(report.nodeid, timing.Times()) + taken


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Shows the modules that took longest."""
    if _times:
        terminalreporter.section("slowest modules")
        for line in timing.module_lines(_times):
            terminalreporter.write_line(line)
        if path := os.environ.get("SLIPWAY_TIMES"):
            timing.save(_times, Path(path))
