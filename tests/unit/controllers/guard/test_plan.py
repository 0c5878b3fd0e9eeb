"""What is restored, and when the guard keeps its hands off."""

from typing import Any

import pytest

from controllers.guard import plan
from controllers.guard.fields import managers
from controllers.guard.plan import Change, Fights, Marks
from controllers.guard.record import Declared, ManagedEntry, Path, RecordMeta
from controllers.runtime.structs import ObjectMeta
from names import annotations, labels
from tests.support.controllers.guard.examples import EDIT, UP, files, manager, service

LATER = "2026-11-23T05:00:00Z"
PORT: Path = ("spec", "ports", 1, "port")
SELECTOR: Path = ("spec", "selector", "app")
GONE: Path = ("spec", "type")

RESTORED: dict[str, tuple[list[Path], str, str, bool]] = {
    "record-is-newer": ([SELECTOR], UP, "", True),
    "settled-is-newer": ([SELECTOR], "", UP, True),
    "deployer-wrote-since": ([SELECTOR], "", "", False),
    "deployer-wrote-since-and-another-took-it": ([PORT], "", "", True),
    "deployer-wrote-since-and-a-part-is-its-own": ([PORT, SELECTOR], "", "", False),
    "deployer-wrote-since-and-nobody-has-it": ([GONE], "", "", False),
    "removed-and-the-record-is-newer": ([GONE], LATER, "", True),
}


@pytest.mark.parametrize(("paths", "record", "settled", "holds"), RESTORED.values(), ids=RESTORED)
def test_restored_is_only_what_no_deployment_can_have_changed(paths: list[Path], record: str, settled: str, holds: bool) -> None:
    assert plan.may_restore(Change(tuple(paths)), service(), record, settled) is holds


def test_what_no_deployer_wrote_is_restored() -> None:
    live = service()
    live["metadata"]["managedFields"] = [manager("kubectl-create", "Update", LATER, {"f:spec": {}})]
    assert plan.may_restore(Change((SELECTOR,)), live, "", "")


def test_undeclared_key_counts_for_whether_it_may_be_restored() -> None:
    assert not plan.may_restore(Change((), (SELECTOR,)), service(), "", "")
    assert plan.may_restore(Change((), (PORT,)), service(), "", "")


def meta(**about: Any) -> ObjectMeta:
    given: dict[str, Any] = {"name": "a", "generation": 1, "labels": {"a": "1"}, **about}
    return ObjectMeta(**given)


MATTERS: dict[str, tuple[ObjectMeta | None, ObjectMeta | None, bool]] = {
    "status-only": (meta(resource_version="1"), meta(resource_version="2"), False),
    "new": (None, meta(), True),
    "gone": (meta(), None, True),
    "generation": (meta(), meta(generation=2), True),
    "labels": (meta(), meta(labels={}), True),
    "annotations": (meta(), meta(annotations={"slipway.dev/guard": "paused"}), True),
    "deletion": (meta(), meta(deletion_timestamp=EDIT), True),
    "finalizers": (meta(finalizers=("a",)), meta(), True),
    "kind-without-generation": (meta(generation=0), meta(generation=0), True),
}


@pytest.mark.parametrize(("old", "new", "holds"), MATTERS.values(), ids=MATTERS)
def test_change_that_can_concern_only_the_status_is_passed_over(old: ObjectMeta | None, new: ObjectMeta | None, holds: bool) -> None:
    assert plan.matters(old, new) is holds


FIGHTS: dict[str, tuple[list[float], float, bool]] = {
    "four": ([0, 1, 2, 3], 3, False),
    "five": ([0, 1, 2, 3, 4], 4, True),
    "five-at-the-end-of-the-window": ([0, 1, 2, 3, 4], 599.9, True),
    "first-is-out-of-the-window": ([0, 1, 2, 3, 4], 600, False),
    "five-over-longer": ([0, 200, 400, 600, 800], 800, False),
    "five-of-many": ([0, 500, 600, 700, 800, 900, 1000], 1000, True),
}


@pytest.mark.parametrize(("times", "now", "holds"), FIGHTS.values(), ids=FIGHTS)
def test_fight_is_lost_after_five_restores_in_ten_minutes(times: list[float], now: float, holds: bool) -> None:
    fights = Fights()
    for at in times:
        fights.note(("ConfigMap", "files"), at)
    assert fights.is_lost(("ConfigMap", "files"), now) is holds
    assert not fights.is_lost(("ConfigMap", "others"), now)
    fights.forget(("ConfigMap", "files"))
    assert not fights.is_lost(("ConfigMap", "files"), now)


def test_marks_are_what_the_deployer_put_on_and_nobody_else() -> None:
    part_of = {"applyset.kubernetes.io/part-of": "set-1", "slipway.dev/cluster": "dev"}
    assert plan.read_marks(service(), "slipway") == Marks("slipway", "Apply", part_of, {})
    assert plan.read_marks(service(), "pulumi-kubernetes") is None
    made = manager("pulumi-kubernetes", "Update", UP, {"f:metadata": {"f:annotations": {"f:note": {}}}})
    assert plan.read_marks(service(made), "pulumi-kubernetes") == Marks("pulumi-kubernetes", "Update", {}, {"note": "y"})


def written(*writers: tuple[str, str]) -> RecordMeta:
    """Metadata of the record, written by these."""
    return RecordMeta(labels={labels.APPLYSET: "set", "a": "1"}, managed_fields=tuple(ManagedEntry(name, "", at) for name, at in writers))


RECORDS: dict[str, tuple[RecordMeta | None, Marks]] = {
    "engine": (written(("slipway", UP), ("kubectl-annotate", LATER)), Marks("slipway", "Apply", {labels.APPLYSET: "set"})),
    "made-by-the-cli": (written(("pulumi-kubernetes", UP)), Marks("pulumi-kubernetes", "Update", {labels.APPLYSET: "set"})),
    "changed-by-the-cli": (written(("pulumi-kubernetes-1a", UP)), Marks("pulumi-kubernetes", "Update", {labels.APPLYSET: "set"})),
    "cli-after-engine": (
        written(("slipway", UP), ("pulumi-kubernetes", EDIT)),
        Marks("pulumi-kubernetes", "Update", {labels.APPLYSET: "set"}),
    ),
    "engine-after-the-cli": (
        written(("slipway", EDIT), ("pulumi-kubernetes", UP)),
        Marks("slipway", "Apply", {labels.APPLYSET: "set"}),
    ),
    "gone": (None, Marks("slipway")),
}


@pytest.mark.parametrize(("record", "marks"), RECORDS.values(), ids=RECORDS)
def test_object_that_nobody_remembers_is_made_as_its_program_does(record: RecordMeta | None, marks: Marks) -> None:
    assert plan.guess_marks(record) == marks


def test_one_patch_restores_all_that_changed() -> None:
    live = {**files(resourceVersion="9", labels={"mine": "1"}), "data": {"slurm.conf": "mine", "mine.conf": "", "kept": "1"}}
    would = {**files(resourceVersion="9", labels={"mine": "1"}), "data": {"slurm.conf": "ours", "mine.conf": "", "kept": "1"}}
    change = Change((("data", "slurm.conf"),), (("data", "mine.conf"), ("binaryData", "b")))
    assert plan.plan_patch(change, live, would) == {
        "data": {"slurm.conf": "ours", "mine.conf": None},
        "binaryData": {"b": None},
        "metadata": {"resourceVersion": "9"},
    }


def test_manifest_bears_the_marks_and_the_version_that_was_looked_at() -> None:
    declared = Declared(files(labels={"a": "declared"}, annotations={"pulumi.com/skipAwait": "true", "b": "1"}), ())
    live = {**files(uid="u", resourceVersion="9"), "data": {"slurm.conf": "mine"}}
    made = plan.plan_manifest(declared, live, Marks("slipway", "Apply", {"a": "marked", "set": "1"}, {"c": "2"}), {})
    assert made is not None
    assert made["metadata"] == {
        "name": "files",
        "namespace": "slurm",
        "uid": "u",
        "resourceVersion": "9",
        "labels": {"a": "declared", "set": "1"},
        "annotations": {"b": "1", "c": "2"},
    }
    assert made["data"] == {"slurm.conf": "ClusterName=dev\n"}
    assert declared.manifest["metadata"]["labels"] == {"a": "declared"}


def test_missing_object_is_created_without_version_or_empty_annotations() -> None:
    declared = Declared(files(annotations={"pulumi.com/skipAwait": "true"}), ())
    made = plan.plan_manifest(declared, None, Marks("slipway"), {})
    assert made is not None
    assert made["metadata"] == {"name": "files", "namespace": "slurm", "labels": {}}


IGNORED: Path = ("data", "slurm.conf")


def test_ignored_values_stay_as_they_are() -> None:
    declared = Declared({**files(), "data": {}}, (IGNORED,))
    live = {**files(uid="u", resourceVersion="9"), "data": {"slurm.conf": "rotated"}}
    made = plan.plan_manifest(declared, live, Marks("slipway"), {})
    assert made is not None
    assert made["data"] == {"slurm.conf": "rotated"}
    anew = plan.plan_manifest(declared, None, Marks("slipway"), plan.read_others(declared, live))
    assert anew is not None
    assert anew["data"] == {"slurm.conf": "rotated"}
    assert plan.plan_manifest(declared, None, Marks("slipway"), {}) is None


def test_keys_are_not_remembered() -> None:
    declared = Declared({**files(), "kind": "Secret"}, (("data",),))
    assert plan.read_others(declared, {**files(), "kind": "Secret"}) == {}


@pytest.mark.parametrize(("replicas", "after"), [(0, 0), (7, 7), (None, 2)])
def test_size_of_a_node_set_is_left_as_it_is(replicas: int | None, after: int) -> None:
    """Where it has one still: without, somebody has made it an elastic set."""
    about = {"name": "h100", "namespace": "slurm", "uid": "u", "resourceVersion": "9"}
    declared = Declared({"kind": "NodeSet", "metadata": {"name": "h100"}, "spec": {"replicas": 2, "cpus": 4}}, ())
    live = {"kind": "NodeSet", "metadata": about, "spec": {"cpus": 8, **({} if replicas is None else {"replicas": replicas})}}
    made = plan.plan_manifest(declared, live, Marks("slipway"), {})
    assert made is not None
    assert made["spec"] == {"cpus": 4, "replicas": after}
    anew = plan.plan_manifest(declared, None, Marks("slipway"), {})
    assert anew is not None
    assert anew["spec"]["replicas"] == 2


EXTRA: dict[str, tuple[str, tuple[Path, ...]]] = {
    "config-map": ("ConfigMap", (("data", "mine.conf"), ("binaryData", "b"))),
    "secret": ("Secret", (("data", "mine.conf"), ("binaryData", "b"))),
    "kind-that-only-looks-like-it": ("NodeSet", ()),
}


@pytest.mark.parametrize(("kind", "extra"), EXTRA.values(), ids=EXTRA)
def test_undeclared_keys_of_data_are_a_change(kind: str, extra: tuple[Path, ...]) -> None:
    live = {**files(), "kind": kind, "data": {"slurm.conf": "x", "mine.conf": ""}, "binaryData": {"b": ""}}
    change = plan.find_change({**files(), "kind": kind}, live, live)
    assert change == Change((), extra)
    assert bool(change) is bool(extra)


LISTED: dict[str, tuple[dict[str, str], dict[str, Any] | None, bool]] = {
    "in-no-list": ({}, None, True),
    "named": ({annotations.DECLARED_IN: "sets"}, {"data": {"files": ""}}, True),
    "not-named": ({annotations.DECLARED_IN: "sets"}, {"data": {"others": ""}}, False),
    "empty": ({annotations.DECLARED_IN: "sets"}, {}, False),
    "list-is-gone": ({annotations.DECLARED_IN: "sets"}, None, False),
}


@pytest.mark.parametrize(("annotations", "lists", "holds"), LISTED.values(), ids=LISTED)
def test_set_that_its_list_does_not_name_is_not_made_again(annotations: Any, lists: Any, holds: bool) -> None:
    assert plan.is_listed(files(annotations=annotations), lists) is holds


def test_change_is_told_with_three_fields_and_who_made_it() -> None:
    live = service()
    change = Change((PORT, SELECTOR, GONE), (("data", "a"), ("data", "b")))
    said = plan.say_change(change, managers(live), live)
    assert said == f"spec.ports[1].port, spec.selector.app, spec.type and 2 more, changed by kubectl-edit at {EDIT}"


def test_change_without_a_trace_is_told_as_such() -> None:
    assert plan.say_change(Change((GONE,)), [], service()).startswith("spec.type, changed by someone who left no trace")
