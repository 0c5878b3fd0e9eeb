"""One bare API server for the whole session, with the kinds of components/crds; each test takes a namespace of its own."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli import main as cli
from components.kinds import build_crds
from tests.apiserver.server import ROOT, ApiServer, serve
from tests.patience import patience

SMALL = ROOT / "tests" / "unit" / "engine" / "fixtures" / "small"


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


class Verbs:
    """The verbs on one stack in a namespace of a test's own."""

    def __init__(self, server: ApiServer, capsys: pytest.CaptureFixture[str], folder: Path, *config: str) -> None:
        self._server, self._capsys = server, capsys
        where = ["--stack", "dev", "-C", str(folder), "--kubeconfig", str(server.kubeconfig())]
        self._where = [*where, *(part for each in config for part in ("-c", each))]

    def run(self, verb: str, *options: str, code: int = 0) -> str:
        """One verb, and all that it printed."""
        with pytest.raises(SystemExit) as ended:
            cli.main([verb, *self._where, *options])
        said = self._capsys.readouterr()
        assert ended.value.code == code, said.out + said.err
        return said.out + said.err

    def up(self, *options: str) -> str:
        """`up` where there are no nodes and no pod ever starts: everything is applied, and the wait gives up at once."""
        return self.run("up", "--timeout", "0", "--ignore-missing", *options, code=1)


@pytest.fixture
def small(server: ApiServer, capsys: pytest.CaptureFixture[str], tmp_path: Path, request: pytest.FixtureRequest) -> Verbs:
    """The small stack of the unit tests, in a namespace called after the test."""
    folder = Path(shutil.copytree(SMALL, tmp_path / "small"))
    return Verbs(server, capsys, folder, f"app.namespace={namespace_of(request)}", "app.replicas=0")


def namespace_of(request: pytest.FixtureRequest) -> str:
    return re.sub("[^a-z0-9]+", "-", request.node.name.lower())[:60].strip("-")
