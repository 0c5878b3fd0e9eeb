"""The kubeconfig is found and read as kubectl does it; what it lacks is named."""

import base64
import json
import os
import shutil
from pathlib import Path
from typing import Any

import certifi
import pytest
import yaml

from engine import api, kubeconfig
from engine.faults import UnreachableError
from engine.kubeconfig import Where
from tests.support.engine.canned import CannedServer, write_kubeconfig


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def ask(canned: CannedServer, where: Where) -> dict[str, str]:
    """The headers of a request to the chosen cluster."""
    canned.answers["/version"] = (200, {})
    api.connect(where).request("GET", "/version")
    return canned.requests[-1][2]


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
    paths["local"].parent.mkdir()
    for path in paths.values():
        path.write_text("")
    if environment:
        monkeypatch.setenv("KUBECONFIG", str(paths[environment]))
    found = kubeconfig.find(tmp_path, str(paths[option]) if option else None, context)
    assert found.kubeconfig == (str(paths[expected]) if expected else None)


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="nope: no such file"):
        kubeconfig.find(tmp_path, str(tmp_path / "nope"), None)


def test_no_cluster_is_chosen(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("")
    for where in (Where(None, None), Where(str(empty), None)):
        with pytest.raises(UnreachableError, match=r"No cluster is chosen.*make up"):
            kubeconfig.connect(where)


def test_a_context_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    files = [write_kubeconfig(tmp_path / name, name, "http://127.0.0.1:9") for name in ("first", "second")]
    with pytest.raises(UnreachableError, match=r'has no context "nowhere"\. There are: second, first\. Choose one with --context'):
        kubeconfig.connect(Where(os.pathsep.join(map(str, files)), "nowhere"))
    with pytest.raises(UnreachableError, match=r"Start the local cluster with `make up`"):
        kubeconfig.connect(Where(str(files[0]), kubeconfig.LOCAL_CONTEXT))


def test_of_several_files_the_first_counts_and_the_others_add(tmp_path: Path) -> None:
    first = write_kubeconfig(tmp_path / "first", "both", "http://first")
    second = write_kubeconfig(tmp_path / "second", "both", "http://second")
    third = write_kubeconfig(tmp_path / "third", "other", "http://third")
    both = Where(os.pathsep.join(map(str, (first, tmp_path / "not-there", second, third))), None)
    assert str(kubeconfig.connect(both)[1]) == 'context "both", server http://first'
    assert kubeconfig.connect(Where(both.kubeconfig, "other"))[1].server == "http://third"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("contexts: [", "cannot be used", id="no-yaml"),
        pytest.param("[1]", "cannot be used", id="no-mapping"),
        pytest.param("{current-context: a, contexts: [{name: a, context: {cluster: c}}]}", "cannot be used", id="no-cluster"),
        pytest.param(
            "{current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}], clusters: [{name: c, cluster: {server: x}}], "
            "users: [{name: u, user: {auth-provider: {name: oidc}}}]}",
            "auth-provider not supported",
            id="provider-that-lightkube-has-not",
        ),
    ],
)
def test_kubeconfig_that_cannot_be_used_is_no_stack_trace(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(UnreachableError, match=words):
        kubeconfig.connect(Where(str(file), None))


def test_files_are_looked_for_beside_the_kubeconfig(tmp_path: Path, canned: CannedServer) -> None:
    (tmp_path / "token").write_text("from-file\n")
    assert ask(canned, Where(str(canned.kubeconfig(tmp_path, tokenFile="token")), None))["authorization"] == "Bearer from-file"


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_credential_plugin_is_told_its_version_and_its_token_is_used(tmp_path: Path, canned: CannedServer, version: str) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(
        "#!/usr/bin/env python3\nimport json, os\nasked = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "print(json.dumps({'status': {'token': asked['apiVersion'] + os.environ['MORE']}}))\n"
    )
    plugin.chmod(0o755)
    api_version = f"client.authentication.k8s.io/{version}"
    told: dict[str, Any] = {"apiVersion": api_version, "command": "./plugin", "env": [{"name": "MORE", "value": "-x"}]}
    assert ask(canned, Where(str(canned.kubeconfig(tmp_path, exec=told)), None))["authorization"] == f"Bearer {api_version}-x"


def test_credential_plugin_that_fails_is_no_cluster(tmp_path: Path, canned: CannedServer) -> None:
    for command in ("false", "not-there", "true"):
        told = {"apiVersion": "client.authentication.k8s.io/v1", "command": command}
        with pytest.raises(UnreachableError, match="its credentials cannot be read"):
            ask(canned, Where(str(canned.kubeconfig(tmp_path, exec=told)), None))


def test_another_user_is_acted_for(tmp_path: Path, canned: CannedServer) -> None:
    told = ask(canned, Where(str(canned.kubeconfig(tmp_path, **{"as": "alice", "as-groups": ["staff"]})), None))
    assert (told["impersonate-user"], told["impersonate-group"]) == ("alice", "staff")


def test_proxy_of_the_cluster_is_asked(tmp_path: Path, canned: CannedServer) -> None:
    file = write_kubeconfig(tmp_path / "config", "far", "http://far.example")
    config = yaml.safe_load(file.read_text())
    config["clusters"][0]["cluster"]["proxy-url"] = canned.url
    file.write_text(json.dumps(config))
    canned.answers["http://far.example/version"] = (200, {})
    api.connect(Where(str(file), None)).request("GET", "/version")
    assert canned.requests[-1][1] == "http://far.example/version"


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch, canned: CannedServer) -> CannedServer:
    """The canned server, as the proxy that the environment names for everything."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HTTP_PROXY", canned.url)
    return canned


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2", "[::1]"])
def test_loopback_is_never_asked_through_the_environments_proxy(tmp_path: Path, proxied: CannedServer, host: str) -> None:
    away = api.connect(Where(str(write_kubeconfig(tmp_path / "config", "near", f"http://{host}:9")), None))
    with pytest.raises(UnreachableError, match="No cluster answers"):
        away.request("GET", "/version")
    assert proxied.requests == []


@pytest.mark.parametrize(
    ("server", "no_proxy", "is_proxied"),
    [
        pytest.param("far.example", "", True, id="none"),
        pytest.param("far.example:81", "far.example:80", True, id="another-port"),
        pytest.param("far.example", "other.example,nofar.example", True, id="others"),
        pytest.param("198.18.0.9", "198.19.0.0/16", True, id="another-network"),
        pytest.param("far.invalid", "invalid", False, id="domain"),
        pytest.param("far.invalid", "a, .invalid", False, id="domain-with-a-dot"),
        pytest.param("far.invalid", "*.invalid", False, id="domain-with-a-star"),
        pytest.param("far.invalid:81", "far.invalid:81", False, id="port"),
        pytest.param("127.0.0.1:9", "*", False, id="all"),
    ],
)
def test_no_proxy_is_read_as_go_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxied: CannedServer, server: str, no_proxy: str, is_proxied: bool
) -> None:
    monkeypatch.setenv("NO_PROXY", no_proxy)
    proxied.answers[f"http://{server}/version"] = (200, {})
    away = api.connect(Where(str(write_kubeconfig(tmp_path / "config", "far", f"http://{server}")), None))
    if is_proxied:
        away.request("GET", "/version")
    else:
        with pytest.raises(UnreachableError, match="No cluster answers"):
            away.request("GET", "/version")
    assert bool(proxied.requests) == is_proxied


def test_network_in_no_proxy_is_asked_directly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxied: CannedServer) -> None:
    file = write_kubeconfig(tmp_path / "config", "far", "http://198.18.0.9")
    monkeypatch.setenv("HTTP_PROXY", "socks5://198.18.0.1:1080")
    with pytest.raises(UnreachableError, match="socks5"):
        kubeconfig.connect(Where(str(file), None))
    for no_proxy in ("198.18.0.0/15", "198.18.0.9"):
        monkeypatch.setenv("NO_PROXY", no_proxy)
        kubeconfig.connect(Where(str(file), None))
    assert proxied.requests == []


@pytest.mark.parametrize("source", ["proxy-url", "HTTPS_PROXY"])
def test_socks_proxy_is_refused_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxied: CannedServer, source: str) -> None:
    file = write_kubeconfig(tmp_path / "config", "far", "https://far.example")
    if source == "proxy-url":
        config = json.loads(file.read_text())
        config["clusters"][0]["cluster"]["proxy-url"] = "socks5://user:hidden@198.18.0.1:1080"
        file.write_text(json.dumps(config))
    else:
        monkeypatch.setenv(source, "socks5h://user:hidden@198.18.0.1:1080")
    with pytest.raises(UnreachableError, match=rf"{source} names a socks5h? proxy, and Slipway can use an HTTP proxy only") as caught:
        kubeconfig.connect(Where(str(file), None))
    assert "hidden" not in str(caught.value)
    assert proxied.requests == []


def test_all_proxy_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, canned: CannedServer) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5h://198.18.0.1:1080")
    assert ask(canned, Where(str(canned.kubeconfig(tmp_path)), None))["user-agent"] == "slipway"


def test_certificate_beside_a_kubeconfig_of_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, canned: CannedServer) -> None:
    file = canned.kubeconfig(tmp_path)
    config = json.loads(file.read_text())
    config["clusters"][0]["cluster"]["certificate-authority"] = "ca.crt"
    file.write_text(json.dumps(config))
    shutil.copy(certifi.where(), tmp_path / "ca.crt")
    monkeypatch.chdir(tmp_path)
    assert ask(canned, Where(file.name, None))["user-agent"] == "slipway"


def test_credential_plugin_beside_a_relative_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, canned: CannedServer) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text('#!/bin/sh\necho \'{"status": {"token": "made"}}\'\n')
    plugin.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    told = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin"}
    assert ask(canned, Where(canned.kubeconfig(tmp_path, exec=told).name, None))["authorization"] == "Bearer made"


def test_what_the_file_says_of_other_contexts_does_not_matter(tmp_path: Path, canned: CannedServer) -> None:
    file = canned.kubeconfig(tmp_path, username="me", password=123)
    config = json.loads(file.read_text())
    config["users"] += [{"name": "number", "user": {"token": [1]}}, {"name": "old", "user": {"exec": {"command": "x"}}}, {"user": {}}]
    config["contexts"] += [{"name": "bare", "context": {"user": "number"}}, {"context": {}}]
    config["clusters"] += [{"name": "odd", "cluster": {"server": 1}}]
    file.write_text(json.dumps(config))
    expected = base64.b64encode(b"me:123").decode()
    assert ask(canned, Where(str(file), None))["authorization"] == f"Basic {expected}"
