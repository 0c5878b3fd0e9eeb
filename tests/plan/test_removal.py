"""What becomes of node sets that are declared no more, in the terms of Pulumi's Kubernetes provider.

It waits for whatever it deletes to be gone: `pulumi.com/skipAwait` counts for no custom kind then (its provider/pkg/metadata/overrides.go).
So the engine forgets a set, and the controller deletes it; and `destroy` waits at the list of the sets.
"""

import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from changes.workloads import is_record
from engine import cluster, consent, removal
from engine.plan import Plan, Resource, as_json, compare
from engine.render import documents, own_documents
from engine.screen import Screen
from names import annotations, finalizers
from tests.plan.engine import needs
from tests.plan.examples import objects, plan_of


def sets_of(plan: Plan) -> list[Resource]:
    return [one for one in objects(plan) if one.inputs["kind"] == "NodeSet"]


def list_of(plan: Plan) -> Resource:
    [found] = [one for one in objects(plan) if finalizers.NODE_SETS in one.inputs["metadata"].get("finalizers", ())]
    return found


def test_a_removed_set_is_left_to_the_controller(plan: Plan) -> None:
    declared_sets = list_of(plan)
    assert set(declared_sets.inputs["data"]) == {one.inputs["metadata"]["name"] for one in sets_of(plan)}
    for one in sets_of(plan):
        assert one.options["retainOnDelete"] is True
        assert one.inputs["metadata"]["annotations"][annotations.DECLARED_IN] == declared_sets.inputs["metadata"]["name"]


def test_destroy_waits_for_the_sets_before_slurm_and_the_controllers_go(plan: Plan) -> None:
    """What is made after is deleted first: the sets, the list that waits for them, then all that they need."""
    made, declared_sets = needs(plan), list_of(plan)
    assert all(declared_sets.urn in made[one.urn] for one in sets_of(plan))
    before = {one.name.partition("-")[2] for one in objects(plan) if one.urn in made[declared_sets.urn]}
    assert before >= {"nodeset-controller", "slurmctld", "slurmrestd", "slurmdbd", "jwt", "munge", "slurm-config"}
    assert declared_sets.options.get("retainOnDelete") is None


def with_sets(*names: str) -> Plan:
    """The dev stack with these node sets only."""
    sets = json.dumps([{"name": name, "pool": "workers", "size": 1} for name in names])
    partitions = json.dumps([{"name": "main", "nodeSets": names, "default": True}])
    return plan_of("dev", f"cluster.nodeSets={sets}", f"cluster.partitions={partitions}", "cluster.healthChecks=[]")


def test_removing_a_set_changes_the_list_and_no_other_set() -> None:
    found = compare(as_json(with_sets("cpu", "old")), as_json(with_sets("cpu")))
    ops = {one.name.removesuffix("-2"): one.op for one in found if one.op != "same"}
    assert ops == {"dev-node-sets": "update", "dev-old": "delete", "dev-slurm-config": "update", "dev-deployed": "update"}


def test_who_wants_to_wait_has_the_engine_delete_the_sets() -> None:
    plan = plan_of("dev", "cluster.kubernetes.waitForDrains=true")
    assert not any(
        one.options.get("retainOnDelete") or annotations.DECLARED_IN in one.inputs["metadata"]["annotations"] for one in sets_of(plan)
    )
    assert not any(one.inputs["metadata"].get("finalizers") for one in objects(plan))


def test_engine_keeps_no_set_that_is_declared_no_more() -> None:
    found = [one for one in documents(plan_of("dev")) if one.key.kind == "NodeSet"]
    assert found
    assert not any(annotations.RETAIN in one.manifest["metadata"]["annotations"] for one in found)


def test_engine_names_a_new_set_in_the_list_before_it_makes_the_set(plan: Plan) -> None:
    """The controller deletes a set that the list does not name."""
    order = [one.resource.urn for one in own_documents(plan)]
    assert all(order.index(list_of(plan).urn) < order.index(one.urn) for one in sets_of(plan))


def test_engine_applies_every_object_after_what_it_needs(plan: Plan) -> None:
    order, made = {one.resource.urn: at for at, one in enumerate(own_documents(plan))}, needs(plan)
    late = [(urn, need) for urn in order for need in made[urn] if need in order and order[need] > order[urn]]
    assert late == []


def test_engine_destroys_the_guards_record_before_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the record still names while the stack goes, the guard would make again."""
    plan = plan_of("dev")
    found = [each for each in documents(plan) if each.key.kind in ("Secret", "ConfigMap", "StatefulSet", "Deployment", "NodeSet")]
    there: list[dict[str, Any]] = [{**each.manifest, "metadata": {**each.manifest["metadata"], "annotations": {}}} for each in found]
    stages: list[list[Mapping[str, Any]]] = []

    def delete(_home: Any, objects: Sequence[Mapping[str, Any]], *_: Any) -> None:
        stages.append([*objects])

    def nothing(*_: Any) -> list[Any]:
        return []

    def all_of_it(*_: Any) -> list[dict[str, Any]]:
        return there

    monkeypatch.setattr(cluster, "members", all_of_it)
    for module, name in ((cluster, "release"), (cluster, "forget"), (cluster, "claims"), (consent, "refuse_other")):
        monkeypatch.setattr(module, name, nothing)
    monkeypatch.setattr(removal, "recorded", nothing)
    monkeypatch.setattr(removal, "_protected", lambda _: set[str]())  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr(removal, "delete", delete)
    stack: Any = SimpleNamespace(plan=plan, documents=found, home=SimpleNamespace(namespace="slurm", api=""), kept=None)
    removal.destroy(stack, Screen(), 1)
    assert stages[0]
    assert all(is_record(each) for each in stages[0])
    assert sorted(each["metadata"]["name"] for stage in stages for each in stage) == sorted(each["metadata"]["name"] for each in there)
