"""The dev stack as a real API server judges it: every object is tried by server-side dry run, strictly, and nothing is stored."""

import pytest

from cli import main as cli
from tests.support.apiserver.server import ROOT, ApiServer
from tests.support.project import KEYS


def preview(server: ApiServer, capsys: pytest.CaptureFixture[str], namespace: str) -> str:
    """What `preview` prints of the dev stack in a namespace."""
    where = [
        "--stack",
        "dev",
        "-C",
        str(ROOT),
        "--kubeconfig",
        str(server.kubeconfig()),
        "--context",
        "bare",
    ]
    config = [part for each in (*KEYS, f"cluster.namespace={namespace}") for part in ("-c", each)]
    with pytest.raises(SystemExit) as ended:
        cli.main(["preview", *where, *config])
    said = capsys.readouterr()
    assert ended.value.code == 0, said.out + said.err
    return said.out


def test_every_object_is_accepted(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.make_namespace("dev-stack")
    said = preview(server, capsys, "dev-stack")
    for name in ("cpu", "gpu", "burst"):
        assert f"kubernetes:slipway.dev/v1alpha1:NodeSet  dev-{name}" in said
    assert "~  ├─ kubernetes:core/v1:Namespace  dev-stack" in said  # it is there, so the server was asked about all that goes into it


def test_first_preview_needs_neither_namespace_nor_kind(server: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    said = preview(server, capsys, "nowhere-yet")
    assert "kubernetes:core/v1:Namespace  nowhere-yet" in said
    assert "to delete" not in said
