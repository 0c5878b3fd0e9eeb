"""What a change means for running pods and jobs, and for data: said before it is made."""

from typing import Any

import pytest

from changes import workloads
from changes.data import losses
from changes.steps import Difference
from engine.changes import ObjectChange, claims_left, retained, steps
from engine.render import Key, key_of
from names import annotations
from tests.support.engine.recorded import stateful_set
from tests.unit.engine.live_objects import annotated, config_map, document, live, widget_set


def consequences(found: list[ObjectChange]) -> list[str]:
    """What is said of the objects' changes."""
    return workloads.consequences(steps(found))


def test_what_is_retained_is_named() -> None:
    keep = ObjectChange("delete", Key("", "ConfigMap", "slurm", "a"), live=annotated("a", annotations.RETAIN))
    drop = ObjectChange("delete", Key("", "ConfigMap", "slurm", "b"), live=live(config_map("b")))
    assert [key.name for key in retained([keep, drop])] == ["a"]


def keeping(kind: str, field: str, when_deleted: str) -> dict[str, Any]:
    templates = [{"metadata": {"name": "data"}}]
    return {**config_map("db", kind=kind), "spec": {field: {"whenDeleted": when_deleted}, "volumeClaimTemplates": templates}}


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        pytest.param(config_map("home", kind="PersistentVolumeClaim"), "the claim and the data on its volume", id="claim"),
        pytest.param(
            config_map("home", kind="PersistentVolumeClaim", annotations={annotations.RETAIN: "true"}), "", id="claim-that-is-retained"
        ),
        pytest.param(config_map("slurm", kind="Namespace"), "the namespace with all that is in it", id="namespace"),
        pytest.param(keeping("StatefulSet", "persistentVolumeClaimRetentionPolicy", "Delete"), "the set with its claims", id="set"),
        pytest.param(keeping("StatefulSet", "persistentVolumeClaimRetentionPolicy", "Retain"), "", id="set-whose-claims-stay"),
        pytest.param(keeping("NodeSet", "volumeClaimRetention", "Delete"), "the set with its claims", id="node-set"),
        pytest.param(config_map("files"), "", id="files"),
    ],
)
@pytest.mark.parametrize("op", ["delete", "update"])
def test_data_that_goes_is_named(gone: dict[str, Any], said: str, op: Any) -> None:
    found = losses(steps([ObjectChange(op, key_of(gone), live=live(gone))]))
    assert [line.startswith(f"{key_of(gone)}: {said}") for line in found] == ([True] if said and op != "update" else [])


WORKER = {"metadata": {"labels": {"app": "gpu", "slipway.dev/nodeset": "gpu"}}}
TEMPLATE = Difference(("spec", "template", "spec", "containers", "[slurmd]", "image"), "1", "2")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            ("update", stateful_set(spec_updateStrategy={"type": "OnDelete"}), (TEMPLATE,)),
            "running pods, and their jobs, go on",
            id="on-delete",
        ),
        pytest.param(("update", stateful_set(), (TEMPLATE,)), "its pods are replaced one after the other", id="rolls"),
        pytest.param(
            ("update", stateful_set(spec_strategy={"type": "Recreate"}), (TEMPLATE,)), "its pods are replaced all at once", id="recreate"
        ),
        pytest.param(("update", stateful_set(), (Difference(("spec", "replicas"), 2, 4),)), "2 to 4 pods; those there stay", id="grows"),
        pytest.param(
            ("update", stateful_set(spec_template=WORKER), (Difference(("spec", "replicas"), 4, 2),)),
            "4 to 2 pods; jobs on them are waited",
            id="shrinks",
        ),
        pytest.param(
            ("update", stateful_set(), (Difference(("metadata", "labels", "a"), None, "b"),)), "no pod restarts", id="labels-only"
        ),
        pytest.param(("delete", stateful_set(spec_template=WORKER), ()), "is removed and its 2 pods end; jobs on them", id="removed"),
        pytest.param(("replace", stateful_set(), ()), "deleted and made again", id="replaced"),
    ],
)
def test_what_happens_to_running_jobs_is_said_before(change: tuple[Any, dict[str, Any], tuple[Difference, ...]], words: str) -> None:
    op, there, found = change
    said = consequences([ObjectChange(op, key_of(there), live=there, differences=found)])
    assert len(said) == 1
    assert said[0].startswith("StatefulSet gpu: ")
    assert words in said[0]


def changed(path: str, old: Any, new: Any) -> tuple[Difference, ...]:
    return (Difference(("spec", *path.split(".")), old, new),)


IMAGE = changed("template.spec.containers.[slurmd].image", "1", "2")


@pytest.mark.parametrize(
    ("op", "live_spec", "new_spec", "found", "words"),
    [
        pytest.param("update", {}, {}, changed("replicas", 2, 4), "2 to 4 nodes; those there stay", id="grows"),
        pytest.param("update", {}, {}, changed("replicas", 4, 2), "4 to 2 nodes; those that go are drained first", id="shrinks"),
        pytest.param("update", {}, {}, changed("max", 8, 4), "8 to 4 nodes at most; those that go are drained first", id="bound-shrinks"),
        pytest.param("update", {}, {}, changed("maxPodsInFlight", 8, 4), "no pod restarts", id="setting"),
        pytest.param(
            "update",
            {"updateStrategy": {"type": "RollingUpdate", "maxUnavailable": 1}},
            {"updateStrategy": {"type": "RollingUpdate", "maxUnavailable": "10%"}},
            IMAGE,
            "its nodes are drained and their pods replaced, at most 10% at a time; jobs end first",
            id="rolls-by-the-new-strategy",
        ),
        pytest.param(
            "update", {"updateStrategy": {"type": "OnDelete"}}, {}, IMAGE, "running pods, and their jobs, go on as they are", id="on-delete"
        ),
        pytest.param(
            "update",
            {},
            {"updateStrategy": {"type": "Maintenance", "maxUnavailable": 2, "reservation": "night"}},
            IMAGE,
            "at most 2 at a time while reservation night is active",
            id="maintenance",
        ),
        pytest.param("delete", {}, None, (), "goes: all its nodes are drained, and each pod ends when no job is left on it", id="removed"),
    ],
)
def test_what_happens_to_the_nodes_of_a_set_is_said_before(
    op: Any, live_spec: dict[str, Any], new_spec: dict[str, Any] | None, found: tuple[Difference, ...], words: str
) -> None:
    there = widget_set(**live_spec)
    declared = None if new_spec is None else document(widget_set(**new_spec))
    [said] = consequences([ObjectChange(op, key_of(there), declared, there, found)])
    assert said.startswith("NodeSet gpu: ")
    assert words in said


def test_new_set_says_nothing_of_running_jobs() -> None:
    assert consequences([ObjectChange("create", key_of(widget_set()), document(widget_set()))]) == []


def test_files_changed_in_place_and_new_things_have_no_consequences() -> None:
    changed = ObjectChange("update", Key("", "ConfigMap", "slurm", "dev-slurm-config"), live=live(config_map("x")))
    new = ObjectChange("create", key_of(stateful_set()), document(stateful_set()))
    assert consequences([changed, new]) == [
        "dev-slurm-config: running pods get the new files in place within about a minute; none restarts for it"
    ]


def test_claims_that_outlive_their_set_are_known_by_its_retention_policy() -> None:
    templates = [{"metadata": {"name": "state"}}]
    keeps, drops = stateful_set("a", spec_volumeClaimTemplates=templates), stateful_set("b", spec_volumeClaimTemplates=templates)
    drops["spec"]["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Delete"}
    nodes = widget_set(volumeClaimTemplates=[{"metadata": {"name": "disk"}}], volumeClaimRetention={"whenDeleted": "Retain"})
    disks = [config_map("disk-gpu-0", kind="PersistentVolumeClaim")]
    assert claims_left(disks, [ObjectChange("delete", key_of(nodes), live=nodes)]) == ["disk-gpu-0"]
    nodes["spec"]["volumeClaimRetention"]["whenDeleted"] = "Delete"
    assert claims_left(disks, [ObjectChange("delete", key_of(nodes), live=nodes)]) == []
    claims = [config_map(name, kind="PersistentVolumeClaim") for name in ("state-a-0", "state-a-10", "state-b-0", "state-a-x", "home")]
    assert claims_left(claims, [ObjectChange("delete", key_of(workload), live=workload) for workload in (keeps, drops)]) == [
        "state-a-0",
        "state-a-10",
    ]
