"""Slurm's own programs, from the built image, in runc and network namespaces: the packages for that come from where `make up` gets them."""

import contextlib
import fcntl
import os
import shutil
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from local import packages
from tests.support.report import ended_containers, put_first
from tests.support.slurm.image_pods import Machine
from tests.support.slurm.image_root import unpack

TOOLS = {
    "nfs-ls": "libnfs-utils",
    "mkfs.xfs": "xfsprogs",
    "podman": "podman",
    "linux.uml": "user-mode-linux",
    "rpcbind": "rpcbind",
    "docker-registry": "docker-registry",
}
"""Programs that only the tests use, and the Debian packages they come in."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Begins a failed test's report with the last words of the containers that have ended, and of those that wrote last."""
    report = yield
    if report.failed and call.excinfo is not None and isinstance(item, pytest.Function):
        with contextlib.suppress(OSError):
            machines = {id(machine): machine for value in item.funcargs.values() if isinstance(machine := find_machine(value), Machine)}
            put_first(report, call.excinfo, [line for machine in machines.values() for line in ended_containers(machine.logs())])
    return report


def find_machine(fixture: object) -> object:
    """The pods that a fixture's value has, if it has any."""
    return fixture if isinstance(fixture, Machine) else getattr(fixture, "machine", None)


@pytest.fixture(scope="module", autouse=True)
def alone(request: pytest.FixtureRequest) -> Iterator[None]:
    """A module's folder and network names are the same in every run, so of two runs on one machine the second waits for the first."""
    with Path(f"/var/tmp/slipway-{request.path.stem}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session", autouse=True)
def tools() -> None:
    """runc, iproute2 and the rest of what the local cluster needs, and the tests' own tools, on a machine that has none of it yet."""
    extras = [package for program, package in TOOLS.items() if shutil.which(program) is None]
    if missing := [*packages.find_missing(), *extras]:
        packages.install(missing)


@pytest.fixture(scope="session")
def image_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The unpacked image of the present content. All processes of a session share it, so tests put overlays on it, or hard links of its
    files where nobody may write to them."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "slurm-image"
    with root.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():
            made = root.with_suffix(".new")
            made.mkdir()
            unpack(made)
            root.with_suffix(".made").touch()
            made.rename(root)
            for folder in (root, *root.parents):  # daemons that are not root go through here
                if folder.stat().st_mode & 0o001 == 0:
                    folder.chmod(folder.stat().st_mode | 0o011)
    yield root
    written = ["find", str(root), "-type", "f", "-newer", str(root.with_suffix(".made"))]
    assert not subprocess.run(written, capture_output=True, text=True, check=True).stdout, "a test has written to files that all share"
