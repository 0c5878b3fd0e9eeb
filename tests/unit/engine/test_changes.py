"""What would change of live objects, and what is said of it."""

from typing import Any

import pytest

from changes.steps import Difference
from engine.changes import (
    ObjectChange,
    applyset_id,
    deleted_by_controller,
    left_as_they_are,
    object_changes,
)
from engine.plan import MASK, Resource, Secret, revealed
from engine.render import Document, key_of
from tests.unit.engine.live_objects import changes_of, config_map, document, listed, live, widget_set


def test_the_applyset_label_is_kubectls() -> None:
    # kubectl 1.35 gave this label to the members of ConfigMap "slipway-small-dev" in namespace "sa-test".
    assert applyset_id("slipway-small-dev", "sa-test") == "applyset-6JFxl6oPFs69ZWxQhvaDr8YCRFS2M-481kSrFN8kmXU-v1"


def test_only_what_the_server_would_change_is_a_change() -> None:
    files = config_map("files", {"a": "1"})
    assert [each.op for each in changes_of([files], [live(files)])] == ["same"]
    assert [each.op for each in changes_of([files], [])] == ["create"]


@pytest.mark.parametrize("owner", [None, "applyset-of-another-stack"])
def test_matching_object_of_another_owner_is_a_change_that_says_so(owner: str | None) -> None:
    [change] = changes_of([config_map("a")], [live(config_map("a"), owner)])
    assert (change.op, change.differences, change.note) == ("update", (), "becomes this stack's")


def test_a_changed_file_is_shown_by_its_key() -> None:
    old, new = config_map("files", {"slurm.conf": "A=1\n", "other": "x"}), config_map("files", {"slurm.conf": "A=2\n", "other": "x"})
    found = changes_of([new], [live(old)])[0]
    assert (found.op, found.differences) == ("update", (Difference(("data", "slurm.conf"), "A=1\n", "A=2\n"),))


def test_a_changed_secret_is_seen_and_not_shown() -> None:
    old, new = config_map("key", {"key": "b2xk"}, "Secret"), config_map("key", {"key": "bmV3", "more": "bW9yZQ=="}, "Secret")
    shown = changes_of([new], [live(old)])[0].differences
    assert shown == (Difference(("data", "key"), MASK, MASK), Difference(("data", "more"), None, MASK))
    marked = document(config_map("files", {"password": Secret("old")}))
    found = object_changes(
        [marked],
        {marked.key: live(config_map("files", {"password": "a"}))},
        {marked.key: live(config_map("files", {"password": "b"}))},
        {},
        [],
    )
    assert found[0].differences == (Difference(("data", "password"), MASK, MASK),)


def test_undeclared_objects_are_removed_unless_already_terminating() -> None:
    there = [live(config_map("old")), live(config_map("leaving"), deletionTimestamp="now")]
    assert [(change.op, change.key.name) for change in changes_of([], there)] == [("delete", "old")]


def test_a_file_map_named_by_content_is_compared_with_the_one_it_follows() -> None:
    old, new = config_map("dev-scripts-0a1b2c3d4e", {"a.sh": "one\n"}), config_map("dev-scripts-ffffffff00", {"a.sh": "two\n"})
    found = changes_of([new], [live(old)], [])[0]
    assert found.op == "create"
    assert found.note == "takes the place of dev-scripts-0a1b2c3d4e"
    assert found.differences == (Difference(("data", "a.sh"), "one\n", "two\n"),)


def test_what_the_server_will_not_change_in_place_is_replaced() -> None:
    files = config_map("files")
    found = object_changes([document(files)], {key_of(files): live(files)}, {}, {key_of(files): "field is immutable"}, [])
    assert (found[0].op, found[0].note) == ("replace", "field is immutable")


def with_disk(size: str) -> dict[str, Any]:
    template = {"metadata": {"name": "state"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}}
    about = {"name": "slurmctld", "namespace": "slurm"}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": about, "spec": {"volumeClaimTemplates": [template], "replicas": 1}}


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        pytest.param(
            "2Gi",
            [
                "StatefulSet slurm/slurmctld: spec.volumeClaimTemplates[0].spec.resources.requests.storage stays 1Gi: "
                "only a new object gets 2Gi."
            ],
            id="larger",
        ),
        pytest.param("1Gi", [], id="same"),
        pytest.param("1024Mi", [], id="same-in-other-words"),
    ],
)
def test_field_with_ignored_changes_is_applied_as_it_is_and_reported(declared: str, said: list[str]) -> None:
    there = live(with_disk("1Gi"))
    there["spec"]["volumeClaimTemplates"][0]["status"] = {"phase": "Pending"}
    about = Resource(
        "s", "kubernetes:apps/v1:StatefulSet", "s", inputs=with_disk(declared), options={"ignoreChanges": ["spec.volumeClaimTemplates"]}
    )
    applied = Document(about, with_disk(declared), {}).beside(there)
    assert applied.manifest["spec"] == there["spec"]
    found = object_changes([applied], {applied.key: there}, {applied.key: there}, {}, [there])
    assert [change.op for change in found] == ["same"]
    assert left_as_they_are(found) == said
    assert left_as_they_are([ObjectChange("create", applied.key, applied)]) == []
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "state-slurmctld-0", "namespace": "slurm"}}
    grown = ObjectChange("update", key_of(claim), document(claim), live(claim))
    assert left_as_they_are([*found, grown]) == []


@pytest.mark.parametrize(
    ("condition", "hint", "op"),
    [
        pytest.param("Failed", "true", "replace", id="failed"),
        pytest.param("Complete", "true", "same", id="complete"),
        pytest.param("Failed", "false", "same", id="not-asked-for"),
    ],
)
def test_a_failed_job_is_made_again_where_the_stack_asks_for_it(condition: str, hint: str, op: str) -> None:
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "pool", "namespace": "slurm"}, "spec": {}}
    there = {**live(manifest), "status": {"conditions": [{"type": condition, "status": "True"}]}}
    declared = Document(Resource("pool", "kubernetes:batch/v1:Job", "pool", inputs=manifest), manifest, {"replaceUnready": hint})
    assert [change.op for change in object_changes([declared], {declared.key: there}, {declared.key: there}, {}, [])] == [op]


@pytest.mark.parametrize(
    ("declared_in", "lists", "is_left"),
    [
        pytest.param("sets", ["sets"], True, id="listed"),
        pytest.param("sets", [], False, id="list-is-not-declared"),
        pytest.param("others", ["sets"], False, id="in-another-list"),
        pytest.param("", ["sets"], False, id="in-no-list"),
    ],
)
def test_set_that_leaves_a_declared_list_is_not_pruned(declared_in: str, lists: list[str], is_left: bool) -> None:
    gone = live(listed("burst", declared_in))
    found = changes_of([config_map(name) for name in lists], [*(live(config_map(name)) for name in lists), gone])
    assert deleted_by_controller(found) == ([key_of(gone)] if is_left else [])


def test_key_that_stays_is_neither_changed_nor_told() -> None:
    """The Secret of a key ignores its data until a rotation: no warning may hold the live key or the declared one."""
    declared = document(config_map("key", {"key": Secret("bmV3")}, "Secret"), ignored=("data",))
    there = live(config_map("key", {"key": "b2xk"}, "Secret"))
    beside = declared.beside(there)
    assert revealed(beside.manifest["data"]) == {"key": "b2xk"}
    assert beside.has_secrets
    assert left_as_they_are([ObjectChange("same", key_of(there), beside, there)]) == []


def test_object_whose_kind_changes_first_is_compared_as_far_as_it_can_be() -> None:
    old, new = widget_set(replicas=2, placement="Any"), widget_set(replicas=3, size="new")
    [found] = object_changes([document(new)], {key_of(old): live(old)}, {}, {}, [], {key_of(old)})
    assert (found.op, found.note) == ("update", "the API server can check it only after its CustomResourceDefinition has changed")
    assert found.differences == (Difference(("spec", "replicas"), 2, 3), Difference(("spec", "size"), None, "new"))
