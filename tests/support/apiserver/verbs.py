"""The verbs of `slipway`, run on one stack in a namespace of the test."""

import re
from pathlib import Path

import pytest

from cli import main as cli
from tests.support.apiserver.server import ApiServer


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


def namespace_of(request: pytest.FixtureRequest) -> str:
    return re.sub("[^a-z0-9]+", "-", request.node.name.lower())[:60].strip("-")
