from controllers.nodeset.events import build_events
from controllers.nodeset.structs import Condition, NodeSet, NodeSetSpec, NodeSetStatus, PodTemplate
from controllers.runtime.structs import ObjectMeta

SILENT = Condition("SlurmAnswers", "False", "SlurmSilent", "no answer for 20 s", 1, "2026-01-02T03:04:05Z")


def nodeset(*conditions: Condition) -> NodeSet:
    spec = NodeSetSpec("dev", PodTemplate({"containers": [{"name": "slurmd"}]}), replicas=1)
    return NodeSet(ObjectMeta(name="gpu", namespace="slurm", uid="u-1"), spec, NodeSetStatus(conditions=conditions))


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


def test_good_condition_of_a_new_set_is_no_news_and_one_that_turned_good_is() -> None:
    good = Condition("SlurmAnswers", "True", "Answers", "", 1, "2026-01-02T03:05:05Z")
    assert build_events(nodeset(), NodeSetStatus(conditions=(good,)), "a") == []
    [event] = build_events(nodeset(SILENT), NodeSetStatus(conditions=(good,)), "a")
    assert event["type"] == "Normal"
