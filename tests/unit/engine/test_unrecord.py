"""What is replaced leaves the guard's record first, or the guard would make it again meanwhile."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from components.deployed import COMPONENT
from components.labels import labels
from engine import api, cluster
from engine.cluster import Home
from engine.kubeconfig import Where
from engine.render import Key
from tests.support.engine.canned import CannedServer

PATH = "/api/v1/namespaces/slurm/secrets"
REPLACED = [Key("apps", "StatefulSet", "slurm", "a"), Key("", "Service", "slurm", "b")]
RECORD: dict[str, dict[str, str]] = {
    "dev-deployed": {"StatefulSet.a": "", "ConfigMap.a": ""},
    "dev-deployed-2": {"Service.b": ""},
    "dev-deployed-3": {"StatefulSet.b": ""},
}


def record_secret(name: str, data: dict[str, str]) -> dict[str, Any]:
    about = {"name": name, "namespace": "slurm", "labels": labels("dev", COMPONENT)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": data}


@pytest.fixture
def home(canned: CannedServer, tmp_path: Path) -> Home:
    """A stack's home with a record of three Secrets."""
    canned.serve({"v1": ["Secret"]})
    secrets = [record_secret(name, data) for name, data in RECORD.items()]
    canned.answers[PATH] = (200, {"apiVersion": "v1", "kind": "SecretList", "items": secrets})
    for secret in secrets:
        canned.answers[f"PATCH {PATH}/{secret['metadata']['name']}"] = (200, secret)
    return Home(api.connect(Where(str(canned.kubeconfig(tmp_path)), None)), "slurm", "slipway-small-dev")


def test_what_is_replaced_is_taken_off_the_secrets_that_hold_it(canned: CannedServer, home: Home) -> None:
    cluster.unrecord(home, REPLACED)
    changed = {
        path.partition("?")[0].rpartition("/")[2]: json.loads(body) for method, path, _, body in canned.requests if method == "PATCH"
    }
    entries = {"data": {"StatefulSet.a": None, "Service.b": None}}
    assert changed == {"dev-deployed": entries, "dev-deployed-2": entries}
    [listed] = [path for method, path, _, _ in canned.requests if method == "GET" and urlsplit(path).path == PATH]
    assert parse_qs(urlsplit(listed).query)["labelSelector"] == [f"app.kubernetes.io/component={COMPONENT}"]


def test_nothing_is_asked_where_nothing_is_replaced(canned: CannedServer, home: Home) -> None:
    before = len(canned.requests)
    cluster.unrecord(home, [])
    assert len(canned.requests) == before
