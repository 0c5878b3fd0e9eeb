"""What is no longer declared is deleted only where it is still the object that was shown. tests/apiserver has a real API server."""

import json
from pathlib import Path
from typing import Any

from engine import api, removal
from engine.cluster import Home
from engine.kubeconfig import Where
from engine.render import Key
from engine.screen import Screen
from tests.support.engine.canned import CannedServer

PATH = "/api/v1/namespaces/slurm/configmaps"


def config_map(name: str, uid: str, **annotations: str) -> dict[str, Any]:
    about = {"name": name, "namespace": "slurm", "uid": uid, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about}


def test_only_what_was_shown_and_is_still_that_is_pruned(tmp_path: Path, canned: CannedServer) -> None:
    names = ("plain", "applied", "anew", "gone", "protected", "retained", "raced")
    shown = [config_map(name, name) for name in names]
    canned.serve({"v1": ["ConfigMap"]})
    there = [config_map("plain", "plain"), config_map("applied", "applied"), config_map("anew", "other"), config_map("raced", "raced")]
    there += [config_map("protected", "protected", **{"slipway.dev/protect": "true"})]
    there += [config_map("retained", "retained", **{"slipway.dev/retain-on-delete": "true"})]
    canned.answers[PATH] = (200, {"apiVersion": "v1", "kind": "ConfigMapList", "items": there})
    for name in names:
        code = 409 if name == "raced" else 200
        canned.answers[f"DELETE {PATH}/{name}"] = (code, {"kind": "Status", "reason": "Conflict" if code == 409 else "", "message": "uid"})
    home = Home(api.connect(Where(str(canned.kubeconfig(tmp_path)), None)), "slurm", "slipway-small-dev")
    left = removal.prune(home, shown, {"applied"}, Screen())
    assert left == [Key("", "ConfigMap", "slurm", name) for name in ("anew", "gone", "protected", "retained", "raced")]
    deleted = {path.rpartition("/")[2]: json.loads(body) for method, path, _, body in canned.requests if method == "DELETE"}
    assert {name: body["preconditions"] for name, body in deleted.items()} == {"plain": {"uid": "plain"}, "raced": {"uid": "raced"}}
