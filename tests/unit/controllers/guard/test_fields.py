"""Whose fields are whose, and how two versions of an object differ."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from controllers.guard import fields
from controllers.guard.record import Path
from tests.unit.controllers.guard.examples import EDIT, UP, manager, service

KEYS = some.sampled_from(["a", "b", "spec", "metadata", "status", "labels", "0"])
VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=3),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(VALUES)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert fields.differences(value, copy.deepcopy(value), ("spec",)) == []


@given(VALUES, VALUES)
def test_differences_are_the_same_either_way_and_lead_to_unequal_values(one: Any, other: Any) -> None:
    found = fields.differences({"spec": one}, {"spec": other})
    assert found == fields.differences({"spec": other}, {"spec": one})
    for path in found:
        assert fields.value_at({"spec": one}, path) != fields.value_at({"spec": other}, path)
    assert bool(found) == bool(fields.differences(one, other, ("spec",)))


DIFFERENCES: dict[str, tuple[dict[str, Any], dict[str, Any], list[Path]]] = {
    "value": ({"data": {"a": "1"}}, {"data": {"a": "2"}}, [("data", "a")]),
    "key-gone": ({"data": {}}, {"data": {"a": "2"}}, [("data", "a")]),
    "map-gone": ({}, {"data": {"a": "2"}}, [("data",)]),
    "status": ({"status": {"replicas": 1}}, {"status": {"replicas": 2}}, []),
    "status-below-spec": ({"spec": {"status": 1}}, {"spec": {"status": 2}}, [("spec", "status")]),
    "bookkeeping": ({"metadata": {"resourceVersion": "1"}}, {"metadata": {"resourceVersion": "2", "generation": 3}}, []),
    "label": ({"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": {"a": "2"}}}, [("metadata", "labels", "a")]),
    "annotation": ({"metadata": {"annotations": {}}}, {"metadata": {"annotations": {"a": ""}}}, [("metadata", "annotations", "a")]),
    "finalizer": ({"metadata": {"finalizers": []}}, {"metadata": {"finalizers": ["a"]}}, [("metadata", "finalizers")]),
    "item": ({"spec": [{"image": "1"}, {"image": "2"}]}, {"spec": [{"image": "1"}, {"image": "3"}]}, [("spec", 1, "image")]),
    "length": ({"spec": {"ports": [1]}}, {"spec": {"ports": [1, 2]}}, [("spec", "ports")]),
    "type": ({"spec": {"ports": [1]}}, {"spec": {"ports": {"a": 1}}}, [("spec", "ports")]),
}


@pytest.mark.parametrize(("live", "would", "paths"), DIFFERENCES.values(), ids=DIFFERENCES)
def test_differences_are_where_a_deployment_would_change_something(live: Any, would: Any, paths: list[Path]) -> None:
    assert fields.differences(live, would) == paths


OWNERS: dict[str, tuple[Path, list[str]]] = {
    "of-a-keyed-item": (("spec", "ports", 0, "port"), ["slipway"]),
    "of-another-item": (("spec", "ports", 1, "targetPort"), ["kubectl-edit"]),
    "of-an-item-as-a-whole": (("spec", "ports", 1), ["kubectl-edit"]),
    "default-that-nobody-set": (("spec", "ports", 0, "targetPort"), []),
    "of-a-list": (("spec", "ports"), ["slipway", "kubectl-edit"]),
    "item-that-is-not-there": (("spec", "ports", 2), []),
    "below-an-atom": (("spec", "selector", "app"), ["slipway"]),
    "of-a-label": (("metadata", "labels", "slipway.dev/cluster"), ["slipway"]),
    "label-that-nobody-owns": (("metadata", "labels", "mine"), []),
    "of-a-set's-value": (("metadata", "finalizers", 1), ["finalizing"]),
    "of-another-value": (("metadata", "finalizers", 0), []),
    "annotation": (("metadata", "annotations", "note"), ["finalizing"]),
}


@pytest.mark.parametrize(("path", "names"), OWNERS.values(), ids=OWNERS)
def test_owners_are_who_the_managed_fields_name(path: Path, names: list[str]) -> None:
    live = service()
    assert [each.manager for each in fields.owners(fields.managers(live), live, path)] == names


def test_who_wrote_only_the_status_does_not_count() -> None:
    assert [each.manager for each in fields.managers(service())] == ["slipway", "kubectl-edit", "finalizing"]


CULPRITS: dict[str, tuple[list[Path], list[str]]] = {
    "owner": ([("spec", "ports", 1, "port")], [f"kubectl-edit at {EDIT}"]),
    "each-once": ([("spec", "ports", 1, "port"), ("spec", "ports", 1, "targetPort")], [f"kubectl-edit at {EDIT}"]),
    "both": ([("spec", "ports", 1), ("metadata", "annotations", "note")], [f"kubectl-edit at {EDIT}", f"finalizing at {EDIT}"]),
    "removed-so-the-last-to-write": ([("data", "gone")], ["late at 2026-11-23T05:00:00Z"]),
}


@pytest.mark.parametrize(("paths", "said"), CULPRITS.values(), ids=CULPRITS)
def test_culprits_are_neither_deployers_nor_the_guard(paths: list[Path], said: list[str]) -> None:
    late = "2026-11-23T05:00:00Z"
    guards = manager("slipway-guard", "Update", "2026-11-23T06:00:00Z", {"f:spec": {}})
    live = service(manager("late", "Update", late, {"f:metadata": {"f:labels": {"f:other": {}}}}), guards)
    assert sorted(map(str, fields.culprits(fields.managers(live), live, paths))) == sorted(said)


@pytest.mark.parametrize(
    ("name", "holds"),
    [("slipway", True), ("pulumi-kubernetes", True), ("pulumi-kubernetes-1a2b", True), ("kubectl", False), ("slipway-guard", False)],
)
def test_deployers_are_told_by_their_names(name: str, holds: bool) -> None:
    assert fields.is_deployer(name) is holds


def test_deployer_is_who_applied_last_and_an_update_is_no_deployment() -> None:
    live = service(manager("pulumi-kubernetes-1a", "Apply", EDIT, {}), manager("slipway", "Update", "2026-11-23T09:00:00Z", {}))
    found = fields.deployer(fields.managers(live))
    assert found is not None
    assert (found.manager, found.time) == ("pulumi-kubernetes-1a", EDIT)
    assert str(fields.deployer(fields.managers(service()))) == f"slipway at {UP}"


@pytest.mark.parametrize(
    ("path", "text"),
    [((), ""), (("data", "slurm.conf"), "data.slurm.conf"), (("spec", "containers", 0, "image"), "spec.containers[0].image")],
)
def test_paths_are_shown_as_people_write_them(path: Path, text: str) -> None:
    assert fields.show(path) == text
