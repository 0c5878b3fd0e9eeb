"""An answer, a refusal and silence are told apart; and which kinds the API server knows. tests/apiserver has the real one."""

import socket
from pathlib import Path

import pytest
from lightkube.config.client_adapter import BearerTokenFileAuth

from engine import api
from engine.api import Api, RefusedError
from engine.cluster import Home, last_words, sort_of
from engine.faults import UnreachableError
from engine.kubeconfig import Where
from engine.render import Key, Sort
from tests.support.engine.canned import CannedServer, write_kubeconfig


@pytest.fixture
def client(tmp_path: Path, canned: CannedServer) -> Api:
    return api.connect(Where(str(canned.kubeconfig(tmp_path)), None))


def test_a_refusal_has_the_servers_words_code_and_reason(client: Api, canned: CannedServer) -> None:
    canned.answers["/x"] = (403, {"kind": "Status", "reason": "Forbidden", "message": 'pods is forbidden: User "a" cannot list'})
    with pytest.raises(RefusedError, match="cannot list") as caught:
        client.request("GET", "/x")
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    assert not isinstance(caught.value, UnreachableError)


def test_a_refusal_without_a_status_is_its_code(client: Api, canned: CannedServer) -> None:
    for body in ("<html>", "[]"):
        canned.answers["/x"] = (502, body)
        with pytest.raises(RefusedError, match="502 Bad Gateway"):
            client.request("GET", "/x")


def test_credentials_that_nobody_takes_are_no_refusal(client: Api, canned: CannedServer) -> None:
    canned.answers["/x"] = (401, {"kind": "Status", "reason": "Unauthorized", "message": "Unauthorized"})
    with pytest.raises(UnreachableError, match=r"the current context of .* does not accept these credentials: Unauthorized"):
        client.request("GET", "/x")


def test_no_server_is_no_answer(tmp_path: Path) -> None:
    far = api.connect(Where(str(write_kubeconfig(tmp_path / "config", "far", "http://127.0.0.1:9")), "far"))
    with pytest.raises(UnreachableError, match=r'No cluster answers at context "far" of .*http://127\.0\.0\.1:9.*refused'):
        far.request("GET", "/x")


def test_a_silent_server_has_a_deadline(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        file = write_kubeconfig(tmp_path / "config", "far", f"http://127.0.0.1:{silent.getsockname()[1]}")
        far = api.connect(Where(str(file), "far"))
        far.client.timeout = 0.2
        with pytest.raises(UnreachableError, match=r"No cluster answers.*timed out"):
            far.request("GET", "/x")


def test_an_overloaded_server_is_asked_again(client: Api, canned: CannedServer) -> None:
    canned.answers["/x"] = (429, {})
    with pytest.raises(UnreachableError, match="overloaded"):
        client.request("GET", "/x")
    assert len(canned.requests) > 1


def test_object_that_is_not_there_is_none_but_a_refusal_is_not(client: Api, canned: CannedServer) -> None:
    canned.serve({"v1": ["Pod"]})
    pod = Key("", "Pod", "a", "b")
    assert client.find(pod) is None
    assert not client.delete(pod)
    canned.answers["/api/v1/namespaces/a/pods/b"] = (403, {"message": "no"})
    for ask in (client.find, client.delete):
        with pytest.raises(RefusedError, match="no"):
            ask(pod)


def test_kinds_are_told_apart_by_their_group_and_asked_for_once(client: Api, canned: CannedServer) -> None:
    canned.serve({"v1": ["ConfigMap"], "slipway.dev/v1alpha1": ["NodeSet"], "example.com/v1": []})
    assert client.kinds().keys() == {Sort("", "ConfigMap"), Sort("slipway.dev", "NodeSet")}
    assert client.path("", Key("slipway.dev", "NodeSet", "a", "b"), "status") == "/apis/slipway.dev/v1alpha1/namespaces/a/nodesets/b/status"
    assert len(canned.requests) == 2
    with pytest.raises(RefusedError, match=r"does not know the kind NodeSet\.other\.dev"):
        client.path("", Key("other.dev", "NodeSet", "a", "b"))
    canned.serve({"other.dev/v1": ["NodeSet"]})
    assert client.kinds(again=True).keys() == {Sort("other.dev", "NodeSet")}


def test_silence_about_kinds_is_no_answer(client: Api) -> None:
    with pytest.raises(RefusedError, match="not found"):
        client.kinds()


def test_kinds_of_an_applyset_are_read_back() -> None:
    kinds = (Sort("slipway.dev", "NodeSet"), Sort("", "ConfigMap"))
    assert [sort_of(str(kind)) for kind in kinds] == [*kinds]


def test_last_words_are_those_of_the_newest_run_that_spoke(client: Api, canned: CannedServer) -> None:
    def say(body: str) -> str:
        assert not body
        previous = "previous=true" in canned.requests[-1][1]
        return "\nno such disk\n" if previous else "unable to retrieve container logs for containerd://1"

    canned.serve({"v1": ["Pod"]})
    home = Home(client, "a", "slipway-small-dev")
    assert last_words(home, "b", "main") == []
    canned.answers["/api/v1/namespaces/a/pods/b/log"] = (200, say)
    assert last_words(home, "b", "main") == ["no such disk"]
    assert "container=main&tailLines=8" in canned.requests[-1][1]


def test_credentials_that_fail_during_a_wait_are_left_to_the_next_request(tmp_path: Path, canned: CannedServer) -> None:
    canned.serve({"v1": ["Pod"]})
    token = tmp_path / "token"
    token.write_text("good")
    client = api.connect(Where(str(canned.kubeconfig(tmp_path, tokenFile="token")), None))
    client.kinds()
    token.unlink()
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "namespace": "a", "resourceVersion": "1"}}
    client.client.auth = BearerTokenFileAuth(str(token))  # as after a restart: nothing is remembered
    client.await_change(pod, 0)
    with pytest.raises(UnreachableError, match="its credentials cannot be read"):
        client.find(Key("", "Pod", "a", "b"))
