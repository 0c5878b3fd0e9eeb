"""What outlives a stack, in the terms of Pulumi's Kubernetes provider: it is retained, and the next deployment finds it there, which only a
provider with `upsertExistingObjects` takes for no error (pulumi-kubernetes 4.29 and later)."""

from typing import Any

import pytest

from engine.plan import Plan, Resource
from tests.plan.examples import objects, plan_of

SHARED = {"CustomResourceDefinition", "RuntimeClass"}
CLAIMS = 'cluster.nodeSets[0].volumeClaims=[{"name":"scratch","mountPath":"/scratch","size":"1Gi"}]'
GONE_WITH_SET = 'cluster.nodeSets[0].volumeClaimRetention={"whenDeleted":"Delete"}'


def provider_of(plan: Plan, one: Resource) -> dict[str, Any]:
    """The inputs of an object's provider."""
    return next(dict(each.inputs) for each in plan.resources if each.urn == one.options["provider"])


def adopts(plan: Plan, one: Resource) -> bool:
    """True when the object may exist before it is made, with fields that somebody else has set."""
    about = provider_of(plan, one)
    return (about.get("upsertExistingObjects"), about.get("enablePatchForce")) == ("true", "true")


@pytest.mark.parametrize(
    "overrides",
    [
        pytest.param(("dev",), id="dev"),
        pytest.param(("h100",), id="h100"),
        pytest.param(("dev", CLAIMS), id="claims-of-a-set"),
        pytest.param(("dev", "cluster.nodePools[0].runtimeClass=kata"), id="runtime-class"),
    ],
)
def test_an_object_may_exist_before_exactly_when_it_outlives_its_stack(overrides: tuple[str, ...]) -> None:
    plan = plan_of(*overrides)
    lasting = [one for one in objects(plan) if one.inputs["kind"] != "NodeSet"]  # which the controller deletes
    wrong = [one.name for one in lasting if adopts(plan, one) != bool(one.options.get("retainOnDelete"))]
    allowed = {"h100-nfs", "h100-nfs-config"}  # below the storage of a protected stack
    allowed |= {*claims_of_sets(plan)}  # Kubernetes has made it from its set's template, in a stack from before
    assert set(wrong) <= allowed


def claims_of_sets(plan: Plan) -> dict[str, Any]:
    """By name, what the StatefulSets' claims ask for."""
    sets = [one.inputs for one in objects(plan) if one.inputs["kind"] == "StatefulSet"]
    return {
        f"{each['metadata']['name']}-{one['metadata']['name']}-{ordinal}": each["spec"]
        for one in sets
        for each in one["spec"].get("volumeClaimTemplates", ())
        for ordinal in range(one["spec"]["replicas"])
    }


def test_every_claim_of_a_set_is_declared_so_that_its_disk_can_grow(stack: str) -> None:
    plan = plan_of(stack)
    wanted = claims_of_sets(plan)
    declared = {one.inputs["metadata"]["name"]: one for one in objects(plan) if one.inputs["kind"] == "PersistentVolumeClaim"}
    assert len(wanted) >= 2
    assert {name: declared[name].inputs["spec"] for name in wanted} == wanted
    assert all(adopts(plan, declared[name]) for name in wanted)


def test_kinds_and_classes_are_the_same_from_every_stack() -> None:
    found = {
        name: [
            one.inputs
            for one in objects(plan_of("dev", f"cluster.name={name}", "cluster.nodePools[0].runtimeClass=kata"))
            if one.inputs["kind"] in SHARED
        ]
        for name in ("dev", "other")
    }
    assert {one["kind"] for one in found["dev"]} == SHARED
    assert found["dev"] == found["other"]


@pytest.mark.parametrize(
    ("overrides", "stays"),
    [
        pytest.param(("dev",), False, id="nothing-is-kept"),
        pytest.param(("h100",), True, id="deletion-protection"),
        pytest.param(("dev", CLAIMS), True, id="claims-of-a-set-are-kept"),
        pytest.param(("dev", CLAIMS, GONE_WITH_SET), False, id="claims-go-with-their-set"),
    ],
)
def test_namespace_outlives_the_stack_exactly_when_claims_in_it_do(overrides: tuple[str, ...], stays: bool) -> None:
    [namespace] = [one for one in objects(plan_of(*overrides)) if one.inputs["kind"] == "Namespace"]
    assert bool(namespace.options.get("retainOnDelete")) == stays


def test_claims_that_outlive_the_stack_are_in_a_namespace_that_does() -> None:
    plan = plan_of("h100")
    kept = {one.inputs["metadata"].get("namespace") for one in objects(plan) if one.options.get("retainOnDelete")} - {None}
    assert kept == {one.inputs["metadata"]["name"] for one in objects(plan) if one.inputs["kind"] == "Namespace"}


def test_all_providers_are_of_one_cluster() -> None:
    """An object would be replaced when it goes from one provider to the other."""
    for stack in ("dev", "h100"):
        found = [one.inputs for one in plan_of(stack).resources if one.type == "pulumi:providers:kubernetes"]
        assert len(found) == 2
        assert len({(one["clusterIdentifier"], one.get("context")) for one in found}) == 1
