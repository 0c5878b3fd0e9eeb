"""The way in: where the login Service listens, and as whom one logs in."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.check.entry import _who  # pyright: ignore[reportPrivateUsage]
from cli.check.login import Login, login_address
from engine.faults import SlipwayError

KEY = Path("/keys/id")
NODES = [{"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}}]
USERS = [{"name": "alice", "sshKeyFiles": ["a.pub"]}, {"name": "bob", "sshKeyFiles": ["other.pub", "b.pub"]}]


@pytest.mark.parametrize(
    ("port", "status", "expected"),
    [
        pytest.param({"port": 22, "nodePort": 30022}, {}, ("10.0.0.1", 30022), id="node-port"),
        pytest.param({"port": 22, "nodePort": 30022}, {"loadBalancer": {"ingress": [{"hostname": "lb"}]}}, ("lb", 22), id="load-balancer"),
        pytest.param({"port": 22}, {}, None, id="cluster-ip-is-forwarded"),
    ],
)
def test_where_the_login_service_listens(port: Any, status: Any, expected: tuple[str, int] | None) -> None:
    assert login_address({"spec": {"ports": [port]}, "status": status}, NODES) == expected


def test_the_instructions_keep_the_way_open_where_there_is_no_address() -> None:
    login = Login("127.0.0.1", 2222, "alice", KEY, ("kubectl", "--context", "my cluster", "port-forward", "service/x", "2222:22"))
    forward, ssh = login.instructions
    assert forward == "kubectl --context 'my cluster' port-forward service/x 2222:22 &"
    assert ssh.startswith("ssh -i /keys/id -p 2222 ")


@pytest.mark.parametrize(
    ("there", "user", "key", "who"),
    [
        pytest.param(["a"], None, None, ("alice", "a"), id="first-with-a-key-here"),
        pytest.param(["b"], None, None, ("bob", "b"), id="second-of-two"),
        pytest.param(["a", "b"], "bob", None, ("bob", "b"), id="by-name"),
        pytest.param([], None, KEY, ("alice", KEY), id="by-key"),
        pytest.param([], "carol", KEY, ("carol", KEY), id="user-of-ldap"),
    ],
)
def test_who_logs_in(tmp_path: Path, there: list[str], user: str | None, key: Path | None, who: tuple[str, str | Path]) -> None:
    for name in there:
        (tmp_path / name).touch()
    name, wanted = who
    assert _who({"login": {"users": USERS}}, tmp_path, user, key) == (name, tmp_path / wanted)


@pytest.mark.parametrize("user", [None, "alice", "carol"])
def test_nobody_without_a_key_gets_in_and_the_options_are_named(tmp_path: Path, user: str | None) -> None:
    with pytest.raises(SlipwayError, match="--user NAME --key FILE"):
        _who(json.loads(json.dumps({"login": {"users": USERS}})), tmp_path, user, None)
