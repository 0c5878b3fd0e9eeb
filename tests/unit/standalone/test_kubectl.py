"""kubectl is found by precedence, and its failures become words. A stand-in script prints what the real one does."""

from pathlib import Path

import pytest

from standalone import kubectl
from standalone.faults import StandaloneError, UnreachableError
from standalone.kubectl import Kubectl
from standalone.plan import Secret


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBECONFIG", "KUBECTL"):
        monkeypatch.delenv(name, raising=False)


def program(path: Path, body: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_the_option_wins_then_the_environment_then_the_local_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path, local = program(tmp_path / "path/kubectl"), program(tmp_path / ".slipway/bin/kubectl")
    given, named = program(tmp_path / "given"), program(tmp_path / "named")
    monkeypatch.setenv("PATH", str(on_path.parent))
    monkeypatch.setenv("KUBECTL", str(named))
    assert kubectl.find(tmp_path, str(given), None, None).binary == str(given)
    assert kubectl.find(tmp_path, None, None, None).binary == str(named)
    monkeypatch.delenv("KUBECTL")
    assert kubectl.find(tmp_path, None, None, None).binary == str(local)
    local.unlink()
    assert kubectl.find(tmp_path, None, None, None).binary == str(on_path)
    on_path.unlink()
    with pytest.raises(UnreachableError, match="There is no kubectl"):
        kubectl.find(tmp_path, None, None, None)


@pytest.mark.parametrize(
    ("option", "environment", "context", "expected"),
    [
        pytest.param("given", "env", "slipway-local", "given", id="option"),
        pytest.param(None, "env", None, "env", id="environment"),
        pytest.param(None, "env", "slipway-local", "local", id="local-context-goes-before-the-environment"),
        pytest.param(None, None, "slipway-local", "local", id="local-context"),
        pytest.param(None, None, None, "local", id="no-context-named"),
        pytest.param(None, None, "prod", None, id="another-context-is-never-local"),
    ],
)
def test_the_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str | None, environment: str | None, context: str | None, expected: str | None
) -> None:
    paths = {"given": tmp_path / "given", "env": tmp_path / "env", "local": tmp_path / ".slipway" / "kubeconfig"}
    program(tmp_path / ".slipway/bin/kubectl")
    for path in paths.values():
        path.write_text("")
    if environment:
        monkeypatch.setenv("KUBECONFIG", str(paths[environment]))
    found = kubectl.find(tmp_path, None, str(paths[option]) if option else None, context)
    assert found.kubeconfig == (str(paths[expected]) if expected else None)


def test_a_kubeconfig_or_kubectl_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="nope: no such file"):
        kubectl.find(tmp_path, str(program(tmp_path / "k")), str(tmp_path / "nope"), None)
    with pytest.raises(UnreachableError, match="nope: no such program"):
        kubectl.find(tmp_path, str(tmp_path / "nope"), None, None)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        pytest.param('error: context "nowhere" does not exist', 'has no context "nowhere".*There are: one, two', id="context"),
        pytest.param(
            "The connection to the server 127.0.0.1:9 was refused - did you specify the right host or port?",
            "No cluster answers.*127.0.0.1:9",
            id="refused",
        ),
        pytest.param("Unable to connect to the server: dial tcp: lookup x: no such host", "No cluster answers.*no such host", id="host"),
        pytest.param(
            "Unable to connect to the server: x509: certificate signed by unknown authority", "does not accept these credentials", id="x509"
        ),
        pytest.param("error: You must be logged in to the server (Unauthorized)", "does not accept these credentials", id="unauthorized"),
    ],
)
def test_no_answer_is_told_from_a_refusal(tmp_path: Path, said: str, words: str) -> None:
    body = f"case \"$*\" in *get-contexts*) printf 'one\\ntwo\\n'; exit 0;; esac\necho '{said}' >&2; exit 1"
    client = Kubectl(str(program(tmp_path / "kubectl", body)), "/there/kubeconfig", "nowhere")
    with pytest.raises(UnreachableError, match=words):
        client.objects("get", "pods")


def test_an_ordinary_failure_is_kubectls_own_words(tmp_path: Path) -> None:
    client = Kubectl(str(program(tmp_path / "kubectl", "echo 'Error from server (Forbidden): no' >&2; exit 1")), None, None)
    with pytest.raises(StandaloneError, match="Forbidden") as caught:
        client.objects("get", "pods")
    assert not isinstance(caught.value, UnreachableError)
    with pytest.raises(StandaloneError, match="Forbidden"):
        list(client.stream("apply", stdin=""))


def test_a_silent_server_has_a_deadline(tmp_path: Path) -> None:
    client = Kubectl(str(program(tmp_path / "kubectl", "exec sleep 30")), None, "far")
    with pytest.raises(UnreachableError, match='no answer from context "far"'):
        client.call("get", "pods", timeout_s=0.2)


def test_lines_come_as_they_are_printed_and_standard_input_arrives(tmp_path: Path) -> None:
    client = Kubectl(str(program(tmp_path / "kubectl", 'cat; echo "$KUBECTL_APPLYSET"')), None, None)
    assert list(client.stream("apply", stdin="a\nb\n", applyset=True)) == ["a", "b", "true"]


def test_secrets_reach_kubectl_on_standard_input_only() -> None:
    assert '"hush"' in kubectl.document_list([{"kind": "Secret", "data": {"key": Secret("hush")}}])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param('{"kind": "Pod", "n": 1}', [1], id="one"),
        pytest.param('{"kind": "Pod", "n": 1}\n{"kind": "Pod", "n": 2}\n', [1, 2], id="several"),
        pytest.param('{"kind": "List", "items": [{"n": 1}, {"n": 2}]}', [1, 2], id="list"),
        pytest.param('{"kind": "PodList", "items": []}', [], id="empty-list"),
    ],
)
def test_every_way_kubectl_prints_objects_is_read(text: str, names: list[int]) -> None:
    assert [one["n"] for one in kubectl.decoded(text)] == names
