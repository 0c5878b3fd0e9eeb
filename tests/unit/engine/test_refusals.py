"""What must not happen to live objects: refused by name, unless the user says so."""

from typing import Any

import pytest

from engine.changes import (
    ObjectChange,
    refusals,
)
from engine.render import Key, key_of
from names import annotations
from tests.unit.engine.live_objects import SET, annotated, config_map, document, listed, live


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            ObjectChange("delete", Key("", "ConfigMap", "slurm", "a"), live=annotated("a", annotations.PROTECT)),
            "protected and no longer",
            id="protected",
        ),
        pytest.param(
            ObjectChange(
                "replace",
                Key("", "ConfigMap", "slurm", "a"),
                document(config_map("a")),
                annotated("a", annotations.PROTECT),
                note="immutable",
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
    protected = ObjectChange("update", Key("", "ConfigMap", "slurm", "b"), document(config_map("b")), annotated("b", annotations.PROTECT))
    assert refusals([foreign, protected], SET, adopt=True) == []


@pytest.mark.parametrize(("declared_in", "is_taken"), [("sets", True), ("others", False)])
def test_set_that_its_controller_is_still_deleting_can_be_declared_again(declared_in: str, is_taken: bool) -> None:
    there = live(listed("burst", declared_in), None)
    again = ObjectChange("update", key_of(there), document(listed("burst")), there)
    assert (refusals([again], SET, adopt=False) == []) == is_taken


def definition(**about: Any) -> dict[str, Any]:
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "nodesets.x", **about}}


@pytest.mark.parametrize(
    ("there", "words"),
    [
        pytest.param(live(definition()), None, id="our-own"),
        pytest.param(live(definition(), None, annotations={annotations.RETAIN: "true"}), None, id="left-by-an-earlier-stack"),
        pytest.param(live(definition(), None), "was not made by this stack. Let one stack bring the kind", id="somebodys"),
        pytest.param(
            live(definition(), "applyset-x-v1", annotations={annotations.RETAIN: "true"}),
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


def test_retained_claim_is_never_taken_over_silently() -> None:
    there = live(config_map("data", kind="PersistentVolumeClaim"), None, annotations={annotations.RETAIN: "true"})
    change = ObjectChange("same", key_of(there), document(config_map("data", kind="PersistentVolumeClaim")), there)
    assert "was not made by this stack" in refusals([change], SET, adopt=False)[0]
