"""The events of the guard, within what Kubernetes takes."""

import pytest

from controllers.guard.reports import build_event
from tests.support.controllers.guard.examples import service


def test_event_is_about_the_object_as_it_was() -> None:
    event = build_event(service(), "Restored", "note", 1_700_000_000.5, "guard-0")
    assert event["regarding"] == {"apiVersion": "v1", "kind": "Service", "name": "slurmctld", "namespace": "slurm", "uid": "u-1"}
    assert (event["eventTime"], event["reason"], event["note"], event["type"]) == (
        "2023-11-14T22:13:20.500000Z",
        "Restored",
        "note",
        "Warning",
    )
    assert (event["reportingInstance"], event["metadata"]["namespace"]) == ("guard-0", "slurm")


def test_each_deed_has_a_name_of_its_own_and_its_repetition_the_same() -> None:
    def name(reason: str, wall_s: float) -> str:
        return build_event(service(), reason, "note", wall_s, "guard-0")["metadata"]["name"]

    assert name("Restored", 1.0) == name("Restored", 1.0)
    assert len({name("Restored", 1.0), name("Restored", 2.0), name("GuardStopped", 1.0)}) == 3


@pytest.mark.parametrize(("size", "kept"), [(1024, 1024), (1025, 1024), (5000, 1024)])
def test_note_and_name_fit(size: int, kept: int) -> None:
    live = service()
    live["metadata"]["name"] = "n" * 253
    event = build_event(live, "Restored", "x" * size, 0, "guard-0")
    assert len(event["note"]) == kept
    assert event["note"].endswith("…") is (size > 1024)
    assert len(event["metadata"]["name"]) <= 253
