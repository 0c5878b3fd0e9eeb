import pytest

from controllers.nodeset.events import build_events, build_told
from controllers.nodeset.structs import Condition, NodeCause, NodeSetObject, NodeSetSpec, NodeSetStatus, PodTemplate, SlurmNodeStatus
from controllers.runtime.structs import ObjectMeta
from slurm.causes import Wish

SILENT = Condition("SlurmAnswers", "False", "SlurmSilent", "no answer for 20 s", 1, "2026-01-02T03:04:05Z")


def nodeset(*conditions: Condition) -> NodeSetObject:
    spec = NodeSetSpec("dev", PodTemplate({"containers": [{"name": "slurmd"}]}), replicas=1)
    return NodeSetObject(ObjectMeta(name="gpu", namespace="slurm", uid="u-1"), spec, NodeSetStatus(conditions=conditions))


def test_condition_that_turns_bad_is_a_warning_about_the_set() -> None:
    [event] = build_events(nodeset(), NodeSetStatus(conditions=(SILENT,)), "pod-a")
    assert (event["type"], event["reason"], event["note"]) == ("Warning", "SlurmSilent", "no answer for 20 s")
    assert event["regarding"]["uid"] == "u-1"
    assert event["eventTime"] == "2026-01-02T03:04:05.000000Z"


def test_one_turn_has_one_name_whoever_tells_it() -> None:
    names = {build_events(nodeset(), NodeSetStatus(conditions=(SILENT,)), pod)[0]["metadata"]["name"] for pod in ("a", "b")}
    assert len(names) == 1


def test_condition_that_stays_is_no_news() -> None:
    longer = Condition("SlurmAnswers", "False", "SlurmSilent", "no answer for 50 s", 1, "2026-01-02T03:04:05Z")
    assert build_events(nodeset(SILENT), NodeSetStatus(conditions=(longer,)), "a") == []


def test_good_condition_is_an_event_only_after_a_bad_one() -> None:
    good = Condition("SlurmAnswers", "True", "Answers", "", 1, "2026-01-02T03:05:05Z")
    assert build_events(nodeset(), NodeSetStatus(conditions=(good,)), "a") == []
    [event] = build_events(nodeset(SILENT), NodeSetStatus(conditions=(good,)), "a")
    assert event["type"] == "Normal"


def status(*causes: tuple[str, Wish]) -> SlurmNodeStatus:
    """A node's object with these causes, each with its wish."""
    since, next_ = "2026-01-02T03:04:05Z", "The check looks again at its next run."
    made = tuple(NodeCause(name, "node", "health check own", "port 3 is down", since, "own", next_, wish) for name, wish in causes)
    return SlurmNodeStatus(state="Up", causes=made)


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        pytest.param({}, status(("check/own", "none")), 1, id="new"),
        pytest.param({3: status()}, status(("check/own", "none")), 1, id="new-on-a-known-node"),
        pytest.param({3: status(("check/own", "none"))}, status(("check/own", "none")), 0, id="told-already"),
        pytest.param({}, status(("check/own", "drain")), 0, id="the-drain-says-it"),
        pytest.param({}, status(("condition/Slow", "none")), 0, id="no-check"),
    ],
)
def test_failure_that_drains_nothing_is_an_event(before: dict[int, SlurmNodeStatus], now: SlurmNodeStatus, told: int) -> None:
    events = build_told(nodeset(), {3: now}, before, "pod-a")
    note = "gpu-3 fails health check own, which does not drain it: port 3 is down"
    assert [(event["type"], event["reason"], event["note"]) for event in events] == [("Warning", "CheckFailed", note)] * told
    again = build_told(nodeset(), {3: now}, before, "pod-b")
    assert [event["metadata"]["name"] for event in again] == [event["metadata"]["name"] for event in events]
