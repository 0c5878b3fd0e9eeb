"""What `up` and `destroy` refuse, and what they keep, against a real API server: another stack's cluster, live keys, a missing answer."""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine import cluster
from engine.render import Sort
from tests.support.apiserver.server import ROOT, ApiServer
from tests.support.apiserver.verbs import Verbs, namespace_of
from tests.support.engine.recorded import SMALL
from tests.support.project import KEYS

KEYS_MADE = {
    "munge": "munge.key",
    "jwt": "jwt_hs256.key",
    "login-host-keys": "ssh_host_ed25519_key",
    "node-host-keys": "ssh_host_ed25519_key",
    "mariadb": "password",
}
"""The Secrets of the dev stack that are made from random values, without the cluster's name, and the entry of each."""


def secrets(server: ApiServer, namespace: str) -> dict[str, dict[str, str]]:
    """Data of all Secrets of a namespace, by name."""
    listed = json.loads(server.run_kubectl("get", "secrets", "-n", namespace, "-o", "json"))
    return {one["metadata"]["name"]: one.get("data", {}) for one in listed["items"]}


def test_first_up_elsewhere_without_terminal_or_yes_changes_nothing(server: ApiServer, small: Verbs, request: Any) -> None:
    said = small.run("up", code=1)
    assert "Nothing was changed: this cluster has nothing of the stack yet" in said
    assert f'context "bare", server {server.url}' in said
    assert "NotFound" in server.run_kubectl("get", "namespace", namespace_of(request), check=False)
    small.up("--yes")
    assert "9 to create" not in small.up()  # asked once: the stack is known there


def test_destroy_without_terminal_or_yes_deletes_nothing(server: ApiServer, small: Verbs, request: Any) -> None:
    small.up("--yes")
    before = secrets(server, namespace_of(request))
    said = small.run("destroy", code=1)
    assert "Nothing was deleted: there is no terminal to ask at" in said
    assert secrets(server, namespace_of(request)) == before
    assert "deletionTimestamp" not in server.run_kubectl("get", "all,secrets,configmaps", "-n", namespace_of(request), "-o", "json")


def test_up_that_deletes_data_without_terminal_or_yes_changes_nothing(server: ApiServer, small: Verbs, request: Any) -> None:
    """A renamed claim is another one: the old one would go, with the homes that are on it."""
    claims = ("get", "persistentvolumeclaims", "-n", namespace_of(request), "-o", "name")
    small.up("--yes")
    before = server.run_kubectl(*claims)
    renamed = ("-c", "app.claim=other", "-c", "greeting=changed")
    assert f"PersistentVolumeClaim {namespace_of(request)}/data: the claim and the data on its volume" in small.run("preview", *renamed)
    said = small.run("up", "--ignore-missing", *renamed, code=1)
    assert f"PersistentVolumeClaim {namespace_of(request)}/data: the claim and the data on its volume" in said
    assert "Nothing was changed: this `up` deletes data" in said
    assert server.run_kubectl(*claims) == before
    small.up("--yes", *renamed)
    left = json.loads(server.run_kubectl(*claims[:-1], "json"))["items"]
    assert [one["metadata"]["name"] for one in left if "deletionTimestamp" not in one["metadata"]] == ["other"]


_ANEW = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "files"}, "data": {"whose": "not the stack's"}}


@pytest.mark.parametrize(
    ("moment", "what", "words"),
    [
        pytest.param(
            "enlist", "anew", "it is gone, was created again, or has left the stack's ApplySet since the comparison", id="made-anew"
        ),
        pytest.param("enlist", "protect", "it was marked as protected or retained after the comparison", id="protected"),
        pytest.param("of_sorts", "anew", "it was created again in the meantime", id="made-anew-at-the-last-moment"),
    ],
)
def test_what_changed_since_it_was_shown_is_not_pruned(
    server: ApiServer, small: Verbs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, what: str, words: str
) -> None:
    """Somebody works beside `up`, after it looked at the cluster: at `enlist` before it applies, at `of_sorts` before it deletes."""
    namespace = f"beside-{moment}-{what}".replace("_", "-")
    program = tmp_path / "small" / "__main__.py"
    program.write_text(
        program.read_text().replace(
            '        kubernetes.core.v1.ConfigMap("files"', '        app["files"] and kubernetes.core.v1.ConfigMap("files"'
        )
    )
    chosen = ("-c", f"app.namespace={namespace}")
    small.up("--yes", *chosen)
    original, first = getattr(cluster, moment), iter([True])

    def interfered(*arguments: Any) -> Any:
        result = original(*arguments)
        if (moment == "enlist" or arguments[1] == {Sort("", "ConfigMap")}) and next(first, False):
            if what == "protect":
                server.run_kubectl("-n", namespace, "annotate", "configmap", "files", "slipway.dev/protect=true")
            else:
                server.run_kubectl("-n", namespace, "delete", "configmap", "files")
                server.run_kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(_ANEW))
        return result

    monkeypatch.setattr(cluster, moment, interfered)
    said = small.up(*chosen, "-c", "app.files={}")
    assert f"ConfigMap {namespace}/files is not deleted: {words}." in said
    assert "files" in server.run_kubectl("-n", namespace, "get", "configmap", "files", "-o", "name")


def test_server_with_a_certificate_that_is_not_trusted_is_not_silent(server: ApiServer, small: Verbs, tmp_path: Path) -> None:
    config = json.loads(server.kubeconfig().read_text())
    del config["clusters"][0]["cluster"]["certificate-authority"]
    distrusting = tmp_path / "distrusting.kubeconfig"
    distrusting.write_text(json.dumps(config))
    said = small.run("up", "--kubeconfig", str(distrusting), code=1)
    assert f"The certificate of {server.url} is not trusted" in said
    assert 'checked against the system\'s certificate authorities: cluster "bare" has no certificate-authority' in said
    assert "No cluster answers" not in said


@pytest.mark.parametrize("annotated", ["namespace", "secret"])
def test_a_cluster_that_belongs_to_another_identifier_is_refused(
    server: ApiServer, capsys: pytest.CaptureFixture[str], tmp_path: Path, annotated: str
) -> None:
    """Two stacks of one name, from two checkouts: their objects have the same names and the same ApplySet."""
    namespace = f"identifier-{annotated}"
    folder = Path(shutil.copytree(SMALL, tmp_path / "small"))
    program = folder / "__main__.py"
    said_by_program = program.read_text().replace('Provider("cluster", ', 'Provider("cluster", cluster_identifier=app.get("identifier"), ')
    program.write_text(said_by_program)
    small = Verbs(server, capsys, folder, f"app.namespace={namespace}", "app.replicas=0")
    small.up("--yes", "-c", "app.identifier=mine")
    name = namespace if annotated == "namespace" else "slipway-small-dev-random"
    other = "secret" if annotated == "namespace" else "namespace"
    unmarked = "slipway-small-dev-random" if annotated == "namespace" else namespace
    server.run_kubectl("annotate", other, unmarked, "-n", namespace, "slipway.dev/cluster-identifier-")
    before = secrets(server, namespace)
    for verb in (("up", "--yes"), ("destroy", "--yes"), ("preview",)):
        said = small.run(*verb, "-c", "app.identifier=theirs", "-c", "greeting=changed", code=1)
        assert 'the stack "dev" is for the cluster "theirs"' in said
        assert f"annotate --overwrite {annotated} {name} slipway.dev/cluster-identifier=theirs" in said
    assert secrets(server, namespace) == before
    small.up("-c", "app.identifier=mine")


@pytest.mark.parametrize("generation", [1, 2])
def test_up_takes_lost_values_from_the_live_secrets(server: ApiServer, capsys: pytest.CaptureFixture[str], generation: int) -> None:
    """Every key of the dev stack, each with its own way from random bytes to a Secret."""
    namespace = f"lost-values-{generation}"
    generations = [f"cluster.keys.{key}={generation}" for key in ("munge", "jwt", "database")] if generation > 1 else []
    elsewhere = (f"cluster.namespace={namespace}", 'cluster.login.service={"type":"ClusterIP"}')
    dev = Verbs(server, capsys, ROOT, *KEYS, *elsewhere, *generations)
    dev.up("--yes", "--adopt", "--force-conflicts")
    before = secrets(server, namespace)
    made = {
        name.removeprefix("dev-"): data for name, data in before.items() if name.startswith("dev-") and not name.startswith("dev-deployed")
    }
    assert {name: [*data] for name, data in made.items()} == {name: [entry] for name, entry in KEYS_MADE.items()}
    server.run_kubectl("delete", "secret", "slipway-slipway-dev-random", "-n", namespace)
    previewed = dev.run("preview")
    assert "Secret" not in [line for line in previewed.splitlines() if line.startswith((" +", " ~"))]
    said = dev.up("--adopt", "--force-conflicts")
    assert f"Secret {namespace}/slipway-slipway-dev-random is missing; its values were recovered from live Secrets" in said
    for name, entry in KEYS_MADE.items():
        assert f"{entry} of Secret {namespace}/dev-{name}" in said
    after = secrets(server, namespace)
    assert {name: after[name] for name in before if name.startswith("dev-")} == {k: v for k, v in before.items() if k.startswith("dev-")}
    for data in made.values():
        for value in data.values():
            assert value not in said
    kept = after["slipway-slipway-dev-random"]
    old = before["slipway-slipway-dev-random"]
    newest = {key: value for key, value in kept.items() if generation == 1 or "-2." in key or "seed" in key}
    assert newest
    assert {key: old[key] for key in newest} == newest


def test_up_refuses_a_live_secret_that_it_cannot_read(server: ApiServer, small: Verbs, request: Any) -> None:
    namespace = namespace_of(request)
    small.up("--yes")
    server.run_kubectl("delete", "secret", "slipway-small-dev-random", "-n", namespace)
    garbled = base64.b64encode(b"\x00").decode()
    patch = json.dumps({"data": {"password": None, "key": garbled}})
    server.run_kubectl("patch", "secret", "key", "-n", namespace, "--type=merge", "-p", patch)
    said = small.run("up", code=1)
    assert "RandomPassword app-password: Secret" in said
    assert "Restore Secret" in said
    assert secrets(server, namespace)["key"] == {"key": garbled}
