"""`ci --live` against a real API server: the comment comes from the cluster, and what cannot be asked is an error."""

from pathlib import Path

import pytest

from cli import main as cli
from tests.support.apiserver.server import ROOT, ApiServer
from tests.support.project import KEYS


def live(output: Path, *config: str) -> tuple[object, str]:
    """The exit code of a live check of the dev stack, and its comment."""
    given = [part for each in (*KEYS, *config) for part in ("-c", each)]
    with pytest.raises(SystemExit) as ended:
        cli.main(["ci", "--live", "--stack", "dev", "-C", str(ROOT), "--output", str(output), *given])
    return ended.value.code, (output / "live.md").read_text()


def test_live_comment_says_what_the_cluster_would_get(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig()))
    server.make_namespace("live-ci")
    code, comment = live(tmp_path, "cluster.kubernetes.context=bare", "cluster.namespace=live-ci")
    assert code == 2, comment
    assert "Compared with the cluster, which says what becomes of its jobs." in comment
    assert "| dev | changes |" in comment
    assert "~  ├─ kubernetes:core/v1:Namespace  live-ci" in comment  # the server was asked: the namespace is there


def test_cluster_that_does_not_answer_is_no_green_comment(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig()))
    code, comment = live(tmp_path, "cluster.kubernetes.context=elsewhere")
    assert code == 1
    assert "elsewhere" in comment
