"""One bare API server for the whole session, with the kinds of components/crds; each test takes a namespace of its own."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.kinds import build_crds
from tests.support.apiserver.server import ApiServer, serve
from tests.support.apiserver.verbs import Verbs, namespace_of
from tests.support.engine.recorded import SMALL
from tests.support.patience import patience


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A running API server without any kind of ours."""
    with serve(tmp_path_factory.mktemp("apiserver")) as server:
        yield server


@pytest.fixture(scope="session")
def server(bare: ApiServer) -> ApiServer:
    """A running API server that serves the kinds NodeSet and SlurmNode."""
    for kind in build_crds("dev"):
        bare.run_kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(kind))
        bare.run_kubectl("wait", "--for=condition=Established", f"--timeout={120 * patience():.0f}s", f"crd/{kind['metadata']['name']}")
    return bare


@pytest.fixture
def small(server: ApiServer, capsys: pytest.CaptureFixture[str], tmp_path: Path, request: pytest.FixtureRequest) -> Verbs:
    """The small stack of the unit tests, in a namespace called after the test."""
    folder = Path(shutil.copytree(SMALL, tmp_path / "small"))
    return Verbs(server, capsys, folder, f"app.namespace={namespace_of(request)}", "app.replicas=0")
