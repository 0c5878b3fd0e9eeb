"""Whose fields are whose, and how two versions of an object differ."""

import copy
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as some

from controllers.guard import fields
from controllers.guard.record import Path
from names import writers
from tests.support.controllers.guard.examples import EDIT, UP, manager, service

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
    "status-below-spec": ({"spec": {"status": 1}}, {"spec": {"status": 2}}, [("spec", "status")]),
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


def test_content_is_neither_status_nor_bookkeeping() -> None:
    about = {"name": "a", "labels": {"a": "1"}, "finalizers": ["f"], "resourceVersion": "2", "generation": 3, "managedFields": []}
    item = {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": {"status": 1}, "status": {"replicas": 1}}
    assert fields.content(item) == {"metadata": {"labels": {"a": "1"}, "finalizers": ["f"]}, "spec": {"status": 1}}


def merged(value: Any, patch: Any) -> Any:
    """RFC 7396, section 2."""
    if not isinstance(patch, dict):
        return patch
    changes = cast("dict[str, Any]", patch)
    made = dict(cast("dict[str, Any]", value)) if isinstance(value, dict) else {}
    for key, change in changes.items():
        if change is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), change)
    return made


def without_none(value: Any) -> Any:
    """Kubernetes keeps no null in a map."""
    if isinstance(value, dict):
        return {key: without_none(each) for key, each in cast("dict[str, Any]", value).items() if each is not None}
    return value


MAPS = some.dictionaries(KEYS, VALUES, max_size=4).map(without_none)


@given(MAPS, MAPS)
def test_merge_patch_leads_from_one_value_to_the_other(live: Any, would: Any) -> None:
    patch = fields.merge_patch(live, would)
    assert merged(live, patch) == would
    assert bool(patch) is (live != would)


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
    made = manager("pulumi-kubernetes", "Update", UP, {"f:spec": {"f:ports": {}}})
    live = service(manager("late", "Update", late, {"f:metadata": {"f:labels": {"f:other": {}}}}), guards, made)
    assert sorted(map(str, fields.culprits(fields.managers(live), live, paths))) == sorted(said)


def test_who_wrote_before_the_deployment_did_not_remove_a_field() -> None:
    live = service(manager("slipway", "Apply", "2026-11-23T05:00:00Z", {}))
    assert fields.culprits(fields.managers(live), live, [("data", "gone")]) == []


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("slipway", "slipway"),
        ("pulumi-kubernetes", "pulumi-kubernetes"),
        ("pulumi-kubernetes-1a2b", "pulumi-kubernetes"),
        ("kubectl", ""),
        ("slipway-guard", ""),
    ],
)
def test_programs_are_told_by_the_names_that_they_write_under(name: str, program: str) -> None:
    assert fields.program(name) == program


MADE = manager("pulumi-kubernetes", "Update", "2026-11-23T03:30:00Z", {"f:spec": {}})
APPLIED = manager("pulumi-kubernetes-1a", "Apply", "2026-11-23T03:10:00Z", {})
DEPLOYERS: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "engine": ([MADE], "slipway", f"slipway at {UP}"),
    "made-by-the-cli": ([MADE], "pulumi-kubernetes", "pulumi-kubernetes at 2026-11-23T03:30:00Z"),
    "applied-by-the-cli": ([MADE, APPLIED], "pulumi-kubernetes", "pulumi-kubernetes-1a at 2026-11-23T03:10:00Z"),
    "not-by-the-cli": ([], "pulumi-kubernetes", "None"),
    "update-of-engine's-name": ([manager("slipway", "Update", EDIT, {})], "slipway", f"slipway at {UP}"),
}


@pytest.mark.parametrize(("more", "program", "said"), DEPLOYERS.values(), ids=DEPLOYERS)
def test_deployer_is_what_the_program_applied_or_else_made(more: list[dict[str, Any]], program: str, said: str) -> None:
    assert str(fields.deployer(fields.managers(service(*more)), program)) == said


def test_deployed_is_when_any_program_wrote_last() -> None:
    late = manager("slipway", "Update", "2026-11-23T09:00:00Z", {})
    assert fields.deployed_at(fields.managers(service(late, APPLIED, MADE))) == "2026-11-23T03:30:00Z"
    assert fields.deployed_at([]) == ""


STRAY = manager("slipway", "Apply", EDIT, {"f:data": {"f:slurm.conf": {}, "f:more": {"f:below": {}}}})
HEIR: dict[str, Any] = {"f:data": {".": {}, "f:gres.conf": {}, "f:more": {}}, "f:metadata": {"f:labels": {"f:a": {}}}}
BOTH: dict[str, Any] = {
    "f:data": {".": {}, "f:gres.conf": {}, "f:slurm.conf": {}, "f:more": {".": {}, "f:below": {}}},
    "f:metadata": {"f:labels": {"f:a": {}}},
}
OTHER = manager("kubectl-edit", "Update", EDIT, {"f:metadata": {"f:annotations": {"f:note": {}}}})
STATUS = manager("pulumi-kubernetes", "Update", EDIT, {"f:status": {}}, subresource="status")
OWN_FIELDS: dict[str, Any] = {"f:metadata": {"f:labels": {"f:applyset.kubernetes.io/part-of": {}}}}
MENDED: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]] | None]] = {
    "made": ([manager("pulumi-kubernetes", "Update", UP, HEIR), STRAY, OTHER], [OTHER, manager("pulumi-kubernetes", "Update", UP, BOTH)]),
    "applied": (
        [MADE, manager("pulumi-kubernetes-1a", "Apply", UP, HEIR), STRAY],
        [MADE, manager("pulumi-kubernetes-1a", "Apply", UP, BOTH)],
    ),
    "made-by-the-guard": ([STATUS, STRAY], [STATUS, {**STRAY, "manager": "pulumi-kubernetes", "operation": "Update"}]),
    "nothing-to-mend": ([MADE, OTHER], None),
    "engine-takes-over": ([MADE, manager("slipway", "Apply", EDIT, OWN_FIELDS)], None),
}


@pytest.mark.parametrize(("entries", "after"), MENDED.values(), ids=MENDED)
def test_fields_under_engine_s_name_go_to_the_cli(entries: list[dict[str, Any]], after: list[dict[str, Any]] | None) -> None:
    assert fields.mended({"metadata": {"managedFields": entries}}, writers.PULUMI) == after


WHOLE = manager("slipway-guard", "Update", EDIT, {"f:spec": {"f:ports": {}}})
NOTE: dict[str, Any] = {"f:metadata": {"f:annotations": {"f:slipway.dev/guard": {}}}}
NOTED = manager("slipway-guard", "Update", EDIT, NOTE)
WHOLE_AND_NOTED = manager("slipway-guard", "Update", EDIT, {**NOTE, "f:spec": {"f:ports": {}}})
OURS = manager("slipway", "Apply", UP, {"f:spec": {"f:selector": {}}})
HAS_ALL = manager("slipway", "Apply", UP, {"f:spec": {"f:selector": {}, "f:ports": {}}})
OF_ENGINE: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]] | None]] = {
    "restored-as-a-whole": ([OTHER, OURS, WHOLE], [OTHER, HAS_ALL]),
    "restored-as-a-whole-and-left-alone": ([OURS, WHOLE_AND_NOTED], [NOTED, HAS_ALL]),
    "left-alone": ([OURS, NOTED], None),
    "nobody-has-it": ([WHOLE], [{**WHOLE, "manager": "slipway", "operation": "Apply"}]),
    "nothing-to-mend": ([OURS, OTHER], None),
}


@pytest.mark.parametrize(("entries", "after"), OF_ENGINE.values(), ids=OF_ENGINE)
def test_fields_under_the_guard_s_name_go_to_engine(entries: list[dict[str, Any]], after: list[dict[str, Any]] | None) -> None:
    assert fields.mended({"metadata": {"managedFields": entries}}, writers.SLIPWAY) == after


@pytest.mark.parametrize(
    ("path", "text"),
    [((), ""), (("data", "slurm.conf"), "data.slurm.conf"), (("spec", "containers", 0, "image"), "spec.containers[0].image")],
)
def test_paths_are_shown_as_people_write_them(path: Path, text: str) -> None:
    assert fields.show(path) == text
