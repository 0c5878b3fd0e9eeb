"""What would happen to live objects, to running pods, and what must not happen."""

from collections.abc import Mapping
from typing import Any

import pytest

from standalone.changes import (
    ObjectChange,
    applyset_id,
    claims_left,
    consequences,
    deleted_by_controller,
    labelled,
    left_as_they_are,
    losses,
    object_changes,
    refusals,
    retained,
)
from standalone.plan import MASK, Difference, Resource, Secret, revealed
from standalone.render import DECLARED_IN, PROTECT, RETAIN, Document, Key, key_of
from tests.unit.standalone.conftest import stateful_set

SET = applyset_id("slipway-demo-dev", "slurm")


def config_map(name: str, data: Mapping[str, Any] | None = None, kind: str = "ConfigMap", **about: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "slurm", **about}, "data": dict(data or {})}


def document(manifest: Mapping[str, Any], ignored: tuple[str, ...] = (), adopts: bool = False) -> Document:
    name = manifest["metadata"]["name"]
    options = {"ignoreChanges": list(ignored)} if ignored else {}
    return Document(Resource(name, f"kubernetes:core/v1:{manifest['kind']}", name, inputs=manifest, options=options), manifest, {}, adopts)


def live(manifest: Mapping[str, Any], set_id: str | None = SET, **about: Any) -> dict[str, Any]:
    made = labelled(manifest, set_id) if set_id else dict(manifest)
    server: dict[str, Any] = {"uid": "u", "resourceVersion": "7", "creationTimestamp": "now", "generation": 3, "managedFields": [{}]}
    return {**made, "metadata": {**made["metadata"], **server, **about}, "status": {"x": 1}}


def changes_of(
    declared: list[dict[str, Any]], there: list[dict[str, Any]], results: list[dict[str, Any]] | None = None
) -> list[ObjectChange]:
    answers = {key_of(manifest): manifest for manifest in ([live(manifest) for manifest in declared] if results is None else results)}
    return object_changes(
        [document(manifest) for manifest in declared], {key_of(manifest): manifest for manifest in there}, answers, {}, there
    )


def test_the_applyset_label_is_kubectls() -> None:
    # kubectl 1.35 gave this label to the members of ConfigMap "slipway-small-dev" in namespace "sa-test".
    assert applyset_id("slipway-small-dev", "sa-test") == "applyset-6JFxl6oPFs69ZWxQhvaDr8YCRFS2M-481kSrFN8kmXU-v1"


def test_only_what_the_server_would_change_is_a_change() -> None:
    files = config_map("files", {"a": "1"})
    assert [each.op for each in changes_of([files], [live(files)])] == ["same"]
    assert [each.op for each in changes_of([files], [])] == ["create"]


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


def test_what_is_no_longer_declared_goes_and_what_is_going_already_is_left() -> None:
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
                "StatefulSet slurm/slurmctld: spec.volumeClaimTemplates[0].spec.resources.requests.storage stays 1Gi; 2Gi is for a new one"
                " only. A claim that is there is grown itself: kubectl edit pvc."
            ],
            id="larger",
        ),
        pytest.param("1Gi", [], id="same"),
        pytest.param("1024Mi", [], id="same-in-other-words"),
    ],
)
def test_a_field_whose_changes_are_ignored_is_applied_as_the_cluster_has_it_and_said(declared: str, said: list[str]) -> None:
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


def annotated(name: str, annotation: str) -> dict[str, Any]:
    return live(config_map(name), annotations={annotation: "true"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            ObjectChange("delete", Key("", "ConfigMap", "slurm", "a"), live=annotated("a", PROTECT)),
            "protected and no longer",
            id="protected",
        ),
        pytest.param(
            ObjectChange(
                "replace", Key("", "ConfigMap", "slurm", "a"), document(config_map("a")), annotated("a", PROTECT), note="immutable"
            ),
            r"protected and cannot change in place \(immutable\)",
            id="protected-replace",
        ),
        pytest.param(
            ObjectChange("update", Key("", "ConfigMap", "slurm", "a"), document(config_map("a")), live(config_map("a"), None)),
            "was not made by this stack",
            id="foreign",
        ),
        pytest.param(
            ObjectChange("same", Key("", "ConfigMap", "slurm", "a"), document(config_map("a")), live(config_map("a"), "applyset-x-v1")),
            "belongs to another stack",
            id="another-stacks",
        ),
        pytest.param(
            ObjectChange(
                "update", Key("", "Namespace", "", "a"), document(config_map("a")), live(config_map("a"), deletionTimestamp="now")
            ),
            "is being deleted",
            id="terminating",
        ),
    ],
)
def test_what_must_not_happen_is_refused_by_name(change: ObjectChange, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(refusals([change], SET, adopt=False)[0])


def test_adoption_is_said_aloud_and_protection_can_be_kept() -> None:
    foreign = ObjectChange("update", Key("", "ConfigMap", "slurm", "a"), document(config_map("a")), live(config_map("a"), None))
    protected = ObjectChange("update", Key("", "ConfigMap", "slurm", "b"), document(config_map("b")), annotated("b", PROTECT))
    assert refusals([foreign, protected], SET, adopt=True) == []


def test_what_is_retained_is_named() -> None:
    keep = ObjectChange("delete", Key("", "ConfigMap", "slurm", "a"), live=annotated("a", RETAIN))
    drop = ObjectChange("delete", Key("", "ConfigMap", "slurm", "b"), live=live(config_map("b")))
    assert [key.name for key in retained([keep, drop])] == ["a"]


def keeping(kind: str, field: str, when_deleted: str) -> dict[str, Any]:
    templates = [{"metadata": {"name": "data"}}]
    return {**config_map("db", kind=kind), "spec": {field: {"whenDeleted": when_deleted}, "volumeClaimTemplates": templates}}


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        pytest.param(config_map("home", kind="PersistentVolumeClaim"), "the claim and the data on its volume", id="claim"),
        pytest.param(config_map("home", kind="PersistentVolumeClaim", annotations={RETAIN: "true"}), "", id="claim-that-is-retained"),
        pytest.param(config_map("slurm", kind="Namespace"), "the namespace with all that is in it", id="namespace"),
        pytest.param(keeping("StatefulSet", "persistentVolumeClaimRetentionPolicy", "Delete"), "the set with its claims", id="set"),
        pytest.param(keeping("StatefulSet", "persistentVolumeClaimRetentionPolicy", "Retain"), "", id="set-whose-claims-stay"),
        pytest.param(keeping("NodeSet", "volumeClaimRetention", "Delete"), "the set with its claims", id="node-set"),
        pytest.param(config_map("files"), "", id="files"),
    ],
)
@pytest.mark.parametrize("op", ["delete", "update"])
def test_data_that_goes_is_named(gone: dict[str, Any], said: str, op: Any) -> None:
    found = losses([ObjectChange(op, key_of(gone), live=live(gone))])
    assert [line.startswith(f"{key_of(gone)}: {said}") for line in found] == ([True] if said and op != "update" else [])


def listed(name: str, declared_in: str = "sets") -> dict[str, Any]:
    return config_map(name, kind="NodeSet", annotations={DECLARED_IN: declared_in})


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


@pytest.mark.parametrize(("declared_in", "is_taken"), [("sets", True), ("others", False)])
def test_set_that_its_controller_has_not_deleted_yet_can_be_declared_again(declared_in: str, is_taken: bool) -> None:
    there = live(listed("burst", declared_in), None)
    again = ObjectChange("update", key_of(there), document(listed("burst")), there)
    assert (refusals([again], SET, adopt=False) == []) == is_taken


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


def widget_set(**spec: Any) -> dict[str, Any]:
    about = {"name": "gpu", "namespace": "slurm"}
    return {"apiVersion": "slipway.dev/v1alpha1", "kind": "NodeSet", "metadata": about, "spec": spec}


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


def definition(**about: Any) -> dict[str, Any]:
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "nodesets.x", **about}}


@pytest.mark.parametrize(
    ("there", "words"),
    [
        pytest.param(live(definition()), None, id="our-own"),
        pytest.param(live(definition(), None, annotations={RETAIN: "true"}), None, id="left-by-an-earlier-stack"),
        pytest.param(live(definition(), None), "was not made by this stack. Let one stack bring the kind", id="somebodys"),
        pytest.param(
            live(definition(), "applyset-x-v1", annotations={RETAIN: "true"}),
            "belongs to another stack. Let one stack bring the kind and leave it out of this one, or take it over with --adopt.",
            id="another-stacks",
        ),
    ],
)
def test_kind_is_taken_over_only_when_it_is_nobodys(there: dict[str, Any], words: str | None) -> None:
    change = ObjectChange("same", key_of(there), document(definition()), there)
    said = refusals([change], SET, adopt=False)
    assert len(said) == (1 if words else 0)
    assert words is None or words in said[0]


@pytest.mark.parametrize("kind", ["CustomResourceDefinition", "RuntimeClass", "Namespace", "PersistentVolumeClaim"])
@pytest.mark.parametrize(
    ("owner", "adopts", "refused"),
    [
        pytest.param(None, True, False, id="left-by-the-pulumi-cli"),
        pytest.param(None, False, True, id="somebodys"),
        pytest.param("applyset-x-v1", True, True, id="another-stacks"),
    ],
)
def test_what_outlives_stacks_is_taken_over_where_its_provider_does(kind: str, owner: str | None, adopts: bool, refused: bool) -> None:
    """The provider's `upsertExistingObjects` counts here as it does in the pulumi CLI, which leaves no mark on what it retains."""
    there = live(config_map("one", kind=kind), owner)
    change = ObjectChange("same", key_of(there), document(config_map("one", kind=kind), adopts=adopts), there)
    assert bool(refusals([change], SET, adopt=False)) == refused


def test_key_that_stays_is_neither_changed_nor_told() -> None:
    """The Secret of a key ignores its data until a rotation: no warning may hold the live key or the declared one."""
    declared = document(config_map("key", {"key": Secret("bmV3")}, "Secret"), ignored=("data",))
    there = live(config_map("key", {"key": "b2xk"}, "Secret"))
    beside = declared.beside(there)
    assert revealed(beside.manifest["data"]) == {"key": "b2xk"}
    assert beside.has_secrets
    assert left_as_they_are([ObjectChange("same", key_of(there), beside, there)]) == []


def test_retained_claim_is_never_taken_over_silently() -> None:
    there = live(config_map("data", kind="PersistentVolumeClaim"), None, annotations={RETAIN: "true"})
    change = ObjectChange("same", key_of(there), document(config_map("data", kind="PersistentVolumeClaim")), there)
    assert "was not made by this stack" in refusals([change], SET, adopt=False)[0]


def test_object_whose_kind_changes_first_is_compared_as_far_as_it_can_be() -> None:
    old, new = widget_set(replicas=2, placement="Any"), widget_set(replicas=3, size="new")
    [found] = object_changes([document(new)], {key_of(old): live(old)}, {}, {}, [], {key_of(old)})
    assert (found.op, found.note) == ("update", "the server judges it once its CustomResourceDefinition is new")
    assert found.differences == (Difference(("spec", "replicas"), 2, 3), Difference(("spec", "size"), None, "new"))


def test_files_changed_in_place_restart_nothing_and_new_things_say_nothing() -> None:
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
