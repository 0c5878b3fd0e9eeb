"""How `up` applies and prunes, as a real API server judges it: conflicts, fields that cannot change, other owners, and kubectl."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli import main as cli
from tests.support.apiserver.server import ApiServer
from tests.support.apiserver.verbs import Verbs, namespace_of
from tests.support.patience import patience

CHANGED = ("-c", 'app.files={"slurm.conf":"ClusterName=small\\nMaxTime=2:00:00\\n"}', "-c", 'app.sets=["a"]', "-c", "greeting=howdy")


def get(server: ApiServer, namespace: str, what: str) -> Any:
    """An object, decoded; None when it is not there."""
    said = server.run_kubectl("-n", namespace, "get", what, "--ignore-not-found", "-o", "json")
    return json.loads(said) if said else None


def test_preview_shows_files_line_by_line_and_up_applies_and_prunes(server: ApiServer, small: Verbs, request: Any) -> None:
    namespace = namespace_of(request)
    small.up("--yes")
    old = get(server, namespace, "configmap")["items"]
    lines = [line.replace("│", " ").strip() for line in small.run("preview", *CHANGED).splitlines()]
    assert {"-MaxTime=1:00:00", "+MaxTime=2:00:00", f"-  StatefulSet  {namespace}/b"} <= set(lines)
    assert "1 to create, 2 to update, 2 to delete, 5 unchanged" in lines
    said = small.up(*CHANGED)
    [stale] = [each["metadata"]["name"] for each in old if each["metadata"]["name"].startswith("scripts-")]
    for line in (f"StatefulSet {namespace}/b deleted", f"ConfigMap {namespace}/{stale} deleted", f"ConfigMap {namespace}/files updated"):
        assert f" ✓ {line}  " in said
    assert get(server, namespace, "statefulset/b") is None
    assert "MaxTime=2:00:00" in get(server, namespace, "configmap/files")["data"]["slurm.conf"]
    assert "Nothing to change: 8 unchanged" in small.run("preview", *CHANGED)


def test_another_managers_field_is_named_and_taken_over_only_on_demand(server: ApiServer, small: Verbs, request: Any) -> None:
    namespace = namespace_of(request)
    small.up("--yes")
    server.run_kubectl("-n", namespace, "scale", "statefulset/a", "--replicas=1")
    said = small.run("up", code=1)
    assert f'StatefulSet {namespace}/a: Apply failed with 1 conflict: conflict with "kubectl"' in said
    assert ".spec.replicas; take the fields over with --force-conflicts, or stop the other manager" in said
    small.up("--force-conflicts")
    assert get(server, namespace, "statefulset/a")["spec"]["replicas"] == 0


def test_one_refused_object_leaves_all_untouched_and_reports_each_refusal(server: ApiServer, small: Verbs, request: Any) -> None:
    namespace = namespace_of(request)
    small.up("--yes")
    version = get(server, namespace, "statefulset/a")["metadata"]["resourceVersion"]
    said = small.run("up", "-c", "app.replicas=-1", "-c", 'app.files={"no/slash":"x"}', code=1)
    assert "The API server refuses 3 of the objects; nothing was changed:" in said
    for name in ("ConfigMap", "files"), ("StatefulSet", "a"), ("StatefulSet", "b"):
        assert f"{name[0]} {namespace}/{name[1]}: " in said
    assert get(server, namespace, "statefulset/a")["metadata"]["resourceVersion"] == version


def test_what_cannot_change_in_place_is_made_again_and_said_before(small: Verbs) -> None:
    small.up("--yes")
    said = small.run("preview", "-c", "app.policy=OrderedReady")
    assert " +- ├─ kubernetes:apps/v1:StatefulSet  a" in said
    assert "it is deleted and made again" in said


def test_an_object_of_somebody_else_is_not_taken_silently(server: ApiServer, small: Verbs, request: Any) -> None:
    namespace = namespace_of(request)
    server.make_namespace(namespace)
    said = small.run("up", "--yes", "--ignore-missing", code=1)
    assert f"Namespace {namespace} exists and was not made by this stack" in said
    assert get(server, namespace, "secret/slipway-small-dev-random") is None
    small.up("--yes", "--adopt")


def test_protected_and_retained_claims_stay(server: ApiServer, small: Verbs, request: Any) -> None:
    namespace = namespace_of(request)
    small.up("--yes", "-c", "app.protect=true")
    said = small.run("up", "-c", "app.claim=other", code=1)
    assert f"PersistentVolumeClaim {namespace}/data is protected and no longer declared" in said
    assert f"PersistentVolumeClaim {namespace}/data" in small.run("destroy", "--yes", code=1)
    small.up("-c", "app.retain=true")
    assert f"{namespace}/data stays in the cluster (retainOnDelete)" in small.up("-c", "app.claim=other")
    assert {each["metadata"]["name"] for each in get(server, namespace, "pvc")["items"]} == {"data", "other"}


def test_namespace_of_the_pulumi_cli_is_refused_once_and_by_name(server: ApiServer, small: Verbs, request: Any) -> None:
    namespace = namespace_of(request)
    small.up("--yes")
    changes = {"scale": ("statefulset", "a", '{"spec": {"replicas": 3}}'), "edit": ("configmap", "files", '{"data": {"slurm.conf": "x"}}')}
    for kind, name, patch in changes.values():
        server.run_kubectl("-n", namespace, "patch", kind, name, "--type=merge", f"--patch={patch}", "--field-manager=pulumi-kubernetes")
    said = small.run("preview", code=1)
    assert said.count(f"Nothing was changed: the Pulumi CLI deployed namespace {namespace}, and its provider manages fields") == 1
    assert "docs/start/pulumi.md" in said
    assert "Apply failed" not in said


RESIZES = {
    "class-that-cannot": (False, "2Mi", "must support resize. Set the size back. If the driver of its StorageClass can grow volumes"),
    "smaller": (True, "500Ki", "A disk cannot shrink: set the size to what the claim has (kubectl get pvc), or more."),
}


@pytest.mark.parametrize(("grows", "size", "words"), RESIZES.values(), ids=RESIZES)
def test_size_is_refused_in_the_preview(server: ApiServer, small: Verbs, request: Any, grows: bool, size: str, words: str) -> None:
    named = with_disk(server, small, namespace_of(request), grows)
    assert words in small.run("preview", *named, "-c", f"app.size={size}", code=1)
    assert words in small.run("up", "--yes", *named, "-c", f"app.size={size}", code=1)


def test_disk_grows_where_its_class_can(server: ApiServer, small: Verbs, request: Any) -> None:
    namespace = namespace_of(request)
    named = (*with_disk(server, small, namespace, grows=True), "-c", "app.size=2Mi")
    assert f"PersistentVolumeClaim {namespace}/data: 1Mi to 2Mi: the disk grows while it is in use" in small.run("preview", *named)
    small.up("--yes", *named)
    assert get(server, namespace, "pvc/data")["spec"]["resources"]["requests"] == {"storage": "2Mi"}


def test_explain_asks_the_class_of_a_disk(
    server: ApiServer, small: Verbs, request: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The CLI's own preview shows an update, and its `up` fails."""
    namespace = namespace_of(request)
    with_disk(server, small, namespace, grows=False)
    about = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": namespace}}
    old, new = (
        {"type": "kubernetes:core/v1:PersistentVolumeClaim", "inputs": {**about, "spec": {"resources": {"requests": {"storage": size}}}}}
        for size in ("1Mi", "2Mi")
    )
    (tmp_path / "preview.json").write_text(json.dumps({"steps": [{"op": "update", "urn": "a::b::c", "oldState": old, "newState": new}]}))
    with pytest.raises(SystemExit) as ended:
        cli.main(["explain", str(tmp_path / "preview.json"), "--kubeconfig", str(server.kubeconfig())])
    assert ended.value.code == 1
    said = "".join(capsys.readouterr())
    assert f"{namespace}/data: 1Mi to 2Mi: StorageClass {namespace}-false does not let disks grow. Set the size back." in said


def with_disk(server: ApiServer, small: Verbs, namespace: str, grows: bool) -> tuple[str, ...]:
    """Deploys with a claim of a class of its own, and binds it; the options for more verbs."""
    about = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": f"{namespace}-{grows}".lower()}}
    server.post("/apis/storage.k8s.io/v1/storageclasses", {**about, "provisioner": "example.com/disk", "allowVolumeExpansion": grows})
    named = ("-c", f"app.class={namespace}-{grows}".lower())
    small.up("--yes", *named)
    status = json.dumps({"status": {"phase": "Bound", "capacity": {"storage": "1Mi"}}})
    server.run_kubectl("-n", namespace, "patch", "pvc", "data", "--subresource=status", "--type=merge", f"--patch={status}")
    return named


def test_user_with_too_few_rights_is_told_all_that_lack(server: ApiServer, small: Verbs, request: Any) -> None:
    namespace = namespace_of(request)
    config = json.loads(server.kubeconfig().read_text())
    config["users"][0]["user"]["as"] = "nobody"
    weak = server.folder / "nobody.kubeconfig"
    weak.write_text(json.dumps(config))
    for verb in ("preview", "up"):
        said = small.run(verb, "--kubeconfig", str(weak), code=1)
        assert f"may not do what the stack needs in namespace {namespace}; it lacks:" in said
        for line in ("statefulsets.apps: get, list, create, patch, delete", "namespaces: get, list", "secrets: get, list"):
            assert line in said


def test_kubectl_prunes_the_same_set(server: ApiServer, small: Verbs, request: Any) -> None:
    """As an earlier Slipway did, which left applying and pruning to kubectl."""
    namespace, only_a = namespace_of(request), ("-c", 'app.sets=["a"]')
    small.up("--yes")
    parent = get(server, namespace, "configmap/slipway-small-dev")["metadata"]
    text = small.run("render", "--show-secrets", *only_a)
    where = ("--kubeconfig", str(server.kubeconfig()), "-n", namespace, "--applyset", "configmaps/slipway-small-dev", "--prune")
    command = [str(server.kubectl), "apply", "--server-side", "--field-manager", "slipway", *where, "-f", "-"]
    environment = {"KUBECTL_APPLYSET": "true", "HOME": str(server.folder)}
    done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, timeout=60 * patience(), check=False)
    assert "statefulset.apps/b pruned" in done.stdout, done.stderr
    assert get(server, namespace, "configmap/slipway-small-dev")["metadata"]["annotations"].keys() == parent["annotations"].keys()
    assert "Nothing to change: 8 unchanged" in small.run("preview", *only_a)
    assert f"StatefulSet {namespace}/b created" in small.up()
    assert get(server, namespace, "configmap/slipway-small-dev")["metadata"]["annotations"] == parent["annotations"]
    assert "Nothing to change: 9 unchanged" in small.run("preview")
