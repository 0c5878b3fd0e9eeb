"""One bare API server for the whole session, with the kinds of components/crds; each test takes a namespace of its own."""

import json
from collections.abc import Iterator

import pytest

from components.kinds import build_crd
from tests.apiserver.server import ApiServer, serve


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A running API server without any kind of ours."""
    with serve(tmp_path_factory.mktemp("apiserver")) as server:
        yield server


@pytest.fixture(scope="session")
def server(bare: ApiServer) -> ApiServer:
    """A running API server that serves the kind NodeSet."""
    bare.run_kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(build_crd("dev")))
    bare.run_kubectl("wait", "--for=condition=Established", "--timeout=120s", "crd/nodesets.slipway.dev")
    return bare
