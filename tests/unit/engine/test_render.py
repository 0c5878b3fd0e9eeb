"""Manifests: in dependency order, pure Kubernetes, with what the Pulumi provider would read taken off."""

import dataclasses
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from engine.faults import SlipwayError
from engine.plan import Plan, Resource, Secret, Unknown, revealed
from engine.render import CRD, Document, Sort, depths, documents, namespace_of, ordered, own_documents, scoped, yaml_text
from names import annotations
from tests.support.engine.recorded import Recorder


def resource(
    name: str, kind: str = "ConfigMap", needs: tuple[str, ...] = (), options: dict[str, Any] | None = None, **fields: Any
) -> Resource:
    about = {"name": name, "namespace": "slurm", **fields.pop("metadata", {})}
    inputs = {"apiVersion": fields.pop("apiVersion", "v1"), "kind": kind, "metadata": about, **fields}
    return Resource(name, f"kubernetes:core/v1:{kind}", name, inputs=inputs, dependencies=needs, options=options or {})


def rendered(*resources: Resource) -> list[Document]:
    return documents(Plan("demo", "dev", resources, {}))


def test_the_fixture_is_rendered_namespaces_first_and_workloads_last(recorded: Recorder) -> None:
    keys = [str(document.key) for document in documents(recorded())]
    scripts = next(key for key in keys if "scripts" in key)
    assert keys == [
        *("Namespace small", "PersistentVolumeClaim small/data", "ConfigMap small/files", scripts),
        *("Secret small/key", "StatefulSet small/a", "StatefulSet small/b"),
    ]


@given(st.permutations(range(8)), st.data())
def test_every_object_comes_after_what_it_needs_and_the_order_is_stable(order: list[int], data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(["Namespace", "ConfigMap", "Pod", "Secret"]), min_size=8, max_size=8))
    needs = [tuple(f"n{at}" for at in data.draw(st.sets(st.integers(0, 7))) if at < mine) for mine in range(8)]
    made = [resource(f"n{at}", kinds[at], needs[at]) for at in range(8)]
    found = [item.name for item in ordered([made[at] for at in order])]
    assert found == [item.name for item in ordered(made)]
    assert len(found) == 8
    for item in made:
        assert all(found.index(need) < found.index(item.name) for need in item.dependencies)


def test_object_in_a_component_comes_after_what_the_component_needs() -> None:
    outer = Resource("cluster", "slipway:index:SlurmCluster", "cluster", dependencies=("files",))
    inner = Resource("workers", "slipway:index:NodeSet", "workers", parent="cluster", dependencies=("z-list",))
    child = dataclasses.replace(resource("a-set"), parent="workers")
    assert [item.name for item in ordered((outer, inner, child, resource("z-list"), resource("files")))] == ["files", "z-list", "a-set"]


def test_depth_is_the_longest_path_so_that_dependents_are_destroyed_first() -> None:
    made = (resource("config"), resource("slurmctld", needs=("config",)), resource("gpu", needs=("config", "slurmctld")))
    workers = Resource("workers", "slipway:index:NodeSet", "workers", dependencies=("slurmctld",))
    cpu = dataclasses.replace(resource("cpu"), parent="workers")
    plan = Plan("demo", "dev", (*made, workers, cpu), {})
    found = {key.name: depth for key, depth in depths(plan, own_documents(plan)).items()}
    assert found == {"config": 0, "slurmctld": 1, "gpu": 2, "cpu": 2}


@pytest.mark.parametrize(
    ("scope", "served", "expected"), [("Cluster", {}, ""), ("Namespaced", {}, "default"), ("Namespaced", {"Lamp": False}, "")]
)
def test_namespace_goes_where_the_kind_has_none(scope: str, served: dict[str, bool], expected: str) -> None:
    named = {"group": "example.com", "names": {"kind": "Lamp", "plural": "lamps"}, "scope": scope}
    definition: dict[str, Any] = {"apiVersion": "apiextensions.k8s.io/v1", "kind": CRD, "metadata": {"name": "lamps.example.com"}}
    lamp: dict[str, Any] = {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "a"}}
    manifests: list[dict[str, Any]] = [definition | {"spec": named}, lamp]
    made = [Resource(each["kind"], f"kubernetes:{each['apiVersion']}:{each['kind']}", each["kind"], inputs=each) for each in manifests]
    plan = Plan("demo", "dev", tuple(made), {})
    found = scoped(documents(plan), {Sort("example.com", kind): is_namespaced for kind, is_namespaced in served.items()})
    assert [document.key.namespace for document in found] == ["", expected]


def test_an_ignored_path_that_is_not_understood_is_refused() -> None:
    with pytest.raises(SlipwayError, match=r"ConfigMap one: ignoreChanges data\[\"a\"\]: only field names"):
        rendered(resource("one", options={"ignoreChanges": ['data["a"]']}))


def test_the_providers_annotations_are_taken_off_and_kept_beside() -> None:
    about = {"annotations": {"pulumi.com/skipAwait": "true", "pulumi.com/waitFor": "condition=Ready", "mine": "x"}}
    found = rendered(resource("one", metadata=about))[0]
    assert found.manifest["metadata"]["annotations"] == {"mine": "x"}
    assert found.hints == {"skipAwait": "true", "waitFor": "condition=Ready"}
    assert not found.is_waited_for


@pytest.mark.parametrize(
    ("said", "expressions"),
    [
        pytest.param("condition=Ready", ("condition=Ready",), id="one"),
        pytest.param('["condition=Ready", "jsonpath={.a}"]', ("condition=Ready", "jsonpath={.a}"), id="list"),
        pytest.param("", (), id="none"),
    ],
)
def test_a_wait_is_one_expression_or_a_list(said: str, expressions: tuple[str, ...]) -> None:
    assert rendered(resource("one", metadata={"annotations": {"pulumi.com/waitFor": said}}))[0].waits_for == expressions


@pytest.mark.parametrize(
    ("group", "is_custom"),
    [
        pytest.param("", False, id="core"),
        pytest.param("apps", False, id="apps"),
        pytest.param("rbac.authorization.k8s.io", False, id="kubernetes"),
        pytest.param("slipway.dev", True, id="ours"),
    ],
)
def test_kinds_beside_kubernetes_own_are_told_by_their_group(group: str, is_custom: bool) -> None:
    assert Sort(group, "NodeSet").is_custom == is_custom


def test_a_definition_says_which_kind_it_brings() -> None:
    spec = {"group": "slipway.dev", "names": {"kind": "NodeSet"}}
    crd = resource("nodesets.slipway.dev", "CustomResourceDefinition", apiVersion="apiextensions.k8s.io/v1", spec=spec)
    assert rendered(crd)[0].brings == Sort("slipway.dev", "NodeSet")
    assert rendered(resource("one"))[0].brings is None


def test_protection_travels_with_the_object() -> None:
    found = rendered(resource("one", options={"protect": True, "retainOnDelete": True}))[0]
    assert found.manifest["metadata"]["annotations"] == {annotations.PROTECT: "true", annotations.RETAIN: "true"}


@pytest.mark.parametrize(
    ("kind", "provider", "namespace"),
    [
        pytest.param("ConfigMap", {"namespace": "slurm"}, "slurm", id="the-providers"),
        pytest.param("ConfigMap", {}, "default", id="default"),
        pytest.param("StorageClass", {"namespace": "slurm"}, "", id="cluster-scoped"),
    ],
)
def test_an_object_without_a_namespace_gets_the_providers(kind: str, provider: dict[str, str], namespace: str) -> None:
    made = Resource("p", "pulumi:providers:kubernetes", "p", inputs=provider)
    bare = resource("one", kind, options={"provider": "p"})
    del bare.inputs["metadata"]["namespace"]  # type: ignore[attr-defined]
    assert rendered(made, bare)[0].key.namespace == namespace


def test_all_that_only_the_cli_can_make_is_named_at_once() -> None:
    release = Resource("r", "kubernetes:helm.sh/v3:Release", "operator", inputs={"chart": "x"})
    patch = Resource("c", "kubernetes:core/v1:ConfigMapPatch", "patch", inputs={"kind": "ConfigMap"})
    read = resource("existing", options={"read": "slurm/existing"})
    queue = Resource("q", "aws:sqs/queue:Queue", "jobs")
    component = Resource("k", "demo:index:App", "app", custom=False)
    with pytest.raises(SlipwayError, match="these 4 resources; run `pulumi up`") as caught:
        rendered(release, queue, component, patch, read, resource("fine"))
    assert str(caught.value).splitlines()[1:] == [
        "  aws:sqs/queue:Queue jobs",
        "  kubernetes:core/v1:ConfigMap existing",
        "  kubernetes:core/v1:ConfigMapPatch patch",
        "  kubernetes:helm.sh/v3:Release operator",
    ]


def test_a_value_that_is_not_known_is_named_with_its_path() -> None:
    with pytest.raises(SlipwayError, match=r"ConfigMap one: data\.address is known only after"):
        rendered(resource("one", data={"address": Unknown()}))


def test_objects_in_two_namespaces_are_refused_by_name() -> None:
    found = rendered(resource("one"), resource("two", metadata={"namespace": "kube-system"}))
    with pytest.raises(SlipwayError, match=r"(?s)several namespaces.*kube-system: ConfigMap kube-system/two.*slurm: ConfigMap slurm/one"):
        namespace_of(found)


def test_yaml_reads_back_and_shows_files_line_by_line() -> None:
    found = rendered(resource("one", data={"slurm.conf": "A=1\nB=2\n", "key": Secret("hush")}))[0]
    text = yaml_text(found.manifest)
    assert yaml.safe_load(text) == revealed(found.manifest)
    assert text.startswith("apiVersion: v1\nkind: ConfigMap\nmetadata:")
    assert "  slurm.conf: |\n    A=1\n    B=2\n" in text
    assert found.has_secrets
