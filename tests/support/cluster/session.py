"""One local cluster and one dev stack for the whole session: used when up, made when not, ended only by who made it."""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import httpx2
import pytest

from local import layout, packages
from tests.support.apiserver.server import free_ports, run_process
from tests.support.cluster.dev_stack import ROOT, STATE, DevStack, eventually
from tests.support.report import put_first


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shows the stack as it is at the moment of a failure, afterwards it is gone: what is wrong with it first, and all of it last."""
    report = yield
    if report.failed and call.excinfo is not None and isinstance(item, pytest.Function):
        stack = DevStack() if "deployed" in item.fixturenames else None
        with contextlib.suppress(Exception, pytest.fail.Exception):  # the limit of the test's time may be over meanwhile
            put_first(report, call.excinfo, stack.trouble() if stack else [])
            if stack:
                report.sections.append(("the stack", stack.look()))
    return report


@pytest.fixture
def shared_cluster() -> Iterator[None]:
    """Nobody takes the cluster's own programs away meanwhile: for tests that run beside others, in a process of their own."""
    with _held(fcntl.LOCK_SH):
        yield


@pytest.fixture
def own_cluster() -> Iterator[None]:
    """No test of another process runs meanwhile: for tests that take the cluster's own programs away."""
    with _held(fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def _held(how: int) -> Generator[None]:
    """A lock that processes of tests share. All queue at the gate, so that a row of tests that share it keeps nobody out."""
    with (STATE / "tests.gate").open("w") as gate, (STATE / "tests.lock").open("w") as lock:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(lock, how)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield


@pytest.fixture
def registry(kube: str, tmp_path: Path) -> Iterator[str]:
    """An empty registry for jobs, on the nodes' bridge; gives its address."""
    assert kube
    with _registry(f"{layout.HOST}:{free_ports(1)[0]}", tmp_path) as address:
        yield address


@pytest.fixture
def nodes_registry(kube: str, tmp_path: Path) -> Iterator[str]:
    """An empty registry at the one address from which the nodes pull without TLS; gives the address."""
    assert kube
    with _registry(layout.REGISTRY, tmp_path) as address:
        yield address


@contextlib.contextmanager
def _registry(address: str, folder: Path) -> Generator[str]:
    if shutil.which("docker-registry") is None:
        packages.install(["docker-registry"])
    config = folder / "registry.yml"
    storage = {"filesystem": {"rootdirectory": str(folder / "registry")}}
    config.write_text(json.dumps({"version": 0.1, "storage": storage, "http": {"addr": address}}))
    with run_process("registry", ["docker-registry", "serve", str(config)], folder):
        eventually("the registry", lambda: _answers(f"http://{address}/v2/"), 30, every_s=0.1)
        yield address


def _answers(url: str) -> bool:
    try:
        return httpx2.get(url).is_success
    except httpx2.TransportError:
        return False


@pytest.fixture(scope="session")
def kube() -> str:
    """Path of the kubeconfig of a running local cluster with the images loaded. `make up` does the same in the same words, and so does
    `make test` before it starts its rows."""
    if not os.environ.get("SLIPWAY_PREPARED"):
        subprocess.run([sys.executable, "-m", "local", "prepare"], cwd=ROOT, check=True, timeout=3000)
    return str(STATE / "kubeconfig")


@pytest.fixture(scope="session")
def deployed(kube: str) -> DevStack:
    """The dev stack, up and with all Slurm nodes idle, once a session."""
    assert kube
    stack = DevStack()
    stack.mend()
    stack.wait_until_open()
    stack.ssh("rm -f ./*.out job.* there.* go", timeout_s=60)  # homes outlive the cluster: what an earlier session's jobs wrote
    return stack


@pytest.fixture
def stack(deployed: DevStack) -> Iterator[DevStack]:
    """The dev stack with no jobs and all nodes idle, before and after the test."""
    deployed.ready()
    yield deployed
    deployed.quiet()


@pytest.fixture
def restored(stack: DevStack) -> Iterator[DevStack]:
    """The stack, put back to its own file afterwards: what other fields of kubectl's have changed, and disks of nodes, as well."""
    before = stack.declared()
    yield stack
    stack.slurm("scancel --user=alice", check=False)
    if stack.declared() != before:
        stack.slipway("up", "--force-conflicts")
    stack.kubectl("delete", "pvc", "-l", "slipway.dev/nodeset", "--wait=false")
    stack.wait_until_settled()
